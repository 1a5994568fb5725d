//! The per-packet log of links that run in the kernel: a thread turns the records of the program
//! into entries of the log, with the numbers of the running topology.

use crate::clock::Clock;
use crate::packet_log::LogQueue;
use fastpath_bpf::{PathFate, PathLocation, PathLog, PathRecord};
use fastpath_link::{Alteration, Corruption, DropReason, Fate};
use fastpath_net::packet_log::{FrameNumber, FrameNumbers, LogEntry, PacketOutcome, Sink};
use fastpath_net::{Location, PipeId, Reason};
use fastpath_spec::Topology;
use fastpath_sys::thread::monotonic_ns;
use fastpath_units::{Duration, Time};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Interval between two looks at the ring buffer, which has room for 55,000 records.
const INTERVAL: std::time::Duration = std::time::Duration::from_millis(2);
/// The numbers of frames are kept for as many frames that entered later.
const KEPT: u64 = 1 << 16;

/// The names of pipes and switches in the program.
pub(crate) type PathNames = (BTreeMap<u32, (String, usize)>, BTreeMap<u32, String>);

/// The thread. Ends on drop, when everything is passed on.
#[derive(Debug)]
pub(crate) struct KernelLog {
    stop: Arc<AtomicBool>,
    topologies: Sender<Topology>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread works with.
struct RecordReader {
    log: PathLog,
    names: PathNames,
    topology: Topology,
    sink: LogQueue,
    numbers: Arc<FrameNumbers>,
    /// The numbers in the log, by those of the program: of frames that entered, and of copies.
    entered: BTreeMap<u64, FrameNumber>,
    made: BTreeMap<u64, FrameNumber>,
    /// The start of the run, in nanoseconds of `CLOCK_MONOTONIC`.
    start_ns: u64,
    /// Records known to be missing.
    missing: u64,
}

impl KernelLog {
    /// Starts it.
    pub(crate) fn start(
        (log, names): (PathLog, PathNames),
        topology: Topology,
        (sink, numbers): (LogQueue, Arc<FrameNumbers>),
        clock: Clock,
    ) -> io::Result<KernelLog> {
        let (topologies, received) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (entered, made) = (BTreeMap::new(), BTreeMap::new());
        let start_ns = start_of(clock);
        let mut reader =
            RecordReader { log, names, topology, sink, numbers, entered, made, start_ns, missing: 0 };
        let until = Arc::clone(&stop);
        let run = move || {
            while !until.load(Ordering::Acquire) {
                std::thread::sleep(INTERVAL);
                reader.turn(&received);
            }
            reader.turn(&received);
        };
        let thread = std::thread::Builder::new().name("fastpath-pathlog".to_owned()).spawn(run)?;
        Ok(KernelLog { stop, topologies, thread: Some(thread) })
    }

    /// Entries from now on have the numbers of this topology.
    pub(crate) fn rearranged(&self, topology: &Topology) {
        // It has ended otherwise.
        let _ = self.topologies.send(topology.clone());
    }
}

impl Drop for KernelLog {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Returns when a clock started, in nanoseconds of `CLOCK_MONOTONIC`. The two readings next to each
/// other of several have the least between them.
fn start_of(clock: Clock) -> u64 {
    let readings = (0..8).map(|_| {
        let before = monotonic_ns();
        let now = clock.now().since(Time::ZERO).as_ns();
        let after = monotonic_ns();
        (after - before, (before + (after - before) / 2).saturating_sub(now))
    });
    readings.min().map_or(0, |(_, start)| start)
}

impl RecordReader {
    fn turn(&mut self, topologies: &Receiver<Topology>) {
        let RecordReader { log, names, topology, sink, numbers, entered, made, start_ns, missing } = self;
        let mut latest = Time::ZERO;
        log.read(|record| {
            let at = Time::ZERO + Duration::from_ns(record.at_ns.saturating_sub(*start_ns));
            latest = at;
            let frame = match record.made {
                None => *entered.entry(record.entered).or_insert_with(|| numbers.next_entered()),
                Some(copy) => *made.entry(copy).or_insert_with(|| numbers.next_made()),
            };
            let Some(location) = location(names, topology, record.location) else { return };
            let (bytes, len) = with_tag(&record);
            let dequeued = match record.fate {
                PathFate::Delivered { .. } | PathFate::Lost { at_exit: true } => Some(at),
                _ => None,
            };
            let outcome = outcome(record.fate);
            sink.take(LogEntry { location, frame, arrived: at, dequeued, at, outcome, len }, &bytes);
        });
        forget(entered);
        forget(made);
        let lost = log.missing();
        sink.lost(lost - *missing);
        *missing = lost;
        sink.flush(latest, true);
        for next in topologies.try_iter() {
            sink.rearranged(&next);
            *topology = next;
        }
    }
}

/// Forgets the numbers of frames that have left.
fn forget(numbers: &mut BTreeMap<u64, FrameNumber>) {
    if let Some((last, _)) = numbers.last_key_value()
        && numbers.len() as u64 > KEPT
    {
        *numbers = numbers.split_off(&last.saturating_sub(KEPT / 2));
    }
}

/// Returns the first bytes of a frame with the tag that the kernel keeps beside them, and its
/// length.
fn with_tag(record: &PathRecord<'_>) -> (Vec<u8>, u32) {
    use fastpath_net::packet_log::SNAP_LEN;
    let mut bytes = record.bytes.to_vec();
    let mut len = record.len;
    if let (Some(tag), true) = (record.tag, bytes.len() >= 12) {
        bytes.splice(12..12, tag.to_be_bytes());
        len += 4;
    }
    bytes.truncate(SNAP_LEN);
    (bytes, len)
}

fn location(names: &PathNames, topology: &Topology, of: PathLocation) -> Option<Location> {
    Some(match of {
        PathLocation::Pipe(number) => {
            let (name, index) = names.0.get(&number)?;
            Location::Pipe(PipeId { link: topology.link_named(name)?, index: *index })
        }
        PathLocation::Switch(number) => Location::Node(topology.node_named(names.1.get(&number)?)?),
    })
}

fn outcome(fate: PathFate) -> PacketOutcome {
    match fate {
        PathFate::Delivered { is_marked: marked, is_corrupted, is_duplicated } => {
            let corruption = is_corrupted.then(Corruption::of_one_bit);
            let copies = u8::from(is_duplicated);
            PacketOutcome::Left(match (copies, corruption) {
                (0, None) => Fate::Delivered { marked },
                _ => Fate::Altered(Alteration { marked, corruption, copies }),
            })
        }
        PathFate::Lost { at_exit: true } => PacketOutcome::Left(Fate::Dropped(DropReason::Loss)),
        PathFate::Lost { at_exit: false } => PacketOutcome::Refused(Reason::Link(DropReason::Loss)),
        PathFate::Down => PacketOutcome::Refused(Reason::Link(DropReason::Down)),
        PathFate::Filtered => PacketOutcome::Refused(Reason::Filtered),
        PathFate::Malformed => PacketOutcome::Refused(Reason::Malformed),
    }
}
