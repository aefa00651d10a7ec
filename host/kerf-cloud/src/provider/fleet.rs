//! All instances of a cluster, also of one with more than a tag filter shows.
//!
//! DescribeInstances shows the first thousand that carry a tag. ListTagResources shows all, but a page of it holds few
//! instances, so that it goes on a little with each look, and a look asks for those it found before by their ids.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::actions::PAGES_MAX;
use crate::error::{CloudError, ErrorClass};
use crate::provider::describe::Describer;
use crate::provider::instance::Instance;
use crate::rpc::Client;

/// What DescribeInstances shows of the instances with a tag.
const SHOWN_MAX: usize = 1000;
/// Pages of ListTagResources with each look after the first listing, which is a few a minute; what is launched by another
/// process of ours and never claimed is found within an hour also where there are thousands.
const PAGES_PER_LOOK: u32 = 8;

/// What ListTagResources has shown.
#[derive(Debug, Default)]
pub(crate) struct Fleet(Mutex<Listing>);

#[derive(Debug, Default)]
struct Listing {
    /// All ids of the last whole listing.
    ids: Option<BTreeSet<String>>,
    /// Of the listing under way: where it goes on, and what it has shown.
    token: String,
    shown: BTreeSet<String>,
}

impl Fleet {
    /// The instances that carry all these tags, in id order.
    ///
    /// # Errors
    /// When any page could not be read: a part is never passed off as the whole.
    pub(crate) async fn with_tags(
        &self,
        describer: &Describer,
        client: &Client,
        tags: &[(&str, &str)],
    ) -> Result<Vec<Instance>, CloudError> {
        let mut found = describer.by_tags(tags).await?;
        if found.len() < SHOWN_MAX {
            return Ok(found);
        }
        let mut listing = std::mem::take(&mut *self.lock());
        let outcome = listing.go_on(client, tags).await;
        let ids = listing.ids.clone();
        *self.lock() = listing;
        let ids = match (outcome, ids) {
            (Ok(()) | Err(_), Some(ids)) => ids,
            (Err(error), None) if matches!(error.class(), ErrorClass::Auth(_)) => {
                tracing::warn!(%error, "more than {SHOWN_MAX} instances are ours and the account may not list them all: what nobody claims among the others stays");
                BTreeSet::new()
            }
            (Err(error), None) => return Err(error),
            (Ok(()), None) => BTreeSet::new(),
        };
        let shown: BTreeSet<&str> = found.iter().map(|it| it.id.as_str()).collect();
        let beyond = ids.into_iter().filter(|id| !shown.contains(id.as_str()));
        let beyond: Vec<String> = beyond.collect();
        let more = describer.by_ids(&beyond).await?;
        found.extend(more.into_iter().filter(|it| it.has_tags(tags)));
        found.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Listing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listing {
    /// Reads on: to the end the first time, then some pages. A page that fails begins it anew.
    async fn go_on(&mut self, client: &Client, tags: &[(&str, &str)]) -> Result<(), CloudError> {
        let pages = match self.ids {
            None => PAGES_MAX,
            Some(_) => PAGES_PER_LOOK,
        };
        for _ in 0..pages {
            let page = match client.list_tagged_instances(tags, &self.token).await {
                Ok(page) => page,
                Err(error) => {
                    (self.token, self.shown) = Default::default();
                    return Err(error);
                }
            };
            self.shown.extend(page.ids);
            let is_last = page.next_token.is_empty() || page.next_token == self.token;
            self.token = page.next_token;
            if is_last {
                self.token.clear();
                self.ids = Some(std::mem::take(&mut self.shown));
                return Ok(());
            }
        }
        Ok(())
    }
}
