//! Machines that run their user data.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ecs_sim::{EcsSim, InstanceView, Timing, World};

use crate::client::{Request, call, eventually, fast_world, ids, launch, start};

/// Launches with this user data and waits until it ended.
pub(crate) async fn boot(sim: &EcsSim, user_data: &str) -> InstanceView {
    let encoded = STANDARD.encode(user_data);
    let launched = ids(&call(sim, "RunInstances", &launch(&[("UserData", &encoded)])).await);
    booted(sim, &launched[0]).await
}

pub(crate) async fn booted(sim: &EcsSim, id: &str) -> InstanceView {
    eventually("the end of the boot", async || {
        let instance = sim
            .instances()
            .into_iter()
            .find(|instance| instance.id == id)?;
        ["Finished", "Failed"]
            .contains(&instance.boot.as_str())
            .then_some(instance)
    })
    .await
}

/// The attach script as a client of CS gets it.
pub(crate) async fn attach_script(sim: &EcsSim, body: &'static str) -> String {
    let url = sim.url().to_owned();
    let send = move || {
        let request = Request {
            path: "/clusters/c0000000000000000000000000000sim1/attachscript",
            version: "2015-12-15",
            body,
            ..Request::ecs("DescribeClusterAttachScripts", &[])
        };
        request.send(&url).unwrap().text.trim_end().to_owned()
    };
    tokio::task::spawn_blocking(send).await.unwrap()
}

fn log(sim: &EcsSim, instance: &InstanceView) -> String {
    sim.boot_log(&instance.id).unwrap()
}

#[tokio::test]
async fn a_script_runs_as_root_of_its_own_machine() {
    let sim = start(fast_world()).await;

    let script =
        "#!/bin/bash\nid -u\necho hello >/etc/policy.conf\necho pid $$\ncat /etc/hostname\n";
    let instance = boot(&sim, script).await;

    assert_eq!(instance.boot, "Finished", "{}", log(&sim, &instance));
    assert_eq!(
        sim.read_file(&instance.id, "/etc/policy.conf").unwrap(),
        b"hello\n"
    );
    assert!(!std::path::Path::new("/etc/policy.conf").exists());
    assert!(
        log(&sim, &instance).contains("\n0\n"),
        "{}",
        log(&sim, &instance)
    );
}

#[tokio::test]
async fn a_script_cannot_change_the_host() {
    let sim = start(fast_world()).await;

    let script = "#!/bin/bash\ntouch /usr/bin/evil\necho 1 >/proc/sys/vm/drop_caches\nmount -t tmpfs none /mnt\nmknod /tmp/disk b 8 0\nls /dev\n:\n";
    let instance = boot(&sim, script).await;

    let log = log(&sim, &instance);
    for refused in [
        "touch: cannot touch",
        "drop_caches: Read-only",
        "mount: ",
        "mknod: ",
    ] {
        assert!(log.contains(refused), "{refused} in {log}");
    }
    assert!(!std::path::Path::new("/usr/bin/evil").exists());
}

#[tokio::test]
async fn a_mime_archive_writes_files_and_runs_its_scripts_in_order() {
    let sim = start(fast_world()).await;

    let archive = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n\n--b\nContent-Type: text/x-shellscript\n\n\
        #!/bin/sh\ncat /etc/motd >/var/order\n\n--b\nContent-Type: text/cloud-config\n\n\
        #cloud-config\nwrite_files:\n- path: /etc/motd\n  content: \"first \"\n\n--b\nContent-Type: text/x-shellscript\n\n\
        #!/bin/sh\nprintf second >>/var/order\n\n--b--\n";
    let instance = boot(&sim, archive).await;

    let order = sim
        .read_file(&instance.id, "/var/order")
        .unwrap_or_default();
    assert_eq!(
        String::from_utf8_lossy(&order),
        "first second",
        "{}",
        log(&sim, &instance)
    );
}

#[tokio::test]
async fn a_script_that_fails_is_a_failed_boot() {
    let sim = start(fast_world()).await;

    let instance = boot(&sim, "#!/bin/bash\nexit 3\n").await;

    assert_eq!(instance.boot, "Failed");
    assert!(log(&sim, &instance).contains("part-001 failed with exit code 3"));
}

#[tokio::test]
async fn text_that_is_no_script_does_not_run() {
    let sim = start(fast_world()).await;

    let instance = boot(&sim, "touch /etc/ran\n").await;

    assert!(log(&sim, &instance).contains("unhandled part 1"));
    assert!(sim.read_file(&instance.id, "/etc/ran").is_none());
}

#[tokio::test]
async fn a_script_that_never_ends_is_killed_with_its_children() {
    let timing = Timing {
        boot_limit_ms: 500,
        ..fast_world().timing
    };
    let sim = start(World {
        timing,
        ..fast_world()
    })
    .await;

    let instance = boot(&sim, "#!/bin/bash\nsleep 98765 &\nsleep 98765\n").await;

    assert!(log(&sim, &instance).contains("took too long"));
    eventually("the end of its children", async || {
        (!sleeps(98765)).then_some(())
    })
    .await;
}

/// Whether a process sleeps for so long.
fn sleeps(seconds: u32) -> bool {
    let wanted = format!("sleep\0{seconds}\0");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .any(|line| line == wanted.as_bytes())
}

#[tokio::test]
async fn deleting_an_instance_ends_its_boot() {
    let sim = start(fast_world()).await;
    let encoded = STANDARD.encode("#!/bin/bash\nsleep 87654\n");
    let launched = ids(&call(&sim, "RunInstances", &launch(&[("UserData", &encoded)])).await);
    eventually("the boot", async || sleeps(87654).then_some(())).await;

    call(
        &sim,
        "DeleteInstances",
        &[("InstanceId.1", launched[0].as_str()), ("Force", "true")],
    )
    .await;

    eventually("the end of the boot", async || {
        (!sleeps(87654)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn metadata_is_answered_for_the_machine_that_asks() {
    let sim = start(fast_world()).await;

    let script =
        "#!/bin/bash\ncurl -sS http://100.100.100.200/latest/meta-data/instance-id >/etc/me\n";
    let instance = boot(&sim, script).await;

    assert_eq!(
        sim.read_file(&instance.id, "/etc/me").unwrap(),
        instance.id.as_bytes(),
        "{}",
        log(&sim, &instance)
    );
}

#[tokio::test]
async fn wrong_user_data_never_joins_and_the_log_says_why() {
    let sim = start(fast_world()).await;
    let script = attach_script(&sim, "{}").await;
    let rows = [
        (
            script.replace("--token ", "--token x"),
            "the token is not valid",
        ),
        (
            script.replace("10.0.0.1:6443", "10.0.0.2:6443"),
            "no API server answers at 10.0.0.2:6443",
        ),
        (
            script.replace("--runtime containerd", "--runtime docker"),
            "the runtime docker is not supported",
        ),
        (
            format!("{script} --taints karpenter.sh/unregistered"),
            "is not key=value:Effect",
        ),
        (
            format!("{script} --labels node-role.kubernetes.io/a=b"),
            "unknown 'kubernetes.io'",
        ),
        (
            format!("{script} --node-config e30"),
            "--node-config is not base64",
        ),
        (
            format!("{script} --node-conifg e30="),
            "unknown argument: --node-conifg",
        ),
        (
            script.replace("attach_node.sh", "attach_nodes.sh"),
            "curl: ",
        ),
        (
            attach_script(&sim, "{\"arch\":\"arm64\"}").await,
            "the attach script is for arm64, the machine is amd64",
        ),
        (script.clone(), "there is no cluster"),
    ];

    for (command, reason) in rows {
        let instance = boot(&sim, &format!("#!/bin/bash\nset -o pipefail\n{command}\n")).await;

        assert_eq!(
            (instance.boot.as_str(), instance.node_name.as_ref()),
            ("Failed", None),
            "{command}"
        );
        assert!(
            log(&sim, &instance).contains(reason),
            "{reason} in {}",
            log(&sim, &instance)
        );
    }
}

#[tokio::test]
async fn an_expired_token_lets_nobody_join() {
    let sim = start(fast_world()).await;
    let script = attach_script(&sim, "{\"expired\":1700000000}").await;

    let instance = boot(&sim, &format!("#!/bin/bash\nset -o pipefail\n{script}\n")).await;

    assert!(
        log(&sim, &instance).contains("the token is not valid"),
        "{}",
        log(&sim, &instance)
    );
}

#[tokio::test]
async fn the_attach_script_can_come_as_a_json_string() {
    let sim = start(World {
        attach_script_as_json: true,
        ..fast_world()
    })
    .await;

    let text = attach_script(&sim, "{}").await;

    let script: String = serde_json::from_str(&text).unwrap();
    assert!(
        script.starts_with("curl ") && script.ends_with("\r\n"),
        "{script}"
    );
}
