//! The per-packet log in real time. The workers collect entries, another thread writes them, and a
//! bounded queue connects both. When the disk is too slow the queue fills, and entries without room
//! are counted. The network never waits. Entries of several workers are put in the order of their
//! times (`merge.rs`).

use crate::Notice;
use fastpath_net::capture;
use fastpath_net::packet_log::{LogEntry, SNAP_LEN, Sink, Writer};
use fastpath_spec::Topology;
use fastpath_units::Time;
use merge::LogMerge;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use utoipa::ToSchema;

mod merge;

/// Entries that may wait for the disk: about 10 MiB, or 16 ms at two million entries per second.
const WAITING_MAX: u64 = 1 << 15;
/// Entries that are passed on together at most.
const BATCH: usize = 256;

/// An entry is in the file this long after its time, so that a killed engine leaves what it logged.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);

/// The state of the per-packet log.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PacketLogReport {
    /// The file.
    pub path: String,
    /// Number of entries written.
    pub written: u64,
    /// Number of entries that are missing: the disk was too slow, or the log had failed.
    pub missing: u64,
    /// Why the file ends early, for example a full disk.
    pub failure: Option<String>,
}

impl PacketLogReport {
    /// Returns whether every entry is in the file.
    pub fn is_complete(&self) -> bool {
        self.missing == 0 && self.failure.is_none()
    }
}

/// The state of a per-packet log.
#[derive(Debug)]
pub(crate) struct LogStatus {
    path: PathBuf,
    written: AtomicU64,
    lost: AtomicU64,
    /// Those of them that the kernel's programs had no room for.
    unread: AtomicU64,
    /// Entries that were passed on and are not written.
    waiting: AtomicU64,
    failure: OnceLock<String>,
}

impl LogStatus {
    fn new(path: &Path) -> LogStatus {
        LogStatus {
            path: path.to_owned(),
            written: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            unread: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            failure: OnceLock::new(),
        }
    }

    pub(crate) fn report(&self) -> PacketLogReport {
        PacketLogReport {
            path: self.path.display().to_string(),
            written: self.written.load(Ordering::Relaxed),
            missing: self.lost.load(Ordering::Relaxed),
            failure: self.failure.get().cloned(),
        }
    }
}

/// The worker's end of the queue. Entries are passed on in batches: to wake the writer for each
/// costs more than to write it.
#[derive(Debug)]
pub(crate) struct LogQueue {
    worker: usize,
    records: Sender<(usize, LogRecord)>,
    /// Entries that the writer does not have yet.
    batch: Vec<LoggedFrame>,
    status: Arc<LogStatus>,
}

/// What a worker sends to the writer.
enum LogRecord {
    /// Entries, in order.
    Entries(Vec<LoggedFrame>),
    /// Later entries have the numbers of this topology.
    Rearranged(Box<Topology>),
}

/// An entry with the first bytes of its frame.
#[derive(Debug)]
pub(super) struct LoggedFrame {
    pub(super) entry: LogEntry,
    len: usize,
    bytes: [u8; SNAP_LEN],
}

impl LogQueue {
    /// Passes on what it has, unless too much waits for the writer.
    fn pass_on(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let next = Vec::with_capacity(self.batch.len());
        let batch = std::mem::replace(&mut self.batch, next);
        let count = batch.len() as u64;
        let has_room = self.status.waiting.load(Ordering::Relaxed) + count <= WAITING_MAX;
        if has_room {
            self.status.waiting.fetch_add(count, Ordering::Relaxed);
        }
        // A writer that has ended takes nothing.
        if !has_room || self.records.send((self.worker, LogRecord::Entries(batch))).is_err() {
            self.status.lost.fetch_add(count, Ordering::Relaxed);
        }
    }
}

impl LogQueue {
    /// Counts entries that could not be taken.
    pub(crate) fn lost(&self, count: u64) {
        self.status.lost.fetch_add(count, Ordering::Relaxed);
        self.status.unread.fetch_add(count, Ordering::Relaxed);
    }
}

impl Sink for LogQueue {
    fn take(&mut self, entry: LogEntry, bytes: &[u8]) {
        let mut own = [0; SNAP_LEN];
        own[..bytes.len()].copy_from_slice(bytes);
        self.batch.push(LoggedFrame { entry, len: bytes.len(), bytes: own });
        if self.batch.len() >= BATCH {
            self.pass_on();
        }
    }

    fn rearranged(&mut self, topology: &Topology) {
        self.pass_on();
        let _ = self.records.send((self.worker, LogRecord::Rearranged(Box::new(topology.clone()))));
    }

    fn flush(&mut self, now: Time, is_quiet: bool) {
        let first = self.batch.first();
        if first.is_some_and(|first| is_quiet || now.since(first.entry.at) >= capture::FLUSH_INTERVAL) {
            self.pass_on();
        }
    }
}

impl Drop for LogQueue {
    fn drop(&mut self) {
        self.pass_on();
    }
}

/// The thread that writes. It ends when each [`LogQueue`] is dropped and everything is in the file.
#[derive(Debug)]
pub(crate) struct LogThread {
    thread: JoinHandle<()>,
    pub(crate) status: Arc<LogStatus>,
}

/// Creates the log of `topology` at `path`, with a queue for each of `workers`. Its time zero is
/// now.
pub(crate) fn open(
    path: &Path,
    topology: &Topology,
    workers: usize,
    notice: &Notice,
) -> io::Result<(Vec<LogQueue>, LogThread)> {
    start(File::create(path)?, path, topology, workers, notice)
}

fn start(
    file: impl Write + Send + 'static,
    path: &Path,
    topology: &Topology,
    workers: usize,
    notice: &Notice,
) -> io::Result<(Vec<LogQueue>, LogThread)> {
    let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let start_ns = u64::try_from(start.as_nanos()).unwrap_or(u64::MAX);
    let mut writer = Writer::new(BufWriter::new(file), topology, start_ns)?;
    writer.flush()?;
    let (records, waiting) = channel();
    let status = Arc::new(LogStatus::new(path));
    let (own, notice) = (Arc::clone(&status), notice.clone());
    let write = move || {
        if let Err(error) = write(writer, &waiting, workers, &own) {
            notice.send(&format!("packet log {}: {error}; the file ends there", own.path.display()));
            let _ = own.failure.set(error.to_string());
        }
    };
    let thread = std::thread::Builder::new().name("fastpath-pktlog".to_owned()).spawn(write)?;
    let queue = |worker| LogQueue {
        worker,
        records: records.clone(),
        batch: Vec::new(),
        status: Arc::clone(&status),
    };
    Ok(((0..workers).map(queue).collect(), LogThread { thread, status }))
}

impl LogThread {
    /// Waits until the file is complete. The error says what is missing from it, if that has not
    /// been reported yet.
    pub(crate) fn finish(self) -> Result<(), String> {
        let LogThread { thread, status } = self;
        let path = status.path.display();
        if thread.join().is_err() {
            let error = "internal error: the writer panicked; please report it";
            let _ = status.failure.set(error.to_owned());
            return Err(format!("packet log {path}: {error}"));
        }
        match status.lost.load(Ordering::Relaxed) {
            lost if lost > 0 && status.failure.get().is_none() => {
                let unread = status.unread.load(Ordering::Relaxed);
                let why = match (unread, lost - unread) {
                    (0, _) => "the disk was too slow".to_owned(),
                    (_, 0) => "the kernel passed more packets than could be recorded".to_owned(),
                    (unread, _) => {
                        format!("the disk was too slow, and {unread} could not be recorded in the kernel")
                    }
                };
                Err(format!("packet log {path}: {lost} entries are missing: {why}"))
            }
            _ => Ok(()),
        }
    }
}

fn write<W: Write>(
    mut writer: Writer<BufWriter<W>>,
    waiting: &Receiver<(usize, LogRecord)>,
    workers: usize,
    status: &LogStatus,
) -> io::Result<()> {
    let mut merge = LogMerge::new(workers);
    let mut unwritten_since: Option<Instant> = None;
    loop {
        let received = match unwritten_since {
            None => waiting.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(since) => waiting.recv_timeout(FLUSH_INTERVAL.saturating_sub(since.elapsed())),
        };
        match received {
            Ok((worker, LogRecord::Rearranged(topology))) => {
                if merge.rearranged(worker) {
                    put(&mut writer, merge.take_all(), status)?;
                    writer.rearrange(&topology)?;
                    merge.follow();
                }
            }
            Ok((worker, LogRecord::Entries(entries))) => {
                status.waiting.fetch_sub(entries.len() as u64, Ordering::Relaxed);
                merge.add(worker, entries);
                put(&mut writer, merge.take(), status)?;
                unwritten_since.get_or_insert_with(Instant::now);
            }
            Err(RecvTimeoutError::Timeout) => {
                put(&mut writer, merge.take(), status)?;
                writer.flush()?;
                unwritten_since = merge.has_entries().then(Instant::now);
            }
            Err(RecvTimeoutError::Disconnected) => {
                put(&mut writer, merge.take_all(), status)?;
                return writer.finish().map(drop);
            }
        }
    }
}

/// Writes entries, and counts them.
fn put<W: Write>(writer: &mut Writer<W>, entries: Vec<LoggedFrame>, status: &LogStatus) -> io::Result<()> {
    for LoggedFrame { entry, len, bytes } in &entries {
        writer.write(entry, &bytes[..*len])?;
    }
    status.written.fetch_add(entries.len() as u64, Ordering::Relaxed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_net::packet_log::{FrameNumber, PacketOutcome};
    use fastpath_net::{Location, PipeId, Reason};
    use fastpath_spec::{LinkId, NodeKind};

    #[test]
    fn a_full_queue_counts_what_it_cannot_take() {
        let (records, waiting) = channel();
        let status = Arc::new(LogStatus::new(Path::new("x")));
        let mut queue = LogQueue { worker: 0, records, batch: Vec::new(), status: Arc::clone(&status) };
        let take = |queue: &mut LogQueue, count: u64| {
            (0..count).for_each(|number| queue.take(entry(number), &[0; 60]));
        };
        take(&mut queue, WAITING_MAX + 2);
        queue.flush(Time::ZERO, false);
        assert_eq!(status.report().missing, 0, "the last two are young");
        // A change comes between the entries before it and those after it, whatever is lost.
        queue.rearranged(&pair());
        assert_eq!(status.report().missing, 2);
        status.waiting.store(0, Ordering::Relaxed);
        take(&mut queue, 1);
        drop(queue);
        let kinds: Vec<bool> =
            waiting.try_iter().map(|record| matches!(record, (_, LogRecord::Rearranged(_)))).collect();
        assert_eq!(kinds.iter().position(|is_change| *is_change), Some(kinds.len() - 2));
        assert_eq!(status.report().missing, 2);
    }

    #[test]
    fn everything_is_in_the_file_when_it_is_finished() {
        let mut topology = Topology::default();
        let [a, b] = ["a", "b"].map(|name| topology.add_node(name, NodeKind::host()));
        topology.connect("a-b", a, b, Default::default());
        let path = std::env::temp_dir().join(format!("fastpath-ledger-{}.pcapng", std::process::id()));
        let (queues, log_thread) = open(&path, &topology, 1, &Notice::none()).unwrap();
        let mut queue = queues.into_iter().next().unwrap();
        let location = Location::Pipe(PipeId { link: LinkId(0), index: 1 });
        let outcome = PacketOutcome::Refused(Reason::NoRoute);
        let (at, dequeued) = (Time::ZERO, None);
        for frame in (1..=100).map(FrameNumber::Entered) {
            queue.take(LogEntry { location, frame, arrived: at, dequeued, at, outcome, len: 60 }, &[0; 60]);
        }
        drop(queue);
        assert_eq!(log_thread.finish(), Ok(()));
        let file = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut reader = fastpath_wire::pcap::CaptureReader::new(&file[..]).unwrap();
        let count =
            std::iter::from_fn(|| reader.read_packet().unwrap().map(|packet| packet.interface)).count();
        assert_eq!(count, 100);
    }

    fn pair() -> Topology {
        let mut topology = Topology::default();
        let [a, b] = ["a", "b"].map(|name| topology.add_node(name, NodeKind::host()));
        topology.connect("a-b", a, b, Default::default());
        topology
    }

    fn entry(frame: u64) -> LogEntry {
        let frame = FrameNumber::Entered(frame);
        let location = Location::Pipe(PipeId { link: LinkId(0), index: 1 });
        let outcome = PacketOutcome::Refused(Reason::NoRoute);
        LogEntry { location, frame, arrived: Time::ZERO, dequeued: None, at: Time::ZERO, outcome, len: 60 }
    }

    #[test]
    fn an_entry_is_in_the_file_while_the_run_goes_on() {
        let path = std::env::temp_dir().join(format!("fastpath-quiet-log-{}.pcapng", std::process::id()));
        let (queues, log_thread) = open(&path, &pair(), 1, &Notice::none()).unwrap();
        let mut queue = queues.into_iter().next().unwrap();
        let packets = || {
            let file = std::fs::read(&path).unwrap();
            let mut reader = fastpath_wire::pcap::CaptureReader::new(&file[..]).unwrap();
            std::iter::from_fn(|| reader.read_packet().unwrap().map(|packet| packet.interface)).count()
        };
        assert_eq!(packets(), 0, "the interfaces are there from the start");
        queue.take(entry(1), &[0; 60]);
        queue.flush(Time::ZERO, true);
        let start = Instant::now();
        while packets() < 1 && start.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        assert_eq!(packets(), 1);
        drop(queue);
        log_thread.finish().unwrap();
        std::fs::remove_file(&path).unwrap();
    }

    /// A disk with room for this many bytes.
    struct Disk(usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_in_the_report() {
        let said = Arc::new(std::sync::Mutex::new(Vec::new()));
        let copy = Arc::clone(&said);
        let notice = Notice::new(move |text| copy.lock().unwrap().push(text.to_owned()));
        let (queues, log_thread) = start(Disk(4000), Path::new("x"), &pair(), 1, &notice).unwrap();
        let mut queue = queues.into_iter().next().unwrap();
        (0..100).for_each(|frame| queue.take(entry(frame), &[0; 60]));
        drop(queue);
        let status = Arc::clone(&log_thread.status);
        assert_eq!(log_thread.finish(), Ok(()), "the failure is reported when it happens");
        assert!(status.report().failure.is_some() && !status.report().is_complete(), "{status:?}");
        assert!(said.lock().unwrap().concat().contains("the file ends there"));
    }
}
