//! Which host answers for which product.

use std::fmt;

/// An API product that kerf calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Product {
    Ecs,
    Vpc,
    Cs,
    Ram,
    Sts,
}

impl Product {
    /// All products.
    pub const ALL: [Self; 5] = [Self::Ecs, Self::Vpc, Self::Cs, Self::Ram, Self::Sts];

    /// The first part of the host name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ecs => "ecs",
            Self::Vpc => "vpc",
            Self::Cs => "cs",
            Self::Ram => "ram",
            Self::Sts => "sts",
        }
    }

    /// The API version that kerf speaks.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self {
            Self::Ecs => "2014-05-26",
            Self::Vpc => "2016-04-28",
            Self::Cs => "2015-12-15",
            Self::Ram => "2015-05-01",
            Self::Sts => "2015-04-01",
        }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// From where the endpoints are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    #[default]
    Public,
    /// Inside a VPC, without a public address.
    Vpc,
}

/// The base URL of a product in a region.
#[must_use]
pub fn base_url(product: Product, region_id: &str, network: Network) -> String {
    let host = match (product, network) {
        // RAM is one central service.
        (Product::Ram, _) => "ram.aliyuncs.com".to_owned(),
        (product, Network::Vpc) => format!("{product}-vpc.{region_id}.aliyuncs.com"),
        (Product::Ecs, Network::Public) if region_id == "cn-hangzhou" => {
            "ecs-cn-hangzhou.aliyuncs.com".to_owned()
        }
        (Product::Vpc, Network::Public) if region_id == "cn-hangzhou" => {
            "vpc.aliyuncs.com".to_owned()
        }
        (product, Network::Public) => format!("{product}.{region_id}.aliyuncs.com"),
    };
    format!("https://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_follow_region_and_network() {
        let check = |product, region, network, expected: &str| {
            assert_eq!(
                base_url(product, region, network),
                format!("https://{expected}")
            );
        };

        check(
            Product::Ecs,
            "cn-beijing",
            Network::Public,
            "ecs.cn-beijing.aliyuncs.com",
        );
        check(
            Product::Ecs,
            "cn-hangzhou",
            Network::Public,
            "ecs-cn-hangzhou.aliyuncs.com",
        );
        check(
            Product::Vpc,
            "cn-hangzhou",
            Network::Public,
            "vpc.aliyuncs.com",
        );
        check(
            Product::Cs,
            "cn-hangzhou",
            Network::Vpc,
            "cs-vpc.cn-hangzhou.aliyuncs.com",
        );
        check(
            Product::Ram,
            "eu-central-1",
            Network::Vpc,
            "ram.aliyuncs.com",
        );
    }
}
