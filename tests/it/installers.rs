//! Level: scripts and text. examples/terraform: its two scripts with stand-ins for the tools, each step failing in turn, and
//! what its files say of each other.

mod references;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::stage::{binary, root};

const TOOLS: [&str; 4] = ["terraform", "kubectl", "helm", "sleep"];
/// What the scripts take of the machine besides the tools.
const MACHINE: [&str; 10] = [
    "bash", "basename", "cat", "dirname", "grep", "mkdir", "mv", "rm", "sed", "cp",
];

/// A copy of the folder, the tools' stand-ins, and what these remember.
struct World {
    folder: tempfile::TempDir,
}

/// How a run ended.
struct Run {
    code: i32,
    said: String,
    calls: Vec<String>,
}

impl World {
    fn new() -> Self {
        let world = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for name in ["bin", "world", "example"] {
            std::fs::create_dir(world.path(name)).unwrap();
        }
        for entry in std::fs::read_dir(example()).unwrap().map(Result::unwrap) {
            let is_text = entry.file_type().unwrap().is_file();
            let name = entry.file_name();
            if is_text && !is_made(&name.to_string_lossy()) {
                std::fs::copy(entry.path(), world.path("example").join(name)).unwrap();
            }
        }
        let stand_in = root().join("tests/fixtures/installers/stand-in");
        for tool in TOOLS {
            std::os::unix::fs::symlink(&stand_in, world.path("bin").join(tool)).unwrap();
        }
        for tool in MACHINE {
            std::os::unix::fs::symlink(on_path(tool), world.path("bin").join(tool)).unwrap();
        }
        // The stand-in is a script of its own.
        for tool in ["env", "touch", "tr"] {
            std::os::unix::fs::symlink(on_path(tool), world.path("bin").join(tool)).unwrap();
        }
        world
    }

    /// One in which deploy.sh ran to its end.
    fn deployed() -> Self {
        let world = Self::new();
        let run = world.run("deploy.sh", &[]);
        assert_eq!(run.code, 0, "{}", run.said);
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new(self.path("bin/bash"));
        command
            .arg(script)
            .current_dir(self.path("example"))
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("LOG", self.path("log"))
            .env("WORLD", self.path("world"))
            .env("ALICLOUD_ACCESS_KEY", "made-up")
            .env("ALICLOUD_SECRET_KEY", "made-up-too")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, script: &str, environment: &[(&str, &str)]) -> Run {
        std::fs::write(self.path("log"), "").unwrap();
        let mut command = self.command(script);
        command.arg("--yes").env("TF_VAR_region", "cn-hangzhou");
        command.envs(environment.iter().copied());
        self.ended(&command.output().unwrap())
    }

    fn ended(&self, output: &Output) -> Run {
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        Run {
            code: output.status.code().unwrap_or(-1),
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
            calls: log.lines().map(str::to_owned).collect(),
        }
    }

    /// What the cloud and the cluster have now.
    fn has(&self) -> BTreeSet<String> {
        names(&self.path("world"))
    }

    fn files(&self) -> BTreeSet<String> {
        names(&self.path("example"))
    }
}

fn example() -> PathBuf {
    root().join("examples/terraform")
}

/// Left by somebody who ran the scripts here.
fn is_made(name: &str) -> bool {
    name.starts_with("terraform.tfstate")
        || name.starts_with("answers.")
        || [".terraform.lock.hcl", "kubeconfig.yaml"].contains(&name)
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|it| it.file_name().to_string_lossy().into_owned())
        .collect()
}

fn find(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(tool))
        .find(|it| it.is_file())
}

fn on_path(tool: &str) -> PathBuf {
    find(tool).unwrap_or_else(|| panic!("{tool} is not on PATH"))
}

/// A failed run names its step, what failed and what to do.
#[track_caller]
fn check_message(run: &Run, what: &str) {
    assert_ne!(run.code, 0, "{what}");
    let message = run.said.lines().find(|it| it.starts_with("error: "));
    let message = message.unwrap_or_else(|| panic!("{what}: no message in {}", run.said));
    assert!(message.split(": ").count() >= 3, "{what}: {message}");
    assert!(run.said.contains("\nhint: "), "{what}: {}", run.said);
}

/// Fails each step of a script in turn, in two ways, and runs it again: it must end as if nothing had happened.
fn fail_each_step(script: &str, start: fn() -> World) {
    let whole = start();
    let good = whole.run(script, &[]);
    assert_eq!(good.code, 0, "{}", good.said);
    assert!(good.calls.len() > 10, "{:?}", good.calls);
    let distinct: BTreeSet<&String> = good.calls.iter().collect();

    for call in distinct {
        let world = start();
        let broken = world.run(script, &[("FAIL_ALWAYS", call)]);
        check_message(&broken, call);
        assert!(
            broken.said.contains(&format!("{script} again")),
            "{}",
            broken.said
        );
        check_again(script, &world, &whole, call);
    }
    for (idx, call) in good.calls.iter().enumerate() {
        let world = start();
        let number = (idx + 1).to_string();
        let broken = world.run(script, &[("FAIL_ONCE", &number)]);
        // A wait is tried again by itself.
        if broken.code != 0 {
            check_message(&broken, call);
        }
        check_again(script, &world, &whole, call);
    }
}

#[track_caller]
fn check_again(script: &str, world: &World, whole: &World, call: &str) {
    let again = world.run(script, &[]);
    assert_eq!(again.code, 0, "after {call}: {}", again.said);
    assert_eq!(world.has(), whole.has(), "after {call}");
    assert_eq!(world.files(), whole.files(), "after {call}");
}

#[test]
fn every_step_of_the_deployment_may_fail_and_the_next_run_ends_it() {
    fail_each_step("deploy.sh", World::new);
}

#[test]
fn every_step_of_the_uninstall_may_fail_and_the_next_run_ends_it_without_an_instance_left() {
    fail_each_step("uninstall.sh", World::deployed);
}

#[test]
fn an_uninstall_leaves_nothing_and_takes_the_instances_before_who_deletes_them() {
    let before = World::new().files();
    let world = World::deployed();

    let run = world.run("uninstall.sh", &[]);

    assert_eq!(run.code, 0, "{}", run.said);
    assert_eq!(world.has(), BTreeSet::from(["initialised".to_owned()]));
    assert_eq!(world.files(), before);
    let at = |what: &str| {
        let found = run.calls.iter().position(|it| it.starts_with(what));
        found.unwrap_or_else(|| panic!("{what} is not called: {:?}", run.calls))
    };
    let order = [
        at("kubectl delete nodepools"),
        at("kubectl wait --for=delete nodeclaims"),
        at("kubectl delete ecsnodeclasses"),
        at("helm uninstall kerf "),
        at("terraform destroy"),
    ];
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn an_uninstall_after_a_deployment_that_never_began_or_a_second_one_is_no_error() {
    let world = World::new();
    let first = world.run("uninstall.sh", &[]);
    let second = world.run("uninstall.sh", &[]);

    assert_eq!((first.code, second.code), (0, 0), "{}", first.said);
    assert!(first.calls.iter().all(|it| !it.starts_with("kubectl")));
}

#[test]
fn a_tool_that_is_missing_is_named() {
    for tool in ["terraform", "kubectl", "helm"] {
        for script in ["deploy.sh", "uninstall.sh"] {
            let world = World::new();
            std::fs::remove_file(world.path("bin").join(tool)).unwrap();

            let run = world.run(script, &[]);

            check_message(&run, tool);
            assert!(
                run.said.contains(&format!("{tool} is not on PATH")),
                "{}",
                run.said
            );
            assert!(run.calls.is_empty(), "{:?}", run.calls);
        }
    }
}

#[test]
fn without_a_terminal_what_is_missing_is_named_and_nothing_is_called() {
    let world = World::new();

    let mut command = world.command("deploy.sh");
    let run = world.ended(&command.arg("--yes").output().unwrap());
    check_message(&run, "no region");
    assert!(run.said.contains("TF_VAR_region"), "{}", run.said);

    let mut command = world.command("deploy.sh");
    let run = world.ended(&command.output().unwrap());
    check_message(&run, "no approval");

    let mut command = world.command("deploy.sh");
    command.arg("--yes").env_remove("ALICLOUD_SECRET_KEY");
    let run = world.ended(&command.output().unwrap());
    assert!(
        run.said.contains("ALICLOUD_SECRET_KEY is not set"),
        "{}",
        run.said
    );
    assert!(run.calls.is_empty(), "{:?}", run.calls);
}

/// With a terminal of its own, by util-linux's `script`.
#[test]
fn at_a_terminal_it_asks_once_and_keeps_the_answers_but_no_secret() {
    let world = World::new();
    let inner = world.command("deploy.sh");
    let mut command = Command::new(on_path("script"));
    command.args([
        "--quiet",
        "--return",
        "--command",
        "bash deploy.sh",
        "/dev/null",
    ]);
    command.current_dir(world.path("example")).env_clear();
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap());
    }
    command
        .env_remove("ALICLOUD_SECRET_KEY")
        .env("SHELL", on_path("bash"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let answers = "typed-secret\ncn-beijing\n10.8.0.0/16\n\n\necs.g8i.large\n\n";
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), answers.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();

    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let kept = std::fs::read_to_string(world.path("example/answers.auto.tfvars.json")).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    let expected = serde_json::json!({
        "region": "cn-beijing", "vpc_cidr": "10.8.0.0/16", "service_cidr": "172.21.0.0/20",
        "instance_type": "ecs.g8i.large",
    });
    assert_eq!(kept, expected);
    for file in world.files() {
        let path = world.path("example").join(file);
        let text = std::fs::read(&path).unwrap_or_default();
        assert!(
            !String::from_utf8_lossy(&text).contains("typed-secret"),
            "{path:?}"
        );
    }
    // Without a terminal and without a region: the answers of the first run count.
    let mut command = world.command("uninstall.sh");
    let run = world.ended(&command.arg("--yes").output().unwrap());
    assert_eq!(run.code, 0, "{}", run.said);
}

#[test]
fn the_manifests_are_valid_once_the_cluster_is_filled_in() {
    let world = World::deployed();

    let output = Command::new(binary("kerf"))
        .args(["validate", "-f"])
        .arg(world.path("example/filled"))
        .output()
        .unwrap();

    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let filled = std::fs::read_to_string(world.path("world/pools")).unwrap();
    assert!(
        filled.contains("the-cluster-id") && !filled.contains("${"),
        "{filled}"
    );
}

#[test]
fn the_ram_policy_of_the_example_is_what_the_binary_prints() {
    let output = Command::new(binary("kerf"))
        .arg("ram-policy")
        .output()
        .unwrap();

    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let kept = std::fs::read_to_string(example().join("ram-policy.json")).unwrap();
    assert_eq!(
        printed, kept,
        "hint: kerf ram-policy > examples/terraform/ram-policy.json"
    );
}

#[test]
fn the_scripts_pass_shellcheck() {
    let mut command = Command::new(on_path("shellcheck"));
    command.arg("-x").current_dir(root());
    command.args(["deploy.sh", "uninstall.sh", "common.sh"].map(|it| example().join(it)));
    command.arg("tests/fixtures/installers/stand-in");
    let output = command.output().unwrap();

    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// Debian has no terraform, so that CI may lack it; what it checks is then checked on a machine that has it.
#[test]
fn terraform_finds_nothing_to_format() {
    let Some(terraform) = find("terraform") else {
        println!("terraform is not on PATH: its formatting is not looked at");
        return;
    };
    let output = Command::new(terraform)
        .args(["fmt", "-check", "-diff"])
        .current_dir(example())
        .output()
        .unwrap();

    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
