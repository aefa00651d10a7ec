//! Catalog format v1: a region's instance types, with where and for how much they are sold, as one JSON document.
//!
//! The embedded table gives one for any region ([`Catalog::embedded`]); a file of the same form replaces it, edited or
//! taken from an account. Nothing here asks the cloud.

use kerf_core::instance_type::CapacityType;
use kerf_core::price::Price;
use serde::{Deserialize, Serialize};

use crate::provider::class::Architecture;
use crate::provider::facts::{TypeFacts, is_sliced, whole};
use crate::provider::prices::live::CURRENCY;
use crate::provider::prices::{Lists, PriceList, PriceSource, SpotDiscounts, table};

/// What the `format` of a catalog says.
pub const FORMAT: &str = "kerf-catalog";
/// The version that this code reads and writes.
pub const VERSION: u32 = 1;
/// MiB in a GiB.
const MIB_PER_GIB: f64 = 1024.0;

/// The zones that sell current types, by region. Other regions need their zones named.
const ZONES: &[(&str, &[&str])] = &[
    (
        "ap-southeast-1",
        &["ap-southeast-1a", "ap-southeast-1b", "ap-southeast-1c"],
    ),
    (
        "cn-beijing",
        &[
            "cn-beijing-h",
            "cn-beijing-i",
            "cn-beijing-j",
            "cn-beijing-k",
            "cn-beijing-l",
        ],
    ),
    (
        "cn-hangzhou",
        &[
            "cn-hangzhou-h",
            "cn-hangzhou-i",
            "cn-hangzhou-j",
            "cn-hangzhou-k",
        ],
    ),
    (
        "cn-shanghai",
        &[
            "cn-shanghai-e",
            "cn-shanghai-f",
            "cn-shanghai-g",
            "cn-shanghai-l",
            "cn-shanghai-m",
        ],
    ),
    (
        "cn-shenzhen",
        &[
            "cn-shenzhen-c",
            "cn-shenzhen-d",
            "cn-shenzhen-e",
            "cn-shenzhen-f",
        ],
    ),
];

/// A region's instance types.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Catalog {
    /// Always [`FORMAT`].
    pub format: String,
    /// Always [`VERSION`].
    pub version: u32,
    /// `cn-hangzhou`
    pub region: String,
    /// The unit of all prices.
    pub currency: String,
    /// Where the facts come from, in words.
    pub source: String,
    /// All zones of the region that are to be used.
    pub zones: Vec<String>,
    /// In name order.
    pub types: Vec<CatalogType>,
}

/// One instance type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CatalogType {
    /// `ecs.g7.xlarge`
    pub name: String,
    /// `ecs.g7`
    pub family: String,
    /// `amd64` or `arm64`
    pub architecture: String,
    pub cpus: u32,
    pub memory_mib: u64,
    /// Network interfaces, with the primary one.
    pub enis: u32,
    /// IPv4 addresses of each interface.
    pub ips_per_eni: u32,
    /// Whole GPUs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gpus: u32,
    /// `NVIDIA A10`
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gpu_spec: String,
    /// GiB of one GPU.
    #[serde(default, skip_serializing_if = "is_zero_64")]
    pub gpu_memory_gib: u64,
    /// `Intel(R) Xeon(R) Platinum 8369B`; the table in this binary has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cpu_model: String,
    /// GiB of all local NVMe disks together.
    #[serde(default, skip_serializing_if = "is_zero_64")]
    pub local_nvme_gib: u64,
    /// Where and how it is sold.
    pub offerings: Vec<CatalogOffering>,
}

/// One way to buy a type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CatalogOffering {
    pub zone: String,
    /// `on-demand` or `spot`
    pub capacity_type: String,
    /// Absent: unknown, which sorts last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<f64>,
    /// Why it cannot be bought now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// It is sold, but without a promise of stock: at equal price others come first.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_stock_uncertain: bool,
}

/// A catalog that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// No zones are known for the region.
    #[error(
        "no zones are known for region {region}; name them, such as --zones {region}-a,{region}-b"
    )]
    UnknownRegion {
        /// The region.
        region: String,
    },
    /// The text is no catalog.
    #[error("read the catalog")]
    Parse(#[source] serde_json::Error),
    /// Another format or version.
    #[error(
        "the catalog says format {format:?} version {version}; this kerf reads {FORMAT:?} version {VERSION}"
    )]
    Version {
        /// What it says.
        format: String,
        /// What it says.
        version: u32,
    },
    /// A value that means nothing here.
    #[error("{type_name}: {value:?} is no {what}")]
    Value {
        /// The instance type.
        type_name: String,
        /// The value.
        value: String,
        /// What it should be.
        what: &'static str,
    },
}

impl Catalog {
    /// The table in this binary, as it is sold in a region. Types without a price are not sold; spot prices are
    /// estimates. `zones` empty takes the ones that are known for the region.
    ///
    /// # Errors
    /// When no zones are given for a region that has none in this binary.
    pub fn embedded(region: &str, zones: &[String]) -> Result<Self, CatalogError> {
        let zones = if zones.is_empty() {
            known_zones(region)?
        } else {
            zones.to_vec()
        };
        let lists = Lists {
            region_id: region,
            discounts: &SpotDiscounts::default(),
        };
        let mut is_own = false;
        let mut types: Vec<CatalogType> = rows()
            .filter_map(|mut row| {
                let (on_demand, source) = lists.price(&row.name, "", CapacityType::OnDemand)?;
                let (spot, _) = lists.price(&row.name, "", CapacityType::Spot)?;
                is_own |= source == PriceSource::Catalog;
                row.offerings = zones
                    .iter()
                    .flat_map(|zone| {
                        [("on-demand", on_demand), ("spot", spot)].map(|(capacity_type, price)| {
                            CatalogOffering {
                                zone: zone.clone(),
                                capacity_type: capacity_type.to_owned(),
                                price_per_hour: Price::from_per_hour(price).per_hour(),
                                unavailable: None,
                                is_stock_uncertain: false,
                            }
                        })
                    })
                    .collect();
                Some(row)
            })
            .collect();
        types.sort_by(|a, b| a.name.cmp(&b.name));
        let of_region = if is_own {
            ""
        } else {
            "; prices of another region"
        };
        Ok(Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            region: region.to_owned(),
            currency: CURRENCY.to_owned(),
            source: format!("embedded list prices of 2025-09, spot estimated{of_region}"),
            zones,
            types,
        })
    }

    /// Reads a catalog of this format.
    ///
    /// # Errors
    /// When it is another format or version, or a value means nothing.
    pub fn parse(json: &str) -> Result<Self, CatalogError> {
        let catalog: Self = serde_json::from_str(json).map_err(CatalogError::Parse)?;
        if catalog.format != FORMAT || catalog.version != VERSION {
            return Err(CatalogError::Version {
                format: catalog.format,
                version: catalog.version,
            });
        }
        for row in &catalog.types {
            row.check()?;
        }
        Ok(catalog)
    }

    /// Every price that it gives.
    #[must_use]
    pub fn prices(&self) -> PriceList {
        let types = self.types.iter();
        let offerings = types.flat_map(|row| row.offerings.iter().map(move |it| (row, it)));
        let known = offerings.filter_map(|(row, it)| {
            let price = it.price_per_hour.map(Price::from_per_hour)?;
            let key = (
                row.name.clone(),
                it.zone.clone(),
                CapacityType::parse(&it.capacity_type)?,
            );
            price.is_known().then_some((key, price))
        });
        known.collect()
    }
}

impl CatalogType {
    /// The row of a type that is sold like that.
    pub(super) fn new(facts: &TypeFacts, offerings: Vec<CatalogOffering>) -> Self {
        let facts = facts.clone();
        Self {
            name: facts.name,
            family: facts.family,
            architecture: facts.architecture.as_str().to_owned(),
            cpus: facts.cpus,
            memory_mib: facts.memory_mib,
            enis: facts.enis,
            ips_per_eni: facts.ips_per_eni,
            gpus: facts.gpus,
            gpu_spec: facts.gpu_spec,
            gpu_memory_gib: facts.gpu_memory_gib,
            cpu_model: facts.cpu_model,
            local_nvme_gib: facts.local_nvme_gib,
            offerings,
        }
    }

    /// The facts that the capacity model takes; none for an architecture that is not known.
    #[must_use]
    pub fn facts(&self) -> Option<TypeFacts> {
        Some(TypeFacts {
            name: self.name.clone(),
            family: self.family.clone(),
            architecture: architecture(&self.architecture)?,
            cpus: self.cpus,
            memory_mib: self.memory_mib,
            gpus: self.gpus,
            gpu_spec: self.gpu_spec.clone(),
            gpu_memory_gib: self.gpu_memory_gib,
            enis: self.enis,
            ips_per_eni: self.ips_per_eni,
            cpu_model: self.cpu_model.clone(),
            local_nvme_gib: self.local_nvme_gib,
        })
    }

    fn check(&self) -> Result<(), CatalogError> {
        let wrong = |value: &str, what| {
            Err(CatalogError::Value {
                type_name: self.name.clone(),
                value: value.to_owned(),
                what,
            })
        };
        if architecture(&self.architecture).is_none() {
            return wrong(&self.architecture, "architecture (amd64 or arm64)");
        }
        let is_wrong = |it: &&CatalogOffering| CapacityType::parse(&it.capacity_type).is_none();
        match self.offerings.iter().find(is_wrong) {
            Some(offering) => wrong(&offering.capacity_type, "capacity type (on-demand or spot)"),
            None => Ok(()),
        }
    }
}

fn architecture(text: &str) -> Option<Architecture> {
    [Architecture::Amd64, Architecture::Arm64]
        .into_iter()
        .find(|known| known.as_str() == text)
}

fn known_zones(region: &str) -> Result<Vec<String>, CatalogError> {
    let known = ZONES.iter().find(|(name, _)| *name == region);
    let zones = known.map(|(_, zones)| zones.iter().map(|zone| (*zone).to_owned()).collect());
    zones.ok_or_else(|| CatalogError::UnknownRegion {
        region: region.to_owned(),
    })
}

/// The rows of the embedded table, without offerings.
fn rows() -> impl Iterator<Item = CatalogType> {
    let mut reader = csv::Reader::from_reader(table::CATALOG.as_bytes());
    let header = reader.headers().cloned().unwrap_or_default();
    reader
        .into_records()
        .filter_map(Result::ok)
        .filter_map(move |row| {
            let cell = |name: &str| {
                let column = header.iter().position(|title| title == name);
                column.and_then(|column| row.get(column)).unwrap_or("")
            };
            row_of(&cell)
        })
}

/// `2 × 1,788` of the families with NVMe disks; the first generation has other disks.
fn local_nvme_gib(family: &str, text: &str) -> u64 {
    if !family.starts_with('i') || family.starts_with("i1") {
        return 0;
    }
    let mut numbers = text
        .split('×')
        .map(|it| it.trim().replace(',', "").parse::<u64>());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(count)), Some(Ok(gib))) => count.saturating_mul(gib),
        _ => 0,
    }
}

fn row_of<'a>(cell: &dyn Fn(&str) -> &'a str) -> Option<CatalogType> {
    let count = |name: &str| cell(name).parse::<u32>().unwrap_or_default();
    let family = format!("ecs.{}", cell("family"));
    let gpus = if is_sliced(&family) {
        0
    } else {
        count("gpu_count")
    };
    Some(CatalogType {
        name: cell("type").to_owned(),
        architecture: cell("arch").to_owned(),
        cpus: cell("vcpu").parse().ok()?,
        memory_mib: whole(cell("memory_gib").parse::<f64>().ok()? * MIB_PER_GIB),
        enis: count("eni"),
        ips_per_eni: count("ipv4_per_eni"),
        gpus,
        gpu_spec: cell("gpu_model").to_owned(),
        gpu_memory_gib: cell("gpu_mem_gb").parse().map(whole).unwrap_or_default(),
        cpu_model: String::new(),
        local_nvme_gib: local_nvme_gib(cell("family"), cell("local_storage_gib")),
        family,
        offerings: Vec::new(),
    })
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(is_set: &bool) -> bool {
    !*is_set
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero_64(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_catalog_survives_a_round_trip() {
        let catalog = Catalog::embedded("cn-hangzhou", &[]).unwrap();

        let json = serde_json::to_string(&catalog).unwrap();

        assert_eq!(Catalog::parse(&json).unwrap(), catalog);
        assert!(catalog.types.len() >= 590, "{}", catalog.types.len());
        let g7 = catalog
            .types
            .iter()
            .find(|it| it.name == "ecs.g7.xlarge")
            .unwrap();
        assert_eq!((g7.cpus, g7.memory_mib, g7.offerings.len()), (4, 16384, 8));
    }

    #[test]
    fn a_catalog_gives_the_prices_that_it_knows() {
        let json = r#"{"format":"kerf-catalog","version":1,"region":"r","currency":"CNY","source":"","zones":["z"],
            "types":[{"name":"a","family":"f","architecture":"amd64","cpus":1,"memoryMib":1,"enis":1,"ipsPerEni":1,
            "offerings":[{"zone":"z","capacityType":"spot","pricePerHour":0.25},{"zone":"z","capacityType":"on-demand"}]}]}"#;

        let prices = Catalog::parse(json).unwrap().prices();

        let spot = ("a".to_owned(), "z".to_owned(), CapacityType::Spot);
        assert_eq!(
            prices,
            PriceList::from([(spot, Price::from_micros(250_000))])
        );
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        let message = |json: &str| Catalog::parse(json).unwrap_err().to_string();
        let with = |version: u32, architecture: &str| {
            format!(
                r#"{{"format":"kerf-catalog","version":{version},"region":"r","currency":"CNY","source":"","zones":[],
                "types":[{{"name":"a","family":"f","architecture":"{architecture}","cpus":1,"memoryMib":1,"enis":1,"ipsPerEni":1,"offerings":[]}}]}}"#
            )
        };

        assert!(message(&with(2, "amd64")).contains("version 2"));
        assert!(message(&with(1, "x86")).contains("architecture"));
        assert!(Catalog::parse(&with(1, "arm64")).is_ok());
        let unknown = Catalog::embedded("mars-1", &[]).unwrap_err().to_string();
        assert!(unknown.contains("--zones mars-1-a"), "{unknown}");
        assert!(Catalog::embedded("mars-1", &["mars-1-a".to_owned()]).is_ok());
    }
}
