//! From a request and an offering to the parameters of one RunInstances call.

use jiff::Timestamp;
use kerf_core::instance_type::CapacityType;

use crate::actions::run_instances::{
    DataDiskParams, RunInstances, SystemDiskParams, run_instances_request,
};
use crate::provider::bootstrap::{BootstrapError, UserData};
use crate::provider::class::{Image, NodeClassSpec, ResolvedNodeClass, VSwitch};
use crate::provider::launch::{Attempt, LaunchOffering, LaunchRequest};
use crate::provider::tags::{self, Owner};
use crate::rpc::encode;
use crate::rpc::sign::sha256_hex;

/// What one call is made of, besides the request.
pub(super) struct Call<'a> {
    pub(super) request: &'a LaunchRequest,
    pub(super) offering: &'a LaunchOffering,
    pub(super) vswitch: &'a VSwitch,
    pub(super) image: &'a Image,
    pub(super) disks: DiskChoice<'a>,
    pub(super) user_data: &'a UserData,
    /// The cluster in the tag.
    pub(super) cluster: &'a str,
    pub(super) region_id: &'a str,
}

/// Which of the kinds of disk that would do are asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DiskChoice<'a> {
    pub(super) system: &'a str,
    /// Place in each data disk's list, or its last one.
    pub(super) data: usize,
}

impl Call<'_> {
    /// The parameters, for the attempt with this number and so many instances.
    pub(super) fn params(&self, number: u32, amount: u32) -> Result<RunInstances, BootstrapError> {
        let class = &self.request.class.spec;
        let mut run = RunInstances {
            instance_type: self.offering.instance_type.clone(),
            image_id: self.image.id.clone(),
            vswitch_id: self.vswitch.id.clone(),
            security_group_ids: self.security_group_ids(),
            amount,
            // All or nothing would leave a hundred claims without any where ninety could be had.
            min_amount: (amount > 1).then_some(1),
            client_token: client_token(self.cluster, &self.request.group, number),
            instance_name: self.instance_name(),
            user_data: self.user_data.encode()?,
            key_pair_name: self.request.class.key_pair_name.clone(),
            password_inherit: class.password_inherit,
            launch_template_id: class.launch_template_id.clone(),
            ram_role_name: class.role.clone(),
            resource_group_id: class.resource_group_id.clone(),
            system_disk: system_disk(class, self.disks.system),
            data_disks: data_disks(class, self.disks.data),
            http_endpoint: class.metadata_options.http_endpoint.clone(),
            http_tokens: class.metadata_options.http_tokens.clone(),
            http_put_response_hop_limit: class.metadata_options.http_put_response_hop_limit,
            internet_charge_type: class.internet_charge_type.clone(),
            internet_max_bandwidth_out: class.internet_max_bandwidth_out,
            tags: tags::for_instance(&self.owner(), &class.tags),
            ..RunInstances::default()
        };
        put_spot(&mut run, class, self.offering.capacity_type);
        self.put_private_pool(&mut run);
        Ok(run)
    }

    /// The claim's name; that of the pool where one call is for many claims.
    fn instance_name(&self) -> String {
        match self.request.node_claim.as_str() {
            "" => self.request.node_pool.clone(),
            name => name.to_owned(),
        }
    }

    fn put_private_pool(&self, run: &mut RunInstances) {
        let class = &self.request.class;
        let preference = class.spec.private_pools.preference.as_str();
        let words = [("open", "Open"), ("target", "Target"), ("none", "None")];
        let word = words.into_iter().find(|(ours, _)| *ours == preference);
        word.map_or("", |(_, theirs)| theirs)
            .clone_into(&mut run.private_pool_match);
        if class.spec.private_pools.is_targeted()
            && let Some(pool) = class.pool_for(&self.offering.instance_type, &self.offering.zone_id)
        {
            run.private_pool_id.clone_from(&pool.id);
        }
    }

    /// What is stored before the call is sent.
    pub(super) fn attempt(&self, run: &RunInstances, number: u32, at: Timestamp) -> Attempt {
        Attempt {
            number,
            instance_type: self.offering.instance_type.clone(),
            zone_id: self.offering.zone_id.clone(),
            capacity_type: self.offering.capacity_type.as_str().to_owned(),
            vswitch_id: self.vswitch.id.clone(),
            amount: run.amount,
            params_hash: self.params_hash(run),
            at,
        }
    }

    /// Without the token, and with the user data as it is without secrets: those change by themselves.
    fn params_hash(&self, run: &RunInstances) -> String {
        let run = RunInstances {
            client_token: String::new(),
            user_data: self.user_data.text().to_owned(),
            ..run.clone()
        };
        let query = run_instances_request(self.region_id, &run).query;
        sha256_hex(encode::canonical_query(&query).as_bytes())[..16].to_owned()
    }

    fn owner(&self) -> Owner<'_> {
        Owner {
            cluster: self.cluster,
            node_pool: &self.request.node_pool,
            node_class: &self.request.class.spec.name,
            node_claim: &self.request.node_claim,
            launch_group: &self.request.group,
        }
    }

    fn security_group_ids(&self) -> Vec<String> {
        self.request
            .class
            .security_groups
            .iter()
            .map(|group| group.id.clone())
            .collect()
    }
}

/// What a launch that is only tried is made of.
pub(in crate::provider) struct Trial<'a> {
    pub(in crate::provider) instance_type: &'a str,
    pub(in crate::provider) image: &'a Image,
    pub(in crate::provider) vswitch: &'a VSwitch,
}

/// A launch of the class that is only tried: on demand, without user data and without a claim.
pub(in crate::provider) fn trial(class: &ResolvedNodeClass, of: &Trial<'_>) -> RunInstances {
    let spec = &class.spec;
    let category = spec.system_disk.categories.first();
    let mut run = RunInstances {
        instance_type: of.instance_type.to_owned(),
        image_id: of.image.id.clone(),
        vswitch_id: of.vswitch.id.clone(),
        security_group_ids: class
            .security_groups
            .iter()
            .map(|it| it.id.clone())
            .collect(),
        amount: 1,
        key_pair_name: class.key_pair_name.clone(),
        password_inherit: spec.password_inherit,
        launch_template_id: spec.launch_template_id.clone(),
        ram_role_name: spec.role.clone(),
        resource_group_id: spec.resource_group_id.clone(),
        system_disk: system_disk(spec, category.map_or("", String::as_str)),
        data_disks: data_disks(spec, 0),
        internet_charge_type: spec.internet_charge_type.clone(),
        internet_max_bandwidth_out: spec.internet_max_bandwidth_out,
        ..RunInstances::default()
    };
    put_spot(&mut run, spec, CapacityType::OnDemand);
    run
}

/// A function of group and attempt, and of nothing else: whatever changed since a crash, the same attempt is sent with
/// the same token, so the server makes at most one instance of it.
pub(super) fn client_token(cluster: &str, group: &str, number: u32) -> String {
    let hash = sha256_hex(format!("{cluster}\n{group}\n{number}").as_bytes());
    format!("kerf-{}", &hash[..48])
}

fn system_disk(class: &NodeClassSpec, category: &str) -> SystemDiskParams {
    let disk = &class.system_disk;
    SystemDiskParams {
        category: category.to_owned(),
        size_gib: disk.size_gib,
        performance_level: performance_level(category, &disk.performance_level),
        encrypted: disk.encrypted,
        kms_key_id: disk.kms_key_id.clone(),
    }
}

/// Only ESSD disks have levels; the API refuses one on any other.
fn performance_level(category: &str, level: &str) -> String {
    if category == "cloud_essd" {
        level.to_owned()
    } else {
        String::new()
    }
}

fn data_disks(class: &NodeClassSpec, choice: usize) -> Vec<DataDiskParams> {
    let disks = class.data_disks.iter().map(|disk| {
        let category = disk.categories.get(choice).or(disk.categories.last());
        let category = category.map_or("", String::as_str);
        DataDiskParams {
            category: category.to_owned(),
            size_gib: disk.size_gib,
            performance_level: performance_level(category, &disk.performance_level),
            device: disk.device.clone(),
            snapshot_id: disk.snapshot_id.clone(),
            encrypted: disk.encrypted,
            kms_key_id: disk.kms_key_id.clone(),
            delete_with_instance: disk.delete_with_instance.unwrap_or(true),
        }
    });
    disks.collect()
}

fn put_spot(run: &mut RunInstances, class: &NodeClassSpec, capacity_type: CapacityType) {
    match capacity_type {
        CapacityType::OnDemand | CapacityType::Reserved => {
            "NoSpot".clone_into(&mut run.spot_strategy);
        }
        CapacityType::Spot => {
            let spot = &class.spot;
            let strategy = match spot.strategy.as_str() {
                "" if spot.price_limit_per_hour.is_some() => "SpotWithPriceLimit",
                "" => "SpotAsPriceGo",
                given => given,
            };
            strategy.clone_into(&mut run.spot_strategy);
            let is_capped = strategy == "SpotWithPriceLimit";
            run.spot_price_limit = spot.price_limit_per_hour.filter(|_| is_capped);
            run.spot_duration = spot.duration_hours;
            run.spot_interruption_behavior
                .clone_from(&spot.interruption_behavior);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_by_attempt_and_fit_the_api() {
        let first = client_token("c-1", "g", 1);

        assert_eq!(first, client_token("c-1", "g", 1));
        assert_ne!(first, client_token("c-1", "g", 2));
        assert_ne!(first, client_token("c-2", "g", 1));
        assert!(first.len() <= 64 && first.is_ascii());
    }

    #[test]
    fn a_price_limit_is_only_sent_with_its_strategy() {
        let mut class = NodeClassSpec::default();
        let strategy = |class: &NodeClassSpec| {
            let mut run = RunInstances::default();
            put_spot(&mut run, class, CapacityType::Spot);
            (run.spot_strategy, run.spot_price_limit)
        };

        assert_eq!(strategy(&class), ("SpotAsPriceGo".to_owned(), None));
        class.spot.price_limit_per_hour = Some(0.5);
        assert_eq!(
            strategy(&class),
            ("SpotWithPriceLimit".to_owned(), Some(0.5))
        );
        class.spot.strategy = "SpotAsPriceGo".to_owned();
        assert_eq!(strategy(&class), ("SpotAsPriceGo".to_owned(), None));
    }
}
