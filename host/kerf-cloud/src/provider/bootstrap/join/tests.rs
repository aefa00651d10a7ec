use expect_test::expect;
use kerf_core::taint::TaintEffect;

use super::*;
use crate::provider::bootstrap::NodeSettings;
use crate::provider::class::KubeletSettings;

const SCRIPT: &str = "curl http://example/pkg/attach_node.sh | bash -s -- \\\n  --token abc.def \\\n  --endpoint 10.0.0.1:6443 --labels bad@x=1,alibabacloud.com/nodepool-id=np1 \\\n  --node-config e30= --runtime containerd";

fn node() -> NodeSettings {
    let labels = [
        ("karpenter.sh/nodepool", "default"),
        ("kubernetes.io/arch", "amd64"),
        ("unknown.kubernetes.io/x", "1"),
    ];
    NodeSettings {
        labels: labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        taints: vec![Taint {
            key: "dedicated".to_owned(),
            value: "gpu".to_owned(),
            effect: TaintEffect::NoSchedule,
        }],
        startup_taints: vec![Taint::unregistered()],
    }
}

fn join(script: &str, node: &NodeSettings) -> Result<JoinScript, BootstrapError> {
    let kubelet = KubeletSettings {
        max_pods: Some(48),
        ..KubeletSettings::default()
    };
    let settings = JoinSettings {
        cluster_id: "c-1",
        node,
        kubelet: &kubelet,
        cluster_name: "",
        cluster_endpoint: "",
    };
    JoinScript::from_attach_script(script, &settings)
}

#[test]
fn the_attach_script_gets_labels_taints_and_kubelet_settings() {
    let join = join(SCRIPT, &node()).unwrap();

    expect![[r#"
        #!/bin/bash
        curl http://example/pkg/attach_node.sh | bash -s -- \
          --token {{kerf:secret--token}} \
          --endpoint 10.0.0.1:6443  \
           --runtime containerd --labels alibabacloud.com/nodepool-id=np1,k8s.aliyun.com=true,ack.aliyun.com=c-1,karpenter.sh/nodepool=default,kubernetes.io/arch=amd64 --taints dedicated=gpu:NoSchedule,karpenter.sh/unregistered:NoExecute --node-config eyJrdWJlbGV0X2NvbmZpZyI6eyJtYXhQb2RzIjo0OH19
    "#]]
    .assert_eq(join.text());
}

#[test]
fn arguments_go_to_the_attach_command_and_not_to_what_follows_it() {
    let script = format!("#!/bin/sh\nset -e\n{SCRIPT}\necho done\n");

    let join = join(&script, &node()).unwrap();

    let lines: Vec<_> = join.text().lines().collect();
    assert_eq!(lines[0], "#!/bin/sh");
    assert_eq!(lines.last(), Some(&"echo done"));
    assert!(lines[lines.len() - 2].contains("--taints dedicated=gpu:NoSchedule,"));
}

#[test]
fn a_one_line_script_with_more_lines_after_it_is_extended_in_place() {
    let join = join(
        "curl http://x/attach_node.sh | bash -s -- --token a.b\necho done",
        &node(),
    )
    .unwrap();

    let lines: Vec<_> = join.text().lines().collect();
    assert!(lines[1].contains("--node-config"), "{lines:?}");
    assert_eq!(lines[2], "echo done");
}

#[test]
fn secrets_are_filled_in_last_and_never_shown() {
    let join = join(SCRIPT, &node()).unwrap();

    assert!(!format!("{join:?}").contains("abc.def"));
    assert!(join.fill(join.text()).contains("--token abc.def"));
}

#[test]
fn what_a_shell_would_read_as_a_command_is_refused() {
    let mut node = node();
    node.labels.insert("a".to_owned(), "$(reboot)".to_owned());

    let error = join(SCRIPT, &node).unwrap_err();

    assert_eq!(
        error,
        BootstrapError::Unsafe {
            what: "label",
            value: "a=$(reboot)".to_owned()
        }
    );
}

#[test]
fn a_template_must_have_a_place_for_the_taints() {
    let kubelet = KubeletSettings {
        max_pods: Some(20),
        ..KubeletSettings::default()
    };
    let node = node();
    let settings = JoinSettings {
        cluster_id: "",
        node: &node,
        kubelet: &kubelet,
        cluster_name: "",
        cluster_endpoint: "",
    };

    let bare = JoinScript::from_template("kubeadm join", &settings);
    let template = "join --taints={{taints}} --max-pods={{maxPods}} --labels={{labels}}";
    let whole = JoinScript::from_template(template, &settings).unwrap();

    assert_eq!(bare, Err(BootstrapError::TemplateWithoutTaints));
    assert_eq!(
        whole.text(),
        "#!/bin/bash\njoin --taints=dedicated=gpu:NoSchedule,karpenter.sh/unregistered:NoExecute --max-pods=20 \
         --labels=karpenter.sh/nodepool=default,kubernetes.io/arch=amd64\n"
    );
}
