//! The instance types that the simulated regions sell, read from the embedded catalog.

use std::collections::BTreeMap;

use crate::world::SoldType;

/// Facts and list prices of 923 types; where each row comes from is in its last columns.
const CATALOG_CSV: &str = include_str!("../data/catalog.csv");

/// Spot prices lie between 20 % and 35 % of the list price, differently in each zone but always the same.
const SPOT_PERCENT_MIN: u64 = 20;
const SPOT_PERCENT_SPREAD: u64 = 16;
/// The region whose price counts where a type has none of the region's own.
const PRICE_REGION: &str = "cn-hangzhou";

#[derive(Debug, Clone, PartialEq)]
pub struct InstanceType {
    pub id: String,
    pub family: String,
    pub arm64: bool,
    pub cpu: u32,
    pub memory_gib: f64,
    /// Network interfaces, IPv4 and IPv6 addresses on each; none where the catalog does not know.
    pub network: Option<Network>,
    pub gpu_count: u32,
    pub gpu_model: String,
    pub gpu_memory_gib: f64,
    pub bare_metal: bool,
    pub burstable: bool,
    /// How many local disks, and GiB of each.
    pub local_disks: (u32, u64),
    /// Price per hour by region; a type without a price is not sold there.
    prices: BTreeMap<&'static str, f64>,
    /// What spot costs of the list price in percent; none: it differs by zone.
    spot_percent: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    pub interfaces: u32,
    pub ipv4_per_interface: u32,
    pub ipv6_per_interface: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("read the embedded catalog")]
    Read(#[from] csv::Error),
    #[error("read column {column} of catalog row {row}")]
    Column { column: &'static str, row: usize },
}

/// All types by name.
#[derive(Debug, Clone)]
pub struct Catalog {
    types: BTreeMap<String, InstanceType>,
}

impl Catalog {
    /// Reads the catalog that is compiled in.
    pub fn embedded() -> Result<Self, CatalogError> {
        let mut reader = csv::Reader::from_reader(CATALOG_CSV.as_bytes());
        let columns = reader.headers()?.clone();
        let mut types = BTreeMap::new();
        for (row, record) in reader.records().enumerate() {
            let record = record?;
            let row = Row {
                columns: &columns,
                record: &record,
                row,
            };
            let instance_type = row.instance_type()?;
            types.insert(instance_type.id.clone(), instance_type);
        }
        Ok(Self { types })
    }

    /// The types of a made-up catalog: for amd64, without GPUs, with one interface.
    pub fn of(sold: &[SoldType]) -> Self {
        let types = sold.iter().map(InstanceType::sold);
        Self {
            types: types.map(|it| (it.id.clone(), it)).collect(),
        }
    }

    pub fn find(&self, id: &str) -> Option<&InstanceType> {
        self.types.get(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &InstanceType> {
        self.types.values()
    }
}

impl InstanceType {
    fn sold(sold: &SoldType) -> Self {
        let name = sold.id.trim_start_matches("ecs.");
        let family = name.split(['.', '-']).next().unwrap_or(name);
        Self {
            id: sold.id.clone(),
            family: family.to_owned(),
            arm64: false,
            cpu: sold.cpu,
            memory_gib: sold.memory_gib,
            network: None,
            gpu_count: 0,
            gpu_model: String::new(),
            gpu_memory_gib: 0.0,
            bare_metal: false,
            burstable: false,
            local_disks: (0, 0),
            prices: BTreeMap::from([(PRICE_REGION, sold.price_per_hour)]),
            spot_percent: Some(sold.spot_percent),
        }
    }

    /// Whether its local disks are NVMe ones.
    pub fn has_local_nvme(&self) -> bool {
        self.local_disks.0 > 0 && self.family.starts_with('i') && !self.family.starts_with("i1")
    }

    /// The list price per hour, if the type is sold in the region.
    pub fn price(&self, region: &str) -> Option<f64> {
        // Other regions than the three of the catalog pay Hangzhou's price.
        self.prices
            .get(region)
            .or_else(|| self.prices.get(PRICE_REGION))
            .copied()
    }

    /// Today's spot price per hour in a zone.
    pub fn spot_price(&self, region: &str, zone: &str) -> Option<f64> {
        let of_zone = || {
            let percent = SPOT_PERCENT_MIN + fingerprint(&[&self.id, zone]) % SPOT_PERCENT_SPREAD;
            u32::try_from(percent).unwrap_or(u32::MAX)
        };
        let percent = f64::from(self.spot_percent.unwrap_or_else(of_zone));
        self.price(region)
            .map(|price| round_to_mills(price * percent / 100.0))
    }

    /// Sliced GPUs are no whole device, so the kubelet shows none.
    pub fn whole_gpus(&self) -> u32 {
        let sliced = self.family.starts_with("vgn") || self.family.starts_with("sgn");
        if sliced { 0 } else { self.gpu_count }
    }

    /// The generation digit of the family, 0 where the name has none.
    pub fn generation(&self) -> u32 {
        let letters = self
            .family
            .trim_start_matches(|c: char| c.is_ascii_alphabetic());
        letters
            .chars()
            .next()
            .and_then(|digit| digit.to_digit(10))
            .unwrap_or(0)
    }

    /// Disk categories that the type boots from; older generations also take the older disks.
    pub fn disk_categories(&self) -> &'static [&'static str] {
        if self.generation() >= 7 {
            &["cloud_essd", "cloud_auto", "cloud_essd_entry"]
        } else {
            &[
                "cloud_essd",
                "cloud_auto",
                "cloud_essd_entry",
                "cloud_ssd",
                "cloud_efficiency",
            ]
        }
    }
}

fn round_to_mills(price: f64) -> f64 {
    (price * 1000.0).round() / 1000.0
}

/// FNV-1a: the same on every machine and in every run, which std's hasher does not promise.
pub(crate) fn fingerprint(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// One line of the CSV with its column names.
struct Row<'a> {
    columns: &'a csv::StringRecord,
    record: &'a csv::StringRecord,
    row: usize,
}

impl Row<'_> {
    fn instance_type(&self) -> Result<InstanceType, CatalogError> {
        let regions = [
            ("cn-hangzhou", "price_cn_hangzhou_cny_h_2025_09"),
            ("cn-beijing", "price_cn_beijing_cny_h_2025_09"),
            ("ap-southeast-1", "price_ap_southeast_1_cny_h_2025_09"),
        ];
        let prices = regions
            .into_iter()
            .map(|(region, column)| Ok((region, self.number::<f64>(column)?.unwrap_or(0.0))));
        let prices: Result<Vec<_>, CatalogError> = prices.collect();
        Ok(InstanceType {
            id: self.text("type").to_owned(),
            family: self.text("family").to_owned(),
            arm64: self.text("arch") == "arm64",
            cpu: self.known("vcpu")?,
            memory_gib: self.known("memory_gib")?,
            network: self.network()?,
            gpu_count: self.number("gpu_count")?.unwrap_or(0),
            gpu_model: self.text("gpu_model").to_owned(),
            gpu_memory_gib: self.number("gpu_mem_gb")?.unwrap_or(0.0),
            bare_metal: self.text("bare_metal") == "1",
            burstable: self.text("burstable") == "1",
            local_disks: local_disks(self.text("local_storage_gib")),
            prices: prices?
                .into_iter()
                .filter(|(_, price)| *price > 0.0)
                .collect(),
            spot_percent: None,
        })
    }

    fn network(&self) -> Result<Option<Network>, CatalogError> {
        let (Some(interfaces), Some(ipv4_per_interface)) =
            (self.number("eni")?, self.number("ipv4_per_eni")?)
        else {
            return Ok(None);
        };
        let ipv6_per_interface = self.number("ipv6_per_eni")?.unwrap_or(ipv4_per_interface);
        Ok(Some(Network {
            interfaces,
            ipv4_per_interface,
            ipv6_per_interface,
        }))
    }

    fn text(&self, column: &'static str) -> &str {
        let at = self.columns.iter().position(|name| name == column);
        at.and_then(|at| self.record.get(at)).unwrap_or_default()
    }

    fn number<T: std::str::FromStr>(
        &self,
        column: &'static str,
    ) -> Result<Option<T>, CatalogError> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| CatalogError::Column {
            column,
            row: self.row,
        })
    }

    fn known<T: std::str::FromStr>(&self, column: &'static str) -> Result<T, CatalogError> {
        self.number(column)?.ok_or(CatalogError::Column {
            column,
            row: self.row,
        })
    }
}

/// `2 × 1,788`, or the size of the only one.
fn local_disks(text: &str) -> (u32, u64) {
    let (count, size) = text.split_once('×').unwrap_or(("1", text));
    let size = size.trim().replace(',', "").parse().unwrap_or(0);
    let count = count.trim().parse().unwrap_or(0);
    if size == 0 { (0, 0) } else { (count, size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_catalog_has_every_type() {
        let catalog = Catalog::embedded().unwrap();

        assert_eq!(catalog.iter().count(), 923);
        let arm = catalog.find("ecs.g8y.large").unwrap();
        assert!(arm.arm64);
        assert_eq!(arm.price("cn-hangzhou"), Some(0.4));
        assert_eq!(
            arm.network,
            Some(Network {
                interfaces: 3,
                ipv4_per_interface: 6,
                ipv6_per_interface: 6
            })
        );
    }

    #[test]
    fn a_made_up_type_is_sold_at_its_price() {
        let catalog = Catalog::of(&[SoldType {
            id: "c-2x-amd64-linux".to_owned(),
            cpu: 2,
            memory_gib: 4.0,
            price_per_hour: 0.05,
            spot_percent: 70,
        }]);

        let found = catalog.find("c-2x-amd64-linux").unwrap();
        assert_eq!((found.family.as_str(), found.cpu), ("c", 2));
        assert_eq!(found.price("eu-central-1"), Some(0.05));
        assert_eq!(found.spot_price("cn-hangzhou", "any"), Some(0.035));
    }

    #[test]
    fn sliced_gpus_are_no_devices() {
        let catalog = Catalog::embedded().unwrap();

        assert_eq!(
            catalog
                .find("ecs.vgn6i-m4-vws.xlarge")
                .unwrap()
                .whole_gpus(),
            0
        );
        assert_eq!(
            catalog.find("ecs.gn7i-c8g1.2xlarge").unwrap().whole_gpus(),
            1
        );
    }

    #[test]
    fn spot_is_cheaper_than_the_list_price_in_every_zone() {
        let catalog = Catalog::embedded().unwrap();
        let g7 = catalog.find("ecs.g7.xlarge").unwrap();

        for zone in ["cn-hangzhou-h", "cn-hangzhou-i"] {
            assert!(
                g7.spot_price("cn-hangzhou", zone).unwrap()
                    < g7.price("cn-hangzhou").unwrap() / 2.0
            );
        }
    }
}
