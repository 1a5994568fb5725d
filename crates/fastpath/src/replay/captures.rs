//! Several captures read as one stream of packets, ordered by time. Packets with equal times keep
//! the order in which the captures were given.
//!
//! One packet per capture is in memory. A capture that is damaged ends at the damage: its complete
//! packets are used, and the error is kept for the end of the run.

use crate::error::{Error, Result};
use fastpath_wire::pcap::CaptureReader;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Bytes of the captures read so far, and in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BytesRead {
    /// Bytes read so far.
    pub done: u64,
    /// Size of all captures together.
    pub total: u64,
}

/// The captures of a run, merged by time.
pub(crate) struct Captures {
    captures: Vec<Capture>,
    problems: Vec<Error>,
    done: Rc<Cell<u64>>,
    total: u64,
}

/// One packet with its time.
pub(crate) struct CapturedPacket {
    /// Which capture it comes from, in the order in which the captures were given.
    pub(crate) capture: usize,
    /// Its number in the capture, from 1.
    pub(crate) number: u64,
    /// Nanoseconds since 1970.
    pub(crate) ns: u64,
    /// Bytes on the wire, at least `data.len()`.
    pub(crate) wire_len: usize,
    /// The captured bytes.
    pub(crate) data: Vec<u8>,
}

struct Capture {
    path: PathBuf,
    reader: CaptureReader<CountedFile>,
    next: Option<CapturedPacket>,
    /// Time of the previous packet. Packets without a time of their own take it.
    ns: u64,
    /// The packets read so far.
    number: u64,
    /// How many packets no frame was made of, by their link type.
    left_out: BTreeMap<u16, u64>,
}

/// A file that adds the bytes read from it to a counter.
struct CountedFile {
    file: File,
    read: Rc<Cell<u64>>,
}

impl Captures {
    /// Opens the captures and reads the first packet of each.
    pub(crate) fn open<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Result<Captures> {
        let done = Rc::new(Cell::new(0));
        let mut opened = Captures { captures: Vec::new(), problems: Vec::new(), done, total: 0 };
        for path in paths {
            let file = File::open(path).map_err(Error::file(path))?;
            opened.total += file.metadata().map_err(Error::file(path))?.len();
            let file = CountedFile { file, read: Rc::clone(&opened.done) };
            let reader = CaptureReader::new(file)
                .map_err(|source| Error::Capture { path: path.to_owned(), source })?;
            opened.captures.push(Capture {
                path: path.to_owned(),
                reader,
                next: None,
                ns: 0,
                number: 0,
                left_out: BTreeMap::new(),
            });
        }
        for index in 0..opened.captures.len() {
            opened.refill(index, Vec::new());
        }
        Ok(opened)
    }

    /// Returns the number of captures.
    pub(crate) fn count(&self) -> usize {
        self.captures.len()
    }

    /// The time of the next packet. `None` without packets.
    pub(crate) fn start_ns(&self) -> Option<u64> {
        self.captures.iter().filter_map(|capture| capture.next.as_ref()).map(|packet| packet.ns).min()
    }

    /// The next packet. `spent` is a packet whose memory may be used again.
    pub(crate) fn next(&mut self, spent: Option<CapturedPacket>) -> Option<CapturedPacket> {
        let key = |index: &usize| self.captures[*index].next.as_ref().map_or(u64::MAX, |packet| packet.ns);
        let waiting = (0..self.captures.len()).filter(|index| self.captures[*index].next.is_some());
        let first = waiting.min_by_key(key)?;
        let packet = self.captures[first].next.take();
        self.refill(first, spent.map_or_else(Vec::new, |spent| spent.data));
        packet
    }

    /// How much of the captures has been read.
    pub(crate) fn bytes_read(&self) -> BytesRead {
        BytesRead { done: self.done.get(), total: self.total }
    }

    /// The errors of captures that ended early.
    pub(crate) fn into_problems(self) -> Vec<Error> {
        self.problems
    }

    fn refill(&mut self, index: usize, memory: Vec<u8>) {
        let capture = &mut self.captures[index];
        match capture.read(index, memory) {
            Ok(next) => capture.next = next,
            Err(error) => self.problems.push(error),
        }
    }
}

impl Capture {
    /// Names the packets that no frame was made of.
    ///
    /// # Errors
    /// There are some.
    fn left_out(&self) -> Result<()> {
        if self.left_out.is_empty() {
            return Ok(());
        }
        let kind = |(link_type, count): (&u16, &u64)| format!("{count} of link type {link_type}");
        let kinds: Vec<String> = self.left_out.iter().map(kind).collect();
        Err(Error::Argument(format!(
            "{}: packets are left out: {}; they are neither Ethernet frames nor IP packets",
            self.path.display(),
            kinds.join(", ")
        )))
    }

    fn read(&mut self, capture: usize, mut memory: Vec<u8>) -> Result<Option<CapturedPacket>> {
        loop {
            let read = self.reader.read_packet();
            let read = read.map_err(|source| Error::Capture { path: self.path.clone(), source })?;
            let Some(packet) = read else { return self.left_out().map(|()| None) };
            self.number += 1;
            self.ns = packet.ns.unwrap_or(self.ns);
            if let Some(wire_len) = packet.ethernet(&mut memory) {
                let (ns, number) = (self.ns, self.number);
                return Ok(Some(CapturedPacket { capture, number, ns, wire_len, data: memory }));
            }
            *self.left_out.entry(packet.link_type).or_default() += 1;
        }
    }
}

impl Read for CountedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read.set(self.read.get() + count as u64);
        Ok(count)
    }
}
