//! The disks that a machine sees, and the tools that format and mount them there.
//!
//! A machine without rights over its host cannot mount anything, so the devices are plain files, and the tools write
//! down what they were asked for: the file system into the device, each mount into `/run/ecs-sim/mounts`.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;

use super::private_root::PrivateRoot;
use crate::instance::Spec;

const DISK_TOOLS: &str = include_str!("../../data/disk_tools.sh");
/// Where the tools are; before the host's own in the machine's PATH.
pub(super) const TOOL_FOLDER: &str = "opt/ecs-sim/bin";
/// Names of the one tool.
const TOOLS: &[&str] = &["blkid", "mdadm", "mkfs.ext4", "mkfs.xfs", "mount"];
const LOCAL_MODEL: &str = "Local NVMe Disk";

/// How many disks there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disks {
    /// The system disk among them.
    cloud: usize,
    /// NVMe only.
    local: usize,
}

impl Disks {
    pub(crate) fn of(spec: &Spec) -> Self {
        let has_nvme = spec.instance_type.has_local_nvme();
        let local = if has_nvme {
            spec.instance_type.local_disks.0
        } else {
            0
        };
        Self {
            cloud: 1 + spec.data_disks,
            local: local as usize,
        }
    }
}

impl PrivateRoot {
    /// Makes the devices and the tools.
    pub(crate) fn attach(&self, disks: &Disks) -> io::Result<()> {
        let root = self.root();
        for letter in ('a'..='z').take(disks.cloud) {
            fs::write(root.join(format!("dev/vd{letter}")), "")?;
        }
        for number in 0..disks.local {
            fs::write(root.join(format!("dev/nvme{number}n1")), "")?;
            let folder = root.join(format!("sys/block/nvme{number}n1/device"));
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("model"), LOCAL_MODEL)?;
        }
        let folder = root.join(TOOL_FOLDER);
        fs::create_dir_all(&folder)?;
        let tool = folder.join("disk-tool");
        fs::write(&tool, DISK_TOOLS)?;
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755))?;
        for name in TOOLS {
            symlink("disk-tool", folder.join(name))?;
        }
        Ok(())
    }
}
