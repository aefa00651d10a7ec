//! CapacityBuffers: their pods' spec and limits in the core's words.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use kerf_api::capacitybuffer::CapacityBufferSpec;
use kerf_core::pod::{OwnerKind, PodSpec};
use kerf_core::resources::Limits;

use super::pod::pod_spec;
use super::quantities;
use crate::problem::{Problem, Problems};

/// What one pod of the template asks for. Its volumes are left out: a pod that does not exist has none.
///
/// # Errors
/// What cannot be planned, by field of the template.
pub fn buffer_pod(template: &PodTemplateSpec) -> Result<PodSpec, Vec<Problem>> {
    let mut problems = Problems::default();
    let spec = template.spec.clone().unwrap_or_default();
    let metadata = template.metadata.clone().unwrap_or_default();
    let converted = pod_spec(
        &spec,
        &metadata,
        None,
        OwnerKind::CapacityBuffer,
        &mut problems,
    );
    finish(converted, problems)
}

/// The most that all pods of the buffer may ask for together.
///
/// # Errors
/// What cannot be read, by field.
pub fn buffer_limits(spec: &CapacityBufferSpec) -> Result<Limits, Vec<Problem>> {
    let mut problems = Problems::default();
    let limits = spec
        .limits
        .as_ref()
        .map(|limits| quantities::limits(limits, "spec.limits", &mut problems));
    finish(limits.unwrap_or_default(), problems)
}

fn finish<T>(value: T, problems: Problems) -> Result<T, Vec<Problem>> {
    match problems.is_empty() {
        true => Ok(value),
        false => Err(problems.finish()),
    }
}
