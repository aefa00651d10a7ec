//! CapacityBuffers: pods that do not exist, planned after all real ones so that room for them is kept.
//!
//! A [`Buffer`] gives its virtual pods; scheduling plans them like others, last. They get no nomination and no event, and
//! a real pod takes their room at any time.

use std::sync::Arc;

use jiff::Timestamp;

use crate::ids::PodUid;
use crate::pod::{DoNotDisrupt, OwnerKind, Pod, PodPhase, PodSpec};
use crate::resources::{Limits, Resources};

/// No buffer stands for more pods than this: beyond, somebody mistyped a number, and every round would plan it.
pub const BUFFER_PODS_MAX: u32 = 5_000;

/// How many pods a buffer is to have room for, as its user wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BufferDemand {
    /// A fixed number.
    pub replicas: Option<u32>,
    /// A percentage of the replicas of the workload.
    pub percentage: Option<u32>,
    /// The replicas of the workload.
    pub workload_replicas: u32,
    /// The most that all its pods may ask for together.
    pub limits: Limits,
}

impl BufferDemand {
    /// How many pods of that size: the larger of number and percentage (which gives at least one), or as many as the
    /// limits hold where neither is given; never more than those. Karpenter: same.
    pub fn pods(&self, requests: &Resources) -> u32 {
        let share = self.percentage.map(|percentage| {
            let share = u64::from(self.workload_replicas) * u64::from(percentage);
            u32::try_from(share.div_ceil(100))
                .unwrap_or(u32::MAX)
                .max(1)
        });
        let share = share.filter(|_| self.percentage != Some(0));
        let wanted = self.replicas.max(share);
        let most = self.most(requests);
        let pods = match (wanted, most) {
            (Some(wanted), most) => wanted.min(most.unwrap_or(u32::MAX)),
            (None, most) if self.percentage.is_none() => most.unwrap_or(0),
            (None, _) => 0,
        };
        pods.min(BUFFER_PODS_MAX)
    }

    /// How many pods the limits hold; none when they bound nothing that a pod asks for.
    fn most(&self, requests: &Resources) -> Option<u32> {
        let bounds = self.limits.iter().filter_map(|(name, limit)| {
            let request = requests.amount(name);
            (request > 0).then(|| u32::try_from((limit.max(0)) / request).unwrap_or(u32::MAX))
        });
        bounds.min()
    }
}

/// A buffer whose pods are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// Its namespace, and that of its pods.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: Arc<str>,
    /// When it was created.
    pub created_at: Timestamp,
    /// What one pod asks for; [`Buffer::new`] makes it a virtual one.
    spec: Arc<PodSpec>,
    /// How many pods.
    pub pods: u32,
}

impl Buffer {
    /// A buffer of pods of that spec: without volumes and gates, owned by the buffer, of the least priority there is.
    pub fn new(namespace: &str, name: &str, uid: &str, spec: PodSpec, pods: u32) -> Self {
        let spec = PodSpec {
            volumes: Vec::new(),
            scheduling_gates: Vec::new(),
            priority: i32::MIN,
            owner: OwnerKind::CapacityBuffer,
            ..spec
        };
        Self {
            namespace: Arc::from(namespace),
            name: Arc::from(name),
            uid: Arc::from(uid),
            created_at: Timestamp::UNIX_EPOCH,
            spec: Arc::new(spec),
            pods,
        }
    }

    /// The uid of the buffer that a virtual pod belongs to.
    pub fn uid_of(pod: &Pod) -> Option<String> {
        let uid = pod.uid.text();
        let (uid, _) = uid.rsplit_once('-')?;
        pod.is_virtual().then(|| uid.to_owned())
    }

    /// Its virtual pods. Their names and uids are the same each time.
    pub fn virtual_pods(&self) -> impl Iterator<Item = Pod> {
        (0..self.pods).map(|nth| Pod {
            namespace: Arc::clone(&self.namespace),
            name: Arc::from(format!("capacity-buffer-{}-{nth}", self.name)),
            uid: PodUid::from(format!("{}-{nth}", self.uid)),
            created_at: self.created_at,
            do_not_disrupt: DoNotDisrupt::No,
            phase: PodPhase::Active,
            spec: Arc::clone(&self.spec),
            ..Pod::new("", PodSpec::default())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::Volume;

    fn demand(
        replicas: Option<u32>,
        percentage: Option<u32>,
        workload_replicas: u32,
    ) -> BufferDemand {
        BufferDemand {
            replicas,
            percentage,
            workload_replicas,
            limits: Limits::default(),
        }
    }

    #[test]
    fn the_larger_of_number_and_percentage_counts_and_a_percentage_gives_at_least_one() {
        let one = Resources::of(1000, 1 << 30);
        let pods =
            |replicas, percentage, workload| demand(replicas, percentage, workload).pods(&one);

        assert_eq!(pods(Some(3), None, 0), 3);
        assert_eq!(pods(None, Some(20), 11), 3);
        assert_eq!(pods(Some(2), Some(50), 10), 5);
        assert_eq!(pods(Some(7), Some(50), 10), 7);
        assert_eq!(pods(None, Some(10), 0), 1);
        assert_eq!(pods(None, Some(0), 10), 0);
        assert_eq!(pods(None, None, 10), 0);
        assert_eq!(pods(Some(u32::MAX), None, 0), BUFFER_PODS_MAX);
    }

    #[test]
    fn limits_bound_the_number_and_give_it_where_nothing_else_does() {
        let mut limits = Limits::default();
        limits.set("cpu", 3500);
        limits.set("memory", 2 << 30);
        limits.set("example.com/fuse", 1);
        let limited = |replicas| BufferDemand {
            replicas,
            limits: limits.clone(),
            ..BufferDemand::default()
        };
        let (small, large) = (Resources::of(1000, 1 << 29), Resources::of(100, 1 << 30));

        assert_eq!(limited(Some(9)).pods(&small), 3);
        assert_eq!(limited(Some(1)).pods(&small), 1);
        assert_eq!(limited(None).pods(&large), 2);
        assert_eq!(limited(None).pods(&Resources::default()), 0);
    }

    #[test]
    fn virtual_pods_have_fixed_names_and_nothing_that_would_hold_a_real_one_back() {
        let spec = PodSpec {
            priority: 1000,
            scheduling_gates: vec!["later".to_owned()],
            volumes: vec![Volume {
                claim: "shop/data".to_owned(),
                alternatives: Vec::new(),
                attachment: None,
                problem: None,
            }],
            ..PodSpec::requesting(1000, 1)
        };
        let buffer = Buffer::new("shop", "web", "u1", spec, 2);

        let pods: Vec<Pod> = buffer.virtual_pods().collect();

        let names: Vec<&str> = pods.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["capacity-buffer-web-0", "capacity-buffer-web-1"]);
        let last = &pods[1];
        assert_eq!((&*last.uid.text(), &*last.namespace), ("u1-1", "shop"));
        assert_eq!(last.spec.priority, i32::MIN);
        assert!(last.spec.volumes.is_empty() && last.spec.scheduling_gates.is_empty());
        assert_eq!(Buffer::uid_of(last).as_deref(), Some("u1"));
        assert_eq!(Buffer::uid_of(&Pod::new("a-1", PodSpec::default())), None);
    }
}
