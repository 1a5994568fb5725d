//! Captures of a running engine: a bounded queue of chunks from the workers to the reader. A worker
//! never waits; what does not fit into the queue is lost and counted.

use fastpath_net::PipeId;
use fastpath_net::capture::{CaptureChunk, ChunkSink};
use fastpath_units::Time;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;

/// Chunks that may wait for the reader: at most about 16 MiB.
const WAITING_MAX: usize = 96;

/// Which frames to capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CaptureRequest {
    /// The pipes, by their numbers in the whole network.
    pub(crate) pipes: Vec<PipeId>,
    /// Whether frames are captured that a link drops.
    pub(crate) has_drops: bool,
    /// The most bytes of a frame that are captured.
    pub(crate) snap_len: usize,
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
