//! Notices: messages about events of a run that are not the answer to a request.

use fastpath_spec::mistake::printable;
use std::fmt;
use std::sync::Arc;

/// Receives a text for each event of a run that is not the answer to a request: a port that fails,
/// a controller that connects. Clones share one receiver.
///
/// Engine threads call the receiver at rare events, never per packet. A receiver that blocks stalls
/// the thread that reports the event.
///
/// ```
/// use fastpath_port::Notice;
/// use std::sync::{Arc, Mutex};
///
/// let log = Arc::new(Mutex::new(Vec::new()));
/// let copy = Arc::clone(&log);
/// let notice = Notice::new(move |text| copy.lock().unwrap().push(text.to_owned()));
/// notice.send("port eth1: the interface is gone");
/// assert_eq!(log.lock().unwrap().len(), 1);
/// ```
#[derive(Clone)]
pub struct Notice(Arc<dyn Fn(&str) + Send + Sync>);

impl Notice {
    /// Calls `receiver` with the text of every event.
    pub fn new(receiver: impl Fn(&str) + Send + Sync + 'static) -> Notice {
        Notice(Arc::new(receiver))
    }

    /// Writes a line to standard error for every event.
    pub fn to_stderr() -> Notice {
        Notice::new(|text| eprintln!("fastpath: {}", printable(text)))
    }

    /// Discards every event.
    pub fn none() -> Notice {
        Notice::new(|_| {})
    }

    /// Passes the text of an event to the receiver.
    pub fn send(&self, text: &str) {
        (self.0)(text);
    }
}

impl fmt::Debug for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notice")
    }
}
