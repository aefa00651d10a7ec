//! `kerf plugin check` and `inspect`: what the controller would say of a component, by the controller's own code.

use anyhow::{Result, anyhow};
use kerf_policy::{CallLimits, Engine, Hook, PolicySpec, Registry};
use serde_json::{Value, json};

use crate::plugin::Outcome;
use crate::plugin::args::{Check, Configured, One};
use crate::plugin::component::{Component, config};

pub(super) fn check(args: &Check) -> Result<Outcome> {
    let component = Component::read(&args.what.one)?;
    let hook = component.hook(args.what.hook.map(Hook::from))?;
    // Whoever checks a component is not yet at the point of naming its digest.
    let registry = Registry::new(Engine::new()?).allowing_unpinned_bootstrap();
    let spec = PolicySpec {
        config: config(&args.what)?,
        ..PolicySpec::new("check", hook)
    };
    let loaded = registry.update("check", spec, &component.bytes);
    let path = component.path.display().to_string();
    let digest = component.digest().to_string();
    Ok(match loaded {
        Ok(loaded) => Outcome {
            text: format!(
                "{path} is good for {hook}: {} {}, {}\n{digest}\n",
                loaded.metadata.name, loaded.metadata.version, loaded.metadata.summary
            ),
            json: json!({"component": path, "hook": hook, "digest": digest, "isGood": true, "error": null}),
            is_good: true,
        },
        Err(error) => Outcome {
            text: format!("{path} cannot serve {hook}: {error}\n"),
            json: json!({
                "component": path, "hook": hook, "digest": digest, "isGood": false, "error": error.to_string(),
            }),
            is_good: false,
        },
    })
}

/// `kerf plugin config`: a configuration alone. Each problem has its JSON Pointer.
pub(super) fn configuration(args: &Configured) -> Result<Outcome> {
    let component = Component::read(&args.one)?;
    let hook = component.hook(args.hook.map(Hook::from))?;
    let policy = component.load(&Engine::new()?, hook)?;
    let given = config(args)?;
    let config = given.unwrap_or_else(|| policy.metadata().default_config.clone());
    let errors = policy.validate_config(&config.to_string(), &CallLimits::default());
    let errors = errors.map_err(|error| anyhow!("its validate-config function {error}"))?;
    let lines: Vec<String> = errors.iter().map(|error| format!("{error}\n")).collect();
    let text = match lines.is_empty() {
        true => format!("{} takes it: {config}\n", policy.metadata().name),
        false => lines.concat(),
    };
    let problems: Vec<Value> = errors
        .iter()
        .map(|error| json!({"path": error.path, "message": error.message}))
        .collect();
    Ok(Outcome {
        text,
        is_good: problems.is_empty(),
        json: json!({"config": config, "isGood": problems.is_empty(), "problems": problems}),
    })
}

pub(super) fn inspect(args: &One) -> Result<Outcome> {
    let component = Component::read(args)?;
    let packed = component.packed();
    let delivery = component.delivery(&packed).words();
    let hooks = component.hooks();
    let metadata = match hooks.first() {
        Some(hook) => Some(component.load(&Engine::new()?, *hook)?.metadata().clone()),
        None => None,
    };
    let (path, digest) = (
        component.path.display().to_string(),
        component.digest().to_string(),
    );
    let mut text = format!("component  {path}\ndigest     {digest}\n");
    if let Some(it) = &metadata {
        text += &format!("policy     {} {}: {}\n", it.name, it.version, it.summary);
    }
    let names: Vec<&str> = hooks.iter().map(|hook| hook.as_str()).collect();
    text += &format!("hooks      {}\n", names.join(", "));
    text += &format!(
        "size       {} KiB, packed {} KiB: {delivery}\n",
        component.bytes.len().div_ceil(1024),
        packed.len().div_ceil(1024)
    );
    text += &format!("imports    {}\n", component.interfaces.imports.join(", "));
    text += &format!("exports    {}\n", component.interfaces.exports.join(", "));
    if let Some(it) = &metadata {
        text += &format!("default    {}\n", it.default_config);
        text += &format!("time step  {} s\n", it.time_step_secs);
        text += &format!(
            "schema     {}\n",
            it.config_schema.clone().unwrap_or(Value::Null)
        );
    }
    Ok(Outcome {
        text,
        json: json!({
            "component": path, "digest": digest, "hooks": names, "bytes": component.bytes.len(),
            "packedBytes": packed.len(), "delivery": delivery, "imports": component.interfaces.imports,
            "exports": component.interfaces.exports, "metadata": metadata,
        }),
        is_good: true,
    })
}
