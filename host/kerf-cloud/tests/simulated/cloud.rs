//! A simulator with a provider in front of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ecs_sim::{EcsSim, Options, World};
use jiff::Timestamp;
use kerf_cloud::provider::Provider;
use kerf_cloud::provider::bootstrap::NodeSettings;
use kerf_cloud::provider::class::{
    ImageTerm, NodeClassSpec, ResolvedNodeClass, SecurityGroupTerm, VSwitchTerm,
};
use kerf_cloud::provider::config::ProviderConfig;
use kerf_cloud::provider::instance::CapacityType;
use kerf_cloud::provider::launch::{Attempt, LaunchOffering, LaunchOutcome, LaunchRequest};
use kerf_cloud::rpc::{Client, ClientConfig, Clock, Credentials, Product};

pub(crate) const CLUSTER: &str = "c0000000000000000000000000000sim1";
pub(crate) const X64: &str = "acs:alibaba_cloud_linux_3_2104_lts_x64";

pub(crate) struct Cloud {
    pub(crate) sim: EcsSim,
    pub(crate) provider: Provider,
}

impl Cloud {
    pub(crate) async fn start(world: World) -> Self {
        Self::start_with(world, |_| {}).await
    }

    pub(crate) async fn start_with(world: World, edit: impl FnOnce(&mut ClientConfig)) -> Self {
        let sim = EcsSim::start(Options {
            world,
            ..Options::default()
        })
        .await
        .unwrap();
        let provider = provider(sim.url(), edit);
        Self { sim, provider }
    }

    /// A provider that knows nothing of what this one did: what a restarted process has.
    pub(crate) fn restarted(&self) -> Provider {
        provider(self.sim.url(), |_| {})
    }

    pub(crate) async fn class(&self) -> Arc<ResolvedNodeClass> {
        self.provider.resolve(&quick_start()).await.unwrap()
    }

    pub(crate) async fn request(&self, name: &str, offerings: &[LaunchOffering]) -> LaunchRequest {
        LaunchRequest {
            class: self.class().await,
            node_pool: "default".to_owned(),
            node_claim: name.to_owned(),
            amount: 1,
            group: format!("group-{name}"),
            last_attempt: None,
            offerings: offerings.to_vec(),
            node: NodeSettings {
                labels: BTreeMap::from([(
                    "karpenter.sh/nodepool".to_owned(),
                    "default".to_owned(),
                )]),
                ..NodeSettings::default()
            },
            renderer: None,
        }
    }

    pub(crate) fn calls(&self, action: &str) -> u64 {
        self.sim.calls().get(action).map_or(0, |count| count.total)
    }

    /// Instances that are not gone.
    pub(crate) fn alive(&self) -> usize {
        self.sim
            .instances()
            .iter()
            .filter(|instance| instance.status != "Gone")
            .count()
    }
}

fn provider(url: &str, edit: impl FnOnce(&mut ClientConfig)) -> Provider {
    let credentials = Credentials::access_key("LTAIsim", "simulated");
    let mut config = ClientConfig::new(
        "cn-hangzhou",
        credentials.into(),
        Clock::new(Timestamp::now),
    );
    config.endpoints = Product::ALL
        .into_iter()
        .map(|product| (product, url.to_owned()))
        .collect();
    config.backoff_first = Duration::from_millis(20);
    config.backoff_max = Duration::from_millis(200);
    config.deadline = Duration::from_secs(20);
    config.calls_per_second = 200.0;
    config.burst = 200;
    edit(&mut config);
    let provider = ProviderConfig::new("cn-hangzhou", CLUSTER);
    Provider::new(Client::new(config).unwrap(), provider)
}

/// The class of the quick start, with its tags and image family.
pub(crate) fn quick_start() -> NodeClassSpec {
    let tags = BTreeMap::from([("karpenter.sh/discovery".to_owned(), "my-cluster".to_owned())]);
    NodeClassSpec {
        name: "default".to_owned(),
        vswitch_selector_terms: vec![VSwitchTerm {
            tags: tags.clone(),
            ..VSwitchTerm::default()
        }],
        security_group_selector_terms: vec![SecurityGroupTerm {
            tags,
            ..SecurityGroupTerm::default()
        }],
        image_selector_terms: vec![ImageTerm {
            image_family: X64.to_owned(),
            ..ImageTerm::default()
        }],
        ..NodeClassSpec::default()
    }
}

pub(crate) fn offering(instance_type: &str, zone: &str, spot: CapacityType) -> LaunchOffering {
    LaunchOffering {
        instance_type: instance_type.to_owned(),
        zone_id: format!("cn-hangzhou-{zone}"),
        capacity_type: spot,
    }
}

pub(crate) fn on_demand(instance_type: &str, zone: &str) -> LaunchOffering {
    offering(instance_type, zone, CapacityType::OnDemand)
}

/// Launches and gives the attempts that were recorded, in order.
pub(crate) async fn launch(
    provider: &Provider,
    request: &LaunchRequest,
) -> (LaunchOutcome, Vec<Attempt>) {
    let recorded = Mutex::new(Vec::new());
    let outcome = provider
        .launch(request, |attempt| {
            recorded.lock().unwrap().push(attempt);
            async { Ok(()) }
        })
        .await;
    (outcome, recorded.into_inner().unwrap())
}

pub(crate) fn instance_of(outcome: &LaunchOutcome) -> &kerf_cloud::provider::instance::Instance {
    match outcome {
        LaunchOutcome::Launched(launched) => &launched.instance,
        other => panic!("not launched: {other:?}"),
    }
}

impl Cloud {
    /// Launches again while nothing is decided, as the controller does.
    pub(crate) async fn launch_until_decided(
        &self,
        provider: &Provider,
        request: &LaunchRequest,
    ) -> LaunchOutcome {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        loop {
            let (outcome, _) = launch(provider, request).await;
            let LaunchOutcome::Retry { message, .. } = &outcome else {
                return outcome;
            };
            assert!(
                tokio::time::Instant::now() < deadline,
                "still undecided: {message}"
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// The number of instances, after those that are being deleted are gone.
    pub(crate) async fn alive_after_deletes(&self) -> usize {
        let is_ending = |status: &str| matches!(status, "Stopping" | "Stopped");
        let ended = || !self.sim.instances().iter().any(|it| is_ending(&it.status));
        until("deleted instances to be gone", ended).await;
        self.alive()
    }

    pub(crate) async fn until_running(&self, id: &str) {
        let is_running = || {
            self.sim
                .instances()
                .iter()
                .any(|it| it.id == id && it.status == "Running")
        };
        until("the instance to run", is_running).await;
    }
}

async fn until(what: &str, is_true: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while !is_true() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "waited too long for {what}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
