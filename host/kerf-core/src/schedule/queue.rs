//! The queue: pods are placed one by one, and those that fail are tried again while others find a place.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::class::{Class, Guest};
use super::domains::KeyId;
use super::place::Spot;
use super::round::{Round, Seat};
use crate::ids::PodUid;
use crate::plan::{Placement, PlacementReason, WorkBudget};
use crate::pod::Pod;
use crate::schedule::Homes;

/// What became of the pods of a round, apart from the claims.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) placements: Vec<Placement>,
    pub(super) order: Vec<PodUid>,
    /// Pods without a place, and whether they were tried.
    pub(super) left: Vec<(usize, bool)>,
    /// Whether the work budget ended before every pod was tried.
    pub(super) is_partial: bool,
}

/// Pods of one class without a place.
#[derive(Debug)]
pub(super) struct Unplaced {
    pub(super) class: usize,
    pub(super) was_tried: bool,
    pub(super) pods: Vec<Arc<Pod>>,
}

/// How far a pod may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Only as upstream would.
    First,
    /// Also where only kube-scheduler would put it.
    LastResort,
}

struct Queue {
    /// Pods, with the number of placements there were when each was last tried.
    pods: VecDeque<(usize, Option<usize>)>,
    /// Pods that nothing can help.
    hopeless: Vec<usize>,
    placements: Vec<Placement>,
    order: Vec<PodUid>,
    placed: usize,
    budget: u64,
}

/// Places pods until a whole pass over those that are left changes nothing.
pub(super) fn place_all(
    round: &mut Round<'_>,
    classes: &mut [Class],
    homes: &Homes,
    budget: WorkBudget,
) -> Outcome {
    place_some(round, classes, 0..round.pods.len(), homes, budget)
}

/// Places some of the round's pods, in that order, until a whole pass over those that are left changes nothing.
pub(super) fn place_some(
    round: &mut Round<'_>,
    classes: &mut [Class],
    pods: impl Iterator<Item = usize>,
    homes: &Homes,
    budget: WorkBudget,
) -> Outcome {
    let pods: VecDeque<(usize, Option<usize>)> = pods.map(|pod| (pod, None)).collect();
    let queue = Queue {
        order: Vec::with_capacity(pods.len()),
        pods,
        hopeless: Vec::new(),
        placements: Vec::new(),
        placed: 0,
        budget: budget.0,
    };
    queue.run_stages(round, classes, homes)
}

/// Places what is left once more, after claims became fewer: a limit of their pool may have room again.
pub(super) fn place_rest(
    round: &mut Round<'_>,
    classes: &mut [Class],
    outcome: Outcome,
    budget: WorkBudget,
) -> Outcome {
    let (tried, untried): (Vec<_>, Vec<_>) = outcome.left.into_iter().partition(|(_, it)| *it);
    let mut pods: VecDeque<_> = tried.into_iter().map(|(pod, _)| (pod, None)).collect();
    pods.make_contiguous().sort_unstable();
    for class in classes.iter_mut() {
        class.failed_at = None;
    }
    let queue = Queue {
        pods,
        hopeless: Vec::new(),
        placements: outcome.placements,
        placed: outcome.order.len(),
        order: outcome.order,
        budget: budget.0,
    };
    let mut outcome = Outcome {
        is_partial: outcome.is_partial,
        ..queue.run_stages(round, classes, &Homes::new())
    };
    outcome.left.extend(untried);
    outcome
}

impl Queue {
    /// Places the real pods, and then the virtual ones on what is left over.
    fn run_stages(
        mut self,
        round: &mut Round<'_>,
        classes: &mut [Class],
        homes: &Homes,
    ) -> Outcome {
        let budget = self.budget;
        let real = round.pods.partition_point(|pod| !pod.is_virtual());
        let (first, later): (VecDeque<_>, VecDeque<_>) =
            self.pods.drain(..).partition(|(pod, _)| *pod < real);
        self.pods = first;
        self.send_home(round, classes, homes);
        let mut of_real = self.run_passes(round, classes);
        if later.is_empty() {
            return of_real;
        }
        let mut queue = Self {
            pods: later,
            hopeless: Vec::new(),
            placements: std::mem::take(&mut of_real.placements),
            placed: of_real.order.len(),
            order: std::mem::take(&mut of_real.order),
            budget,
        };
        queue.send_home(round, classes, homes);
        let mut all = queue.run_passes(round, classes);
        all.is_partial |= of_real.is_partial;
        all.left.extend(of_real.left);
        all
    }

    /// Puts pods where an earlier round planned them, as long as that is still possible. Without this the pods of claims
    /// that are on their way would be packed anew, and some would no longer fit.
    fn send_home(&mut self, round: &mut Round<'_>, classes: &[Class], homes: &Homes) {
        if homes.is_empty() {
            return;
        }
        let nodes = round.nodes.by_target();
        let home_of = |pod: usize| Some((pod, *nodes.get(homes.get(&round.pods[pod].uid)?)?));
        let mut waiting: Vec<(usize, usize)> = self
            .pods
            .iter()
            .filter_map(|(pod, _)| home_of(*pod))
            .collect();
        let mut settled = BTreeSet::new();
        // A pod can depend on one that comes later, so this goes on while it helps.
        loop {
            let before = settled.len();
            waiting.retain(|(pod, home)| {
                let class = &classes[round.class_of[*pod]];
                let mut variants = class.variants.iter().enumerate();
                let fitting = variants.find(|(_, variant)| {
                    !variant.is_last_resort && round.fits_home(Guest { class, variant }, *home)
                });
                if let Some((variant, _)) = fitting {
                    self.place(
                        round,
                        *pod,
                        class,
                        (variant, &Spot::Node(*home)),
                        PlacementReason::Kept,
                    );
                    settled.insert(*pod);
                }
                fitting.is_none()
            });
            if settled.len() == before || waiting.is_empty() {
                break;
            }
        }
        self.pods.retain(|(pod, _)| !settled.contains(pod));
    }

    fn run_passes(mut self, round: &mut Round<'_>, classes: &mut [Class]) -> Outcome {
        self.run(round, classes, Pass::First);
        let is_partial = self.pods.iter().any(|(_, tried_at)| tried_at.is_none());
        let class_of = |(pod, _): &(usize, Option<usize>)| round.class_of[*pod];
        let waiting: BTreeSet<usize> = self.pods.iter().map(class_of).collect();
        let last_resort: Vec<&Class> = waiting
            .into_iter()
            .map(|class| &classes[class])
            .filter(|class| class.variants.iter().any(|it| it.is_last_resort))
            .collect();
        if !is_partial && !last_resort.is_empty() {
            let variants = last_resort.iter().flat_map(|class| &class.variants);
            let keys: BTreeSet<KeyId> = variants.flat_map(|it| &it.keys).copied().collect();
            for (_, tried_at) in &mut self.pods {
                *tried_at = None;
            }
            for class in classes.iter_mut() {
                class.failed_at = None;
            }
            round.settle_claims(&keys.into_iter().collect::<Vec<_>>());
            // The first pass went on in the order of failure; the pods' own order is the one to keep.
            self.pods.make_contiguous().sort_unstable();
            self.run(round, classes, Pass::LastResort);
        }
        let left = self.hopeless.into_iter().map(|pod| (pod, true));
        let waiting = self.pods.into_iter();
        let left = left
            .chain(waiting.map(|(pod, tried_at)| (pod, !is_partial || tried_at.is_some())))
            .collect();
        Outcome {
            placements: self.placements,
            order: self.order,
            left,
            is_partial,
        }
    }

    fn run(&mut self, round: &mut Round<'_>, classes: &mut [Class], pass: Pass) {
        while let Some((pod, tried_at)) = self.pods.pop_front() {
            // The rest was tried after this pod was, and nothing has changed since.
            if tried_at == Some(self.placed) || round.work >= self.budget {
                self.pods.push_front((pod, tried_at));
                break;
            }
            let class = &mut classes[round.class_of[pod]];
            let spot = match class.failed_at {
                Some(at) if at == self.placed || !class.depends_on_others() => None,
                _ => find_with_preferences(round, class, pass),
            };
            match spot {
                Some((variant, spot)) => {
                    self.place(
                        round,
                        pod,
                        class,
                        (variant, &spot),
                        PlacementReason::FirstThatFits,
                    );
                }
                None => {
                    class.failed_at = Some(self.placed);
                    if class.depends_on_others() {
                        self.pods.push_back((pod, Some(self.placed)));
                    } else {
                        self.hopeless.push(pod);
                    }
                }
            }
        }
    }

    fn place(
        &mut self,
        round: &mut Round<'_>,
        pod: usize,
        class: &Class,
        (variant, spot): (usize, &Spot),
        reason: PlacementReason,
    ) {
        round.commit(pod, class, spot);
        round.seats[pod] = Seat {
            variant,
            turn: self.placed,
        };
        self.placed += 1;
        self.order.push(round.pods[pod].uid.clone());
        if let Spot::Node(node) = spot {
            let pod = Arc::clone(&round.pods[pod]);
            self.placements.push(Placement {
                pod,
                node: round.nodes.target(*node),
                reason,
            });
        }
    }
}

/// Tries the class with all its preferences, then with one less each. The number is that of the variant.
fn find_with_preferences(
    round: &mut Round<'_>,
    class: &Class,
    pass: Pass,
) -> Option<(usize, Spot)> {
    let variants = class.variants.iter().enumerate();
    variants
        .filter(|(_, variant)| !variant.is_last_resort || pass == Pass::LastResort)
        .find_map(|(idx, variant)| Some((idx, round.find_spot(Guest { class, variant })?)))
}

/// The pods without a place by class.
pub(super) fn unplaced(round: &Round<'_>, left: Vec<(usize, bool)>) -> Vec<Unplaced> {
    let mut by_class: BTreeMap<(usize, bool), Vec<usize>> = BTreeMap::new();
    for (pod, was_tried) in left {
        by_class
            .entry((round.class_of[pod], was_tried))
            .or_default()
            .push(pod);
    }
    let of_class = by_class.into_iter().map(|((class, was_tried), mut pods)| {
        pods.sort_unstable();
        let pods = pods
            .into_iter()
            .map(|pod| Arc::clone(&round.pods[pod]))
            .collect();
        Unplaced {
            class,
            was_tried,
            pods,
        }
    });
    of_class.collect()
}
