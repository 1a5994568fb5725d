//! A capture of a running engine by the process that runs it.

use crate::capture::{CaptureError, CaptureFilter, CaptureQueue, CaptureRequest, MERGE_INTERVAL, RunClock};
use crate::worker_group::WorkerGroup;
use fastpath_net::capture::{CaptureChunk, CaptureWriter};
use fastpath_units::Time;
use std::io::{self, Write};
use std::time::Instant;
use tokio::sync::mpsc::error::TryRecvError;

/// Interval between two looks at the queue.
const POLL: std::time::Duration = std::time::Duration::from_millis(10);
/// A capture of a running engine by the process that runs it, as pcapng. The workers end it when it
/// is dropped.
pub struct LinkCapture {
    queue: CaptureQueue,
    workers: WorkerGroup,
    writer: CaptureWriter,
    clock: RunClock,
    waiting: Vec<CaptureChunk>,
    /// Frames before the second last look are written: those of all workers have come.
    looked: (Time, Instant),
}

impl LinkCapture {
    pub(crate) fn start(workers: &WorkerGroup, filter: &CaptureFilter) -> Result<LinkCapture, CaptureError> {
        let current = workers.current();
        let wanted = CaptureRequest::of(current.topology(), filter)?;
        let queue = current.capture(&wanted).ok_or(CaptureError::Ended)?;
        let (clock, writer) = (queue.clock(), queue.writer(current.topology(), &wanted.pipes));
        let looked = (Time::ZERO, Instant::now());
        Ok(LinkCapture { queue, workers: workers.clone(), writer, clock, waiting: Vec::new(), looked })
    }

    /// Returns the next part of the file; waits for frames for at most `longest`. `None` after the
    /// end of the network.
    pub fn read(&mut self, longest: std::time::Duration) -> Option<Vec<u8>> {
        let deadline = Instant::now() + longest;
        loop {
            match self.queue.chunks.try_recv() {
                Ok(chunk) => self.waiting.push(chunk),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {
                    let has_part = self.write_waiting();
                    if has_part || Instant::now() >= deadline {
                        self.writer.write_statistics(self.clock.now(), self.queue.missed(), false);
                        return Some(self.writer.take());
                    }
                    std::thread::sleep(POLL);
                }
            }
        }
    }

    /// Writes the file until the network ends, as frames come. Returns the number of frames that
    /// are missing.
    ///
    /// # Errors
    /// Those of `out`. The capture ends then; the network goes on.
    pub fn write_to(mut self, out: &mut dyn Write) -> io::Result<u64> {
        while let Some(chunk) = self.queue.chunks.blocking_recv() {
            self.waiting.push(chunk);
            self.write_waiting();
            out.write_all(&self.writer.take())?;
        }
        self.writer.write_until(&mut self.waiting, Time::MAX);
        self.writer.write_statistics(self.clock.now(), self.queue.missed(), true);
        out.write_all(&self.writer.take())?;
        out.flush()?;
        Ok(self.missed())
    }

    /// Ends the capture, and returns the rest of the file.
    pub fn end(mut self) -> Vec<u8> {
        self.workers.end_capture(self.queue.id);
        while let Some(chunk) = self.queue.chunks.blocking_recv() {
            self.waiting.push(chunk);
        }
        self.writer.write_until(&mut self.waiting, Time::MAX);
        self.writer.write_statistics(self.clock.now(), self.queue.missed(), true);
        self.writer.take()
    }

    /// Returns the number of frames that are missing, because they were not read in time.
    pub fn missed(&self) -> u64 {
        self.queue.missed().sum()
    }

    /// Writes frames that are in order. Returns whether there were any.
    fn write_waiting(&mut self) -> bool {
        let has_any = !self.waiting.is_empty();
        if !self.queue.is_merged {
            self.writer.write_until(&mut self.waiting, Time::MAX);
            return has_any;
        }
        let (until, at) = self.looked;
        if at.elapsed() < MERGE_INTERVAL {
            return false;
        }
        self.writer.write_until(&mut self.waiting, until);
        self.looked = (self.clock.now(), Instant::now());
        has_any
    }
}

impl Drop for LinkCapture {
    fn drop(&mut self) {
        self.workers.end_capture(self.queue.id);
    }
}
