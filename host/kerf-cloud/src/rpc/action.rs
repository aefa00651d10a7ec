//! Every call that this crate can make: the one table that requests are made from and that the RAM policy is made of.
//!
//! AssumeRoleWithOIDC is not among them: it is not signed, so that no RAM policy speaks of it ([`super::credentials`]).

use crate::rpc::endpoint::Product;

/// Makes the type from a table: product, its prefix in RAM policies, and its actions.
macro_rules! actions {
    ($($product:ident $prefix:literal: $($name:ident)+;)+) => {
        /// An action of a product. Its names are the API's own.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Action {
            $($(
                #[doc = concat!("`", $prefix, ":", stringify!($name), "`")]
                $name,
            )+)+
        }

        impl Action {
            /// All of them, by product and name.
            pub const ALL: &'static [Self] = &[$($(Self::$name,)+)+];

            /// Whose action it is.
            #[must_use]
            pub const fn product(self) -> Product {
                match self {
                    $($(Self::$name => Product::$product,)+)+
                }
            }

            /// As the API calls it, `RunInstances`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($(Self::$name => stringify!($name),)+)+
                }
            }

            /// As RAM policies write it, `ecs:RunInstances`.
            #[must_use]
            pub const fn permission(self) -> &'static str {
                match self {
                    $($(Self::$name => concat!($prefix, ":", stringify!($name)),)+)+
                }
            }
        }
    };
}

actions! {
    Cs "cs": DescribeClusterAttachScripts DescribeClusterDetail;
    Ecs "ecs":
        DeleteInstance
        DeleteInstances
        DescribeAvailableResource
        DescribeCapacityReservations
        DescribeImages
        DescribeInstanceHistoryEvents
        DescribeInstanceTypes
        DescribeInstances
        DescribeKeyPairs
        DescribePrice
        DescribeSecurityGroups
        DescribeSpotAdvice
        DescribeSpotPriceHistory
        DescribeZones
        ListTagResources
        RunInstances
        TagResources;
    Vpc "vpc": DescribeVSwitches;
}
