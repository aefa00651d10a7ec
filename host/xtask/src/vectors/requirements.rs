//! The algebra of requirements: one pair of requirements and one pair of sets per case.

use anyhow::{Context, Result, ensure};
use kerf_core::requirement::{Operator, Requirement};
use kerf_core::requirements::{Requirements, Undefined};
use serde_json::{Value, json};

use super::Mismatch;

/// Every answer that differs, with the number of its case.
pub(super) fn differences(vectors: &Value) -> Result<Vec<(usize, Mismatch)>> {
    let probes = texts(&vectors["probes"])?;
    let cases = list(&vectors["cases"])?;
    ensure!(!cases.is_empty(), "no cases");
    let mut differences = Vec::new();
    for (idx, case) in cases.iter().enumerate() {
        let found = compare(case, &probes).with_context(|| format!("case {idx}"))?;
        differences.extend(found.into_iter().map(|mismatch| (idx, mismatch)));
    }
    Ok(differences)
}

fn compare(case: &Value, probes: &[&str]) -> Result<Vec<Mismatch>> {
    let (a, b) = (expression(&case["a"])?, expression(&case["b"])?);
    let (left, right) = (set(&case["left"])?, set(&case["right"])?);
    let combined: Vec<Value> = left.iter().map(|it| outcome(it, probes)).collect();
    let answers = [
        ("intersection", outcome(&a.intersection(&b), probes)),
        ("intersects", json!(a.intersects(&b))),
        ("leftCombined", json!(combined)),
        ("setsIntersect", json!(left.intersects(&right))),
        (
            "compatible",
            json!(left.is_compatible(&right, Undefined::Denied)),
        ),
        (
            "compatibleAllowUndefined",
            json!(left.is_compatible(&right, Undefined::WellKnownAllowed)),
        ),
    ];
    Ok(answers
        .into_iter()
        .filter(|(part, ours)| *ours != case[*part])
        .map(|(part, ours)| Mismatch {
            part,
            ours: ours.to_string(),
            upstream: case[part].to_string(),
        })
        .collect())
}

/// Our requirement in the file's form: bounds only where there are any.
fn outcome(requirement: &Requirement, probes: &[&str]) -> Value {
    let has: Vec<&str> = probes
        .iter()
        .copied()
        .filter(|probe| requirement.has(probe))
        .collect();
    let mut outcome = json!({
        "key": requirement.key(),
        "op": requirement.operator().as_str(),
        "values": requirement.values().collect::<Vec<_>>(),
        "has": has,
    });
    let (gte, lte) = requirement.bounds();
    for (name, bound) in [("gte", gte), ("lte", lte)] {
        if let Some(bound) = bound {
            outcome[name] = json!(bound);
        }
    }
    outcome
}

fn set(value: &Value) -> Result<Requirements> {
    list(value)?.iter().map(expression).collect()
}

fn expression(value: &Value) -> Result<Requirement> {
    let operator = text(&value["op"])?;
    let operator =
        Operator::parse(operator).with_context(|| format!("unknown operator {operator}"))?;
    let values = match &value["values"] {
        Value::Null => Vec::new(),
        values => texts(values)?,
    };
    Ok(Requirement::parse(text(&value["key"])?, operator, values)?)
}

fn texts(value: &Value) -> Result<Vec<&str>> {
    list(value)?.iter().map(text).collect()
}

fn text(value: &Value) -> Result<&str> {
    value
        .as_str()
        .with_context(|| format!("{value} is no text"))
}

fn list(value: &Value) -> Result<&Vec<Value>> {
    value
        .as_array()
        .with_context(|| format!("{value} is no list"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors(intersects: bool) -> Value {
        let outcome = json!({"key": "tier", "op": "In", "values": ["a"], "has": ["a"]});
        json!({"probes": ["a", "b"], "cases": [{
            "a": {"key": "tier", "op": "Exists"},
            "b": {"key": "tier", "op": "In", "values": ["a"]},
            "intersection": outcome, "intersects": intersects,
            "left": [], "right": [{"key": "tier", "op": "In", "values": ["a"]}], "leftCombined": [],
            "setsIntersect": true, "compatible": false, "compatibleAllowUndefined": false,
        }]})
    }

    #[test]
    fn equal_answers_are_no_mismatch() {
        assert!(differences(&vectors(true)).unwrap().is_empty());
    }

    #[test]
    fn a_different_answer_is_named() {
        let found = differences(&vectors(false)).unwrap();

        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].1.part, found[0].1.ours.as_str()),
            ("intersects", "true")
        );
    }

    #[test]
    fn a_file_without_cases_is_refused() {
        assert!(differences(&json!({"probes": [], "cases": []})).is_err());
    }
}
