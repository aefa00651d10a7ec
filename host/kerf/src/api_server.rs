//! The client for the API server.

mod answer;
mod paced;

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use kube::client::ClientBuilder;
use tower::limit::ConcurrencyLimitLayer;

use answer::AnswerLayer;
use kerf_controllers::pace::Pace;
use paced::PacedLayer;

/// Bounds a silent connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longer than the API server's own slow answers under load, shorter than a leader's renew deadline.
const ANSWER_MAX: Duration = Duration::from_secs(8);

/// Requests of a client that wait for an answer at the same time. Each has a connection of its own, which stays for a minute
/// and a half and takes 55 KiB: a burst of a hundred launches left 6 MiB of them. At the 10 ms of an answer these are ten
/// times the requests that the rate allows, and at 100 ms as many. Evictions, which a webhook may hold up, are half of them at most.
const IN_FLIGHT_MAX: usize = 20;

/// As [`IN_FLIGHT_MAX`], of a client for few kinds of requests. A hundred creations take 0.2 s then.
const IN_FLIGHT_OF_FEW_MAX: usize = 8;

/// Who asks, in the API server's audit log.
const USER_AGENT: &str = concat!("kerf/", env!("CARGO_PKG_VERSION"));

/// How many requests may go, as Karpenter's flags say it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) per_second: u32,
    pub(crate) burst: u32,
}

/// As [`connect`], for few kinds of requests, which wait for no others.
///
/// # Errors
/// As [`connect`].
pub(crate) async fn connect_for_few(
    kubeconfig: Option<&Path>,
    rate: Rate,
) -> anyhow::Result<kube::Client> {
    build(config(kubeconfig, None).await?, rate, IN_FLIGHT_OF_FEW_MAX)
}

/// A client by the kubeconfig, or by the service account of the pod.
///
/// # Errors
/// When there is neither, or one of them cannot be used.
pub(crate) async fn connect(kubeconfig: Option<&Path>, rate: Rate) -> anyhow::Result<kube::Client> {
    connect_as(kubeconfig, rate, None).await
}

/// As [`connect`], in the name of another user where one is given.
///
/// # Errors
/// As [`connect`], and when the name cannot be sent.
pub(crate) async fn connect_as(
    kubeconfig: Option<&Path>,
    rate: Rate,
    user: Option<&str>,
) -> anyhow::Result<kube::Client> {
    build(config(kubeconfig, user).await?, rate, IN_FLIGHT_MAX)
}

async fn config(kubeconfig: Option<&Path>, user: Option<&str>) -> anyhow::Result<kube::Config> {
    let mut config = match kubeconfig {
        Some(path) => {
            let file = kube::config::Kubeconfig::read_from(path)
                .with_context(|| format!("cannot read the kubeconfig {}", path.display()))?;
            kube::Config::from_custom_kubeconfig(file, &kube::config::KubeConfigOptions::default())
                .await
                .with_context(|| format!("cannot use the kubeconfig {}", path.display()))?
        }
        None => kube::Config::infer()
            .await
            .context("cannot find the API server: run in a pod or set --kubeconfig")?,
    };
    if let Some(user) = user {
        let value = http::HeaderValue::from_str(user)
            .with_context(|| format!("{user:?} cannot be the name of a user"))?;
        let name = http::HeaderName::from_static("impersonate-user");
        config.headers.push((name, value));
    }
    let agent = http::HeaderValue::from_static(USER_AGENT);
    config.headers.push((http::header::USER_AGENT, agent));
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    // The client's own retries would hide that a disruption budget refused an eviction (429) behind our time limit;
    // every reconciler tries again by itself.
    config.default_retry = false;
    Ok(config)
}

fn build(config: kube::Config, rate: Rate, in_flight_max: usize) -> anyhow::Result<kube::Client> {
    let builder =
        ClientBuilder::try_from(config).context("cannot make a client for the API server")?;
    // The limit on the answer is inside: a request that waits for its turn is not late yet.
    let builder = builder
        .with_layer(&AnswerLayer::new(ANSWER_MAX))
        .with_layer(&ConcurrencyLimitLayer::new(in_flight_max));
    let pause = Duration::from_secs(1) / rate.per_second.max(1);
    let pace = Pace::new(pause, rate.burst);
    Ok(builder.with_layer(&PacedLayer(pace)).build())
}
