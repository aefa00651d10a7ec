//! Recorded requests, byte by byte, to an ecs-sim whose clock is where theirs was.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde_json::Value;

use super::Tally;
use super::recordings::{self, Recorded};
use super::sdks::Sim;

/// What the recordings were signed with.
const KEY: [&str; 2] = ["LTAItestid", "testsecret"];
/// A simulator on this machine answers at once; it may be starved.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// Answers of the gateway, before anything is done: the request was not understood.
const REFUSALS: [&str; 8] = [
    "IllegalTimestamp",
    "IncompleteSignature",
    "InvalidAccessKeyId.NotFound",
    "InvalidSecurityToken.Malformed",
    "InvalidTimeStamp.Format",
    "SignatureDoesNotMatch",
    "SignatureNonceUsed",
    "UnsupportedHTTPMethod",
];
/// Without one of these nobody can be believed; what else a recorded call leaves out is the call's own matter.
const PROOFS: [&str; 5] = [
    "AccessKeyId",
    "Signature",
    "SignatureNonce",
    "Timestamp",
    "x-acs-signature-nonce",
];
const NOT_SIMULATED: &str = "InvalidAction.NotFound";
/// The Go recordings do not hold the header Host, which is signed: what they were sent to is not known.
const HOST_UNKNOWN: &str = "127.0.0.1:1";

/// Replays all recordings; returns how many requests there are.
pub(super) fn all(tally: &mut Tally) -> Result<usize> {
    let mut count = 0;
    for recording in recordings::all()? {
        for request in &recording.requests {
            replay(&recording.name, request, tally)
                .with_context(|| format!("recording {}", recording.name))?;
            count += 1;
        }
    }
    tally.compared += count;
    Ok(count)
}

fn replay(name: &str, request: &Recorded, tally: &mut Tally) -> Result<()> {
    let mut more = Vec::new();
    if let Some(signed_at) = signed_at(request) {
        more.extend(["--now".to_owned(), signed_at.to_string()]);
    }
    let token = request.header("x-acs-security-token");
    if let Some(token) = token
        .map(str::to_owned)
        .or_else(|| parameter(request, "SecurityToken"))
    {
        more.extend(["--security-token".to_owned(), token]);
    }
    let sim = Sim::start(KEY, &more)?;
    let answer = send(&sim.address()?, request)?;
    let knows_host = request.header("host").is_some() || request.header("authorization").is_none();
    let lacks_proof = |answer: &Answer| {
        let mut words = answer
            .message
            .split(|it: char| !it.is_alphanumeric() && it != '-');
        answer.code == "MissingParameter" && words.any(|word| PROOFS.contains(&word))
    };
    match answer.code.as_str() {
        NOT_SIMULATED => tally.not_simulated.push(name.to_owned()),
        "SignatureDoesNotMatch" if !knows_host => {
            tally
                .not_simulated
                .push(format!("{name}: its host is not recorded"));
        }
        code if REFUSALS.contains(&code) || lacks_proof(&answer) => {
            tally.difference(format!("ecs-sim refuses the recording {name}: {code}"));
        }
        _ => {}
    }
    Ok(())
}

/// When it was signed; none where nothing says so.
fn signed_at(request: &Recorded) -> Option<Timestamp> {
    let of_headers = request.header("x-acs-date").and_then(|it| it.parse().ok());
    let of_parameters = || parameter(request, "Timestamp")?.parse().ok();
    let of_date = || Some(rfc2822::parse(request.header("date")?).ok()?.timestamp());
    of_headers.or_else(of_parameters).or_else(of_date)
}

fn parameter(request: &Recorded, name: &str) -> Option<String> {
    let (_, query) = request.target.split_once('?')?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    // A time and a token of the recordings hold no other escapes.
    Some(
        value
            .replace("%3A", ":")
            .replace("%2B", "+")
            .replace("%2F", "/")
            .replace("%3D", "="),
    )
}

/// What the API says of a call.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    /// `OK` without an error.
    code: String,
    message: String,
}

fn send(address: &str, request: &Recorded) -> Result<Answer> {
    let mut stream = TcpStream::connect(address).context("cannot reach ecs-sim")?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.target);
    for (name, value) in &request.headers {
        let is_ours = ["connection", "content-length"].contains(&name.to_lowercase().as_str());
        if !is_ours {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    if request.header("host").is_none() {
        head.push_str(&format!("Host: {HOST_UNKNOWN}\r\n"));
    }
    head.push_str(&format!(
        "Content-Length: {}\r\nConnection: close\r\n\r\n",
        request.body.len()
    ));
    stream.write_all(head.as_bytes())?;
    stream.write_all(request.body.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    read(&String::from_utf8_lossy(&answer))
}

fn read(answer: &str) -> Result<Answer> {
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        bail!("ecs-sim answered {answer:?}");
    };
    if head.starts_with("HTTP/1.1 200") {
        return Ok(Answer {
            code: "OK".to_owned(),
            message: String::new(),
        });
    }
    let start = body.find('{').unwrap_or(body.len());
    let mut bodies = serde_json::Deserializer::from_str(&body[start..]).into_iter::<Value>();
    let body = bodies
        .next()
        .transpose()
        .context("ecs-sim's error")?
        .unwrap_or_default();
    let code = body["Code"].as_str().or_else(|| body["code"].as_str());
    let message = body["Message"]
        .as_str()
        .or_else(|| body["message"].as_str());
    Ok(Answer {
        code: code.context("an error without a code")?.to_owned(),
        message: message.unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_found_in_either_style() {
        let answer = |body: &str| {
            read(&format!("HTTP/1.1 404 x\r\nA: b\r\n\r\n{body}"))
                .unwrap()
                .code
        };

        assert_eq!(answer("{\"Code\": \"A.B\"}"), "A.B");
        assert_eq!(answer("{\"code\": \"C\"}"), "C");
        assert_eq!(read("HTTP/1.1 200 OK\r\n\r\n{}").unwrap().code, "OK");
        assert!(read("").is_err());
    }
}
