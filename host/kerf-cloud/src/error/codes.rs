//! The error table: exact code to class. Sources: the official error tables and users' reports; a test holds it
//! against every row of `ecs-error-codes.csv`.

use crate::error::{
    AuthProblem, CapacityScope, ErrorClass, Idempotency, Missing, QuotaScope, StateProblem,
};

/// Every code that asks for more than "the request is wrong". The odd spellings are the wire's own.
pub const TABLE: &[(&str, ErrorClass)] = &[
    (
        "OperationDenied.NoStock",
        ErrorClass::NoCapacity(CapacityScope::Offering),
    ),
    (
        "NoInstanceStock",
        ErrorClass::NoCapacity(CapacityScope::Offering),
    ),
    (
        "ResourceNotAvailable",
        ErrorClass::NoCapacity(CapacityScope::Offering),
    ),
    (
        "Zone.NotOnSale",
        ErrorClass::NoCapacity(CapacityScope::TypeInZone),
    ),
    (
        "InvalidResourceType.NotSupported",
        ErrorClass::NoCapacity(CapacityScope::TypeInZone),
    ),
    (
        "InvalidInstanceType.ZoneNotSupported",
        ErrorClass::NoCapacity(CapacityScope::TypeInZone),
    ),
    (
        "InvalidInstanceType.NotSupported",
        ErrorClass::NoCapacity(CapacityScope::TypeInZone),
    ),
    (
        "InvalidInstanceType.ValueNotSupported",
        ErrorClass::NoCapacity(CapacityScope::TypeInZone),
    ),
    (
        "InvalidInstanceType.ValueUnauthorized",
        ErrorClass::NoCapacity(CapacityScope::TypeInZone),
    ),
    (
        "InstanceType.Offline",
        ErrorClass::NoCapacity(CapacityScope::Type),
    ),
    ("Zone.NotOpen", ErrorClass::NoCapacity(CapacityScope::Zone)),
    ("InvalidDiskCategory.NotSupported", ErrorClass::DiskCategory),
    (
        "InvalidDiskCategory.ValueNotSupported",
        ErrorClass::DiskCategory,
    ),
    ("InvalidDiskCategory.Mismatch", ErrorClass::DiskCategory),
    (
        "InvalidSystemDiskCategory.ValueNotSupported",
        ErrorClass::DiskCategory,
    ),
    (
        "InvalidSystemDiskCategory.ValueUnauthorized",
        ErrorClass::DiskCategory,
    ),
    (
        "InvalidDataDiskCategory.ValueNotSupported",
        ErrorClass::DiskCategory,
    ),
    ("CategoryNotSupported", ErrorClass::DiskCategory),
    (
        "OperationDenied.ZoneSystemCategoryNotMatch",
        ErrorClass::DiskCategory,
    ),
    (
        "InvalidInstanceType.NotSupportDiskCategory",
        ErrorClass::DiskCategory,
    ),
    ("InvalidVSwitchId.IpNotEnough", ErrorClass::IpExhausted),
    ("QuotaExceeded.PrivateIpAddress", ErrorClass::IpExhausted),
    (
        "QuotaExceed.ElasticQuota",
        ErrorClass::Quota(QuotaScope::Family),
    ),
    (
        "QuotaExceed.AfterpayInstance",
        ErrorClass::Quota(QuotaScope::Account),
    ),
    (
        "QuotaExceed.ZoneInstanceQuota",
        ErrorClass::Quota(QuotaScope::Account),
    ),
    ("QuotaExceeded", ErrorClass::Quota(QuotaScope::Account)),
    (
        "OperationDenied.QuotaExceed",
        ErrorClass::Quota(QuotaScope::Account),
    ),
    (
        "QuotaExceed.PostPaidDisk",
        ErrorClass::Quota(QuotaScope::Disk),
    ),
    (
        "QuotaExceed.PortableCloudDisk",
        ErrorClass::Quota(QuotaScope::Disk),
    ),
    (
        "InstanceDiskNumber.LimitExceed",
        ErrorClass::Quota(QuotaScope::Disk),
    ),
    (
        "InstanceDiskNumLimitExceed",
        ErrorClass::Quota(QuotaScope::Disk),
    ),
    (
        "InstanceDiskCategoryLimitExceed",
        ErrorClass::Quota(QuotaScope::Disk),
    ),
    (
        "SecurityGroupInstanceLimitExceed",
        ErrorClass::Quota(QuotaScope::SecurityGroup),
    ),
    (
        "JoinedGroupLimitExceed",
        ErrorClass::Quota(QuotaScope::SecurityGroup),
    ),
    ("QuotaExceed.Tags", ErrorClass::Quota(QuotaScope::Tag)),
    (
        "QuotaExceed.DeploymentSetInstanceQuotaFull",
        ErrorClass::Quota(QuotaScope::DeploymentSet),
    ),
    (
        "InvalidAccessKeyId",
        ErrorClass::Auth(AuthProblem::Credentials),
    ),
    (
        "InvalidAccessKeyId.NotFound",
        ErrorClass::Auth(AuthProblem::Credentials),
    ),
    (
        "InvalidAccessKeyId.Inactive",
        ErrorClass::Auth(AuthProblem::Credentials),
    ),
    (
        "IncompleteSignature",
        ErrorClass::Auth(AuthProblem::Credentials),
    ),
    (
        "SignatureDoesNotMatch",
        ErrorClass::Auth(AuthProblem::Credentials),
    ),
    (
        "InvalidSecurityToken.Expired",
        ErrorClass::Auth(AuthProblem::TokenExpired),
    ),
    (
        "InvalidSecurityToken.Malformed",
        ErrorClass::Auth(AuthProblem::TokenExpired),
    ),
    (
        "InvalidSecurityToken.MismatchWithAccessKey",
        ErrorClass::Auth(AuthProblem::TokenExpired),
    ),
    ("Forbidden.RAM", ErrorClass::Auth(AuthProblem::Permission)),
    (
        "Forbidden.RegionId",
        ErrorClass::Auth(AuthProblem::Permission),
    ),
    ("Forbidden", ErrorClass::Auth(AuthProblem::Permission)),
    ("Forbbiden", ErrorClass::Auth(AuthProblem::Permission)),
    ("NoPermission", ErrorClass::Auth(AuthProblem::Permission)),
    (
        "NoPermission.Tag",
        ErrorClass::Auth(AuthProblem::Permission),
    ),
    (
        "RegionUnauthorized",
        ErrorClass::Auth(AuthProblem::Permission),
    ),
    (
        "OperationDenied.ResourceControl",
        ErrorClass::Auth(AuthProblem::Permission),
    ),
    (
        "PermissionDenied.Scope",
        ErrorClass::Auth(AuthProblem::Permission),
    ),
    (
        "InvalidUser.PassRoleForbidden",
        ErrorClass::Auth(AuthProblem::NodeRole),
    ),
    (
        "InvalidRamRole.NotEcsRole",
        ErrorClass::Auth(AuthProblem::NodeRole),
    ),
    (
        "InvalidRamRole.NotFound",
        ErrorClass::NotFound(Missing::RamRole),
    ),
    (
        "Forbidden.RiskControl",
        ErrorClass::Auth(AuthProblem::Account),
    ),
    (
        "UserNotInTheWhiteList",
        ErrorClass::Auth(AuthProblem::Account),
    ),
    (
        "SecurityRisk.3DVerification",
        ErrorClass::Auth(AuthProblem::Account),
    ),
    ("InvalidAccountStatus.NotEnoughBalance", ErrorClass::Billing),
    ("InsufficientBalance", ErrorClass::Billing),
    ("Account.Arrearage", ErrorClass::Billing),
    ("RealNameAuthenticationError", ErrorClass::Billing),
    (
        "InvalidBillingMethod.ValueNotSupported",
        ErrorClass::Billing,
    ),
    ("PaymentMethodNotFound", ErrorClass::Billing),
    ("InvalidPayMethod", ErrorClass::Billing),
    (
        "InvalidSpotPriceLimit.LowerThanPublicPrice",
        ErrorClass::SpotPrice,
    ),
    (
        "OperationDenied.SpotPriceLowerThanPublicPrice",
        ErrorClass::SpotPrice,
    ),
    (
        "InvalidInstanceId.NotFound",
        ErrorClass::NotFound(Missing::Instance),
    ),
    (
        "InvalidImageId.NotFound",
        ErrorClass::NotFound(Missing::Image),
    ),
    (
        "InvalidMarketImage.NotFound",
        ErrorClass::NotFound(Missing::Image),
    ),
    (
        "InvalidVSwitchId.NotFound",
        ErrorClass::NotFound(Missing::VSwitch),
    ),
    (
        "InvalidVSwitchId.NotExist",
        ErrorClass::NotFound(Missing::VSwitch),
    ),
    ("InvalidVpcId.NotFound", ErrorClass::NotFound(Missing::Vpc)),
    ("VpcNotFound", ErrorClass::NotFound(Missing::Vpc)),
    (
        "InvalidSecurityGroupId.NotFound",
        ErrorClass::NotFound(Missing::SecurityGroup),
    ),
    (
        "InvalidSecurityGroupId",
        ErrorClass::NotFound(Missing::SecurityGroup),
    ),
    (
        "InvalidKeyPairName.NotFound",
        ErrorClass::NotFound(Missing::KeyPair),
    ),
    (
        "InvalidLaunchTemplate.NotFound",
        ErrorClass::NotFound(Missing::LaunchTemplate),
    ),
    (
        "InvalidLaunchTemplateVersion.NotFound",
        ErrorClass::NotFound(Missing::LaunchTemplate),
    ),
    (
        "InvalidResourceGroup.NotFound",
        ErrorClass::NotFound(Missing::ResourceGroup),
    ),
    (
        "DeploymentSet.NotFound",
        ErrorClass::NotFound(Missing::DeploymentSet),
    ),
    (
        "InvalidSnapshotId.NotFound",
        ErrorClass::NotFound(Missing::Snapshot),
    ),
    (
        "InvalidDataDiskSnapshotId.NotFound",
        ErrorClass::NotFound(Missing::Snapshot),
    ),
    (
        "InvalidParameter.KMSKeyId.NotFound",
        ErrorClass::NotFound(Missing::KmsKey),
    ),
    (
        "InvalidRegionId.NotFound",
        ErrorClass::NotFound(Missing::Region),
    ),
    (
        "InvalidZoneId.NotFound",
        ErrorClass::NotFound(Missing::Zone),
    ),
    (
        "ErrorClusterNotFound",
        ErrorClass::NotFound(Missing::Cluster),
    ),
    (
        "InvalidResourceId.NotFound",
        ErrorClass::NotFound(Missing::Other),
    ),
    (
        "IncorrectInstanceStatus.Initializing",
        ErrorClass::State(StateProblem::Initializing),
    ),
    (
        "IncorrectInstanceStatus",
        ErrorClass::State(StateProblem::Busy),
    ),
    ("OperationConflict", ErrorClass::State(StateProblem::Busy)),
    (
        "IncorrectVSwitchStatus",
        ErrorClass::State(StateProblem::Busy),
    ),
    (
        "DependencyViolation.RouteEntry",
        ErrorClass::State(StateProblem::Locked),
    ),
    (
        "DependencyViolation.SLBConfiguring",
        ErrorClass::State(StateProblem::Busy),
    ),
    (
        "InstanceLockedForSecurity",
        ErrorClass::State(StateProblem::Locked),
    ),
    (
        "InvalidOperation.DeletionProtection",
        ErrorClass::State(StateProblem::Locked),
    ),
    (
        "OperationDenied.DeletionProtection",
        ErrorClass::State(StateProblem::Locked),
    ),
    (
        "ChargeTypeViolation",
        ErrorClass::State(StateProblem::Locked),
    ),
    (
        "IdempotentParameterMismatch",
        ErrorClass::Idempotent(Idempotency::Mismatch),
    ),
    (
        "IdempotenceParamNotMatch",
        ErrorClass::Idempotent(Idempotency::Mismatch),
    ),
    (
        "Idempotence.Processing",
        ErrorClass::Idempotent(Idempotency::Processing),
    ),
    ("SignatureNonceUsed", ErrorClass::StaleSignature),
    ("IllegalTimestamp", ErrorClass::StaleSignature),
    ("InvalidTimeStamp.Expired", ErrorClass::StaleSignature),
    ("ImageNotSupportInstanceType", ErrorClass::ImageMismatch),
    ("ImageNotSupportCloudInit", ErrorClass::ImageMismatch),
    ("InvalidUserData.SizeExceeded", ErrorClass::UserData),
    ("InvalidUserData.Base64FormatInvalid", ErrorClass::UserData),
    ("InvalidUserData.NotSupported", ErrorClass::UserData),
    ("InvalidUserData.Forbidden", ErrorClass::UserData),
    ("DryRunOperation", ErrorClass::DryRun),
    ("ServiceUnavailable", ErrorClass::Transient),
    ("InternalError", ErrorClass::Transient),
    ("UnknownError", ErrorClass::Transient),
    (
        "LastTokenProcessing",
        ErrorClass::Idempotent(Idempotency::Processing),
    ),
];

/// The class of a reply with this code and HTTP status.
#[must_use]
pub fn classify(code: &str, status: u16) -> ErrorClass {
    // Throttling comes with 400, 403, 429 and 503 and with many suffixes, so its prefix is the rule.
    if code == "Throttling" || code.starts_with("Throttling.") {
        return ErrorClass::Throttled;
    }
    let known = TABLE.iter().find(|(known, _)| *known == code);
    match (known, status) {
        (Some((_, class)), _) => *class,
        (None, 429) => ErrorClass::Throttled,
        (None, 500..) => ErrorClass::Transient,
        (None, _) => ErrorClass::Invalid,
    }
}
