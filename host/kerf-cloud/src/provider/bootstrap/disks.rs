//! The part that formats and mounts disks before anything else runs on a new instance.

use std::fmt::Write as _;

use crate::provider::bootstrap::{BootstrapError, UserDataPart};
use crate::provider::class::NodeClassSpec;

/// The functions that the lines below call. Disks are told apart by their kind, not by names of devices: those differ
/// between generations of instance types.
const HEAD: &str = r#"#!/bin/bash
# Made by kerf: dataDisks[].mountTarget and instanceStorePolicy of the ECSNodeClass.
set -euo pipefail

is_cloud() { # name of a device
  [[ $1 != nvme* ]] || grep -qs 'Elastic Block Storage' "/sys/block/$1/device/model"
}

disks() { # "cloud" or "local"; in the order in which they are attached
  local path
  for path in /dev/vd[a-z] /dev/nvme*n1; do
    if [[ ! -e $path ]]; then continue; fi
    if is_cloud "${path#/dev/}"; then
      if [[ $1 = cloud ]]; then echo "$path"; fi
    elif [[ $1 = local ]]; then
      echo "$path"
    fi
  done | sort -V
}

data_disk() { # number, from 1; the system disk is before them
  local all tries
  for ((tries = 0; tries < 60; tries++)); do
    mapfile -t all < <(disks cloud)
    if ((${#all[@]} > $1)); then
      echo "${all[$1]}"
      return
    fi
    sleep 1
  done
  echo "kerf: data disk $1 did not show within a minute" >&2
  return 1
}

put() { # device, file system of an empty disk, folder
  blkid "$1" >/dev/null || "mkfs.$2" "$1"
  mkdir -p "$3"
  echo "UUID=$(blkid -s UUID -o value "$1") $3 $(blkid -s TYPE -o value "$1") defaults,nofail 0 2" >>/etc/fstab
  mount "$3"
}
"#;

/// One file system over all local NVMe disks, for everything that pods write.
const INSTANCE_STORE: &str = r#"
mapfile -t stores < <(disks local)
if ((${#stores[@]} > 0)); then
  store=${stores[0]}
  if ((${#stores[@]} > 1)); then
    store=/dev/md/kerf
    mdadm --create "$store" --force --run --level=0 --raid-devices="${#stores[@]}" "${stores[@]}"
  fi
  put "$store" xfs /mnt/instance-store
  for folder in /var/lib/kubelet /var/lib/containerd /var/log/pods; do
    mkdir -p "/mnt/instance-store$folder" "$folder"
    echo "/mnt/instance-store$folder $folder none bind,nofail 0 0" >>/etc/fstab
    mount "$folder"
  done
fi
"#;

const FILE_SYSTEM_DEFAULT: &str = "ext4";

/// The part, if the class mounts anything.
///
/// # Errors
/// When a folder or a file system cannot be written into a script.
pub fn disks_part(class: &NodeClassSpec) -> Result<Option<UserDataPart>, BootstrapError> {
    let mut lines = String::new();
    for (index, disk) in class.data_disks.iter().enumerate() {
        if disk.mount_target.is_empty() {
            continue;
        }
        let folder = harmless("mountTarget", &disk.mount_target)?;
        let file_system = match harmless("fileSystem", &disk.file_system)? {
            "" => FILE_SYSTEM_DEFAULT,
            given => given,
        };
        let number = index + 1;
        // Writing to a String cannot fail.
        let _ = writeln!(
            lines,
            "disk=$(data_disk {number})\nput \"$disk\" {file_system} {folder}"
        );
    }
    if class.instance_store_policy == "RAID0" {
        lines.push_str(INSTANCE_STORE);
    }
    Ok((!lines.is_empty()).then(|| UserDataPart {
        content_type: "text/x-shellscript".to_owned(),
        name: Some("disks".to_owned()),
        content: format!("{HEAD}\n{lines}"),
    }))
}

fn harmless<'a>(what: &'static str, value: &'a str) -> Result<&'a str, BootstrapError> {
    let is_harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if value.chars().all(is_harmless) {
        Ok(value)
    } else {
        Err(BootstrapError::Unsafe {
            what,
            value: value.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::class::DataDisk;

    #[test]
    fn a_class_that_mounts_nothing_has_no_part() {
        let class = NodeClassSpec {
            data_disks: vec![DataDisk::default()],
            ..NodeClassSpec::default()
        };

        assert_eq!(disks_part(&class), Ok(None));
    }

    #[test]
    fn a_folder_that_a_shell_would_read_as_more_is_refused() {
        let class = NodeClassSpec {
            data_disks: vec![DataDisk {
                mount_target: "/data; reboot".to_owned(),
                ..DataDisk::default()
            }],
            ..NodeClassSpec::default()
        };

        assert!(matches!(
            disks_part(&class),
            Err(BootstrapError::Unsafe {
                what: "mountTarget",
                ..
            })
        ));
    }
}
