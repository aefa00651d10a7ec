//! Real questions, kept for `kerf plugin record`: one of so many calls, without what is nobody's business.

use crate::bootstrap::BootstrapInput;
use crate::digest::PolicyDigest;
use crate::hook::Hook;
use crate::pricing::PricingInput;
use crate::selection::SelectionInput;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Enough to replay a morning's decisions; older ones go.
const QUESTIONS_MAX: usize = 64;
/// What all of them may take: a question about 300 types has a third of a MiB.
const BYTES_MAX: usize = 8 << 20;
/// Domains whose labels say what a node is, and nothing about who uses it. Others of Kubernetes, such as app.kubernetes.io
/// and node-restriction.kubernetes.io, are there for users' own values.
const PUBLIC_DOMAINS: [&str; 6] = [
    "kubernetes.io",
    "node.kubernetes.io",
    "topology.kubernetes.io",
    "karpenter.sh",
    "karpenter.alibabacloud.com",
    "alibabacloud.com",
];

/// Thread-safe. What a call costs when it is not kept is one count.
#[derive(Debug)]
pub struct Recorder {
    every: NonZeroU64,
    calls: AtomicU64,
    kept: Mutex<VecDeque<Recorded>>,
    /// Equal values stay equal, and nobody can try out what they were.
    hasher: RandomState,
}

/// One question as it was asked.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// Which call of the process it was.
    pub number: u64,
    pub policy: String,
    pub hook: String,
    pub digest: String,
    /// JSON text, as `kerf plugin run --input` takes it whole.
    pub question: String,
}

/// A question whose private values can be replaced.
pub(crate) trait Private: Clone + serde::Serialize {
    fn redact(&mut self, veil: &dyn Fn(&str) -> String);
}

impl Recorder {
    /// Keeps the first of `every` calls.
    pub fn new(every: NonZeroU64) -> Self {
        Self {
            every,
            calls: AtomicU64::new(0),
            kept: Mutex::default(),
            hasher: RandomState::new(),
        }
    }

    /// What is kept, the oldest first.
    pub fn questions(&self) -> Vec<Recorded> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().cloned().collect()
    }

    /// Keeps the question if it is its turn. A question that cannot be written, or that is larger than all may be, is left out.
    pub(crate) fn offer<Q: Private>(
        &self,
        (policy, hook, digest): (&str, Hook, PolicyDigest),
        question: impl FnOnce() -> Q,
    ) {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        if !number.is_multiple_of(self.every.get()) {
            return;
        }
        let mut question = question();
        question.redact(&|value| format!("redacted-{:08x}", self.hasher.hash_one(value) >> 32));
        if let Ok(question) = serde_json::to_string(&question) {
            self.keep(Recorded {
                number,
                policy: policy.to_owned(),
                hook: hook.to_string(),
                digest: digest.to_string(),
                question,
            });
        }
    }

    fn keep(&self, recorded: Recorded) {
        if recorded.question.len() > BYTES_MAX {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(recorded);
        let bytes =
            |kept: &VecDeque<Recorded>| -> usize { kept.iter().map(|it| it.question.len()).sum() };
        while kept.len() > QUESTIONS_MAX || bytes(&kept) > BYTES_MAX {
            kept.pop_front();
        }
    }
}

/// Whether the values of a label say nothing about its users.
fn is_public(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    PUBLIC_DOMAINS.contains(&domain)
}

fn redact_labels(labels: &mut [(String, String)], veil: &dyn Fn(&str) -> String) {
    for (_, value) in labels.iter_mut().filter(|(key, _)| !is_public(key)) {
        *value = veil(value);
    }
}

impl Private for SelectionInput {
    fn redact(&mut self, veil: &dyn Fn(&str) -> String) {
        redact_labels(&mut self.context.labels, veil);
        let requirements = self.context.requirements.iter_mut();
        for requirement in requirements.filter(|it| !is_public(&it.key)) {
            requirement.values.iter_mut().for_each(|it| *it = veil(it));
        }
    }
}

impl Private for PricingInput {
    /// A catalog with prices: there is nothing of the users in it.
    fn redact(&mut self, _veil: &dyn Fn(&str) -> String) {}
}

impl Private for BootstrapInput {
    /// What users wrote may have anything, and the host's own parts repeat the node's labels and taints. Equal parts stay
    /// equal, so that those of the host are found among all.
    fn redact(&mut self, veil: &dyn Fn(&str) -> String) {
        redact_labels(&mut self.node.labels, veil);
        for taint in self.node.taints.iter_mut().filter(|it| !is_public(&it.key)) {
            taint.value = veil(&taint.value);
        }
        for part in self.parts.iter_mut().chain(&mut self.host_owned) {
            part.body = format!("# {}\n", veil(&part.body));
            part.name = part.name.as_ref().map(|name| veil(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Node;
    use crate::bootstrap::tests::{node, part};

    fn every(n: u64) -> Recorder {
        Recorder::new(NonZeroU64::new(n).unwrap())
    }

    fn question(body: &str) -> BootstrapInput {
        let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        BootstrapInput {
            node: Node {
                labels: vec![
                    label("team", "payments"),
                    label("kubernetes.io/arch", "amd64"),
                ],
                ..node()
            },
            parts: vec![part(body), part("join")],
            host_owned: vec![part("join")],
        }
    }

    fn offer(recorder: &Recorder, body: &str) {
        let about = ("tuning", Hook::BootstrapUserData, PolicyDigest::of(b"x"));
        recorder.offer(about, || question(body));
    }

    #[test]
    fn what_users_wrote_is_not_kept_and_what_a_node_is_stays() {
        let recorder = every(1);
        offer(&recorder, "password=hunter2");

        let kept = &recorder.questions()[0];

        assert!(!kept.question.contains("hunter2") && !kept.question.contains("payments"));
        assert!(kept.question.contains("redacted-") && kept.question.contains("amd64"));
        let again: BootstrapInput = serde_json::from_str(&kept.question).unwrap();
        assert_eq!(again.host_owned, again.parts[1..]);
    }

    #[test]
    fn one_of_so_many_is_kept_and_the_oldest_goes() {
        let recorder = every(3);
        for _ in 0..3 * (QUESTIONS_MAX + 2) {
            offer(&recorder, "");
        }

        let numbers: Vec<u64> = recorder.questions().iter().map(|it| it.number).collect();

        assert_eq!(numbers.len(), QUESTIONS_MAX);
        assert_eq!(numbers[..2], [6, 9]);
    }

    #[test]
    fn a_label_of_somebody_elses_domain_is_not_public() {
        assert!(is_public("node.kubernetes.io/instance-type"));
        for key in [
            "team",
            "notkubernetes.io/x",
            "kubernetes.io.example.com/x",
            "app.kubernetes.io/name",
            "node-restriction.kubernetes.io/x",
        ] {
            assert!(!is_public(key), "{key}");
        }
    }
}
