//! The per-packet log in real time. The worker records entries, another thread writes them, and a
//! bounded queue connects both. When the disk is too slow the queue fills, and entries without room
//! are counted. The network never waits.

use fastpath_net::packet_log::{LogEntry, SNAP_LEN, Sink, Writer};
use fastpath_spec::Topology;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

/// Entries that may wait for the disk: about 10 MiB, or 16 ms at two million entries per second.
const WAITING_MAX: usize = 1 << 15;

/// The worker's end of the queue.
#[derive(Debug)]
pub(crate) struct LogQueue {
    records: SyncSender<LogRecord>,
    lost: Arc<AtomicU64>,
}

/// An entry with the first bytes of its frame.
struct LogRecord {
    entry: LogEntry,
    len: usize,
    bytes: [u8; SNAP_LEN],
}

impl Sink for LogQueue {
    fn take(&mut self, entry: LogEntry, bytes: &[u8]) {
        let mut record = LogRecord { entry, len: bytes.len(), bytes: [0; SNAP_LEN] };
        record.bytes[..bytes.len()].copy_from_slice(bytes);
        if self.records.try_send(record).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The thread that writes. It ends when the [`LogQueue`] is dropped and everything is in the file.
#[derive(Debug)]
pub(crate) struct LogThread {
    thread: JoinHandle<io::Result<()>>,
    path: PathBuf,
    lost: Arc<AtomicU64>,
}

/// Creates the log of `topology` at `path`. Its time zero is now.
pub(crate) fn open(path: &Path, topology: &Topology) -> io::Result<(LogQueue, LogThread)> {
    let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let start_ns = u64::try_from(start.as_nanos()).unwrap_or(u64::MAX);
    let writer = Writer::new(BufWriter::new(File::create(path)?), topology, start_ns)?;
    let (records, waiting) = sync_channel(WAITING_MAX);
    let lost = Arc::new(AtomicU64::new(0));
    let write = move || write(writer, &waiting);
    let thread = std::thread::Builder::new().name("fastpath-pktlog".to_owned()).spawn(write)?;
    Ok((LogQueue { records, lost: Arc::clone(&lost) }, LogThread { thread, path: path.to_owned(), lost }))
}

impl LogThread {
    /// Waits until the file is complete. The error says what is missing from it.
    pub(crate) fn finish(self) -> Result<(), String> {
        let path = self.path.display();
        match self.thread.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(format!("packet log {path}: {error}; the file ends there")),
            Err(_) => {
                return Err(format!(
                    "packet log {path}: internal error: the writer panicked; please report it"
                ));
            }
        }
        match self.lost.load(Ordering::Relaxed) {
            0 => Ok(()),
            lost => Err(format!("packet log {path}: {lost} entries are missing: the disk was too slow")),
        }
    }
}

fn write(mut writer: Writer<BufWriter<File>>, waiting: &Receiver<LogRecord>) -> io::Result<()> {
    for LogRecord { entry, len, bytes } in waiting {
        writer.write(&entry, &bytes[..len])?;
    }
    writer.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_net::packet_log::PacketOutcome;
    use fastpath_net::{Location, PipeId, Reason};
    use fastpath_spec::{LinkId, NodeKind};
    use fastpath_units::Time;

    #[test]
    fn a_full_queue_counts_what_it_cannot_take() {
        let (records, waiting) = sync_channel(2);
        let lost = Arc::new(AtomicU64::new(0));
        let mut queue = LogQueue { records, lost: Arc::clone(&lost) };
        let location = Location::Pipe(PipeId { link: LinkId(0), index: 0 });
        let outcome = PacketOutcome::Refused(Reason::NoRoute);
        let (at, dequeued) = (Time::ZERO, None);
        let entry = LogEntry { location, frame: 1, arrived: at, dequeued, at, outcome, len: 60 };
        (0..5).for_each(|_| queue.take(entry, &[0; 60]));
        assert_eq!((waiting.try_iter().count(), lost.load(Ordering::Relaxed)), (2, 3));
    }

    #[test]
    fn everything_is_in_the_file_when_it_is_finished() {
        let mut topology = Topology::default();
        let [a, b] = ["a", "b"].map(|name| topology.add_node(name, NodeKind::Host { port: None }));
        topology.connect("a-b", a, b, Default::default());
        let path = std::env::temp_dir().join(format!("fastpath-ledger-{}.pcapng", std::process::id()));
        let (mut queue, log_thread) = open(&path, &topology).unwrap();
        let location = Location::Pipe(PipeId { link: LinkId(0), index: 1 });
        let outcome = PacketOutcome::Refused(Reason::NoRoute);
        let (at, dequeued) = (Time::ZERO, None);
        for frame in 1..=100 {
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
}
