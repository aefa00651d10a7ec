//! What would be decided about an object of manifests.

use kerf_api::explanation::{Explanations, Outcome, PodExplanation};
use kerf_core::node::Node;
use kerf_core::plan::PlannedClaim;

use crate::explain::args::{Explain, Kind};
use crate::explain::story::Story;
use crate::simulate::args::{Ask, WhatIf};
use crate::simulate::complaint::Complaint;
use crate::simulate::world::Planned;
use crate::simulate::{Order, decided};
use crate::work::Work;

/// Names that are offered when one is not there.
const NAMES_MAX: usize = 8;

/// Decides, and tells of the object.
pub(crate) fn tell(args: &Explain) -> Result<Story, Vec<Complaint>> {
    let work = Work::begin();
    let order = Order {
        files: &args.files,
        ask: Ask { disrupt: true },
        source: &args.source,
        what_if: &WhatIf::default(),
    };
    let planned = decided(&order, &work, &|_| ());
    work.end();
    let planned = planned?;
    let story = match args.kind {
        Kind::Pod => pod(&planned, &args.namespace, &args.name),
        Kind::Node => planned
            .node(|it| it.name.as_deref() == Some(&args.name))
            .map(|it| node(&planned, it)),
        Kind::NodeClaim => planned
            .node(|it| it.node_claim.as_deref() == Some(&args.name))
            .map(|it| node(&planned, it)),
        Kind::NodePool => pool(&planned, &args.name),
    };
    story.ok_or_else(|| vec![missing(&planned, args)])
}

impl Planned {
    fn node(&self, is_meant: impl Fn(&Node) -> bool) -> Option<&Node> {
        self.world
            .snapshot
            .nodes
            .iter()
            .map(|it| &**it)
            .find(|it| is_meant(it))
    }
}

fn pod(planned: &Planned, namespace: &str, name: &str) -> Option<Story> {
    let explanations = Explanations::of(&planned.plan).pods.into_iter();
    let mut explanations = explanations.filter(|it| it.namespace == namespace && it.name == name);
    if let Some(explanation) = explanations.next() {
        return Some(waiting(planned, explanation));
    }
    let on = planned.node(|node| {
        let mut pods = node.pods.iter();
        pods.any(|pod| &*pod.namespace == namespace && &*pod.name == name)
    })?;
    Some(Story {
        object: format!("Pod {namespace}/{name}"),
        state: format!("is on node {}", on.display_name()),
        related: vec![node(planned, on)],
        ..Story::default()
    })
}

fn waiting(planned: &Planned, explanation: PodExplanation) -> Story {
    let mut related = Vec::new();
    let state = match explanation.outcome {
        Outcome::Unschedulable => "has no place".to_owned(),
        Outcome::NewNode => {
            let pool = explanation.node_pool.as_deref().unwrap_or_default();
            format!("a node of NodePool {pool} is launched for it")
        }
        Outcome::ExistingNode => {
            let name = explanation
                .node
                .as_ref()
                .or(explanation.node_claim.as_ref());
            let name = name.map(String::as_str).unwrap_or_default();
            let found = planned.node(|it| it.display_name() == name);
            related.extend(found.map(|it| node(planned, it)));
            format!("goes to {name}")
        }
    };
    let reasons = if explanation.pools.is_empty() {
        vec![explanation.message.clone()]
    } else {
        let pools = explanation.pools.iter();
        pools
            .map(|it| format!("NodePool {}: {}", it.node_pool, it.message))
            .collect()
    };
    Story {
        object: format!("Pod {}/{}", explanation.namespace, explanation.name),
        state,
        explanation: Some(explanation),
        reasons,
        related,
        ..Story::default()
    }
}

fn node(planned: &Planned, node: &Node) -> Story {
    let claim = node.node_claim.as_deref().unwrap_or_default();
    let mut story = Story {
        object: match &node.name {
            Some(name) => format!("Node {name}"),
            None => format!("NodeClaim {claim}"),
        },
        state: "is not managed by kerf".to_owned(),
        ..Story::default()
    };
    let Some(decision) = planned.decision.as_ref().filter(|_| !claim.is_empty()) else {
        return story;
    };
    let kept = decision.kept.iter().find(|it| &*it.node_claim == claim);
    if let Some(kept) = kept {
        story.state = match kept.reason.ends_at() {
            Some(until) => format!("stays, at least until {until}"),
            None => "stays".to_owned(),
        };
        story.reasons.push(kept.reason.to_string());
    }
    for command in &decision.commands {
        let mut candidates = command.candidates.iter();
        if let Some(candidate) = candidates.find(|it| &*it.node_claim == claim) {
            story.state = "would go now".to_owned();
            story.reasons.push(candidate.note.clone());
            story.reasons.push(command.to_string());
        }
    }
    story
}

fn pool(planned: &Planned, name: &str) -> Option<Story> {
    let snapshot = &planned.world.snapshot;
    let pool = snapshot.pools.iter().find(|it| &*it.name == name)?;
    let problems = planned.plan.pool_problems.iter();
    let problem = problems.filter(|it| it.pool == pool.name);
    let problem = pool
        .not_ready
        .iter()
        .cloned()
        .chain(problem.map(|it| it.message.clone()));
    let new = planned.plan.new_claims.iter();
    let new: Vec<&PlannedClaim> = new.filter(|it| it.pool == pool.name).collect();
    let nodes = snapshot.nodes.iter();
    let nodes: Vec<&Node> = nodes
        .map(|it| &**it)
        .filter(|it| it.pool.as_ref() == Some(&pool.name))
        .collect();
    Some(Story {
        object: format!("NodePool {name}"),
        state: format!(
            "{} nodes exist, {} are launched; {} instance types",
            nodes.len(),
            new.len(),
            pool.instance_types.len()
        ),
        reasons: problem.collect(),
        related: nodes.into_iter().map(|it| node(planned, it)).collect(),
        ..Story::default()
    })
}

fn missing(planned: &Planned, args: &Explain) -> Complaint {
    let snapshot = &planned.world.snapshot;
    let explanations = Explanations::of(&planned.plan).pods.into_iter();
    let (what, names): (String, Vec<String>) = match args.kind {
        Kind::Pod => (
            format!("pod {}/{}", args.namespace, args.name),
            explanations
                .map(|it| format!("{}/{}", it.namespace, it.name))
                .collect(),
        ),
        Kind::Node => (
            format!("node {}", args.name),
            snapshot
                .nodes
                .iter()
                .filter_map(|it| it.name.as_ref().map(ToString::to_string))
                .collect(),
        ),
        Kind::NodeClaim => (
            format!("NodeClaim {}", args.name),
            snapshot
                .nodes
                .iter()
                .filter_map(|it| it.node_claim.as_ref().map(ToString::to_string))
                .collect(),
        ),
        Kind::NodePool => (
            format!("NodePool {}", args.name),
            snapshot
                .pools
                .iter()
                .map(|it| it.name.to_string())
                .collect(),
        ),
    };
    let complaint = Complaint::of(
        "kerf explain",
        &format!("there is no {what} in the manifests"),
    );
    let shown: Vec<&str> = names.iter().take(NAMES_MAX).map(String::as_str).collect();
    match shown.is_empty() {
        true => complaint,
        false => complaint.hint(&format!("there are: {}", shown.join(", "))),
    }
}
