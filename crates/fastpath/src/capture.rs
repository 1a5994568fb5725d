//! Captures links of a running network into a pcapng file: the client of the engine's
//! `GET /capture`.

use crate::{Error, Result};
use fastpath_engine::control::{CallError, CaptureStream};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long the engine has to send the rest of a capture.
const REST_MAX: Duration = Duration::from_secs(5);

/// Which frames to capture.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CaptureOptions {
    /// The links; all links if empty.
    pub links: Vec<String>,
    /// Only directions that start at this node.
    pub from: Option<String>,
    /// Also frames that a link drops.
    pub drops: bool,
    /// The most bytes of each frame; by default, and with 0, all.
    pub snap: Option<u32>,
    /// End after this number of frames.
    pub frames_max: Option<u64>,
}

/// The end of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Captured {
    /// Frames in the file.
    pub frames: u64,
    /// Frames that are missing, because the output was too slow.
    pub missed: u64,
    /// Whether it ended because the network did.
    pub network_ended: bool,
}

impl CaptureOptions {
    fn query(&self) -> Vec<(&'static str, String)> {
        let links = self.links.iter().map(|link| ("link", link.clone()));
        let from = self.from.iter().map(|from| ("from", from.clone()));
        let snap = self.snap.iter().map(|snap| ("snap", snap.to_string()));
        let drops = self.drops.then(|| ("drops", "true".to_owned()));
        links.chain(from).chain(snap).chain(drops).collect()
    }
}

/// Captures frames of the network whose control socket is `socket` until `stop` is set, the network
/// ends, or enough frames have come. The file has whole blocks at any time. A file that exists is
/// replaced once the engine has accepted the request.
///
/// # Errors
/// [`Error::Argument`] if the engine refuses, [`Error::File`] if the output cannot be written. The
/// network goes on in any case.
pub fn capture_to_file(
    socket: &Path,
    options: &CaptureOptions,
    path: &Path,
    stop: &AtomicBool,
) -> Result<Captured> {
    let stream = start(socket, options)?;
    let mut file = File::create(path).map_err(Error::file(path))?;
    let mut written = Written { out: &mut file, bytes: 0 };
    let result = copy(stream, options, &mut written, stop);
    let bytes = written.bytes;
    result.map_err(|(error, frames)| {
        // The part of a block that was written is removed. A pipe has no length.
        let _ = file.set_len(bytes);
        Error::file(path)(ended_early(&error, frames))
    })
}

/// As [`capture_to_file`], into any output.
///
/// # Errors
/// As for [`capture_to_file`].
pub fn capture_to(
    socket: &Path,
    options: &CaptureOptions,
    out: &mut dyn Write,
    stop: &AtomicBool,
) -> Result<Captured> {
    let stream = start(socket, options)?;
    let result = copy(stream, options, &mut Written { out, bytes: 0 }, stop);
    result.map_err(|(error, frames)| Error::file(Path::new("output"))(ended_early(&error, frames)))
}

fn start(socket: &Path, options: &CaptureOptions) -> Result<CaptureStream> {
    CaptureStream::start(socket, &options.query())
        .map_err(|error: CallError| Error::argument(error.to_string()))
}

fn ended_early(error: &io::Error, frames: u64) -> io::Error {
    let text = format!("{error}: the capture ends after {frames} frames, the network goes on");
    io::Error::new(error.kind(), text)
}

/// An output, with the bytes of the blocks that it has taken.
struct Written<'a> {
    out: &'a mut dyn Write,
    bytes: u64,
}

/// Copies blocks. The error has the number of frames written before it.
fn copy(
    mut stream: CaptureStream,
    options: &CaptureOptions,
    written: &mut Written<'_>,
    stop: &AtomicBool,
) -> Result<Captured, (io::Error, u64)> {
    let mut captured = Captured::default();
    let (mut part, mut blocks) = (vec![0; 1 << 16], Blocks::default());
    let mut ended_at: Option<Instant> = None;
    let frames_max = options.frames_max.unwrap_or(u64::MAX);
    loop {
        let is_enough = captured.frames >= frames_max;
        if ended_at.is_none() && (is_enough || stop.load(Ordering::Relaxed)) {
            ended_at = Some(Instant::now());
            // A network that has ended has sent everything.
            let _ = stream.end();
        }
        match stream.read(&mut part) {
            Ok(0) => {
                captured.network_ended = ended_at.is_none();
                break;
            }
            Ok(count) => blocks.waiting.extend_from_slice(&part[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if ended_at.is_some_and(|at| at.elapsed() > REST_MAX) {
                    break;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The process of the engine has ended.
            Err(_) => {
                captured.network_ended = ended_at.is_none();
                break;
            }
        }
        let whole = blocks.take(frames_max);
        let result = written.out.write_all(&whole).and_then(|()| written.out.flush());
        result.map_err(|error| (error, captured.frames))?;
        written.bytes += whole.len() as u64;
        captured.frames = blocks.frames;
    }
    captured.missed = blocks.missed.values().sum();
    Ok(captured)
}

/// Copies the packets of links from a capture of the engine to a new file; all of them if no links
/// are named.
///
/// # Errors
/// [`Error::Argument`] for a link of which the capture has no direction; [`Error::File`].
pub fn select(from: &Path, links: &[String], to: &Path) -> Result<()> {
    let input = io::BufReader::new(File::open(from).map_err(Error::file(from))?);
    let mut output = io::BufWriter::new(File::create(to).map_err(Error::file(to))?);
    let mut missing: BTreeSet<&String> = links.iter().collect();
    copy_selected(input, &mut output, |name| {
        let link = name.rsplit_once('/').map_or(name, |(link, _)| link);
        missing.retain(|missing| *missing != link);
        links.is_empty() || links.iter().any(|wanted| wanted == link)
    })
    .map_err(Error::file(from))?;
    output.flush().map_err(Error::file(to))?;
    match missing.first() {
        Some(link) => {
            // A file without it is not what was asked for.
            std::fs::remove_file(to).map_err(Error::file(to))?;
            Err(Error::Argument(format!("{}: no link {link}", from.display())))
        }
        None => Ok(()),
    }
}

/// Copies a capture without the interfaces whose names are not wanted.
fn copy_selected(
    mut input: impl Read,
    output: &mut impl Write,
    mut is_wanted: impl FnMut(&str) -> bool,
) -> io::Result<()> {
    let mut numbers: Vec<Option<u32>> = Vec::new();
    let mut wanted = 0;
    let mut block = vec![0; 8];
    loop {
        match input.read_exact(&mut block[..8]) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let (kind, len) = (word(&block, 0).unwrap_or_default(), word(&block, 4).unwrap_or_default());
        block.resize((len as usize).max(12), 0);
        input.read_exact(&mut block[8..])?;
        match kind {
            Block::INTERFACE => {
                let number = is_wanted(&interface_name(&block)).then_some(wanted);
                wanted += u32::from(number.is_some());
                numbers.push(number);
                if number.is_none() {
                    continue;
                }
            }
            Block::PACKET | Block::STATISTICS => {
                let number = word(&block, 8).and_then(|number| *numbers.get(number as usize)?);
                let Some(number) = number else { continue };
                block[8..12].copy_from_slice(&number.to_le_bytes());
            }
            _ => {}
        }
        output.write_all(&block)?;
    }
}

/// Returns the name of a description of an interface (option if_name).
fn interface_name(block: &[u8]) -> String {
    let mut at = 16;
    while let Some(head) = word(block, at) {
        let (code, len) = (head & 0xffff, (head >> 16) as usize);
        if code == 2 {
            return String::from_utf8_lossy(block.get(at + 4..at + 4 + len).unwrap_or_default()).into_owned();
        }
        if code == 0 {
            break;
        }
        at += 4 + len.next_multiple_of(4);
    }
    String::new()
}

/// The blocks of a capture.
#[derive(Default)]
struct Blocks {
    /// Bytes that have come and were not taken: at the end a part of a block.
    waiting: Vec<u8>,
    /// Frames that were taken.
    frames: u64,
    /// By interface: the frames that the capture lacks.
    missed: BTreeMap<u32, u64>,
}

impl Blocks {
    /// Takes the whole blocks, without frames beyond `frames_max`.
    fn take(&mut self, frames_max: u64) -> Vec<u8> {
        let mut whole = Vec::new();
        let mut taken = 0;
        while let Some(block) = Block::first(&self.waiting[taken..]) {
            let bytes = &self.waiting[taken..taken + block.len];
            match block.kind {
                Block::PACKET if self.frames >= frames_max => {}
                Block::PACKET => {
                    self.frames += 1;
                    whole.extend_from_slice(bytes);
                }
                kind => {
                    whole.extend_from_slice(bytes);
                    if kind == Block::STATISTICS {
                        let (interface, count) = statistics(bytes);
                        self.missed.insert(interface, count);
                    }
                }
            }
            taken += block.len;
        }
        self.waiting.drain(..taken);
        whole
    }
}

/// A block of pcapng in the byte order of the engine's answer.
struct Block {
    kind: u32,
    len: usize,
}

impl Block {
    const INTERFACE: u32 = 1;
    const STATISTICS: u32 = 5;
    const PACKET: u32 = 6;

    /// Returns the block at the start of `bytes` if all of it is there.
    fn first(bytes: &[u8]) -> Option<Block> {
        let len = word(bytes, 4)? as usize;
        (len >= 12 && len <= bytes.len()).then_some(Block { kind: word(bytes, 0)?, len })
    }
}

/// Returns the interface of a block of statistics, and the frames that are missing there.
fn statistics(block: &[u8]) -> (u32, u64) {
    // The fields of `NgWriter::write_statistics`: the second option is isb_ifdrop.
    let [interface, low, high] = [8, 36, 40].map(|at| word(block, at).unwrap_or_default());
    (interface, u64::from(high) << 32 | u64::from(low))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_wire::pcap::{Interface, LINKTYPE_ETHERNET, NgWriter};

    #[test]
    fn the_packets_of_a_link_are_selected() {
        let mut writer = NgWriter::new(Vec::new(), "x").unwrap();
        for name in ["ab/a_to_b", "ab/b_to_a", "c/d/c_to_d"] {
            let description = "";
            writer.add_interface(&Interface { link_type: LINKTYPE_ETHERNET, name, description }).unwrap();
        }
        for (interface, byte) in [(0, 10), (2, 12), (1, 11), (2, 13)] {
            writer.write_packet(interface, 5, 1, &[byte], "").unwrap();
        }
        writer.write_statistics(2, 5, 2, 0).unwrap();
        let whole = writer.finish().unwrap();
        for (link, bytes, interfaces) in [("c/d", vec![12, 13], 1), ("ab", vec![10, 11], 2)] {
            let mut part = Vec::new();
            let is_wanted = |name: &str| name.rsplit_once('/').is_some_and(|(name, _)| name == link);
            copy_selected(&whole[..], &mut part, is_wanted).unwrap();
            let mut reader = fastpath_wire::pcap::CaptureReader::new(&part[..]).unwrap();
            let mut found = Vec::new();
            while let Some(packet) = reader.read_packet().unwrap() {
                assert!((packet.interface as usize) < interfaces);
                found.extend_from_slice(packet.data);
            }
            assert_eq!(found, bytes, "{link}");
        }
    }

    #[test]
    fn blocks_and_the_missing_frames_of_statistics_are_read() {
        let mut writer = NgWriter::new(Vec::new(), "x").unwrap();
        let interface = Interface { link_type: LINKTYPE_ETHERNET, name: "a", description: "" };
        for _ in 0..2 {
            writer.add_interface(&interface).unwrap();
        }
        writer.output_mut().clear();
        writer.write_packet(1, 5, 3, &[1, 2, 3], "late").unwrap();
        let packet = writer.output_mut().len();
        writer.write_statistics(1, 5, 1 << 40, 7 << 33).unwrap();
        let bytes = writer.finish().unwrap();
        let first = Block::first(&bytes).unwrap();
        assert_eq!((first.kind, first.len), (Block::PACKET, packet));
        assert!(Block::first(&bytes[..packet - 1]).is_none() && Block::first(&bytes[..3]).is_none());
        let second = Block::first(&bytes[packet..]).unwrap();
        assert_eq!((second.kind, second.len), (Block::STATISTICS, bytes.len() - packet));
        assert_eq!(statistics(&bytes[packet..]), (1, 7 << 33));
    }
}
