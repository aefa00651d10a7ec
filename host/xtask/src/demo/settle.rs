//! Whether there is anything left to happen, and the closing line.

use super::look::{Look, Stage};

/// What is still open, in the order in which it would be solved; empty when everything is settled.
pub(super) fn open_ends(look: &Look) -> Vec<String> {
    let mut open = look.unready.clone();
    let pods = look.pods.len() as u64;
    if pods < look.pods_wanted || pods == 0 {
        open.push(format!("{pods} of {} pods exist", look.pods_wanted.max(1)));
    }
    for claim in look
        .claims
        .iter()
        .filter(|claim| claim.stage != Stage::Ready)
    {
        let stage = format!("{:?}", claim.stage).to_lowercase();
        open.push(format!(
            "NodeClaim {} is {stage}: {}",
            claim.name,
            or_no_reason(&claim.message)
        ));
    }
    if look.instances.len() != look.claims.len() {
        open.push(format!(
            "{} instances for {} NodeClaims",
            look.instances.len(),
            look.claims.len()
        ));
    }
    if look.nodes.len() != look.claims.len() {
        open.push(format!(
            "{} nodes for {} NodeClaims",
            look.nodes.len(),
            look.claims.len()
        ));
    }
    for pod in look.pods.iter().filter(|pod| pod.node.is_none()) {
        let about = format!("Pod {}", pod.name);
        let said = look
            .events
            .iter()
            .rev()
            .find(|event| event.about == about)
            .map(|event| event.said.as_str());
        open.push(format!(
            "Pod {} is not bound: {}",
            pod.name,
            or_no_reason(said.unwrap_or_default())
        ));
    }
    open
}

pub(super) fn closing_line(look: &Look) -> String {
    format!(
        "settled: pods={} bound={} nodes={} instances={} hourly={:.4}",
        look.pods.len(),
        look.pods_bound(),
        look.nodes.len(),
        look.instances.len(),
        look.price_per_hour()
    )
}

fn or_no_reason(text: &str) -> &str {
    if text.is_empty() {
        "no reason given"
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::look::{Claim, Event, Instance, Node, Pod};

    fn settled() -> Look {
        Look {
            pods: vec![Pod {
                name: "web-1".to_owned(),
                node: Some("n".to_owned()),
                is_running: true,
            }],
            pods_wanted: 1,
            claims: vec![Claim {
                name: "default-a".to_owned(),
                stage: Stage::Ready,
                ..Claim::default()
            }],
            nodes: vec![Node {
                name: "n".to_owned(),
                is_ready: true,
            }],
            instances: vec![Instance {
                id: "i-1".to_owned(),
                price_per_hour: 0.587,
                ..Instance::default()
            }],
            ..Look::default()
        }
    }

    #[test]
    fn a_bound_pod_on_a_ready_claim_is_settled() {
        let look = settled();

        assert_eq!(open_ends(&look), [""; 0]);
        assert_eq!(
            closing_line(&look),
            "settled: pods=1 bound=1 nodes=1 instances=1 hourly=0.5870"
        );
    }

    #[test]
    fn nothing_at_all_is_not_settled() {
        assert_eq!(open_ends(&Look::default()), ["0 of 1 pods exist"]);
    }

    #[test]
    fn an_instance_without_a_claim_is_not_settled() {
        let mut look = settled();
        look.instances.push(Instance::default());

        assert_eq!(open_ends(&look), ["2 instances for 1 NodeClaims"]);
    }

    #[test]
    fn an_unbound_pod_says_what_kerf_said_of_it() {
        let mut look = settled();
        look.pods[0].node = None;
        look.events = vec![Event {
            time: String::new(),
            uid: String::new(),
            is_warning: true,
            about: "Pod web-1".to_owned(),
            said: "FailedScheduling: no NodePool fits".to_owned(),
        }];

        assert_eq!(
            open_ends(&look),
            ["Pod web-1 is not bound: FailedScheduling: no NodePool fits"]
        );
    }
}
