//! The Dockerfile says the same as [`super::layers`] and [`super::config`]. It is read here and never built: no container
//! runtime is on the machines that test this.

use super::{CERTIFICATES, PATH, PROGRAM, TARGET, USER};
use crate::workspace;

/// Instructions with their words, continued lines joined.
fn instructions() -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(workspace::root().join("Dockerfile")).unwrap();
    let code: Vec<&str> = text
        .lines()
        .filter(|it| !it.trim_start().starts_with('#'))
        .collect();
    let joined = code.join("\n").replace("\\\n", " ");
    let lines = joined.lines().filter(|it| !it.trim().is_empty());
    lines
        .map(|line| {
            let mut words = line.split_whitespace().map(str::to_owned);
            (words.next().unwrap(), words.collect())
        })
        .collect()
}

#[test]
fn the_dockerfile_gives_what_the_image_has() {
    let instructions = instructions();
    let known = [
        "FROM",
        "RUN",
        "WORKDIR",
        "COPY",
        "ENV",
        "USER",
        "ENTRYPOINT",
        "CMD",
        "ARG",
    ];
    for (name, words) in &instructions {
        assert!(known.contains(&name.as_str()), "{name} {words:?}");
    }
    let last = instructions
        .iter()
        .rposition(|(name, _)| name == "FROM")
        .unwrap();
    let (build, image) = instructions.split_at(last);
    let of = |name: &str| -> Vec<String> {
        let found = image.iter().filter(|(it, _)| it == name);
        found.map(|(_, words)| words.join(" ")).collect()
    };

    assert_eq!(of("FROM"), ["scratch"]);
    assert_eq!(of("USER"), [USER]);
    assert_eq!(of("ENTRYPOINT"), [format!("[\"{PROGRAM}\"]")]);
    assert_eq!(of("CMD"), ["[\"--help\"]"]);
    // Only from the stage that built it.
    let stage = &build[0].1;
    assert_eq!(stage[1..], ["AS", "build"], "{stage:?}");
    assert_eq!(of("COPY"), ["--from=build /image/ /"]);
    assert_eq!(of("ENV"), [format!("PATH={PATH}")]);
    let steps: String = build
        .iter()
        .map(|(_, words)| words.join(" ") + "\n")
        .collect();
    for wanted in [
        TARGET,
        "--release",
        "--locked",
        "musl-tools",
        "ca-certificates",
    ] {
        assert!(steps.contains(wanted), "{wanted}: {steps}");
    }
    for place in [
        CERTIFICATES,
        PROGRAM,
        "/etc/passwd",
        "/etc/group",
        "/etc/nsswitch.conf",
        "/tmp",
    ] {
        assert!(
            steps.contains(&format!("/image{place}")),
            "{place} is not made: {steps}"
        );
    }
}
