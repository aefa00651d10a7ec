//! `kerf plugin verify`: whether a component is the one that was reviewed, or that a key signed.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use kerf_policy::verify_signature;
use serde_json::json;

use crate::plugin::Outcome;
use crate::plugin::args::Verify;
use crate::plugin::component::Component;
use crate::policy_keys;

pub(super) fn run(args: &Verify) -> Result<Outcome> {
    let component = Component::read(&args.one)?;
    let found = component.digest();
    let mut problems = Vec::new();
    if let Some(wanted) = args.digest.filter(|wanted| *wanted != found) {
        problems.push(format!("the digest is {found}, not {wanted}"));
    }
    if !args.key.is_empty() {
        let keys = args.key.iter().map(|path| policy_keys::read_one(path));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let path = args.signature.clone().unwrap_or_else(|| {
            let mut beside = component.path.clone().into_os_string();
            beside.push(".sig");
            PathBuf::from(beside)
        });
        let signature = std::fs::read(&path)
            .with_context(|| format!("cannot read the signature {}", path.display()))?;
        let verified = verify_signature(&keys, &component.bytes, &signature);
        problems.extend(verified.err().map(|error| error.to_string()));
    }
    let path = component.path.display().to_string();
    let text = match problems.is_empty() {
        true => format!("{path} is as it should be\n{found}\n"),
        false => format!("{path}: {}\n", problems.join("\n")),
    };
    let is_good = problems.is_empty();
    let json = json!({
        "component": path, "digest": found.to_string(), "isGood": is_good, "problems": problems,
    });
    Ok(Outcome {
        text,
        json,
        is_good,
    })
}
