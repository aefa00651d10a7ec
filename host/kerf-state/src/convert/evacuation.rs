//! Zones that a NodePool leaves, from its annotation.
//!
//! A zone to leave is one more requirement of the pool's template: no new node is made there, and a node that is there no
//! longer meets the template, so that it drifts and is replaced within the budgets, replacements first.

use std::collections::BTreeMap;

use kerf_api::names::annotation;
use kerf_core::labels;
use kerf_core::requirement::{Operator, Requirement};

use crate::problem::Problems;

/// The requirement that keeps the pool out of the zones. What cannot be read counts as not there and is told: the server
/// checks no annotation, and a slip of the pen in one must not roll a fleet.
pub(crate) fn evacuation(
    annotations: &BTreeMap<String, String>,
    problems: &mut Problems,
) -> Option<Requirement> {
    let text = annotations.get(annotation::EVACUATE_ZONES)?;
    let zones: Vec<&str> = text
        .split(',')
        .map(str::trim)
        .filter(|zone| !zone.is_empty())
        .collect();
    if zones.is_empty() {
        return None;
    }
    let requirement = Requirement::parse(labels::ZONE, Operator::NotIn, zones);
    let field = format!("metadata.annotations[{}]", annotation::EVACUATE_ZONES);
    problems.ok(&field, requirement)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<Requirement>, usize) {
        let annotations =
            BTreeMap::from([(annotation::EVACUATE_ZONES.to_owned(), text.to_owned())]);
        let mut problems = Problems::default();
        let found = evacuation(&annotations, &mut problems);
        (found, problems.finish().len())
    }

    #[test]
    fn zones_to_leave_are_read_from_a_list() {
        let (found, problems) = read("cn-hangzhou-h, cn-hangzhou-i,");

        let found = found.unwrap();
        assert!(!found.has("cn-hangzhou-h") && !found.has("cn-hangzhou-i"));
        assert!(found.has("cn-hangzhou-j"));
        assert_eq!(problems, 0);
        assert_eq!(read(" "), (None, 0));
    }
}
