//! What a buffer says about itself. Pure.

use jiff::Timestamp;
use kerf_api::capacitybuffer::{ACTIVE_CAPACITY, CapacityBuffer, CapacityBufferStatus};
use kerf_api::condition::{Condition, ConditionStatus};
use kerf_api::names::{condition, reason};
use kerf_api::time::whole_seconds;

use super::Outcome;
use super::resolve::{Resolved, Unresolved};

/// The status after a pass. Without an outcome, what was said about provisioning stays.
pub(super) fn status(
    buffer: &CapacityBuffer,
    resolved: &Result<Resolved, Unresolved>,
    outcome: Option<&Outcome>,
    now: Timestamp,
) -> CapacityBufferStatus {
    let mut status = buffer.status.clone().unwrap_or_default();
    status.provisioning_strategy = Some(ACTIVE_CAPACITY.to_owned());
    let mut conditions = Said {
        list: std::mem::take(&mut status.conditions),
        generation: buffer.metadata.generation,
        now,
    };
    match resolved {
        Err((why, message)) => {
            conditions.say(condition::READY_FOR_PROVISIONING, false, why, message);
            let message = "the pods that it stands for are not known";
            conditions.say(
                condition::PROVISIONING,
                false,
                reason::NOT_READY_FOR_PROVISIONING,
                message,
            );
            status.replicas = None;
            status.pod_template_ref = None;
            status.pod_template_generation = None;
        }
        Ok(resolved) => {
            conditions.say(
                condition::READY_FOR_PROVISIONING,
                true,
                reason::RESOLVED,
                "",
            );
            status.replicas = i32::try_from(resolved.buffer.pods).ok();
            status
                .pod_template_ref
                .clone_from(&buffer.spec.pod_template_ref);
            status.pod_template_generation = resolved.generation;
            let wanted = usize::try_from(resolved.buffer.pods).unwrap_or(usize::MAX);
            if let Some((is_there, why, message)) = provisioning(wanted, outcome) {
                conditions.say(condition::PROVISIONING, is_there, why, &message);
            }
        }
    }
    status.conditions = conditions.list;
    status
}

/// Whether there is room for that many pods; none when no plan has said so yet.
fn provisioning(wanted: usize, outcome: Option<&Outcome>) -> Option<(bool, &'static str, String)> {
    if wanted == 0 {
        let message = "it stands for no pods: see replicas, percentage and limits";
        return Some((false, reason::BUFFER_EMPTY, message.to_owned()));
    }
    let outcome = outcome?;
    if outcome.on_nodes >= wanted {
        return Some((true, reason::FITS_EXISTING_CAPACITY, String::new()));
    }
    let Outcome {
        on_nodes,
        on_the_way,
        without_place,
        reason,
    } = outcome;
    let mut message = format!(
        "{on_nodes} of {wanted} pods have room, {on_the_way} on nodes that are on their way"
    );
    if let Some(reason) = reason {
        message.push_str(&format!("; {without_place} have no place: {reason}"));
    }
    Some((false, reason::REQUIRES_NEW_CAPACITY, message))
}

/// The two conditions. There is no `Ready` that they make up.
struct Said {
    list: Vec<Condition>,
    generation: Option<i64>,
    now: Timestamp,
}

impl Said {
    fn say(&mut self, type_: &str, is_true: bool, reason: &str, message: &str) {
        let status = match is_true {
            true => ConditionStatus::True,
            false => ConditionStatus::False,
        };
        let known = self.list.iter_mut().find(|it| it.type_ == type_);
        let since = known.as_ref().filter(|it| it.status == status);
        let said = Condition {
            type_: type_.to_owned(),
            last_transition_time: since
                .map_or_else(|| whole_seconds(self.now), |it| it.last_transition_time),
            status,
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: self.generation,
        };
        match known {
            Some(known) => *known = said,
            None => self.list.push(said),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerf_core::buffer::Buffer;
    use kerf_core::pod::PodSpec;
    use serde_json::json;

    #[track_caller]
    fn check(resolved: Result<u32, Unresolved>, outcome: Option<&Outcome>, expected: [&str; 2]) {
        let spec = json!({"podTemplateRef": {"name": "web"}, "replicas": 3});
        let buffer = CapacityBuffer::new("spare", serde_json::from_value(spec).unwrap());
        let resolved = resolved.map(|pods| Resolved {
            buffer: Buffer::new("default", "spare", "u", PodSpec::default(), pods),
            generation: Some(4),
        });

        let status = status(&buffer, &resolved, outcome, Timestamp::UNIX_EPOCH);

        let shown: Vec<String> = status
            .conditions
            .iter()
            .map(|it| {
                format!(
                    "{}={} {} {}",
                    it.type_,
                    it.status.as_str(),
                    it.reason,
                    it.message
                )
            })
            .collect();
        assert_eq!(shown, expected.map(str::trim_start));
        assert_eq!(
            status.pod_template_generation,
            resolved.is_ok().then_some(4)
        );
    }

    #[test]
    fn conditions_say_whether_the_pods_are_known_and_have_room() {
        let ready = "ReadyForProvisioning=True Resolved ";
        let all = Outcome {
            on_nodes: 3,
            ..Outcome::default()
        };
        let some = Outcome {
            on_nodes: 1,
            on_the_way: 1,
            without_place: 1,
            reason: Some("no NodePool".to_owned()),
        };

        check(
            Ok(3),
            Some(&all),
            [ready, "Provisioning=True FitsExistingCapacity "],
        );
        check(
            Ok(3),
            Some(&some),
            [
                ready,
                "Provisioning=False RequiresNewCapacity 1 of 3 pods have room, 1 on nodes that are on their way; 1 have no place: no NodePool",
            ],
        );
        check(
            Ok(0),
            None,
            [
                ready,
                "Provisioning=False BufferEmpty it stands for no pods: see replicas, percentage and limits",
            ],
        );
        check(
            Err((
                reason::POD_TEMPLATE_NOT_FOUND,
                "PodTemplate default/web does not exist".to_owned(),
            )),
            None,
            [
                "ReadyForProvisioning=False PodTemplateNotFound PodTemplate default/web does not exist",
                "Provisioning=False NotReadyForProvisioning the pods that it stands for are not known",
            ],
        );
    }
}
