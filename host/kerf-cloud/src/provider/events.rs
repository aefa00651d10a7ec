//! What the platform announced: which instances it takes back, and which it will work on.

use jiff::Timestamp;

use crate::actions::events::{InstanceEventItem, OPEN_STATES};
use crate::provider::describe::parse_time;

/// What an announcement is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnnouncementKind {
    /// The market takes a spot instance back.
    Reclaim,
    /// The host or the instance fails; there may be no time left.
    Failure,
    /// Work on the host, or the end of a subscription, at a time that was said ahead.
    Maintenance,
    /// The account owes money. All of its instances stop; another one would stop too.
    Account,
}

/// One announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The event's id.
    pub event_id: String,
    /// `i-…`; it may be nobody's that we know.
    pub instance_id: String,
    /// What it is about.
    pub kind: AnnouncementKind,
    /// The API's word, such as `SystemMaintenance.Reboot`.
    pub event_type: String,
    /// When it is carried out; none where nothing is said.
    pub not_before: Option<Timestamp>,
}

/// The announcements among the events, by instance and event; each event once, in whatever order and how often it came.
#[must_use]
pub(crate) fn announcements(events: &[InstanceEventItem]) -> Vec<Announcement> {
    // The filter is not trusted: what is over must never look as if it were to come.
    let open = events
        .iter()
        .filter(|it| OPEN_STATES.contains(&it.event_cycle_status.name.as_str()));
    let mut found: Vec<_> = open.map(announcement).collect();
    found.sort_by(|a, b| (&a.instance_id, &a.event_id).cmp(&(&b.instance_id, &b.event_id)));
    found.dedup_by(|a, b| a.instance_id == b.instance_id && a.event_id == b.event_id);
    found
}

fn announcement(event: &InstanceEventItem) -> Announcement {
    Announcement {
        event_id: event.event_id.clone(),
        instance_id: event.instance_id.clone(),
        kind: kind_of(&event.event_type.name),
        event_type: event.event_type.name.clone(),
        not_before: parse_time(&event.not_before),
    }
}

/// A word that the API did not have when this was written is taken for maintenance: its time is looked at.
fn kind_of(event_type: &str) -> AnnouncementKind {
    let family = event_type.split('.').next().unwrap_or_default();
    match family {
        "SystemFailure" | "InstanceFailure" => AnnouncementKind::Failure,
        "AccountUnbalanced" => AnnouncementKind::Account,
        _ if event_type.contains("PreemptibleInstanceInterruption") => AnnouncementKind::Reclaim,
        _ => AnnouncementKind::Maintenance,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::events::Named;

    fn event(id: &str, event_type: &str, state: &str) -> InstanceEventItem {
        let named = |name: &str| Named {
            name: name.to_owned(),
        };
        InstanceEventItem {
            event_id: id.to_owned(),
            instance_id: "i-1".to_owned(),
            event_type: named(event_type),
            event_cycle_status: named(state),
            not_before: "2026-08-20T10:00:00Z".to_owned(),
            reason: String::new(),
        }
    }

    #[test]
    fn events_that_come_twice_or_late_are_one_announcement_and_what_is_over_is_none() {
        let events = [
            event("e-2", "SystemMaintenance.Reboot", "Scheduled"),
            event("e-1", "SystemFailure.Redeploy", "Executing"),
            event("e-2", "SystemMaintenance.Reboot", "Scheduled"),
            event("e-3", "SystemMaintenance.Reboot", "Avoided"),
        ];

        let found = announcements(&events);

        let ids: Vec<_> = found.iter().map(|it| it.event_id.as_str()).collect();
        assert_eq!(ids, ["e-1", "e-2"]);
        assert_eq!(found[0].not_before, "2026-08-20T10:00:00Z".parse().ok());
    }

    #[test]
    fn an_event_of_a_type_that_nobody_knows_is_maintenance() {
        for (event_type, kind) in [
            ("SystemMaintenance.Redeploy", AnnouncementKind::Maintenance),
            ("SomethingNew.Stop", AnnouncementKind::Maintenance),
            ("InstanceFailure.Reboot", AnnouncementKind::Failure),
            ("AccountUnbalanced.Stop", AnnouncementKind::Account),
            (
                "Instance:PreemptibleInstanceInterruption",
                AnnouncementKind::Reclaim,
            ),
        ] {
            assert_eq!(kind_of(event_type), kind, "{event_type}");
        }
    }
}
