//! Users' own user data and ACK's attach scripts, composed into what an instance boots with.

use std::collections::BTreeMap;

use kerf_cloud::provider::bootstrap::{
    JoinScript, JoinSettings, NodeSettings, base_parts, compose,
};
use kerf_cloud::provider::class::KubeletSettings;

use super::{Planted, Target, seeds_of, text_of};

pub(super) const TARGET: Target = Target {
    name: "user-data",
    run,
    seeds: || {
        seeds_of(&[
            "curl http://mirror/attach.sh | bash -s -- --token abc.def --labels a=b,c=d --taints x=y:NoSchedule\0#!/bin/bash\necho hello\n",
            "bash attach.sh --openapi-token \"t\"\0Content-Type: multipart/mixed; boundary=\"B\"\nMIME-Version: 1.0\n\n--B\nContent-Type: text/x-shellscript\n\nx\n--B--\n",
            "join {{taints}} {{labels}} {{nodeConfig}}\0#cloud-config\nruncmd: [ls]\n",
        ])
    },
};

/// The script that joins, a zero, and the user's part.
fn run(bytes: &[u8], planted: Planted) {
    let Some((script, user)) = text_of(bytes).and_then(|text| text.split_once('\0')) else {
        return;
    };
    let node = NodeSettings {
        labels: BTreeMap::from([("team".to_owned(), "a".to_owned())]),
        ..NodeSettings::default()
    };
    let settings = JoinSettings {
        cluster_id: "c1",
        node: &node,
        kubelet: &KubeletSettings::default(),
        cluster_name: "c1",
        cluster_endpoint: "https://10.0.0.1:6443",
    };
    let scripts = [
        JoinScript::from_attach_script(script, &settings),
        JoinScript::from_template(script, &settings),
    ];
    for join in scripts.into_iter().flatten() {
        let parts = base_parts(user, &join);
        let is_archive = parts
            .iter()
            .any(|part| part.content_type.contains("multipart"));
        let shown = join.text().to_owned();
        if let Ok(composed) = compose(&parts, join) {
            // An archive has the line ends of Unix, and none at its end that the script has not.
            let shown = shown.replace('\r', "");
            let text = composed.text().replace('\r', "");
            assert!(text.contains(shown.trim_end()));
            let _ = composed.encode();
        }
        planted.at(is_archive && script.contains("--token="));
    }
}
