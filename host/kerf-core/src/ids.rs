//! Names of things, each its own type so that a pool's name cannot be passed for a node's.
//!
//! All are shared strings: cloning one copies a pointer.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

pub use crate::pod_uid::PodUid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps a name as it is; nothing is checked.
            pub fn new(name: impl Into<Arc<str>>) -> Self {
                Self(name.into())
            }

            /// The name itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self(Arc::from(""))
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(Arc::from(name))
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self {
                Self(Arc::from(name))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

id! {
    /// `metadata.name` of a NodePool.
    NodePoolName
}
id! {
    /// `metadata.name` of a NodeClaim.
    NodeClaimName
}
id! {
    /// `metadata.name` of a Node.
    NodeName
}
id! {
    /// An ECS instance type, such as `ecs.g7.xlarge`.
    InstanceTypeName
}
id! {
    /// An Alibaba Cloud zone, such as `cn-hangzhou-h`.
    ZoneId
}
id! {
    /// An id of a capacity reservation.
    ReservationId
}
