//! The world that a simulator starts with: network, images, clusters, stock and timing. Every field may be left out.
//!
//! The default world is what the quick-start manifests expect: zones h, i, j and k of cn-hangzhou, each with a vSwitch, and
//! one security group, all tagged `karpenter.sh/discovery: my-cluster`.

use std::{collections::BTreeMap, net::Ipv4Addr};

use serde::{Deserialize, Serialize};

pub type Tags = BTreeMap<String, String>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct World {
    pub region: String,
    pub account_id: String,
    pub vpc_id: String,
    pub vswitches: Vec<VSwitch>,
    pub security_groups: Vec<SecurityGroup>,
    pub images: Vec<Image>,
    pub key_pairs: Vec<KeyPair>,
    pub launch_templates: Vec<String>,
    /// Room that is kept for the account.
    pub private_pools: Vec<PrivatePool>,
    pub ram_roles: Vec<String>,
    pub clusters: Vec<Cluster>,
    /// The last rule that fits an offering counts; without one the stock is unlimited.
    pub stock: Vec<StockRule>,
    /// vCPUs that the account may have; what goes beyond is refused with QuotaExceed.ElasticQuota.
    pub vcpu_quota: Option<u32>,
    /// Give the attach script as a JSON string, which some gateways do, rather than as plain text.
    pub attach_script_as_json: bool,
    /// Calls per minute that an action takes before it throttles.
    pub rate_limits: BTreeMap<String, u32>,
    /// Caps every page, to make several pages out of few objects.
    pub page_size_max: Option<usize>,
    pub timing: Timing,
    /// What is sold in place of the built-in catalog, in every zone; empty: that catalog.
    pub instance_types: Vec<SoldType>,
    /// What the account pays per hour on demand in place of the list price, by type, as DescribePrice tells it: zero too.
    pub account_prices: BTreeMap<String, f64>,
    /// The currency of all prices.
    pub currency: String,
    /// User data that runs at the same time: on two cores more only makes each slower.
    pub boots_at_once: usize,
    /// The part of the nominal memory that the operating system shows (91 to 94.5 % was seen in life).
    pub memory_visible_ratio: f64,
}

/// How long things take, all in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Timing {
    /// From RunInstances until DescribeInstances shows the instance.
    pub visible_after_ms: u64,
    /// From RunInstances until Starting.
    pub starting_after_ms: u64,
    /// From RunInstances until Running, when the user data begins to run.
    pub running_after_ms: u64,
    /// From DeleteInstances until the instance is gone.
    pub released_after_ms: u64,
    /// From the instance's end until the Node is removed, as the cloud controller manager does. None: never.
    pub node_removed_after_ms: Option<u64>,
    /// User data that runs longer is killed.
    pub boot_limit_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct VSwitch {
    pub id: String,
    pub zone: String,
    /// First address and prefix length, `10.0.0.0/20`.
    pub cidr: Cidr,
    #[serde(default)]
    pub tags: Tags,
    /// Fewer free addresses than the range has.
    #[serde(default)]
    pub available_ips: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SecurityGroup {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub tags: Tags,
    /// Another VPC than the world's makes launches fail with InconsistentNetwork.
    #[serde(default)]
    pub vpc_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct KeyPair {
    pub name: String,
    #[serde(default)]
    pub tags: Tags,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PrivatePool {
    pub id: String,
    pub instance_type: String,
    pub zone: String,
    /// Instances that it has room for, those that run in it counted.
    pub count: u32,
    #[serde(default)]
    pub tags: Tags,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Image {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub family: String,
    /// As the API spells it: `x86_64` or `arm64`.
    pub architecture: String,
    pub size_gib: u32,
    pub created_at: String,
    /// `system`, `self`, `others` or `marketplace`.
    #[serde(default = "system")]
    pub owner_alias: String,
    /// The account that owns it; the cloud's images have none.
    #[serde(default)]
    pub owner_id: String,
    #[serde(default)]
    pub tags: Tags,
}

fn system() -> String {
    "system".to_owned()
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Cluster {
    pub id: String,
    pub name: String,
    pub version: String,
    /// `terway-eniip` or `flannel`.
    pub network: String,
    /// What the attach script passes as `--endpoint`.
    pub endpoint: String,
    pub node_pool_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct StockRule {
    /// Absent: any. A trailing `*` stands for any ending.
    #[serde(default)]
    pub instance_type: Option<String>,
    #[serde(default)]
    pub zone: Option<String>,
    /// `on-demand` or `spot`.
    #[serde(default)]
    pub capacity_type: Option<String>,
    /// Machines left; launches count it down, releases count it up.
    #[serde(default)]
    pub count: u32,
    /// Not on sale at all, rather than sold out.
    #[serde(default)]
    pub not_on_sale: bool,
}

/// An instance type of a made-up catalog.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SoldType {
    pub id: String,
    pub cpu: u32,
    pub memory_gib: f64,
    pub price_per_hour: f64,
    /// What spot costs of that price, in percent.
    pub spot_percent: u32,
}

/// An IPv4 range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Cidr {
    pub base: Ipv4Addr,
    pub prefix: u8,
}

#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    #[error("{text:?} is no IPv4 range such as 10.0.0.0/20")]
    ParseCidr { text: String },
    #[error("parse the world")]
    Parse(#[source] Box<serde_saphyr::Error>),
}

impl TryFrom<String> for Cidr {
    type Error = WorldError;

    fn try_from(text: String) -> Result<Self, WorldError> {
        let parse = || {
            let (base, prefix) = text.split_once('/')?;
            let (base, prefix) = (base.parse().ok()?, prefix.parse().ok()?);
            // Cloud vSwitches are /16 to /29; a wider one would not fit the address arithmetic below.
            (16..=29).contains(&prefix).then_some(Self { base, prefix })
        };
        parse().ok_or_else(|| WorldError::ParseCidr { text: text.clone() })
    }
}

impl From<Cidr> for String {
    fn from(cidr: Cidr) -> Self {
        format!("{}/{}", cidr.base, cidr.prefix)
    }
}

impl Cidr {
    /// The first and the last three addresses of a vSwitch are the system's; so a /24 has 252.
    pub fn usable(self) -> u32 {
        (1 << (32 - u32::from(self.prefix))) - 4
    }

    /// The n-th usable address.
    pub fn address(self, n: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.base) + 1 + n)
    }
}

impl World {
    /// Reads a world from YAML (or JSON, which is YAML).
    pub fn parse(text: &str) -> Result<Self, WorldError> {
        serde_saphyr::from_str(text).map_err(|error| WorldError::Parse(Box::new(error)))
    }

    /// Zones in the order of the vSwitches, each once.
    pub fn zones(&self) -> Vec<&str> {
        let mut zones: Vec<_> = self
            .vswitches
            .iter()
            .map(|vswitch| vswitch.zone.as_str())
            .collect();
        zones.sort_unstable();
        zones.dedup();
        zones
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            visible_after_ms: 200,
            starting_after_ms: 300,
            running_after_ms: 600,
            released_after_ms: 500,
            node_removed_after_ms: Some(500),
            boot_limit_ms: 60_000,
        }
    }
}

impl Default for World {
    fn default() -> Self {
        let discovery =
            || Tags::from([("karpenter.sh/discovery".to_owned(), "my-cluster".to_owned())]);
        let vswitch = |letter: &str, third: u8| VSwitch {
            id: format!("vsw-bp1sim000000000000{letter}"),
            zone: format!("cn-hangzhou-{letter}"),
            cidr: Cidr {
                base: Ipv4Addr::new(10, 0, third, 0),
                prefix: 20,
            },
            tags: discovery(),
            available_ips: None,
        };
        Self {
            region: "cn-hangzhou".to_owned(),
            account_id: "1234567890123456".to_owned(),
            vpc_id: "vpc-bp1sim000000000000".to_owned(),
            vswitches: vec![
                vswitch("h", 0),
                vswitch("i", 16),
                vswitch("j", 32),
                vswitch("k", 48),
            ],
            security_groups: vec![SecurityGroup {
                id: "sg-bp1sim0000000000000".to_owned(),
                name: "nodes".to_owned(),
                tags: discovery(),
                vpc_id: None,
            }],
            images: default_images(),
            key_pairs: vec![KeyPair {
                name: "default".to_owned(),
                tags: discovery(),
            }],
            launch_templates: Vec::new(),
            private_pools: Vec::new(),
            ram_roles: vec!["KubernetesWorkerRole".to_owned()],
            clusters: vec![Cluster {
                id: "c0000000000000000000000000000sim1".to_owned(),
                name: "my-cluster".to_owned(),
                version: "1.36.3-aliyun.1".to_owned(),
                network: "terway-eniip".to_owned(),
                endpoint: "10.0.0.1:6443".to_owned(),
                node_pool_id: "np00000000000000000000000000sim1".to_owned(),
            }],
            stock: Vec::new(),
            vcpu_quota: None,
            attach_script_as_json: false,
            rate_limits: BTreeMap::new(),
            page_size_max: None,
            timing: Timing::default(),
            instance_types: Vec::new(),
            account_prices: BTreeMap::new(),
            currency: "CNY".to_owned(),
            boots_at_once: 3,
            memory_visible_ratio: 0.935,
        }
    }
}

fn default_images() -> Vec<Image> {
    let image = |name: &str, family: &str, architecture: &str, created_at: &str| Image {
        id: format!("{name}.vhd"),
        name: format!("{name}.vhd"),
        family: family.to_owned(),
        architecture: architecture.to_owned(),
        size_gib: 20,
        created_at: created_at.to_owned(),
        owner_alias: system(),
        owner_id: String::new(),
        tags: Tags::new(),
    };
    let (x64, arm64) = (
        "acs:alibaba_cloud_linux_3_2104_lts_x64",
        "acs:alibaba_cloud_linux_3_2104_lts_arm64",
    );
    vec![
        image(
            "aliyun_3_x64_20G_alibase_20250117",
            x64,
            "x86_64",
            "2025-01-20T02:00:00Z",
        ),
        image(
            "aliyun_3_x64_20G_alibase_20250629",
            x64,
            "x86_64",
            "2025-07-01T02:00:00Z",
        ),
        image(
            "aliyun_3_arm64_20G_alibase_20250629",
            arm64,
            "arm64",
            "2025-07-01T02:00:00Z",
        ),
        image(
            "aliyun_3_x64_20G_container_optimized_alibase_20250629",
            "",
            "x86_64",
            "2025-07-02T02:00:00Z",
        ),
        image(
            "aliyun_3_arm64_20G_container_optimized_alibase_20250629",
            "",
            "arm64",
            "2025-07-02T02:00:00Z",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_file_changes_only_what_it_names() {
        let world = World::parse("stock:\n- {instanceType: ecs.g7.*, zone: cn-hangzhou-h, count: 2}\ntiming: {runningAfterMs: 5}\n").unwrap();

        assert_eq!(world.stock[0].count, 2);
        assert_eq!(world.timing.running_after_ms, 5);
        assert_eq!(world.vswitches, World::default().vswitches);
        assert_eq!(world.zones().len(), 4);
    }

    #[test]
    fn the_world_of_the_readme_is_read() {
        let readme = include_str!("../README.md");
        let yaml = readme
            .split("```yaml\n")
            .nth(1)
            .unwrap()
            .split("```")
            .next()
            .unwrap();

        let world = World::parse(yaml).unwrap();

        assert_eq!((world.stock.len(), world.vcpu_quota), (2, Some(500)));
    }

    #[test]
    fn a_misspelt_field_is_refused() {
        assert!(World::parse("zonez: []\n").is_err());
    }

    #[test]
    fn a_vswitch_of_24_bits_has_252_addresses() {
        let cidr = Cidr::try_from("10.0.1.0/24".to_owned()).unwrap();

        assert_eq!(cidr.usable(), 252);
        assert_eq!(cidr.address(0), Ipv4Addr::new(10, 0, 1, 1));
    }
}
