//! Whether the account may make the calls that kerf makes, and whether a class could be launched from: by reads, and by dry
//! runs of what changes something. Nothing is made, changed or deleted.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use kerf_core::instance_type::CapacityType;

use crate::actions::Empty;
use crate::actions::cluster::AttachScript;
use crate::actions::images::ImageFilter;
use crate::actions::instances::{
    InstanceFilter, delete_instance_request, delete_instances_request,
};
use crate::actions::network::NetworkFilter;
use crate::actions::run_instances::{RunInstances, run_instances_request};
use crate::actions::stock::StockMarket;
use crate::error::{AuthProblem, CloudError, ErrorClass};
use crate::provider::Provider;
use crate::provider::class::{Architecture, ResolvedNodeClass, VSwitch};
use crate::provider::launch::params::{Trial, trial};
use crate::rpc::{Action, Request};

/// What nothing is called, so that a call about it finds or changes nothing.
const NOTHING: &str = "kerf-doctor-asks-for-nothing";
const NO_INSTANCE: &str = "i-kerfdoctor0000000000";
const NO_TYPE: &str = "ecs.kerf-doctor.none";
const NO_IMAGE: &str = "m-kerfdoctor0000000000";

/// An action as RAM writes it, and a call of it.
type Call<'a> = (&'static str, BoxFuture<'a, Result<(), CloudError>>);

/// What is known of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It was carried out, or refused for another reason than a missing permission.
    Allowed,
    /// The account may not make it; the cloud's words.
    Denied(String),
    /// The cloud gave no answer that says so; its words, or what went wrong.
    Unknown(String),
    /// It has no dry run.
    NotTried,
}

/// A call that kerf makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// As RAM policies write it, `ecs:RunInstances`.
    pub action: &'static str,
    /// What is known of it.
    pub verdict: Verdict,
}

/// What came of a launch that was only tried.
#[derive(Debug, Clone)]
pub enum LaunchTrial {
    /// It would have been carried out, with this type in this zone.
    Passed {
        /// The cheapest type that the class can be.
        instance_type: String,
        /// Where.
        zone: String,
    },
    /// The cloud would have refused it.
    Refused(CloudError),
    /// There is nothing to try: no type with stock, an image and a free address.
    Nothing,
}

impl Provider {
    /// Every call that kerf makes, in the order of the documentation.
    pub async fn permissions(&self) -> Vec<Permission> {
        let answers = join_all(self.trials().into_iter().map(|(action, call)| async move {
            let verdict = verdict(call.await);
            Permission { action, verdict }
        }));
        let mut found = answers.await;
        found.push(Permission {
            action: Action::TagResources.permission(),
            verdict: Verdict::NotTried,
        });
        found
    }

    fn trials(&self) -> Vec<Call<'_>> {
        let mut trials = self.changes();
        trials.extend(self.readings());
        trials.extend(self.selections());
        trials.extend(self.cluster());
        trials
    }

    /// What changes something, as dry runs.
    fn changes(&self) -> Vec<Call<'_>> {
        let region = self.inner.client.region_id();
        let several = delete_instances_request(region, &[NO_INSTANCE.to_owned()], NOTHING);
        vec![
            (
                Action::RunInstances.permission(),
                self.dry_run_launch(RunInstances::default()).boxed(),
            ),
            (
                Action::DeleteInstance.permission(),
                self.dry_run(delete_instance_request(NO_INSTANCE)).boxed(),
            ),
            (
                Action::DeleteInstances.permission(),
                self.dry_run(several).boxed(),
            ),
        ]
    }

    /// What the region has.
    fn readings(&self) -> Vec<Call<'_>> {
        let client = &self.inner.client;
        let types = async { client.describe_instance_types().await.map(drop) };
        let stock = async {
            let stock = client.describe_available_resource(StockMarket::OnDemand);
            stock.await.map(drop)
        };
        let zones = async { client.describe_zones().await.map(drop) };
        let advice = async { client.describe_spot_advice().await.map(drop) };
        let price = async { client.describe_price(NO_TYPE, "").await.map(drop) };
        let history = async { client.describe_spot_price_history(NO_TYPE).await.map(drop) };
        vec![
            (Action::DescribeInstanceTypes.permission(), types.boxed()),
            (
                Action::DescribeAvailableResource.permission(),
                stock.boxed(),
            ),
            (Action::DescribeZones.permission(), zones.boxed()),
            (Action::DescribeSpotAdvice.permission(), advice.boxed()),
            (Action::DescribePrice.permission(), price.boxed()),
            (
                Action::DescribeSpotPriceHistory.permission(),
                history.boxed(),
            ),
        ]
    }

    /// What is looked up by id or name.
    fn selections(&self) -> Vec<Call<'_>> {
        let client = &self.inner.client;
        let by_name = || NetworkFilter {
            name: NOTHING.to_owned(),
            ..NetworkFilter::default()
        };
        let instances = async {
            let filter = InstanceFilter {
                ids: vec![NO_INSTANCE.to_owned()],
                ..InstanceFilter::default()
            };
            client.describe_instances(&filter).await.map(drop)
        };
        let tagged = async {
            let tags = [(NOTHING, NOTHING)];
            client.list_tagged_instances(&tags, "").await.map(drop)
        };
        let events = async { client.describe_open_instance_events().await.map(drop) };
        let images = async {
            let filter = ImageFilter::of_ids(vec![NO_IMAGE.to_owned()]);
            client.describe_images(&filter).await.map(drop)
        };
        let key_pairs = async { client.describe_key_pairs(NOTHING, &[]).await.map(drop) };
        let pools = async {
            client
                .describe_capacity_reservations(NOTHING, &[])
                .await
                .map(drop)
        };
        let groups = async move { client.describe_security_groups(&by_name()).await.map(drop) };
        let vswitches = async move { client.describe_vswitches(&by_name()).await.map(drop) };
        vec![
            (Action::DescribeInstances.permission(), instances.boxed()),
            (Action::ListTagResources.permission(), tagged.boxed()),
            (
                Action::DescribeInstanceHistoryEvents.permission(),
                events.boxed(),
            ),
            (Action::DescribeImages.permission(), images.boxed()),
            (Action::DescribeSecurityGroups.permission(), groups.boxed()),
            (Action::DescribeVSwitches.permission(), vswitches.boxed()),
            (Action::DescribeKeyPairs.permission(), key_pairs.boxed()),
            (
                Action::DescribeCapacityReservations.permission(),
                pools.boxed(),
            ),
        ]
    }

    /// What is asked of Container Service, where there is a cluster of it.
    fn cluster(&self) -> Vec<Call<'_>> {
        let client = &self.inner.client;
        let cluster = self.inner.config.cluster_id.as_str();
        if cluster.is_empty() {
            return Vec::new();
        }
        let detail = async move { client.cluster_detail(cluster).await.map(drop) };
        let script = async move {
            let script = AttachScript {
                arch: Architecture::Amd64.as_str(),
                expired: None,
                format_disk: false,
                keep_instance_name: true,
                nodepool_id: String::new(),
            };
            client
                .cluster_attach_script(cluster, &script)
                .await
                .map(drop)
        };
        vec![
            (Action::DescribeClusterDetail.permission(), detail.boxed()),
            (
                Action::DescribeClusterAttachScripts.permission(),
                script.boxed(),
            ),
        ]
    }

    /// Tries a launch of the class with its cheapest type that can be had on demand, without user data.
    ///
    /// # Errors
    /// When the instance types cannot be read.
    pub async fn try_launch(&self, class: &ResolvedNodeClass) -> Result<LaunchTrial, CloudError> {
        let facts = self.inner.region.types().await?;
        let types = self.instance_types(class).await?;
        let vswitches = class.vswitches.iter().filter(|it| it.ips_available > 0);
        let by_zone: BTreeMap<&str, &VSwitch> =
            vswitches.map(|it| (it.zone_id.as_str(), it)).collect();
        let offerings = types
            .iter()
            .flat_map(|it| it.offerings.iter().map(move |offering| (it, offering)));
        let candidates = offerings.filter_map(|(instance_type, offering)| {
            let is_there =
                offering.unavailable.is_none() && offering.capacity_type == CapacityType::OnDemand;
            let architecture = facts.get(&*instance_type.name)?.architecture;
            let found = Trial {
                instance_type: &instance_type.name,
                image: class.image_for(architecture)?,
                vswitch: by_zone.get(&*offering.zone)?,
            };
            is_there.then_some((offering.price, found))
        });
        let Some((_, cheapest)) = candidates.min_by_key(|(price, _)| *price) else {
            return Ok(LaunchTrial::Nothing);
        };
        let zone = cheapest.vswitch.zone_id.clone();
        let run = trial(class, &cheapest);
        let instance_type = run.instance_type.clone();
        Ok(match self.dry_run_launch(run).await {
            Ok(()) => LaunchTrial::Passed {
                instance_type,
                zone,
            },
            Err(error) if error.class() == ErrorClass::DryRun => LaunchTrial::Passed {
                instance_type,
                zone,
            },
            Err(error) => LaunchTrial::Refused(error),
        })
    }

    async fn dry_run_launch(&self, run: RunInstances) -> Result<(), CloudError> {
        let run = RunInstances { amount: 1, ..run };
        let request = run_instances_request(self.inner.client.region_id(), &run);
        self.dry_run(request).await
    }

    async fn dry_run(&self, request: Request) -> Result<(), CloudError> {
        self.inner
            .client
            .send::<Empty>(&dry(request))
            .await
            .map(drop)
    }
}

/// The cloud checks the request and does nothing.
fn dry(mut request: Request) -> Request {
    request.query.push(("DryRun".to_owned(), "true".to_owned()));
    request
}

/// RAM is asked before anything else is looked at, so any other refusal means that the call is allowed.
fn verdict(result: Result<(), CloudError>) -> Verdict {
    let Err(error) = result else {
        return Verdict::Allowed;
    };
    match error.class() {
        ErrorClass::Auth(AuthProblem::Permission | AuthProblem::NodeRole) => {
            Verdict::Denied(error.to_string())
        }
        ErrorClass::Auth(_)
        | ErrorClass::Transient
        | ErrorClass::Throttled
        | ErrorClass::StaleSignature => Verdict::Unknown(error.to_string()),
        _ => Verdict::Allowed,
    }
}
