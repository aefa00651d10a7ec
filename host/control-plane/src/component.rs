//! The servers that make up a control plane.

use std::fmt;

/// One server of the control plane. The order is the order of starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    Etcd,
    ApiServer,
    Scheduler,
    ControllerManager,
    Kwok,
}

impl Component {
    pub const ALL: [Self; 5] = [
        Self::Etcd,
        Self::ApiServer,
        Self::Scheduler,
        Self::ControllerManager,
        Self::Kwok,
    ];

    /// The file name of its program, and of its log without `.log`.
    pub fn program(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::Scheduler => "kube-scheduler",
            Self::ControllerManager => "kube-controller-manager",
            Self::Kwok => "kwok",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.program())
    }
}
