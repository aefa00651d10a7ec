//! The least RAM policy with which kerf works, from the table that its requests are made from.

use serde_json::{Value, json};

use crate::rpc::Action;

/// The policy as RAM takes it. With `node_role` also the right to give instances this RAM role, which a class with a role
/// (or the controller's default one) needs; `*` in it stands for any.
///
/// Every statement is about all resources: the calls that list know no narrower ones, and what kerf makes has no name before
/// it is made. What it deletes it knows by tags.
#[must_use]
pub fn ram_policy(node_role: Option<&str>) -> Value {
    let actions: Vec<&str> = Action::ALL.iter().map(|it| it.permission()).collect();
    let mut statements = vec![json!({"Effect": "Allow", "Action": actions, "Resource": "*"})];
    statements.extend(node_role.map(|name| {
        json!({"Effect": "Allow", "Action": ["ram:PassRole"], "Resource": format!("acs:ram:*:*:role/{name}")})
    }));
    json!({"Version": "1", "Statement": statements})
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                found.extend(sources(&path));
            } else {
                found.push(path);
            }
        }
        found
    }

    /// The actions that requests of [`crate::actions`] are made with.
    fn sent() -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/actions");
        let mut found = BTreeSet::new();
        for path in sources(&folder) {
            let text = std::fs::read_to_string(path).unwrap();
            let names = text
                .split("Request::r")
                .skip(1)
                .filter_map(|it| it.split("Action::").nth(1))
                .filter_map(|it| it.split(',').next());
            found.extend(names.map(str::to_owned));
        }
        found
    }

    /// user-reports.md, F16.
    #[test]
    fn the_policy_allows_each_action_that_can_be_sent_and_no_other() {
        let policy = ram_policy(None);
        let allowed: BTreeSet<String> = policy["Statement"][0]["Action"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap().split_once(':').unwrap().1.to_owned())
            .collect();

        assert_eq!(allowed, sent());
        assert_eq!(policy["Statement"].as_array().unwrap().len(), 1);
    }

    /// So that the table is all that can be sent.
    #[test]
    fn a_request_is_made_from_the_table_and_nowhere_else() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for path in sources(&folder) {
            let text = std::fs::read_to_string(&path).unwrap();
            let product_code = text.split("#[cfg(test)]").next().unwrap();
            let literal = [" Request", " {\n            product"].concat();
            let is_constructor = path.ends_with("rpc/request.rs");
            assert!(
                is_constructor || !product_code.contains(&literal),
                "{}",
                path.display()
            );
        }
    }

    #[test]
    fn a_role_for_nodes_may_be_passed_on_when_it_is_named() {
        let policy = ram_policy(Some("node"));

        let expected = json!({"Effect": "Allow", "Action": ["ram:PassRole"], "Resource": "acs:ram:*:*:role/node"});
        assert_eq!(policy["Statement"][1], expected);
    }
}
