//! Several captures read as one, by time; packets of the same time in the order of the command
//! line.
//!
//! One packet per capture is in memory. A capture that breaks ends there, with its complete packets
//! given; what was wrong is kept for the end of the run.

use anyhow::{Context, bail};
use fastpath_wire::pcap::{LINKTYPE_ETHERNET, Packet, Reader};
use indicatif::{ProgressBar, ProgressBarIter};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The captures of a replay.
pub(crate) struct Merge {
    captures: Vec<Capture>,
    problems: Vec<anyhow::Error>,
    progress: ProgressBar,
}

/// One packet, owned, with its place in time.
pub(crate) struct Entry {
    /// Which capture it is from, in the order of the command line.
    pub(crate) capture: usize,
    /// Nanoseconds since 1970.
    pub(crate) ns: u64,
    /// Bytes on the wire, at least `data.len()`.
    pub(crate) wire_len: usize,
    pub(crate) data: Vec<u8>,
}

struct Capture {
    path: PathBuf,
    reader: Reader<ProgressBarIter<File>>,
    next: Option<Entry>,
    /// Time of the packet before, for packets that have none of their own.
    ns: u64,
}

impl Merge {
    /// Opens the captures and reads the first packet of each.
    pub(crate) fn open<'p>(paths: impl IntoIterator<Item = &'p Path>) -> anyhow::Result<Merge> {
        let progress = crate::progress::bar(0, "{bytes} of {total_bytes}, {eta} left");
        let captures = paths.into_iter().map(|path| Capture::open(path, &progress));
        let captures = captures.collect::<anyhow::Result<_>>()?;
        let mut merge = Merge { captures, problems: Vec::new(), progress };
        for index in 0..merge.captures.len() {
            merge.refill(index, Vec::new());
        }
        Ok(merge)
    }

    /// The earliest time, before anything is taken; `None` when there are no packets.
    pub(crate) fn start_ns(&self) -> Option<u64> {
        self.captures.iter().filter_map(|capture| capture.next.as_ref()).map(|entry| entry.ns).min()
    }

    /// The next packet. `spent` is an entry whose memory may be used again.
    pub(crate) fn next(&mut self, spent: Option<Entry>) -> Option<Entry> {
        let key = |index: &usize| self.captures[*index].next.as_ref().map_or(u64::MAX, |entry| entry.ns);
        let waiting = (0..self.captures.len()).filter(|index| self.captures[*index].next.is_some());
        let first = waiting.min_by_key(key)?;
        let entry = self.captures[first].next.take();
        self.refill(first, spent.map_or_else(Vec::new, |spent| spent.data));
        entry
    }

    /// What was wrong with captures that ended early.
    pub(crate) fn into_problems(self) -> Vec<anyhow::Error> {
        self.progress.finish_and_clear();
        self.problems
    }

    fn refill(&mut self, index: usize, memory: Vec<u8>) {
        let capture = &mut self.captures[index];
        match capture.read(index, memory) {
            Ok(next) => capture.next = next,
            Err(error) => self.problems.push(error.context(capture.path.display().to_string())),
        }
    }
}

impl Capture {
    fn open(path: &Path, progress: &ProgressBar) -> anyhow::Result<Capture> {
        let open = || -> anyhow::Result<Capture> {
            let file = File::open(path)?;
            progress.inc_length(file.metadata()?.len());
            let reader = Reader::new(progress.wrap_read(file))?;
            Ok(Capture { path: path.to_owned(), reader, next: None, ns: 0 })
        };
        open().with_context(|| path.display().to_string())
    }

    fn read(&mut self, capture: usize, mut memory: Vec<u8>) -> anyhow::Result<Option<Entry>> {
        let Some(Packet { ns, orig_len, link_type, data, .. }) = self.reader.read_packet()? else {
            return Ok(None);
        };
        if link_type != LINKTYPE_ETHERNET {
            bail!(
                "link type {link_type} is not Ethernet ({LINKTYPE_ETHERNET}); capture on an Ethernet interface"
            );
        }
        self.ns = ns.unwrap_or(self.ns);
        memory.clear();
        memory.extend_from_slice(data);
        Ok(Some(Entry { capture, ns: self.ns, wire_len: orig_len as usize, data: memory }))
    }
}
