//! Small changes of objects that others write too: read, change, write, and again on the newest when it had changed.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use kerf_api::names::{annotation, condition, taint};
use kerf_api::nodeclaim::NodeClaim;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::api_call::bounded;
use crate::disruption::record::Record;
use crate::draft::Draft;
use crate::error::Error;
use crate::patch::{self, Writable};

/// Others write a claim a few times a minute: losing this race three times in a row means that something is wrong.
const TRIES: u32 = 4;

/// Brings the object to what `change` makes of it.
///
/// # Errors
/// As [`patch::write`], once it conflicted too often.
pub async fn edit<K: Writable>(
    api: &Api<K>,
    read: &K,
    change: impl Fn(&K) -> K,
) -> Result<K, Error> {
    let name = read.meta().name.clone().unwrap_or_default();
    let mut before = read.clone();
    for _ in 1..TRIES {
        match patch::write(api, &before, &change(&before)).await {
            Err(error) if error.is_conflict() => match newest(api, read, &name).await? {
                Some(found) => before = found,
                None => return Err(error),
            },
            done => return done,
        }
    }
    patch::write(api, &before, &change(&before)).await
}

/// The object as it is now; none when it is gone. Asked for as a list, which the controller may read anyway.
async fn newest<K: Writable>(api: &Api<K>, read: &K, name: &str) -> Result<Option<K>, Error> {
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let found = bounded(api.list(&params))
        .await
        .map_err(|source| Error::kube("read", read, source))?;
    Ok(found.items.into_iter().next())
}

/// The claim with the record of its command. Pure.
#[must_use]
pub fn recorded(claim: &NodeClaim, record: &Record) -> NodeClaim {
    let mut claim = claim.clone();
    let key = annotation::DISRUPTION_COMMAND.to_owned();
    claim.annotations_mut().insert(key, record.write());
    claim
}

/// The claim as chosen for disruption. Pure.
#[must_use]
pub fn marked(claim: &NodeClaim, record: &Record, now: Timestamp) -> NodeClaim {
    with_conditions(claim, now, |draft| {
        let reason = record.kind.reason().as_str();
        let type_ = condition::DISRUPTION_REASON;
        draft
            .conditions
            .set_true_because(type_, reason, &record.note);
        draft.conditions.clear(condition::DISRUPTABLE);
    })
}

/// The claim without any sign of a command. Pure.
#[must_use]
pub fn released(claim: &NodeClaim, now: Timestamp) -> NodeClaim {
    let mut claim = claim.clone();
    if claim
        .annotations()
        .contains_key(annotation::DISRUPTION_COMMAND)
    {
        claim
            .annotations_mut()
            .remove(annotation::DISRUPTION_COMMAND);
    }
    if kerf_api::condition::find(claim.conditions(), condition::DISRUPTION_REASON).is_none() {
        return claim;
    }
    with_conditions(&claim, now, |draft| {
        draft.conditions.clear(condition::DISRUPTION_REASON);
    })
}

/// The claim after a change of its conditions. Pure.
#[must_use]
pub fn with_conditions(
    claim: &NodeClaim,
    now: Timestamp,
    change: impl FnOnce(&mut Draft),
) -> NodeClaim {
    let mut draft = Draft::open(claim, now);
    change(&mut draft);
    let conditions = draft.conditions.clone().finish();
    draft.status_mut().conditions = conditions;
    draft.claim
}

/// The Node with the taint that keeps new pods away. Pure.
#[must_use]
pub fn tainted(node: &Node) -> Node {
    let mut node = node.clone();
    if !is_tainted(&node) {
        let taints = &mut node.spec.get_or_insert_default().taints;
        taints.get_or_insert_default().push(Taint {
            key: taint::DISRUPTED.to_owned(),
            effect: NO_SCHEDULE.to_owned(),
            ..Taint::default()
        });
    }
    node
}

/// The Node without that taint. Pure.
#[must_use]
pub fn untainted(node: &Node) -> Node {
    let mut node = node.clone();
    if let Some(spec) = &mut node.spec
        && let Some(taints) = &mut spec.taints
    {
        taints.retain(|it| !is_ours(it));
        spec.taints = spec.taints.take().filter(|taints| !taints.is_empty());
    }
    node
}

/// Whether the Node has the taint.
#[must_use]
pub fn is_tainted(node: &Node) -> bool {
    let taints = node
        .spec
        .iter()
        .flat_map(|spec| spec.taints.iter().flatten());
    taints.into_iter().any(is_ours)
}

const NO_SCHEDULE: &str = "NoSchedule";

fn is_ours(it: &Taint) -> bool {
    it.key == taint::DISRUPTED && it.effect == NO_SCHEDULE
}

#[cfg(test)]
mod tests {
    use kerf_core::disruption::CommandKind;

    use super::*;

    #[test]
    fn a_claim_that_is_given_back_is_as_it_was() {
        let now = Timestamp::from_second(10).unwrap();
        let record = Record {
            id: "x".to_owned(),
            kind: CommandKind::Drift,
            started_at: now,
            candidates: vec!["general-1".to_owned()],
            replacements: vec!["general-2".to_owned()],
            note: "drifted".to_owned(),
        };
        let claim = with_conditions(
            &NodeClaim::new("general-1", Default::default()),
            now,
            |_| {},
        );

        let chosen = marked(&recorded(&claim, &record), &record, now);

        assert!(chosen.is_true(condition::DISRUPTION_REASON));
        assert_eq!(Record::of(&chosen), Some(record));
        let back = released(&chosen, now);
        assert_eq!(back.status, claim.status);
        assert_eq!(Record::of(&back), None);
    }

    #[test]
    fn the_taint_is_put_once_and_others_stay() {
        let mut node = Node::default();
        node.spec.get_or_insert_default().taints = Some(vec![Taint {
            key: "own".to_owned(),
            effect: NO_SCHEDULE.to_owned(),
            ..Taint::default()
        }]);

        let once = tainted(&node);

        assert!(is_tainted(&once));
        assert_eq!(tainted(&once), once);
        assert_eq!(untainted(&once), node);
    }
}
