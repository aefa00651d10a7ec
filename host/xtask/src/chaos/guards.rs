//! The guards' pods, as every event of the API server tells of them. A gap that a new pod fills within a quarter of a second
//! is a breach like any other, and who only looks now and then does not see it.

use std::io::BufRead as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use anyhow::{Context, Result};
use serde_json::Value;

use super::stage::GUARDS;
use crate::demo::api_server::ApiServer;

/// News of the guards' pods.
#[derive(Debug)]
pub(super) enum Heard {
    /// These are all of them.
    All(Vec<Value>),
    /// This one is new, or another than before.
    Changed(Value),
    Gone(Value),
}

/// Listens to the API server, again and again: it ends each watch after a while, and a run restarts it. What happens between the
/// end of a watch and the next list is not heard.
#[derive(Debug)]
pub(super) struct Guards {
    api: Arc<ApiServer>,
    news: Receiver<Heard>,
}

impl Guards {
    pub(super) fn new(api: ApiServer) -> Self {
        let api = Arc::new(api);
        let news = listen(&api);
        Self { api, news }
    }

    /// What was heard since the last call, in its order.
    pub(super) fn heard(&mut self) -> Vec<Heard> {
        let mut heard = Vec::new();
        loop {
            match self.news.try_recv() {
                Ok(one) => heard.push(one),
                Err(TryRecvError::Empty) => return heard,
                Err(TryRecvError::Disconnected) => {
                    self.news = listen(&self.api);
                    return heard;
                }
            }
        }
    }
}

/// One list and one watch, however they end.
fn listen(api: &Arc<ApiServer>) -> Receiver<Heard> {
    let (sender, news) = channel();
    let api = Arc::clone(api);
    std::thread::spawn(move || {
        // A server that is away is part of the trouble: the next call listens again.
        let _ = follow(&api, &sender);
    });
    news
}

fn follow(api: &ApiServer, sender: &Sender<Heard>) -> Result<()> {
    let names: Vec<String> = (0..GUARDS).map(|guard| format!("guard-{guard}")).collect();
    let path = format!(
        "/api/v1/namespaces/default/pods?labelSelector=app%20in%20({})",
        names.join(",")
    );
    let list = api.get(&path)?;
    let all = list["items"].as_array().cloned().unwrap_or_default();
    sender.send(Heard::All(all))?;
    let version = list["metadata"]["resourceVersion"].as_str();
    let version = version.context("a list without a version")?;
    for line in api
        .watch(&format!("{path}&resourceVersion={version}"))?
        .lines()
    {
        let mut event: Value = serde_json::from_str(&line?)?;
        let pod = event["object"].take();
        match event["type"].as_str() {
            Some("ADDED" | "MODIFIED") => sender.send(Heard::Changed(pod))?,
            Some("DELETED") => sender.send(Heard::Gone(pod))?,
            // The versions that it knows begin later: a list says what there is.
            _ => return Ok(()),
        }
    }
    Ok(())
}
