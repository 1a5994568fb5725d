//! Answers without an end: their bodies, and the mark that exempts their connections from the time
//! limit of clients.

use axum::body::Bytes;
use hyper::body::{Body, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// The number of answers without an end that a connection has at the moment. Each request has the
/// mark of its connection among its extensions.
#[derive(Clone, Default)]
pub(super) struct Streams(Arc<AtomicUsize>);

impl Streams {
    /// Returns whether the connection has such an answer.
    pub(super) fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// A body whose parts come from a channel. It ends when the sender is dropped. When the client has
/// gone, the sender is closed.
pub(super) struct StreamBody {
    parts: mpsc::Receiver<Bytes>,
    streams: Streams,
}

impl StreamBody {
    /// Returns a body and the sender of its parts, at most `waiting_max` of which wait.
    pub(super) fn new(streams: Streams, waiting_max: usize) -> (mpsc::Sender<Bytes>, StreamBody) {
        let (sender, parts) = mpsc::channel(waiting_max);
        streams.0.fetch_add(1, Ordering::Relaxed);
        (sender, StreamBody { parts, streams })
    }
}

impl Drop for StreamBody {
    fn drop(&mut self) {
        self.streams.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.parts.poll_recv(context).map(|part| part.map(|bytes| Ok(Frame::data(bytes))))
    }
}
