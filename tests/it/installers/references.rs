//! Whether the files of examples/terraform mean something that another of them has. `terraform validate` says more, but needs
//! the provider, which no package registry has.

use std::collections::{BTreeMap, BTreeSet};

use super::example;

/// What a configuration declares and what it uses, as `var.x`, `local.x`, `output.x`, `data.type.name`, `type.name`.
#[derive(Debug, Default)]
struct Config {
    declared: BTreeSet<String>,
    used: BTreeSet<String>,
    /// Variables without a default.
    needed: BTreeSet<String>,
}

impl Config {
    fn read(texts: &BTreeMap<String, String>) -> Self {
        let mut config = Self::default();
        for text in texts.values() {
            config.take(text);
        }
        config
    }

    fn take(&mut self, text: &str) {
        let mut block = Vec::new();
        let mut has_default = false;
        for line in text.lines() {
            if line.trim_start().starts_with('#') {
                continue;
            }
            let code = line.split(" #").next().unwrap_or_default();
            if !line.starts_with(' ') && code.ends_with('{') {
                block = code.trim_end_matches('{').split_whitespace().collect();
                has_default = false;
                self.declared.extend(name_of(&block));
            } else if line == "}" {
                if let (["variable", name], false) = (&block[..], has_default) {
                    self.needed.insert(name.trim_matches('"').to_owned());
                }
                block.clear();
            } else if block == ["locals"] && line.starts_with("  ") && !line.starts_with("   ") {
                let name = code.split('=').next().unwrap_or_default().trim();
                self.declared.insert(format!("local.{name}"));
            }
            has_default |= code.trim_start().starts_with("default ");
            self.used.extend(references(code));
        }
    }
}

fn name_of(block: &[&str]) -> Option<String> {
    let plain = |it: &str| it.trim_matches('"').to_owned();
    match block {
        ["variable", name] => Some(format!("var.{}", plain(name))),
        ["output", name] => Some(format!("output.{}", plain(name))),
        ["data", kind, name] => Some(format!("data.{}.{}", plain(kind), plain(name))),
        ["resource", kind, name] => Some(format!("{}.{}", plain(kind), plain(name))),
        _ => None,
    }
}

/// The dotted words of a line that mean something of the configuration.
fn references(code: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let words = code.split(|c: char| !is_part(c));
    let parts = words.map(|word| word.split('.').collect::<Vec<_>>());
    parts
        .filter_map(|parts| match &parts[..] {
            [kind @ ("var" | "local"), name, ..] => Some(format!("{kind}.{name}")),
            ["data", kind, name, ..] => Some(format!("data.{kind}.{name}")),
            [kind, name, ..] if kind.starts_with("alicloud_") => Some(format!("{kind}.{name}")),
            _ => None,
        })
        .collect()
}

fn files(extension: &str) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(example()).unwrap().map(Result::unwrap);
    let wanted = entries.filter(|it| it.path().extension().is_some_and(|it| it == extension));
    wanted
        .map(|it| {
            let text = std::fs::read_to_string(it.path()).unwrap();
            (it.file_name().to_string_lossy().into_owned(), text)
        })
        .collect()
}

/// The words after a command of the scripts, one list for each call.
fn calls(texts: &BTreeMap<String, String>, command: &str) -> Vec<Vec<String>> {
    let lines = texts.values().flat_map(|it| it.lines());
    lines
        .filter_map(|line| line.trim().strip_prefix(command))
        .map(|rest| rest.split_whitespace().map(str::to_owned).collect())
        .collect()
}

#[test]
fn what_the_configuration_uses_is_declared_and_what_it_declares_is_used() {
    let config = Config::read(&files("tf"));

    let unknown: Vec<_> = config.used.difference(&config.declared).collect();
    let is_input = |it: &&String| it.starts_with("var.") || it.starts_with("local.");
    let idle: Vec<_> = config
        .declared
        .difference(&config.used)
        .filter(is_input)
        .collect();

    assert!(config.declared.len() > 25, "{config:?}");
    assert!(unknown.is_empty(), "used and nowhere declared: {unknown:?}");
    assert!(idle.is_empty(), "declared and never used: {idle:?}");
}

#[test]
fn what_the_scripts_ask_for_is_a_variable_and_what_they_read_is_an_output() {
    let config = Config::read(&files("tf"));
    let scripts = files("sh");
    let asked: BTreeSet<String> = calls(&scripts, "ask ")
        .into_iter()
        .map(|it| it[0].clone())
        .collect();
    let wanted: BTreeSet<String> = calls(&scripts, "want ").into_iter().flatten().collect();

    for name in [
        "region",
        "vpc_cidr",
        "cluster_version",
        "service_cidr",
        "instance_type",
        "ssh_public_key",
    ] {
        assert!(asked.contains(name), "{name} is not asked for");
    }
    for name in &asked {
        assert!(
            config.declared.contains(&format!("var.{name}")),
            "no variable {name}"
        );
    }
    for name in &wanted {
        assert!(
            config.declared.contains(&format!("output.{name}")),
            "no output {name}"
        );
    }
    assert!(
        wanted.contains("cluster_id") && wanted.contains("kubeconfig"),
        "{wanted:?}"
    );
    let silent: Vec<_> = config.needed.difference(&asked).collect();
    assert!(
        silent.is_empty(),
        "needed, without a default and never asked for: {silent:?}"
    );
    // The answers of a run are all kept for the next one.
    let saved: BTreeSet<String> = calls(&scripts, "save ").into_iter().flatten().collect();
    assert_eq!(saved, asked);
}

#[test]
fn every_placeholder_of_the_manifests_is_filled_in() {
    let deploy = &files("sh")["deploy.sh"];
    for (file, text) in files("yaml") {
        if file == "kubeconfig.yaml" {
            continue;
        }
        for name in text
            .split("${")
            .skip(1)
            .filter_map(|it| it.split('}').next())
        {
            assert!(deploy.contains(&format!("\\${{{name}}}")), "{file}: {name}");
        }
        assert!(
            deploy.contains(&format!("fill {file}")),
            "{file} is not filled in"
        );
    }
}

#[test]
fn files_that_the_configuration_reads_are_there() {
    for (file, text) in files("tf") {
        for name in text
            .split("file(\"${path.module}/")
            .skip(1)
            .filter_map(|it| it.split('"').next())
        {
            assert!(example().join(name).is_file(), "{file} reads {name}");
        }
    }
}
