//! `kerf plugin record`: real questions from a controller, as files for `kerf plugin replay` and `run`.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kerf_policy::Recorded;
use kube::api::ListParams;
use kube::{Api, Client, Config, ResourceExt};
use serde_json::json;

use crate::plugin::args::Record;
use crate::plugin::cluster::{open, runtime};
use crate::plugin::{Environment, Outcome};

const PATH: &str = "/debug/policy-questions";
/// How the chart labels the controller's pods.
const PODS: &str = "app.kubernetes.io/name=kerf";

pub(super) fn run(args: &Record) -> Result<Outcome> {
    let (runtime, client) = match &args.url {
        Some(url) => {
            let url = url.parse().with_context(|| format!("--url {url}"))?;
            let runtime = runtime()?;
            let client = runtime.block_on(async { Client::try_from(Config::new(url)) })?;
            (runtime, client)
        }
        None => open(&args.cluster)?,
    };
    let mut questions = runtime.block_on(async {
        match &args.url {
            Some(_) => ask(&client, PATH).await,
            None => ask_pods(&client, &args.cluster.namespace).await,
        }
    })?;
    questions.retain(|it| args.policy.as_ref().is_none_or(|name| it.policy == *name));
    if questions.is_empty() {
        bail!(
            "no question was kept yet; policies are asked when pods wait for a node or nodes are consolidated"
        );
    }
    write(&args.output, &questions)?;
    let mut policies: Vec<&str> = questions.iter().map(|it| it.policy.as_str()).collect();
    policies.sort_unstable();
    policies.dedup();
    Ok(Outcome {
        text: format!(
            "{} questions to {} are in {}\n",
            questions.len(),
            policies.join(", "),
            args.output.display()
        ),
        json: json!({"questions": questions.len(), "policies": policies, "folder": args.output}),
        is_good: true,
    })
}

/// Those of every replica: the one that acts has them, and who that is may change.
async fn ask_pods(client: &Client, namespace: &str) -> Result<Vec<Recorded>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pods = pods.list(&ListParams::default().labels(PODS)).await;
    let pods = pods.with_context(|| format!("cannot list the pods of {namespace}"))?;
    if pods.items.is_empty() {
        bail!(
            "there is no pod with {PODS} in {namespace}; name the namespace with -n, or use --url"
        );
    }
    let mut all = Vec::new();
    for pod in pods {
        let name = pod.name_any();
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/proxy{PATH}");
        let questions = ask(client, &path).await;
        all.extend(questions.with_context(|| format!("pod {name}"))?);
    }
    Ok(all)
}

async fn ask(client: &Client, path: &str) -> Result<Vec<Recorded>> {
    let request = http::Request::get(path).body(Vec::new())?;
    client.request(request).await.map_err(|error| {
        let hint = match &error {
            kube::Error::Api(status) if status.code == 404 => {
                "; start the controller with --policy-record-every (the chart: policies.recordEvery)"
            }
            _ => "",
        };
        Environment(format!("the controller cannot be asked for questions: {error}{hint}")).into()
    })
}

fn write(folder: &Path, questions: &[Recorded]) -> Result<()> {
    let about = || format!("cannot write to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(about)?;
    for it in questions {
        let name = format!("{}-{:06}.json", it.policy, it.number);
        std::fs::write(folder.join(name), &it.question).with_context(about)?;
    }
    Ok(())
}
