//! What the controller decides by itself, with the chart's rights: a drifted pool is rolled, a policy is loaded and asked,
//! and a machine that the cloud takes back is replaced.

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use serde_json::Value;

use super::Stage;
use super::objects::{self, DRIFT_LABEL, LIKED_FAMILY, SPOT};
use crate::demo::manifests;
use crate::workspace;

/// A policy in Rust, as the policies' own tests have it.
const PREFER_FAMILY: &str = "host/kerf-policy/tests/fixtures/prefer-family.wasm";
const NO_POLICY: &[u8] = b"not wasm";
/// They fit one node.
const SPOT_PODS: usize = 3;

impl Stage {
    /// Every node of the pool is replaced, as its budget allows, and the pods are bound again.
    pub(super) fn drive_drift(&mut self, pods: usize) -> Result<()> {
        self.rig
            .api
            .apply(objects::POOL_PATH, &objects::drifted_pool())?;
        self.until("every node made after the edit and its pods bound", |it| {
            let claims = it.claims()?;
            let is_new = |claim: &Value| claim["metadata"]["labels"][DRIFT_LABEL] == "true";
            Ok(!claims.is_empty() && claims.iter().all(is_new) && it.bound()? == pods)
        })
    }

    /// A policy that cannot be loaded is told in the class's status; a good version takes over and decides the next launch.
    pub(super) fn drive_policies(&mut self) -> Result<()> {
        self.put_policy(NO_POLICY)?;
        self.rig
            .api
            .apply(objects::CLASS_PATH, &objects::class_with_policy())?;
        self.until_policy("Failed")?;
        let path = workspace::root().join(PREFER_FAMILY);
        let good =
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        self.put_policy(&good)?;
        self.until_policy("Ready")?;
        manifests::apply(&self.rig.api, &objects::spot_pool())?;
        self.workload_on(SPOT, SPOT, SPOT_PODS)?;
        self.until("the spot pods bound", |it| {
            Ok(it.bound_of(&[SPOT])? == SPOT_PODS)
        })?;
        let family = "karpenter.alibabacloud.com/instance-family";
        for claim in self.claims_of(SPOT)? {
            let found = &claim["metadata"]["labels"][family];
            if found != LIKED_FAMILY {
                bail!("the policy wants {LIKED_FAMILY}, and a claim is of {found}");
            }
        }
        Ok(())
    }

    /// The cloud takes the spot machine back: another one takes its pods.
    pub(super) fn drive_interruption(&mut self) -> Result<()> {
        let claims = self.claims_of(SPOT)?;
        let claim = claims.first().context("no spot claim")?;
        let provider_id = claim["status"]["providerID"].as_str().unwrap_or_default();
        let (_, instance) = provider_id.split_once('.').context("no provider id")?;
        self.rig.interrupt(instance)?;
        let name = claim["metadata"]["name"].clone();
        self.until("the claim of the machine that was taken back gone", |it| {
            let claims = it.claims_of(SPOT)?;
            Ok(claims.iter().all(|claim| claim["metadata"]["name"] != name))
        })?;
        self.until("its pods bound on another", |it| {
            Ok(it.bound_of(&[SPOT])? == SPOT_PODS)
        })?;
        self.rig.api.delete(&objects::policy_path())
    }

    fn put_policy(&self, wasm: &[u8]) -> Result<()> {
        let wasm = base64::engine::general_purpose::STANDARD.encode(wasm);
        self.rig
            .api
            .apply(&objects::policy_path(), &objects::policy_source(&wasm))
    }

    fn until_policy(&mut self, state: &str) -> Result<()> {
        self.until(&format!("the policy {state}"), |it| {
            let class = it.rig.api.get(objects::CLASS_PATH)?;
            Ok(class["status"]["policies"][0]["state"] == state)
        })
    }

    fn claims_of(&self, pool: &str) -> Result<Vec<Value>> {
        let mut claims = self.claims()?;
        claims.retain(|claim| claim["metadata"]["labels"]["karpenter.sh/nodepool"] == pool);
        Ok(claims)
    }
}
