//! A chain of BootstrapUserData policies: each gets the parts that the earlier ones left.

use super::{Chain, ChainError, Now, PolicyRun, ask};
use crate::bootstrap::{BootstrapInput, Part};
use crate::hook::Hook;
use crate::memo::Fingerprint;

impl Chain {
    /// Whether any BootstrapUserData policy would be asked for this pool. Saves building the input.
    pub fn has_user_data_for(&self, node_pool: &str) -> bool {
        self.links_for(Hook::BootstrapUserData, node_pool)
            .next()
            .is_some()
    }

    /// Asks all BootstrapUserData policies and returns the parts, without secrets. The host's own are unchanged in them.
    pub fn render(
        &self,
        input: &BootstrapInput,
        now: Now,
    ) -> Result<(Vec<Part>, Vec<PolicyRun>), ChainError> {
        let mut input = input.clone();
        let mut runs = Vec::new();
        let node_pool = input.node.node_pool.clone();
        for link in self.links_for(Hook::BootstrapUserData, &node_pool) {
            let asked = ask(
                link,
                &self.memos.user_data,
                (now, &runs),
                Fingerprint::of(&input),
                |policy, config, limits| {
                    link.record(|| input.clone());
                    policy.render(config, limits, &input)
                },
            );
            let mut rendered = None;
            let changes = |answer: &Vec<Part>| *answer != input.parts;
            let run = asked.into_run(link, changes, |answer| rendered = Some(answer))?;
            if let Some(parts) = rendered {
                input.parts = Vec::clone(&parts);
            }
            runs.push(run);
        }
        Ok((input.parts, runs))
    }
}
