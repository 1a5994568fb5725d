//! Captures of links of a running network: full frames with intended and actual times, and the
//! frames that links drop.
//!
//! ```text
//!  Network ─▶ CaptureTap ─CaptureChunk─▶ ChunkSink ─▶ another thread ─▶ CaptureWriter ─▶ pcapng
//! ```
//!
//! A capture starts and ends while the network runs. It copies frames and changes nothing: a
//! segment stays in its super-packet, and a network without a capture moves frames in runs as if
//! there were no tap. A chunk that the sink does not take is lost, and the sink counts its frames.
//!
//! The time of a packet in the file is the instant at which the frame was due at the end of the
//! link, or at which it was dropped. Its comment consists of `key=value` pairs; times are in
//! seconds since the start of the run, with picosecond resolution:
//!
//! ```text
//! delivered=1.026000000000 actual=1.026004117000 marked
//! dropped=queue-full at=1.000200000000
//! ```
//!
//! `actual` is the time at which the engine took the frame out of the link. In virtual time it
//! equals `delivered`.

use crate::fate::Reason;
use crate::id::{Location, PipeId};
use crate::observer::{Observer, Passage};
use crate::packet_log::{PacketOutcome, Seconds, interface_of};
use crate::pool::{Frame, FramePool};
use fastpath_link::{Alteration, Fate};
use fastpath_spec::Topology;
use fastpath_units::{Duration, Time};
use fastpath_wire::pcap::{Interface, LINKTYPE_ETHERNET, NgWriter};
use std::fmt::Write as _;

/// A chunk is passed on when it has this many bytes of frames or this many frames.
const CHUNK_BYTES: usize = 128 << 10;
const CHUNK_FRAMES: usize = 1024;
/// A chunk is passed on this long after its first frame, or earlier if nothing moves.
pub const FLUSH_INTERVAL: Duration = Duration::from_ms(20);

/// A frame of a capture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CapturedFrame {
    /// The number of the pipe among those of the capture.
    pub interface: u32,
    /// The time at which the frame was due at the end of the link, or was dropped.
    pub at: Time,
    /// The time of the driver when this happened.
    pub actual: Time,
    /// What became of the frame on the link.
    pub outcome: PacketOutcome,
    /// The length of the frame in bytes.
    pub len: u32,
    /// Where its captured bytes are in the chunk.
    from: u32,
    captured: u32,
}

/// Frames of a capture, in the order in which they left their pipes.
#[derive(Debug, Default)]
pub struct CaptureChunk {
    frames: Vec<CapturedFrame>,
    bytes: Vec<u8>,
    /// Frames at the front that have been written.
    written: usize,
}

impl CaptureChunk {
    /// Returns the frames.
    pub fn frames(&self) -> &[CapturedFrame] {
        &self.frames
    }

    /// Returns the captured bytes of one of its frames.
    pub fn bytes_of(&self, frame: &CapturedFrame) -> &[u8] {
        &self.bytes[frame.from as usize..][..frame.captured as usize]
    }

    fn new() -> CaptureChunk {
        CaptureChunk {
            frames: Vec::with_capacity(CHUNK_FRAMES),
            bytes: Vec::with_capacity(CHUNK_BYTES + crate::FRAME_MAX),
            written: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.frames.len() >= CHUNK_FRAMES || self.bytes.len() >= CHUNK_BYTES
    }
}

/// The receiver of the frames of a capture.
pub trait ChunkSink: Send {
    /// Takes a chunk without waiting. Returns it if there is no room; its frames are then lost, and
    /// the sink has counted them.
    fn offer(&mut self, chunk: CaptureChunk) -> Option<CaptureChunk>;
}

/// The order to capture frames.
pub struct CaptureOrder {
    /// Identifies the capture.
    pub id: u64,
    /// By pipe (forward at `2 × link`, backward at `2 × link + 1`): its number in the capture;
    /// `None` for pipes that are not captured.
    pub interfaces: Vec<Option<u32>>,
    /// Whether frames are captured that a link drops.
    pub has_drops: bool,
    /// The most bytes of a frame that are captured.
    pub snap_len: usize,
    /// The receiver of the frames.
    pub sink: Box<dyn ChunkSink>,
}

/// An [`Observer`] that copies frames for any number of captures. Idle without one.
#[derive(Default)]
pub struct CaptureTap {
    running: Vec<RunningCapture>,
    now: Time,
}

struct RunningCapture {
    order: CaptureOrder,
    chunk: CaptureChunk,
}

impl CaptureTap {
    /// Starts a capture.
    pub fn start(&mut self, order: CaptureOrder) {
        self.running.push(RunningCapture { order, chunk: CaptureChunk::new() });
    }

    /// Follows a change of the topology: `from` has by pipe its former number, if it stays. Pipes
    /// that are new are in no capture.
    pub fn rearrange(&mut self, from: &[Option<u32>]) {
        for capture in &mut self.running {
            let former = &capture.order.interfaces;
            capture.order.interfaces = from.iter().map(|pipe| former[(*pipe)? as usize]).collect();
        }
    }

    /// Ends a capture: passes on what it has and drops its sink.
    pub fn end(&mut self, id: u64) {
        self.running.retain_mut(|capture| {
            let is_other = capture.order.id != id;
            if !is_other {
                capture.pass_on();
            }
            is_other
        });
    }

    /// Sets the time of the driver. It is the actual time of all frames until the next call.
    #[inline]
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    fn take(&mut self, pipe: PipeId, at: Time, frame: &Frame, pool: &FramePool, outcome: PacketOutcome) {
        let actual = self.now.max(at);
        let is_drop = matches!(outcome, PacketOutcome::Refused(_) | PacketOutcome::Left(Fate::Dropped(_)));
        for capture in self.running.iter_mut().filter(|capture| capture.order.has_drops || !is_drop) {
            let Some(interface) = capture.order.interface(pipe) else { continue };
            let chunk = &mut capture.chunk;
            let from = chunk.bytes.len();
            pool.append_to(frame, capture.order.snap_len, &mut chunk.bytes);
            chunk.frames.push(CapturedFrame {
                interface,
                at,
                actual,
                outcome,
                len: frame.len() as u32,
                from: from as u32,
                captured: (chunk.bytes.len() - from) as u32,
            });
            if chunk.is_full() {
                capture.pass_on();
            }
        }
    }
}

impl CaptureOrder {
    fn interface(&self, pipe: PipeId) -> Option<u32> {
        self.interfaces[2 * pipe.link.0 as usize + pipe.index]
    }
}

impl RunningCapture {
    fn pass_on(&mut self) {
        if self.chunk.frames.is_empty() {
            return;
        }
        let full = std::mem::take(&mut self.chunk);
        self.chunk = match self.order.sink.offer(full) {
            None => CaptureChunk::new(),
            Some(mut refused) => {
                refused.frames.clear();
                refused.bytes.clear();
                refused
            }
        };
    }
}

impl Observer for CaptureTap {
    const TRACKS_FRAMES: bool = false;

    #[inline]
    fn is_active(&self) -> bool {
        !self.running.is_empty()
    }

    #[inline]
    fn flush(&mut self, now: Time, is_quiet: bool) {
        for capture in &mut self.running {
            let first = capture.chunk.frames.first();
            if first.is_some_and(|frame| is_quiet || now.since(frame.actual) >= FLUSH_INTERVAL) {
                capture.pass_on();
            }
        }
    }

    fn watches(&self, pipe: PipeId) -> bool {
        self.running.iter().any(|capture| capture.order.interface(pipe).is_some())
    }

    fn left(&mut self, Passage { at, pipe, frame, pool, fate, .. }: Passage<'_>) {
        self.take(pipe, at, frame, pool, PacketOutcome::Left(fate));
    }

    fn copied(&mut self, passage: Passage<'_>) {
        self.left(passage);
    }

    fn refused(&mut self, at: Time, location: Location, frame: &Frame, pool: &FramePool, reason: Reason) {
        if let Location::Pipe(pipe) = location {
            self.take(pipe, at, frame, pool, PacketOutcome::Refused(reason));
        }
    }
}

/// A writer of captured frames as pcapng, with an interface for each pipe of the capture.
pub struct CaptureWriter {
    out: NgWriter<Vec<u8>>,
    /// The start of the run in nanoseconds since 1970.
    start_ns: u64,
    /// By interface: frames written, and the missed frames stated last.
    counts: Vec<(u64, u64)>,
    comment: String,
}

impl CaptureWriter {
    /// Starts a file for `pipes` of a network whose run started `start_ns` nanoseconds after 1970.
    pub fn new(topology: &Topology, pipes: &[PipeId], start_ns: u64) -> CaptureWriter {
        const IN_MEMORY: &str = "writing to memory";
        let mut out =
            NgWriter::new(Vec::new(), concat!("fastpath ", env!("CARGO_PKG_VERSION"))).expect(IN_MEMORY);
        for pipe in pipes {
            let (name, description) = interface_of(topology, *pipe);
            let (name, description) = (name.as_str(), description.as_str());
            out.add_interface(&Interface { link_type: LINKTYPE_ETHERNET, name, description })
                .expect(IN_MEMORY);
        }
        CaptureWriter { out, start_ns, counts: vec![(0, 0); pipes.len()], comment: String::new() }
    }

    /// Writes the frames of chunks before `until` in the order of time, and removes the chunks that
    /// have no other frames. Chunks come from several workers, each in order.
    pub fn write_until(&mut self, chunks: &mut Vec<CaptureChunk>, until: Time) {
        let mut next: Vec<(Time, usize, usize)> = Vec::new();
        for (number, chunk) in chunks.iter_mut().enumerate() {
            let first = chunk.written;
            chunk.written = chunk.frames.partition_point(|frame| frame.at < until).max(first);
            next.extend((first..chunk.written).map(|place| (chunk.frames[place].at, number, place)));
        }
        if chunks.len() > 1 {
            next.sort_unstable();
        }
        for (_, number, place) in next {
            let chunk = &chunks[number];
            self.write(chunk, &chunk.frames[place]);
        }
        chunks.retain(|chunk| chunk.written < chunk.frames.len());
    }

    /// Writes a frame of a chunk.
    fn write(&mut self, chunk: &CaptureChunk, frame: &CapturedFrame) {
        self.comment.clear();
        write_comment(&mut self.comment, frame).expect("writing to a string");
        self.counts[frame.interface as usize].0 += 1;
        let (ns, bytes) = (self.start_ns + frame.at.as_ns(), chunk.bytes_of(frame));
        self.out
            .write_packet(frame.interface, ns, frame.len, bytes, &self.comment)
            .expect("a frame is shorter than the longest packet");
    }

    /// Writes statistics of the interfaces at `at`, with the frames of each that are missing:
    /// of all of them, or of those that miss more than stated before.
    pub fn write_statistics(&mut self, at: Time, missed: impl Iterator<Item = u64>, is_end: bool) {
        for ((interface, (written, stated)), missed) in (0..).zip(&mut self.counts).zip(missed) {
            if is_end || missed > *stated {
                *stated = missed;
                let ns = self.start_ns + at.as_ns();
                self.out
                    .write_statistics(interface, ns, *written + missed, missed)
                    .expect("writing to memory");
            }
        }
    }

    /// Takes the bytes that have been written since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.out.output_mut())
    }
}

/// Writes the comment of a frame, as described at the head of this file.
fn write_comment(out: &mut String, frame: &CapturedFrame) -> std::fmt::Result {
    let (at, actual) = (Seconds(frame.at), Seconds(frame.actual));
    let alteration = match frame.outcome {
        PacketOutcome::Refused(reason) => return write!(out, "dropped={} at={at}", reason.name()),
        PacketOutcome::Left(Fate::Dropped(reason)) => {
            return write!(out, "dropped={} at={at}", reason.name());
        }
        PacketOutcome::Left(Fate::Delivered { marked }) => Alteration { marked, ..Alteration::default() },
        PacketOutcome::Left(Fate::Altered(alteration)) => alteration,
    };
    write!(out, "delivered={at} actual={actual}")?;
    if alteration.marked {
        out.push_str(" marked");
    }
    if alteration.corruption.is_some() {
        out.push_str(" corrupted");
    }
    if alteration.copies > 0 {
        write!(out, " duplicated={}", alteration.copies)?;
    }
    Ok(())
}
