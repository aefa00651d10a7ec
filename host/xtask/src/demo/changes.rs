//! What became different between two looks, one line each: the story of the run.

use std::collections::BTreeMap;

use super::look::{Event, Look, Stage};
use super::paint::Colour;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) text: String,
    pub(super) colour: Colour,
}

/// Changes from one look to the next, in the order in which a launch goes.
pub(super) fn between(before: &Look, after: &Look) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut say = |text: String, colour| changes.push(Change { text, colour });
    for (text, is_warning) in said(before, after) {
        say(
            text,
            if is_warning {
                Colour::Red
            } else {
                Colour::Plain
            },
        );
    }
    for (name, now) in compare(&claims(before), &claims(after)) {
        let colour = if now.ends_with("ready") {
            Colour::Green
        } else {
            Colour::Yellow
        };
        say(format!("NodeClaim {name} {now}"), colour);
    }
    for (id, now) in compare(&instances(before), &instances(after)) {
        say(format!("instance {id} {now}"), Colour::Plain);
    }
    for (name, now) in compare(&nodes(before), &nodes(after)) {
        let colour = if now == "is ready" {
            Colour::Green
        } else {
            Colour::Yellow
        };
        say(format!("Node {name} {now}"), colour);
    }
    let (bound_before, bound) = (before.pods_bound(), after.pods_bound());
    if bound != bound_before || before.pods.len() != after.pods.len() {
        let colour = if bound == after.pods.len() {
            Colour::Green
        } else {
            Colour::Plain
        };
        say(
            format!("pods: {bound} of {} bound", after.pods.len()),
            colour,
        );
    }
    changes
}

/// New events. What is said of many objects at once is one line: twelve pods of a Deployment have one reason to wait.
fn said(before: &Look, after: &Look) -> Vec<(String, bool)> {
    let mut groups: Vec<(&Event, usize)> = Vec::new();
    let kind = |event: &Event| event.about.split(' ').next().unwrap_or_default().to_owned();
    for event in after
        .events
        .iter()
        .filter(|event| !before.events.contains(event))
    {
        let same = |first: &Event| first.said == event.said && kind(first) == kind(event);
        match groups.iter_mut().find(|(first, _)| same(first)) {
            Some((_, count)) => *count += 1,
            None => groups.push((event, 1)),
        }
    }
    let others = |count: usize| {
        if count > 1 {
            format!(" and {} more", count - 1)
        } else {
            String::new()
        }
    };
    let line = |(event, count): (&Event, usize)| {
        (
            format!("{}{}: {}", event.about, others(count), event.said),
            event.is_warning,
        )
    };
    groups.into_iter().map(line).collect()
}

fn claims(look: &Look) -> BTreeMap<&str, String> {
    let state = |stage: Stage, what: &str| match stage {
        Stage::Planned => "is planned".to_owned(),
        Stage::Launched => format!("is launched{what}"),
        Stage::Registered => "has its node".to_owned(),
        Stage::Ready => "is ready".to_owned(),
        Stage::Deleting => "is being deleted".to_owned(),
    };
    let what = |ty: &str, zone: &str| {
        if ty.is_empty() {
            String::new()
        } else {
            format!(" as {ty} in {zone}")
        }
    };
    let rows = look.claims.iter();
    rows.map(|claim| {
        (
            claim.name.as_str(),
            state(claim.stage, &what(&claim.instance_type, &claim.zone)),
        )
    })
    .collect()
}

fn instances(look: &Look) -> BTreeMap<&str, String> {
    let rows = look.instances.iter();
    rows.map(|instance| (instance.id.as_str(), format!("is {}", instance.status)))
        .collect()
}

fn nodes(look: &Look) -> BTreeMap<&str, String> {
    let state = |is_ready| if is_ready { "is ready" } else { "has joined" };
    look.nodes
        .iter()
        .map(|node| (node.name.as_str(), state(node.is_ready).to_owned()))
        .collect()
}

fn compare<'a>(
    before: &BTreeMap<&'a str, String>,
    after: &BTreeMap<&'a str, String>,
) -> Vec<(&'a str, String)> {
    let new = after
        .iter()
        .filter(|(name, state)| before.get(*name) != Some(*state));
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    new.map(|(name, state)| (*name, state.clone()))
        .chain(gone.map(|name| (*name, "is gone".to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::look::{Claim, Node};

    fn texts(before: &Look, after: &Look) -> Vec<String> {
        between(before, after)
            .into_iter()
            .map(|change| change.text)
            .collect()
    }

    #[test]
    fn only_what_changed_is_told() {
        let claim = |stage| Claim {
            name: "a".to_owned(),
            instance_type: "ecs.g7.large".to_owned(),
            zone: "h".to_owned(),
            stage,
            ..Claim::default()
        };
        let planned = Look {
            claims: vec![claim(Stage::Planned)],
            ..Look::default()
        };
        let launched = Look {
            claims: vec![claim(Stage::Launched)],
            ..Look::default()
        };

        assert_eq!(texts(&planned, &planned), [""; 0]);
        assert_eq!(
            texts(&planned, &launched),
            ["NodeClaim a is launched as ecs.g7.large in h"]
        );
    }

    #[test]
    fn one_reason_for_many_pods_is_one_line() {
        let event = |name: &str| Event {
            time: String::new(),
            uid: name.to_owned(),
            is_warning: true,
            about: format!("Pod {name}"),
            said: "FailedScheduling: no room".to_owned(),
        };
        let after = Look {
            events: vec![event("a"), event("b"), event("c")],
            ..Look::default()
        };

        assert_eq!(
            texts(&Look::default(), &after),
            ["Pod a and 2 more: FailedScheduling: no room"]
        );
    }

    #[test]
    fn what_disappears_is_gone() {
        let before = Look {
            nodes: vec![Node {
                name: "n".to_owned(),
                is_ready: true,
            }],
            ..Look::default()
        };

        assert_eq!(texts(&before, &Look::default()), ["Node n is gone"]);
    }
}
