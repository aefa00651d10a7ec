//! Certificates, tokens and kubeconfigs, made anew for each control plane.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::json;

use crate::folder::Folder;
use crate::{Error, User};

const ADMIN: &str = "admin";

/// The names under which the servers are reached.
const SERVER_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "kubernetes.default.svc"];

#[derive(Debug)]
pub(crate) struct Credentials {
    pub(crate) ca_pem: String,
    pub(crate) ca_file: PathBuf,
    pub(crate) certificate_file: PathBuf,
    pub(crate) key_file: PathBuf,
    /// Signs service account tokens.
    pub(crate) service_account_key_file: PathBuf,
    /// Checks them.
    pub(crate) service_account_public_key_file: PathBuf,
    pub(crate) token_file: PathBuf,
    pub(crate) admin_token: String,
    pub(crate) admin_kubeconfig: PathBuf,
    /// By the user's name.
    pub(crate) kubeconfigs: BTreeMap<String, PathBuf>,
}

impl Credentials {
    pub(crate) fn create(folder: &Folder, server_url: &str, users: &[User]) -> Result<Self, Error> {
        let authority = Authority::create()?;
        let (certificate_pem, key_pem) = authority.issue()?;
        let ca_file = folder.write("ca.crt", &authority.pem)?;
        let admin = User {
            name: ADMIN.to_owned(),
            groups: vec!["system:masters".to_owned()],
            token: random_token(),
        };
        let kubeconfig = |user: &User| {
            let text = render_kubeconfig(server_url, &ca_file, user);
            folder.write(&format!("{}.kubeconfig", file_name(&user.name)), &text)
        };
        let kubeconfigs = users
            .iter()
            .map(|user| Ok((user.name.clone(), kubeconfig(user)?)))
            .collect::<Result<_, Error>>()?;
        let admin_kubeconfig = kubeconfig(&admin)?;
        let service_account_key = KeyPair::generate()?;
        let all_users = std::iter::once(&admin).chain(users);
        Ok(Self {
            certificate_file: folder.write("server.crt", &certificate_pem)?,
            key_file: folder.write("server.key", &key_pem)?,
            service_account_key_file: folder
                .write("service-account.key", &service_account_key.serialize_pem())?,
            service_account_public_key_file: folder
                .write("service-account.pub", &service_account_key.public_key_pem())?,
            token_file: folder.write("tokens.csv", &render_token_file(all_users))?,
            ca_pem: authority.pem,
            ca_file,
            admin_token: admin.token,
            admin_kubeconfig,
            kubeconfigs,
        })
    }
}

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn create() -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params
            .distinguished_name
            .push(DnType::CommonName, "kerf local control plane");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key)?.pem();
        Ok(Self {
            pem,
            issuer: Issuer::new(params, key),
        })
    }

    /// One certificate for all servers: they share an address, and nobody but us connects to them.
    fn issue(&self) -> Result<(String, String), Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(SERVER_NAMES.map(str::to_owned))?;
        params
            .distinguished_name
            .push(DnType::CommonName, "kube-apiserver");
        Ok((
            params.signed_by(&key, &self.issuer)?.pem(),
            key.serialize_pem(),
        ))
    }
}

/// The standard library seeds `RandomState` from the kernel: random enough against others on the same machine, who could
/// otherwise run anything as admin, without a crate for it.
fn random_token() -> String {
    format!(
        "{:016x}{:016x}",
        RandomState::new().hash_one(0),
        RandomState::new().hash_one(1)
    )
}

/// kube-apiserver's static token file: `token,user,uid,"group,group"`.
fn render_token_file<'a>(users: impl Iterator<Item = &'a User>) -> String {
    let quote = |field: &str| format!("\"{}\"", field.replace('"', "\"\""));
    users
        .map(
            |User {
                 name,
                 groups,
                 token,
             }| {
                [
                    quote(token),
                    quote(name),
                    quote(name),
                    quote(&groups.join(",")),
                ]
                .join(",")
                    + "\n"
            },
        )
        .collect()
}

/// As JSON, which every reader of kubeconfigs takes for the YAML that it is.
fn render_kubeconfig(server_url: &str, ca_file: &Path, user: &User) -> String {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": {"server": server_url, "certificate-authority": ca_file}}],
        "users": [{"name": user.name, "user": {"token": user.token}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": user.name}}],
        "current-context": "local",
    });
    format!("{config:#}\n")
}

/// Users may be called `system:serviceaccount:kerf:kerf`, or worse.
fn file_name(user: &str) -> String {
    user.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_file_quotes_what_a_name_may_hold() {
        let user = User {
            name: "a\"b".to_owned(),
            groups: vec!["g1".to_owned(), "g2".to_owned()],
            token: "t".to_owned(),
        };

        let text = render_token_file(std::iter::once(&user));

        assert_eq!(text, "\"t\",\"a\"\"b\",\"a\"\"b\",\"g1,g2\"\n");
    }

    #[test]
    fn tokens_differ() {
        assert_ne!(random_token(), random_token());
    }
}
