//! Elastic strength in statuses and conditions. Pure.

use kerf_api::condition::Conditions;
use kerf_api::names::{condition, reason};
use kerf_api::strength::ElasticStrength;
use kerf_core::strength::Strength;

/// As statuses show it.
pub(crate) fn shown(strength: &Strength) -> ElasticStrength {
    let others = strength.others.iter();
    ElasticStrength {
        summary: strength.to_string(),
        launchable: count(strength.launchable),
        total: count(strength.total),
        others: others
            .map(|(cause, number)| (cause.as_str().to_owned(), count(*number)))
            .collect(),
    }
}

/// Says whether there are enough ways to launch something, before a launch fails for want of one.
pub(crate) fn set(conditions: &mut Conditions, strength: &Strength) {
    if !strength.is_weak() {
        conditions.set_true(condition::ELASTIC_STRENGTH);
        return;
    }
    let reason = match strength.launchable {
        0 => reason::NOTHING_LAUNCHABLE,
        _ => reason::FEW_WAYS_TO_LAUNCH,
    };
    conditions.set_false(condition::ELASTIC_STRENGTH, reason, &message(strength));
}

fn message(strength: &Strength) -> String {
    let others: Vec<String> = strength
        .others
        .iter()
        .map(|(cause, number)| format!("{} {number}", cause.as_str()))
        .collect();
    let others = match others.is_empty() {
        true => "nothing else is allowed".to_owned(),
        false => others.join(", "),
    };
    format!(
        "{} of {} combinations of instance type, zone and capacity type can be launched now ({others}); allow more instance types, zones or capacity types",
        strength.launchable, strength.total
    )
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kerf_api::condition::find;
    use kerf_api::nodepool::NodePool;
    use kerf_core::unavailable::Cause;

    use super::*;

    fn said(launchable: usize) -> (bool, String, String) {
        let strength = Strength {
            launchable,
            total: 9,
            others: [(Cause::Stock, 9 - launchable)].into(),
        };
        let now = Timestamp::UNIX_EPOCH;
        let mut conditions = Conditions::open(NodePool::CONDITIONS, &[], 1, now, now);
        set(&mut conditions, &strength);
        let list = conditions.finish();
        let it = find(&list, condition::ELASTIC_STRENGTH).unwrap();
        (it.is_true(), it.reason.clone(), it.message.clone())
    }

    #[test]
    fn few_ways_to_launch_are_told_with_the_reasons_of_the_others() {
        assert!(said(4).0);
        let (is_strong, reason, message) = said(2);
        assert!(!is_strong && reason == "FewWaysToLaunch");
        assert!(
            message.starts_with("2 of 9") && message.contains("NoStock 7"),
            "{message}"
        );
        assert_eq!(said(0).1, "NothingLaunchable");
    }
}
