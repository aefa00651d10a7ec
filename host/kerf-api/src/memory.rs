//! What must outlive a restart and has no object of its own: a ConfigMap in the controller's namespace.
//!
//! Learned sizes, unavailable offerings and the registration health of pools. Each part is one key with JSON, so that
//! a person can read it and a broken part costs only itself. The object has a size limit; what is least worth keeping
//! goes first. Start with [`Memory`].

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Name of the ConfigMap.
pub const MEMORY_NAME: &str = "kerf-memory";

/// etcd refuses objects above 1.5 MiB and ConfigMaps end at 1 MiB; the rest is room for metadata.
pub const MEMORY_BYTES_MAX: usize = 900 * 1024;

const SIZES: &str = "sizes";
const UNAVAILABLE: &str = "unavailable";
const REGISTRATIONS: &str = "registrations";

/// Results of registrations that are kept per pool. Karpenter: same.
pub const REGISTRATIONS_MAX: usize = 4;

/// What must outlive a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// What nodes that joined really had.
    pub sizes: Vec<LearnedSize>,
    /// Offerings that the cloud refused, until when.
    pub unavailable: Vec<UnavailableOffering>,
    /// The latest registrations of each pool, by the pool's uid, oldest first: whether they succeeded.
    pub registrations: BTreeMap<String, Vec<bool>>,
}

/// What a node of one type and image really had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LearnedSize {
    /// The instance type.
    pub instance_type: String,
    /// The image.
    pub image_id: String,
    /// Memory that the kubelet reported as capacity.
    pub memory_bytes: i64,
    /// When such a node was last seen.
    pub seen_at: Timestamp,
}

/// What the cloud refused. An empty field means all of its kind: without a type the whole zone, for example.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnavailableOffering {
    /// The instance type.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instance_type: String,
    /// The family of instance types, when a quota of the whole family is used up.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub family: String,
    /// The zone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// The vSwitch, when it has no addresses left; nothing else is given then.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub vswitch: String,
    /// `spot`, `on-demand` or `reserved`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub capacity_type: String,
    /// The cloud's code.
    pub reason: String,
    /// When to try again.
    pub until: Timestamp,
}

/// A part of the ConfigMap that could not be read; the part is empty instead.
#[derive(Debug, thiserror::Error)]
#[error("read {key} of the ConfigMap {MEMORY_NAME}; that part starts empty")]
pub struct MemoryError {
    key: &'static str,
    source: serde_json::Error,
}

/// What a write left out to stay below the size limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Learned sizes, those seen longest ago.
    pub sizes: usize,
    /// Unavailable offerings, those that end first.
    pub unavailable: usize,
}

impl Memory {
    /// Reads the ConfigMap. What is broken starts empty and is reported; what has ended is left out.
    #[must_use]
    pub fn read(config_map: &ConfigMap, now: Timestamp) -> (Self, Vec<MemoryError>) {
        let mut errors = Vec::new();
        let mut memory = Self {
            sizes: part(config_map, SIZES, &mut errors),
            unavailable: part(config_map, UNAVAILABLE, &mut errors),
            registrations: part(config_map, REGISTRATIONS, &mut errors),
        };
        memory.unavailable.retain(|offering| offering.until > now);
        (memory, errors)
    }

    /// The ConfigMap to write. Equal memories give equal objects, whatever the order of their lists.
    ///
    /// # Errors
    /// When a part cannot be written as JSON, which would be a bug of this crate.
    pub fn write(
        &self,
        namespace: &str,
        now: Timestamp,
    ) -> Result<(ConfigMap, Dropped), MemoryError> {
        let mut memory = self.clone();
        memory.unavailable.retain(|offering| offering.until > now);
        memory.unavailable.sort_by(|a, b| {
            b.until
                .cmp(&a.until)
                .then_with(|| a.offering().cmp(&b.offering()))
        });
        memory.sizes.sort_by(|a, b| {
            b.seen_at
                .cmp(&a.seen_at)
                .then_with(|| a.key().cmp(&b.key()))
        });
        for results in memory.registrations.values_mut() {
            let surplus = results.len().saturating_sub(REGISTRATIONS_MAX);
            results.drain(..surplus);
        }

        let mut dropped = Dropped::default();
        let mut data = memory.data()?;
        while size(&data) > MEMORY_BYTES_MAX && memory.shrink(&mut dropped) {
            data = memory.data()?;
        }
        let metadata = ObjectMeta {
            name: Some(MEMORY_NAME.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        };
        Ok((
            ConfigMap {
                metadata,
                data: Some(data),
                ..ConfigMap::default()
            },
            dropped,
        ))
    }

    /// Takes away the last tenth of the longer list; false when there is nothing left to take.
    fn shrink(&mut self, dropped: &mut Dropped) -> bool {
        let takes_sizes = self.sizes.len() >= self.unavailable.len();
        let length = if takes_sizes {
            self.sizes.len()
        } else {
            self.unavailable.len()
        };
        let count = length.div_ceil(10);
        if takes_sizes {
            self.sizes.truncate(length - count);
            dropped.sizes += count;
        } else {
            self.unavailable.truncate(length - count);
            dropped.unavailable += count;
        }
        count > 0
    }

    fn data(&self) -> Result<BTreeMap<String, String>, MemoryError> {
        Ok(BTreeMap::from([
            (SIZES.to_owned(), text(SIZES, &self.sizes)?),
            (
                UNAVAILABLE.to_owned(),
                text(UNAVAILABLE, &self.unavailable)?,
            ),
            (
                REGISTRATIONS.to_owned(),
                text(REGISTRATIONS, &self.registrations)?,
            ),
        ]))
    }
}

impl LearnedSize {
    fn key(&self) -> (&str, &str) {
        (&self.instance_type, &self.image_id)
    }
}

impl UnavailableOffering {
    fn offering(&self) -> [&str; 5] {
        [
            &self.instance_type,
            &self.family,
            &self.zone,
            &self.vswitch,
            &self.capacity_type,
        ]
    }
}

fn part<T: DeserializeOwned + Default>(
    config_map: &ConfigMap,
    key: &'static str,
    errors: &mut Vec<MemoryError>,
) -> T {
    let Some(text) = config_map.data.as_ref().and_then(|data| data.get(key)) else {
        return T::default();
    };
    serde_json::from_str(text).unwrap_or_else(|source| {
        errors.push(MemoryError { key, source });
        T::default()
    })
}

fn text<T: Serialize>(key: &'static str, value: &T) -> Result<String, MemoryError> {
    serde_json::to_string(value).map_err(|source| MemoryError { key, source })
}

fn size(data: &BTreeMap<String, String>) -> usize {
    data.iter()
        .map(|(key, value)| key.len() + value.len())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn learned(index: usize, second: i64) -> LearnedSize {
        LearnedSize {
            instance_type: format!("ecs.g{index}.large"),
            image_id: "aliyun_3_x64.vhd".to_owned(),
            memory_bytes: 8_000_000_000,
            seen_at: at(second),
        }
    }

    fn refused(zone: &str, until: i64) -> UnavailableOffering {
        UnavailableOffering {
            instance_type: "ecs.g7.large".to_owned(),
            zone: zone.to_owned(),
            capacity_type: "spot".to_owned(),
            reason: "OperationDenied.NoStock".to_owned(),
            until: at(until),
            ..UnavailableOffering::default()
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let memory = Memory {
            sizes: vec![learned(7, 10)],
            unavailable: vec![refused("h", 500)],
            registrations: BTreeMap::from([("uid-1".to_owned(), vec![true, false])]),
        };

        let (config_map, dropped) = memory.write("kerf", at(100)).unwrap();
        let (read, errors) = Memory::read(&config_map, at(100));

        assert_eq!(read, memory);
        assert_eq!(dropped, Dropped::default());
        assert!(errors.is_empty());
    }

    #[test]
    fn what_has_ended_is_forgotten() {
        let memory = Memory {
            unavailable: vec![refused("h", 100), refused("i", 101)],
            ..Memory::default()
        };

        let (config_map, _) = memory.write("kerf", at(100)).unwrap();

        assert_eq!(
            Memory::read(&config_map, at(100)).0.unavailable,
            [refused("i", 101)]
        );
        assert!(Memory::read(&config_map, at(101)).0.unavailable.is_empty());
    }

    #[test]
    fn the_oldest_go_when_the_object_would_be_too_large() {
        let sizes = (0..20_000)
            .map(|index| learned(index, i64::try_from(index).unwrap()))
            .collect();
        let memory = Memory {
            sizes,
            unavailable: vec![refused("h", 500)],
            ..Memory::default()
        };

        let (config_map, dropped) = memory.write("kerf", at(100)).unwrap();
        let (read, _) = Memory::read(&config_map, at(100));

        assert!(size(config_map.data.as_ref().unwrap()) <= MEMORY_BYTES_MAX);
        assert_eq!(read.sizes.len() + dropped.sizes, 20_000);
        assert_eq!(read.sizes[0].seen_at, at(19_999));
        assert_eq!(read.unavailable.len(), 1);
    }

    #[test]
    fn a_broken_part_costs_only_itself() {
        let memory = Memory {
            sizes: vec![learned(7, 10)],
            unavailable: vec![refused("h", 500)],
            ..Memory::default()
        };
        let (mut config_map, _) = memory.write("kerf", at(100)).unwrap();
        config_map
            .data
            .as_mut()
            .unwrap()
            .insert(SIZES.to_owned(), "{".to_owned());

        let (read, errors) = Memory::read(&config_map, at(100));

        assert_eq!(errors.len(), 1);
        assert!(read.sizes.is_empty());
        assert_eq!(read.unavailable.len(), 1);
    }
}
