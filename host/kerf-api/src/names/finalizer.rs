//! Finalizers: what must be done before an object may go.

use super::names;

names! {
    /// On Nodes (drain first) and NodeClaims (delete the instance first).
    TERMINATION = "karpenter.sh/termination";
    /// On ECSNodeClasses: kept while a NodeClaim uses the class.
    ECSNODECLASS = "karpenter.alibabacloud.com/termination";
}
