use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kerf_api::condition::Conditions;
use kerf_cloud::provider::class::{Image, ResolvedNodeClass, SecurityGroup, VSwitch};
use kerf_core::instance_type::{InstanceType, Offering};
use kerf_core::price::Price;
use kerf_core::requirement::{Operator, Requirement};
use kerf_core::resources::Resources;
use serde_json::json;

use super::*;

/// A claim that is exactly what its surroundings would make, and these surroundings.
struct Case {
    claim: NodeClaim,
    pool: NodePool,
    requirements: Requirements,
    class: ClassState,
    network: Network,
    policies: String,
    age_secs: i64,
}

const HOUR: i64 = 3600;

impl Case {
    fn new() -> Self {
        let spec = json!({"template": {"spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "default"}}}});
        let mut pool = NodePool::new("general", serde_json::from_value(spec).unwrap());
        POOL_HASH.put("1", pool.annotations_mut());
        let requirements = [Requirement::in_values(labels::ZONE, ["h", "i"])];
        Self {
            claim: claim(),
            pool,
            requirements: requirements.into_iter().collect(),
            class: class(),
            network: Network {
                vswitch_id: "vsw-1".to_owned(),
                security_group_ids: vec!["sg-1".to_owned(), "sg-2".to_owned()],
            },
            policies: "data=sha256:1/0".to_owned(),
            age_secs: 2 * HOUR,
        }
    }

    fn judge(&self) -> Verdict {
        let wanted = Wanted {
            pool: &self.pool,
            requirements: Some(&self.requirements),
            class: Some(&self.class),
            policies: Some(&self.policies),
            network: Some(&self.network),
            type_delay: SignedDuration::from_secs(HOUR),
        };
        judge(
            &self.claim,
            &wanted,
            Timestamp::from_second(self.age_secs).unwrap(),
        )
    }

    fn check(self, expected: &str) {
        match self.judge() {
            Verdict::Drifted(drift) => assert_eq!(drift.reason, expected, "{}", drift.message),
            Verdict::Current => assert_eq!(expected, ""),
            Verdict::Unknown => assert_eq!(expected, "unknown"),
        }
    }
}

fn claim() -> NodeClaim {
    let mut claim = NodeClaim::new("general-1", Default::default());
    claim.metadata.creation_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    claim.spec.node_class_ref.name = "default".to_owned();
    let pairs = [
        (labels::INSTANCE_TYPE, "ecs.g7.large"),
        (labels::ZONE, "h"),
        (labels::CAPACITY_TYPE, "on-demand"),
        (labels::ARCH, "amd64"),
    ];
    *claim.labels_mut() = pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    POOL_HASH.put("1", claim.annotations_mut());
    CLASS_HASH.put("2", claim.annotations_mut());
    claim.annotations_mut().insert(
        annotation::LAUNCH_POLICIES.to_owned(),
        "data=sha256:1/0".to_owned(),
    );
    let mut conditions = Conditions::open(
        NodeClaim::CONDITIONS,
        &[],
        1,
        Timestamp::UNIX_EPOCH,
        Timestamp::UNIX_EPOCH,
    );
    conditions.set_true(condition::LAUNCHED);
    let status = claim.status.get_or_insert_default();
    status.image_id = Some("m-1".to_owned());
    status.conditions = conditions.finish();
    claim
}

fn class() -> ClassState {
    let resolved = ResolvedNodeClass {
        spec: Default::default(),
        cluster_id: String::new(),
        vswitches: vec![VSwitch {
            id: "vsw-1".to_owned(),
            zone_id: "h".to_owned(),
            vpc_id: String::new(),
            ips_available: 1,
        }],
        security_groups: ["sg-2", "sg-1"]
            .map(|id| SecurityGroup {
                id: id.to_owned(),
                name: String::new(),
                vpc_id: String::new(),
            })
            .into(),
        images: vec![image_of("m-1")],
        key_pair_name: String::new(),
        private_pools: Vec::new(),
        warnings: Vec::new(),
    };
    ClassState {
        hash: "2".to_owned(),
        resolved: Arc::new(resolved),
        instance_types: Arc::new(vec![Arc::new(sold(
            "ecs.g7.large",
            "h",
            CapacityType::OnDemand,
        ))]),
        free_ips: BTreeMap::new(),
        is_zone_balanced: false,
    }
}

fn image_of(id: &str) -> Image {
    Image {
        id: id.to_owned(),
        name: String::new(),
        architecture: Architecture::Amd64,
        created_at: String::new(),
        size_gib: 20,
    }
}

fn sold(name: &str, zone: &str, capacity_type: CapacityType) -> InstanceType {
    let mut offering = Offering::new(zone, capacity_type, Price::UNKNOWN);
    offering.unavailable = Some("no stock".to_owned().into());
    let none = Resources::default();
    InstanceType::new(name, [], none.clone(), none, vec![offering])
}

fn with_types(types: Vec<InstanceType>) -> Case {
    let mut case = Case::new();
    case.class.instance_types = Arc::new(types.into_iter().map(Arc::new).collect());
    case
}

fn with_class(change: impl FnOnce(&mut ResolvedNodeClass)) -> Case {
    let mut case = Case::new();
    change(Arc::make_mut(&mut case.class.resolved));
    case
}

#[test]
fn what_would_be_made_today_has_not_drifted() {
    Case::new().check("");
}

#[test]
fn a_claim_without_an_instance_has_not_drifted() {
    let mut case = Case::new();
    case.claim.status = None;
    POOL_HASH.put("9", case.pool.annotations_mut());
    case.check("");
}

#[test]
fn another_template_drifts_where_both_hashes_are_of_todays_version() {
    let mut case = Case::new();
    POOL_HASH.put("9", case.pool.annotations_mut());
    case.check(reason::NODEPOOL_DRIFTED);

    for key in [annotation::NODEPOOL_HASH, annotation::NODEPOOL_HASH_VERSION] {
        let mut case = Case::new();
        POOL_HASH.put("9", case.pool.annotations_mut());
        case.claim.annotations_mut().remove(key);
        case.check("");
    }
    let mut case = Case::new();
    POOL_HASH.put("9", case.pool.annotations_mut());
    case.claim.annotations_mut().insert(
        annotation::NODEPOOL_HASH_VERSION.to_owned(),
        "v1".to_owned(),
    );
    case.check("");
}

#[test]
fn requirements_that_the_labels_do_not_meet_drift() {
    let require = |requirement| {
        let mut case = Case::new();
        case.requirements.add(requirement);
        case
    };
    let item = |key, operator, values: &[&str]| {
        Requirement::parse(key, operator, values.iter().copied()).unwrap()
    };

    require(Requirement::in_values(labels::ZONE, ["i"])).check(reason::REQUIREMENTS_DRIFTED);
    require(Requirement::in_values("team", ["a"])).check(reason::REQUIREMENTS_DRIFTED);
    require(item("team", Operator::NotIn, &["a"])).check("");
    require(item("team", Operator::DoesNotExist, &[])).check("");
    require(item(labels::ARCH, Operator::Exists, &[])).check("");
}

#[test]
fn a_type_that_is_not_offered_any_more_drifts_once_the_claim_is_old_enough() {
    let types = || vec![sold("ecs.c7.large", "h", CapacityType::OnDemand)];
    with_types(types()).check(reason::INSTANCE_TYPE_NOT_FOUND);

    let mut young = with_types(types());
    young.age_secs = HOUR - 1;
    young.check("");
}

#[test]
fn a_type_without_an_offering_for_its_zone_and_capacity_type_drifts() {
    let name = "ecs.g7.large";
    with_types(vec![sold(name, "i", CapacityType::OnDemand)])
        .check(reason::INSTANCE_TYPE_NOT_FOUND);
    with_types(vec![sold(name, "h", CapacityType::Spot)]).check(reason::INSTANCE_TYPE_NOT_FOUND);

    let mut reserved = Case::new();
    let label = (labels::CAPACITY_TYPE.to_owned(), "reserved".to_owned());
    reserved.claim.labels_mut().extend([label]);
    reserved.check("");
}

#[test]
fn another_class_drifts() {
    let mut case = Case::new();
    case.class.hash = "9".to_owned();
    case.check(reason::NODE_CLASS_DRIFT);
}

#[test]
fn a_newer_image_of_the_architecture_drifts() {
    with_class(|class| class.images.insert(0, image_of("m-2"))).check(reason::IMAGE_DRIFT);
    with_class(|class| class.images.push(image_of("m-0"))).check("");
    with_class(|class| {
        let mut other = image_of("m-9");
        other.architecture = Architecture::Arm64;
        class.images.insert(0, other);
    })
    .check("");
}

#[test]
fn a_network_that_the_class_does_not_name_drifts() {
    with_class(|class| class.vswitches[0].id = "vsw-2".to_owned()).check(reason::VSWITCH_DRIFT);
    with_class(|class| drop(class.security_groups.pop())).check(reason::SECURITY_GROUP_DRIFT);
    with_class(|class| class.security_groups[0].id = "sg-3".to_owned())
        .check(reason::SECURITY_GROUP_DRIFT);
}

#[test]
fn another_bootstrap_policy_drifts_and_a_claim_that_remembers_none_does_not() {
    let mut case = Case::new();
    case.policies = "data=sha256:2/0".to_owned();
    case.check(reason::POLICY_DRIFT);

    let mut case = Case::new();
    case.policies = "data=sha256:2/0".to_owned();
    case.claim
        .annotations_mut()
        .remove(annotation::LAUNCH_POLICIES);
    case.check("");
}

#[test]
fn what_cannot_be_looked_at_leaves_drift_as_it_was() {
    let case = Case::new();
    let wanted = Wanted {
        pool: &case.pool,
        requirements: None,
        class: None,
        policies: None,
        network: None,
        type_delay: SignedDuration::ZERO,
    };
    let now = Timestamp::from_second(HOUR).unwrap();

    assert_eq!(judge(&case.claim, &wanted, now), Verdict::Unknown);
    let blind = Wanted {
        class: Some(&case.class),
        ..wanted
    };
    assert_eq!(judge(&case.claim, &blind, now), Verdict::Unknown);
    assert!(outlives_unknown(reason::IMAGE_DRIFT));
    assert!(!outlives_unknown(reason::REQUIREMENTS_DRIFTED));
}

#[test]
fn a_claim_of_another_provider_never_drifts() {
    let mut case = Case::new();
    POOL_HASH.put("2", case.claim.annotations_mut());
    let class = &mut case.claim.spec.node_class_ref;
    class.group = crate::adoption::OTHER_GROUP.to_owned();
    class.kind = "ECSNodeClass".to_owned();

    assert_eq!(case.judge(), Verdict::Current);
}

/// Each plan reads stock anew, and all claims of a large fleet were looked at again after each.
#[test]
fn stock_that_was_read_anew_is_another_class_only_where_something_else_is_sold() {
    let (before, mut now) = (class(), class());
    let mut type_ = sold("ecs.g7.large", "h", CapacityType::OnDemand);
    type_.offerings[0].unavailable = None;
    now.instance_types = Arc::new(vec![Arc::new(type_)]);
    now.free_ips.insert("h".into(), 7);
    Arc::make_mut(&mut now.resolved).vswitches[0].ips_available = 7;
    assert!(now.offers_the_same(&before));

    let elsewhere = sold("ecs.g7.large", "i", CapacityType::OnDemand);
    for types in [vec![elsewhere], vec![]] {
        let types = types.into_iter().map(Arc::new).collect();
        now.instance_types = Arc::new(types);
        assert!(!now.offers_the_same(&before));
    }
    let mut other_image = class();
    Arc::make_mut(&mut other_image.resolved).images[0] = image_of("m-2");
    assert!(!other_image.offers_the_same(&before));
}
