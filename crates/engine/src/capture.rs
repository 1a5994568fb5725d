//! Captures of a running engine: a bounded queue of chunks from the workers to the reader. A worker
//! never waits; what does not fit into the queue is lost and counted.
//!
//! ```text
//!  workers ──chunks──▶ queue (bounded) ──▶ LinkCapture (this process), or GET /capture ──▶ pcapng
//! ```

use fastpath_net::PipeId;
use fastpath_net::capture::{CaptureChunk, CaptureWriter, ChunkSink};
use fastpath_spec::{LinkId, Topology};
use fastpath_units::{Duration, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

/// Chunks that may wait for the reader: at most about 16 MiB.
const WAITING_MAX: usize = 96;

/// Frames of several workers are put in order once they are this old. Workers pass them on sooner.
pub(crate) const MERGE_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);

/// Which frames of links to capture.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CaptureFilter {
    /// The links; all links if there are none.
    pub links: Vec<LinkId>,
    /// Only directions that start at this node.
    pub from: Option<String>,
    /// Whether to capture frames that a link drops.
    pub drops: bool,
    /// The most bytes of a frame that are captured; by default, and with 0 (as in tcpdump), all.
    pub snap: Option<usize>,
}

/// Why nothing is captured.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The engine has ended.
    #[error("the engine has ended")]
    Ended,
    /// No direction of the links starts at the node.
    #[error("none of these links starts at '{}'", .0.escape_debug())]
    NoDirection(String),
}

/// Which pipes to capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CaptureRequest {
    /// The pipes, by their numbers in the whole network.
    pub(crate) pipes: Vec<PipeId>,
    /// Whether frames are captured that a link drops.
    pub(crate) has_drops: bool,
    /// The most bytes of a frame that are captured.
    pub(crate) snap_len: usize,
}

impl CaptureRequest {
    /// Returns what `filter` selects of a topology.
    pub(crate) fn of(topology: &Topology, filter: &CaptureFilter) -> Result<CaptureRequest, CaptureError> {
        let mut links = filter.links.clone();
        if links.is_empty() {
            links = (0..topology.links.len() as u32).map(LinkId).collect();
        }
        links.sort_unstable();
        links.dedup();
        let pipes = links.into_iter().flat_map(|link| [0, 1].map(|index| PipeId { link, index }));
        let begins = |pipe: &PipeId| {
            let (node, _) = topology.link(pipe.link).ends[pipe.index];
            filter.from.as_ref().is_none_or(|from| topology.node(node).name == *from)
        };
        let pipes: Vec<PipeId> = pipes.filter(begins).collect();
        match &filter.from {
            Some(from) if pipes.is_empty() => Err(CaptureError::NoDirection(from.clone())),
            _ => Ok(CaptureRequest {
                pipes,
                has_drops: filter.drops,
                snap_len: filter.snap.filter(|bytes| *bytes > 0).unwrap_or(usize::MAX),
            }),
        }
    }
}

/// The time of a run, continued from an instant that a worker has told.
#[derive(Clone, Copy)]
pub(crate) struct RunClock {
    started: Time,
    at: Instant,
}

impl RunClock {
    pub(crate) fn now(&self) -> Time {
        self.started.saturating_add(Duration::from(self.at.elapsed()))
    }
}

/// The reader's end of a capture.
pub(crate) struct CaptureQueue {
    pub(crate) id: u64,
    /// Ends after all workers have ended the capture.
    pub(crate) chunks: mpsc::Receiver<CaptureChunk>,
    /// By number in the capture: frames that are missing.
    pub(crate) missed: Arc<[AtomicU64]>,
    /// The time of the run at which it started.
    pub(crate) started: Time,
    /// Whether chunks of several workers are merged.
    pub(crate) is_merged: bool,
}

impl CaptureQueue {
    /// Returns the clock of the run. The capture has just started.
    pub(crate) fn clock(&self) -> RunClock {
        RunClock { started: self.started, at: Instant::now() }
    }

    /// Returns the writer of the file. The capture has just started.
    pub(crate) fn writer(&self, topology: &Topology, pipes: &[PipeId]) -> CaptureWriter {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ns = u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX);
        CaptureWriter::new(topology, pipes, now_ns.saturating_sub(self.started.as_ns()))
    }

    /// Returns the number of frames that are missing, by number in the capture.
    pub(crate) fn missed(&self) -> impl Iterator<Item = u64> {
        self.missed.iter().map(|missed| missed.load(Ordering::Relaxed))
    }
}

/// A worker's end of a capture.
#[derive(Clone)]
pub(crate) struct ChunkSender {
    chunks: mpsc::Sender<CaptureChunk>,
    missed: Arc<[AtomicU64]>,
}

impl ChunkSender {
    /// Creates the queue of a capture of this many pipes.
    pub(crate) fn new(pipes: usize) -> (ChunkSender, mpsc::Receiver<CaptureChunk>, Arc<[AtomicU64]>) {
        let (chunks, received) = mpsc::channel(WAITING_MAX);
        let missed: Arc<[AtomicU64]> = (0..pipes).map(|_| AtomicU64::new(0)).collect();
        (ChunkSender { chunks, missed: Arc::clone(&missed) }, received, missed)
    }
}

impl ChunkSink for ChunkSender {
    fn offer(&mut self, chunk: CaptureChunk) -> Option<CaptureChunk> {
        let refused = self.chunks.try_send(chunk).err()?.into_inner();
        for frame in refused.frames() {
            self.missed[frame.interface as usize].fetch_add(1, Ordering::Relaxed);
        }
        Some(refused)
    }
}
