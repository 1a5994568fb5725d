//! Requests to change the nodes and links of a running network. The engine passes them to its
//! owner, who makes the hosts, and the owner answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use utoipa::ToSchema;

/// Requests that wait for the owner.
const WAITING_MAX: usize = 4;

/// The network that is to run, in place of the one that does.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Apply {
    /// The description in the canonical form: `{"nodes": […], "links": […]}`.
    #[schema(value_type = Object)]
    pub description: Value,
    /// The texts of the files that the description names, by their names there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Only return the difference.
    #[serde(default)]
    pub dry_run: bool,
}

/// The changes that were made, or that a dry run would make.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Applied {
    /// Each node, link or setting that differs: additions and changes in the order of the
    /// description, then removals.
    pub changes: Vec<AppliedChange>,
    /// What the author may not expect.
    pub notices: Vec<String>,
}

/// What happens to a node, link or setting.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AppliedChange {
    /// `add`, `change`, `replace` or `remove`.
    pub action: String,
    /// `host`, `router`, `switch`, …, `link`, `group` or `events`.
    pub kind: String,
    /// Its name; empty for events.
    pub name: String,
    /// Of an added node its addresses, of an added link its ends, of a change the values before
    /// and after.
    pub details: Vec<String>,
}

/// Where the engine puts requests to change the network.
#[derive(Clone, Debug)]
pub struct ApplyQueue(SyncSender<ApplyRequest>);

/// Where the owner of an engine takes them.
#[derive(Debug)]
pub struct ApplyRequests(Mutex<Receiver<ApplyRequest>>);

/// A request that waits for its answer.
#[derive(Debug)]
pub struct ApplyRequest {
    /// The new network.
    pub apply: Apply,
    answer: oneshot::Sender<Result<Applied, String>>,
}

/// Makes a queue for requests, bounded.
pub fn apply_requests() -> (ApplyQueue, ApplyRequests) {
    let (queue, requests) = sync_channel(WAITING_MAX);
    (ApplyQueue(queue), ApplyRequests(Mutex::new(requests)))
}

impl ApplyQueue {
    /// Queues a request. The error says why that is impossible.
    pub(super) fn send(
        &self,
        apply: Apply,
    ) -> Result<oneshot::Receiver<Result<Applied, String>>, &'static str> {
        let (answer, answered) = oneshot::channel();
        let queued = self.0.try_send(ApplyRequest { apply, answer });
        queued.map(|()| answered).map_err(|_| "other changes of this network are waiting: try again later")
    }
}

impl ApplyRequests {
    /// Returns the next request, or `None` after `longest`.
    pub fn next(&self, longest: Duration) -> Option<ApplyRequest> {
        let requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match requests.recv_timeout(longest) {
            Ok(request) => Some(request),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // The control interface has ended; the engine ends too.
                std::thread::sleep(longest);
                None
            }
        }
    }
}

impl ApplyRequest {
    /// Answers. The client may have gone; then the answer is dropped.
    pub fn answer(self, answer: Result<Applied, String>) {
        let _ = self.answer.send(answer);
    }
}
