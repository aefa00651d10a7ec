//! A client of a few lines that signs with ACS3, and helpers that all tests share.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ecs_sim::{EcsSim, Options, Timing, World};
use hmac::{Hmac, KeyInit as _, Mac as _};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

pub(crate) const REGION: &str = "cn-hangzhou";
pub(crate) const ID: &str = "LTAIsim";
pub(crate) const SECRET: &str = "simulated";
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// No test waits longer for anything.
const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) type Params<'a> = Vec<(&'a str, &'a str)>;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(crate) fn code(&self) -> String {
        format!(
            "{} {}",
            self.status,
            self.json()["Code"].as_str().unwrap_or("OK")
        )
    }
}

/// A world in which everything happens at once.
pub(crate) fn fast_world() -> World {
    let timing = Timing {
        visible_after_ms: 0,
        starting_after_ms: 0,
        running_after_ms: 0,
        released_after_ms: 0,
        node_removed_after_ms: Some(0),
        ..Timing::default()
    };
    World {
        timing,
        ..World::default()
    }
}

pub(crate) async fn start(world: World) -> EcsSim {
    EcsSim::start(Options {
        world,
        ..Options::default()
    })
    .await
    .unwrap()
}

/// Everything that differs between the products.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) action: &'a str,
    pub(crate) version: &'a str,
    pub(crate) params: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a str,
    pub(crate) date: Option<&'a str>,
    pub(crate) nonce: Option<&'a str>,
    pub(crate) secret: &'a str,
}

impl<'a> Request<'a> {
    pub(crate) fn ecs(action: &'a str, params: &'a [(&'a str, &'a str)]) -> Self {
        Self {
            method: "POST",
            path: "/",
            action,
            version: "2014-05-26",
            params,
            body: "",
            date: None,
            nonce: None,
            secret: SECRET,
        }
    }

    /// None: the connection ended without an answer.
    pub(crate) fn send(&self, url: &str) -> Option<Answer> {
        static NONCES: AtomicU64 = AtomicU64::new(0);
        let host = url.trim_start_matches("http://");
        let nonce = self.nonce.map_or_else(
            || NONCES.fetch_add(1, Ordering::Relaxed).to_string(),
            str::to_owned,
        );
        let date = self.date.map_or_else(
            || {
                jiff::Timestamp::now()
                    .strftime("%Y-%m-%dT%H:%M:%SZ")
                    .to_string()
            },
            str::to_owned,
        );
        let encode = |text: &str| utf8_percent_encode(text, ESCAPED).to_string();
        let mut sorted = self.params.to_vec();
        sorted.sort_unstable();
        let query: Vec<_> = sorted
            .iter()
            .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
            .collect();
        let query = query.join("&");
        let hash = hex(&Sha256::digest(self.body.as_bytes()));
        let mut headers = vec![
            ("host", host.to_owned()),
            ("x-acs-action", self.action.to_owned()),
            ("x-acs-content-sha256", hash.clone()),
            ("x-acs-date", date),
            ("x-acs-signature-nonce", nonce),
            ("x-acs-version", self.version.to_owned()),
        ];
        if !self.body.is_empty() {
            headers.insert(
                0,
                ("content-type", "application/json; charset=utf-8".to_owned()),
            );
        }
        let lines: String = headers
            .iter()
            .map(|(name, value)| format!("{name}:{value}\n"))
            .collect();
        let signed = headers
            .iter()
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
            .join(";");
        let canonical = format!(
            "{}\n{}\n{query}\n{lines}\n{signed}\n{hash}",
            self.method, self.path
        );
        let string_to_sign = format!(
            "ACS3-HMAC-SHA256\n{}",
            hex(&Sha256::digest(canonical.as_bytes()))
        );
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.as_bytes()).unwrap();
        mac.update(string_to_sign.as_bytes());
        let signature = hex(&mac.finalize().into_bytes());
        headers.push((
            "authorization",
            format!(
                "ACS3-HMAC-SHA256 Credential={ID},SignedHeaders={signed},Signature={signature}"
            ),
        ));
        exchange(
            host,
            self.method,
            &format!("{}?{query}", self.path),
            &headers,
            self.body,
        )
    }
}

/// One plain HTTP exchange on a connection of its own.
pub(crate) fn exchange(
    host: &str,
    method: &str,
    target: &str,
    headers: &[(&str, String)],
    body: &str,
) -> Option<Answer> {
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let lines: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let request = format!(
        "{method} {target} HTTP/1.1\r\n{lines}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: BTreeMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let chunked = headers
        .get("transfer-encoding")
        .is_some_and(|encoding| encoding == "chunked");
    let text = if chunked {
        unchunk(body)
    } else {
        body.to_owned()
    };
    Some(Answer {
        status,
        headers,
        text,
    })
}

fn unchunk(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        whole.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    whole
}

/// Sends from a thread where blocking is allowed.
pub(crate) async fn call(sim: &EcsSim, action: &str, params: &[(&str, &str)]) -> Answer {
    try_call(sim, action, params).await.expect("an answer")
}

pub(crate) async fn try_call(
    sim: &EcsSim,
    action: &str,
    params: &[(&str, &str)],
) -> Option<Answer> {
    let (url, action) = (sim.url().to_owned(), action.to_owned());
    let params: Vec<(String, String)> = params
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let version = if action == "DescribeVSwitches" {
        "2016-04-28"
    } else {
        "2014-05-26"
    };
    let send = move || {
        let mut all: Vec<(&str, &str)> = params
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        all.push(("RegionId", REGION));
        Request {
            version,
            ..Request::ecs(&action, &all)
        }
        .send(&url)
    };
    tokio::task::spawn_blocking(send).await.unwrap()
}

/// What a launch needs at least.
pub(crate) fn launch<'a>(more: &[(&'a str, &'a str)]) -> Params<'a> {
    let mut params = vec![
        ("InstanceType", "ecs.g7.xlarge"),
        (
            "ImageId",
            "aliyun_3_x64_20G_container_optimized_alibase_20250629.vhd",
        ),
        ("VSwitchId", "vsw-bp1sim000000000000h"),
        ("SecurityGroupId", "sg-bp1sim0000000000000"),
    ];
    params.retain(|(name, _)| !more.iter().any(|(replaced, _)| replaced == name));
    params.extend(more);
    params
}

pub(crate) fn ids(answer: &Answer) -> Vec<String> {
    let json = answer.json();
    let ids = json["InstanceIdSets"]["InstanceIdSet"]
        .as_array()
        .unwrap_or_else(|| panic!("{json}"));
    ids.iter()
        .map(|id| id.as_str().unwrap().to_owned())
        .collect()
}

/// Asks again until the answer is there.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(began.elapsed() < DEADLINE, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
