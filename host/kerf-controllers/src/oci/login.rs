//! User and password for a registry, from what `docker login` writes and Secrets of type kubernetes.io/dockerconfigjson hold.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::OciError;

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

    /// The login for `host` in a docker configuration; none when it has none for this host, so that no other registry ever
    /// sees it.
    ///
    /// # Errors
    /// When the text is no such configuration. The message never shows any of it.
    pub fn in_docker_config(text: &[u8], host: &str) -> Result<Option<Self>, OciError> {
        let config: DockerConfig = serde_json::from_slice(text).map_err(|error| {
            // serde's own message may quote the value.
            OciError::Login(format!(
                "it is no docker configuration (line {}, column {})",
                error.line(),
                error.column()
            ))
        })?;
        let entry = config
            .auths
            .into_iter()
            .find(|(key, _)| host_of(key) == host);
        let Some((_, entry)) = entry else {
            return Ok(None);
        };
        entry.login(host).map(Some)
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

/// Some tools write a URL where others write the host.
fn host_of(key: &str) -> &str {
    let rest = key.split_once("://").map_or(key, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_found_by_its_host_alone() {
        let config = br#"{"auths": {"https://registry.example.com/v1/": {"auth": "cHVsbGVyOmE6Yg=="}, "other:5000": {"username": "u", "password": "p"}}}"#;
        let find = |host| Login::in_docker_config(config, host).unwrap();

        assert_eq!(
            find("registry.example.com"),
            Some(Login::new("puller".to_owned(), "a:b".to_owned()))
        );
        assert_eq!(
            find("other:5000"),
            Some(Login::new("u".to_owned(), "p".to_owned()))
        );
        assert_eq!(find("other"), None);
    }

    #[test]
    fn a_broken_login_is_told_without_showing_it() {
        for config in [
            r#"{"auths": "hunter2"}"#,
            r#"{"auths": {"r.io": {"auth": "hunter2"}}}"#,
        ] {
            let error = Login::in_docker_config(config.as_bytes(), "r.io")
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
