//! User and password for a registry, from what `docker login` writes and Secrets of type kubernetes.io/dockerconfigjson hold.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::{OciError, Reference};

/// Never printed, not even by Debug.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct DockerConfig {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
}

impl Login {
    /// Of a user with a password.
    #[must_use]
    pub fn new(user: String, password: String) -> Self {
        Self { user, password }
    }

    /// As a Basic login's header has it.
    pub(super) fn basic(&self) -> String {
        STANDARD.encode(format!("{}:{}", self.user, self.password))
    }

    /// The login for an artifact in a docker configuration: of its host, and of the longest path of its repository that has
    /// one of its own. None when there is none for this host, so that no other registry ever sees it.
    ///
    /// # Errors
    /// When the text is no such configuration. The message never shows any of it.
    pub fn in_docker_config(text: &[u8], reference: &Reference) -> Result<Option<Self>, OciError> {
        let config: DockerConfig = serde_json::from_slice(text).map_err(|error| {
            // serde's own message may quote the value.
            OciError::Login(format!(
                "it is no docker configuration (line {}, column {})",
                error.line(),
                error.column()
            ))
        })?;
        let entries = config.auths.into_iter();
        let fitting = entries.filter_map(|(key, entry)| Some((fits(&key, reference)?, entry)));
        let Some((_, entry)) = fitting.max_by_key(|(length, _)| *length) else {
            return Ok(None);
        };
        entry.login(&reference.host).map(Some)
    }
}

impl Entry {
    fn login(self, host: &str) -> Result<Login, OciError> {
        if let (Some(user), Some(password)) = (self.username, self.password) {
            return Ok(Login { user, password });
        }
        let unreadable =
            || OciError::Login(format!("its entry for {host} has no user with a password"));
        let decoded = STANDARD
            .decode(self.auth.unwrap_or_default().trim())
            .map_err(|_| unreadable())?;
        let text = String::from_utf8(decoded).map_err(|_| unreadable())?;
        let (user, password) = text.split_once(':').ok_or_else(unreadable)?;
        Ok(Login::new(user.to_owned(), password.to_owned()))
    }
}

/// How long the path is for which the entry is; none when it is for another host or path. Some tools write a URL where others
/// write the host, and the version of the protocol where others write nothing.
fn fits(key: &str, reference: &Reference) -> Option<usize> {
    let rest = key.split_once("://").map_or(key, |(_, rest)| rest);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = path.trim_matches('/');
    let is_all = path.is_empty() || path == "v1" || path == "v2";
    let below = reference.repository.strip_prefix(path);
    let is_of_path = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    match (host == reference.host, is_all, is_of_path) {
        (true, true, _) => Some(0),
        (true, false, true) => Some(path.len()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_found_by_its_host_alone() {
        let config = br#"{"auths": {"https://registry.example.com/v1/": {"auth": "cHVsbGVyOmE6Yg=="}, "other:5000": {"username": "u", "password": "p"}}}"#;
        let find = |text: &str| Login::in_docker_config(config, &text.parse().unwrap()).unwrap();

        assert_eq!(
            find("registry.example.com/team/x"),
            Some(Login::new("puller".to_owned(), "a:b".to_owned()))
        );
        assert_eq!(
            find("other:5000/x"),
            Some(Login::new("u".to_owned(), "p".to_owned()))
        );
        assert_eq!(find("other.example.com/x"), None);
    }

    #[test]
    fn each_team_has_its_own_login_for_its_own_path() {
        let config = br#"{"auths": {"r.io": {"username": "all", "password": "p"}, "r.io/team": {"username": "team", "password": "p"}, "r.io/team/b": {"username": "b", "password": "p"}}}"#;
        let user = |text: &str| {
            let login = Login::in_docker_config(config, &text.parse().unwrap());
            login.unwrap().unwrap().user
        };

        assert_eq!(user("r.io/team/b/x"), "b");
        assert_eq!(user("r.io/team/bee"), "team");
        assert_eq!(user("r.io/teams/x"), "all");
    }

    #[test]
    fn a_broken_login_is_told_without_showing_it() {
        for config in [
            r#"{"auths": "hunter2"}"#,
            r#"{"auths": {"r.io": {"auth": "hunter2"}}}"#,
        ] {
            let error = Login::in_docker_config(config.as_bytes(), &"r.io/x".parse().unwrap())
                .unwrap_err()
                .to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        let login = format!("{:?}", Login::new("user".to_owned(), "hunter2".to_owned()));
        assert!(
            !login.contains("hunter2") && !login.contains("user"),
            "{login}"
        );
    }
}
