//! A port with capture files at its far end. The packets of one arrive at the times at which they
//! were captured, counted from its first packet as the start of the run. Sent packets are written
//! to another.
//!
//! It runs in real time, together with other ports. In virtual time `fastpath replay` is exact.

use super::{BURST, Burst, OpenError, Port, PortCounters, PortError};
use fastpath_net::{Frame, FramePool};
use fastpath_units::{Duration, Time};
use fastpath_wire::pcap::{CaptureReader, LINKTYPE_ETHERNET, Packet, ReadError, Writer};
use std::collections::VecDeque;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::SystemTime;

/// A capture to play, a capture to write, or both.
pub struct Pcap {
    name: String,
    input: Option<Input>,
    output: Option<Writer<BufWriter<File>>>,
    /// Nanoseconds since 1970 at the start of the run, for the packets written.
    start_ns: u64,
    counters: PortCounters,
}

/// A capture being played.
struct Input {
    reader: CaptureReader<File>,
    /// The arrival of the next packet, its length, and its bytes, truncated where the capture
    /// truncated them.
    at: Time,
    len: usize,
    bytes: Vec<u8>,
}

impl Pcap {
    /// Plays the capture at `input` (pcap or pcapng, Ethernet) and writes sent frames to `output`
    /// (pcap, nanoseconds). Without an output, sent frames are discarded and counted as sent.
    pub fn open(name: &str, input: Option<&Path>, output: Option<&Path>) -> Result<Pcap, OpenError> {
        let system = |operation| {
            let name = name.to_owned();
            move |source| OpenError::System { name, operation, source }
        };
        let mut start_ns = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        let mut first = None;
        if let Some(path) = input {
            let file = File::open(path).map_err(system("opening the capture"))?;
            let failed = |source| OpenError::Capture { name: name.to_owned(), source };
            first = Input::start(CaptureReader::new(file).map_err(failed)?, &mut start_ns).map_err(failed)?;
        }
        let output = output.map(|path| Writer::new(BufWriter::new(File::create(path)?), LINKTYPE_ETHERNET));
        Ok(Pcap {
            name: name.to_owned(),
            input: first,
            output: output.transpose().map_err(system("creating the capture"))?,
            start_ns,
            counters: PortCounters::default(),
        })
    }
}

impl Input {
    /// Reads the first packet. Its time is the start of the run. Returns `None` if there is none.
    fn start(mut reader: CaptureReader<File>, start_ns: &mut u64) -> Result<Option<Input>, ReadError> {
        let mut bytes = Vec::new();
        let Some(packet) = reader.read_packet()? else { return Ok(None) };
        *start_ns = packet.ns.unwrap_or(*start_ns);
        let len = keep(&packet, &mut bytes);
        Ok(Some(Input { reader, at: Time::ZERO, len, bytes }))
    }

    /// Advances to the next packet. Returns false at the end. A packet without a time, or earlier
    /// than its predecessor, arrives with the predecessor.
    fn advance(&mut self, start_ns: u64) -> Result<bool, ReadError> {
        let Some(packet) = self.reader.read_packet()? else { return Ok(false) };
        if let Some(ns) = packet.ns {
            let since = std::time::Duration::from_nanos(ns.saturating_sub(start_ns));
            self.at = self.at.max(Time::ZERO.saturating_add(Duration::from(since)));
        }
        self.len = keep(&packet, &mut self.bytes);
        Ok(true)
    }
}

/// Keeps a packet's frame. Returns the length of its frame on the wire, or 0 if there is none.
fn keep(packet: &Packet<'_>, bytes: &mut Vec<u8>) -> usize {
    packet.ethernet(bytes).unwrap_or(0)
}

impl Port for Pcap {
    fn name(&self) -> &str {
        &self.name
    }

    fn rx_burst(&mut self, now: Time, pool: &mut FramePool, burst: &mut Burst) -> Result<(), PortError> {
        while let Some(input) = self.input.as_mut().filter(|input| input.at <= now && !burst.is_full()) {
            if input.len == 0 || input.len > fastpath_net::FRAME_MAX {
                self.counters.rx_malformed += 1;
            } else if let Some(mut frame) = pool.alloc(input.len) {
                // Bytes cut off by the snap length count on the wire. Their content is lost.
                let (kept, cut_off) = pool.bytes_mut(&mut frame).split_at_mut(input.bytes.len());
                kept.copy_from_slice(&input.bytes);
                cut_off.fill(0);
                self.counters.rx_frames += 1;
                self.counters.rx_bytes += input.len as u64;
                if let Err(frame) = burst.push(frame) {
                    pool.free(frame);
                }
            } else {
                self.counters.rx_no_memory += 1;
            }
            match input.advance(self.start_ns) {
                Ok(true) => {}
                Ok(false) => self.input = None,
                Err(source) => {
                    self.input = None;
                    return Err(PortError::Capture { name: self.name.clone(), source });
                }
            }
        }
        Ok(())
    }

    fn tx_burst(
        &mut self,
        now: Time,
        pool: &mut FramePool,
        frames: &mut VecDeque<Frame>,
    ) -> Result<(), PortError> {
        for _ in 0..BURST {
            let Some(frame) = frames.pop_front() else { break };
            let ns = self.start_ns.saturating_add(now.as_ns());
            let bytes = pool.bytes(&frame);
            let write = |out: &mut Writer<_>| out.write_packet(ns, bytes.len() as u32, bytes);
            let written = self.output.as_mut().map_or(Ok(()), write);
            self.counters.tx_frames += 1;
            self.counters.tx_bytes += frame.len() as u64;
            pool.free(frame);
            written.map_err(|source| PortError::System {
                name: self.name.clone(),
                operation: "writing the capture",
                source,
            })?;
        }
        Ok(())
    }

    fn next_at(&self) -> Option<Time> {
        self.input.as_ref().map(|input| input.at)
    }

    fn counters(&mut self) -> PortCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn path(test: &str) -> PathBuf {
        std::env::temp_dir().join(format!("fastpath-{test}-{}.pcap", std::process::id()))
    }

    /// Writes a capture of frames of 60 bytes at these nanoseconds, followed by `rest`.
    fn write(path: &Path, times: &[u64], rest: &[u8]) {
        use std::io::Write;
        let mut writer = Writer::new(Vec::new(), LINKTYPE_ETHERNET).unwrap();
        for (i, &ns) in times.iter().enumerate() {
            writer.write_packet(ns, 64, &[i as u8; 60]).unwrap();
        }
        let mut bytes = writer.finish().unwrap();
        bytes.write_all(rest).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    #[test]
    fn packets_arrive_at_their_times_and_leave_with_theirs() {
        let (input, output) = (path("in"), path("out"));
        let start = 1_700_000_000_000_000_000;
        write(&input, &[start, start + 1000, start + 500, start + 3000], &[]);
        let mut pool = FramePool::default();
        let mut port = Pcap::open("p", Some(&input), Some(&output)).unwrap();
        let (mut burst, mut sent) = (Burst::new(), VecDeque::new());
        let mut arrivals = Vec::new();
        while let Some(at) = port.next_at() {
            port.rx_burst(at, &mut pool, &mut burst).unwrap();
            for frame in burst.drain() {
                arrivals.push((at.as_ns(), pool.bytes(&frame)[0], frame.len()));
                sent.push_back(frame);
            }
            port.tx_burst(at, &mut pool, &mut sent).unwrap();
        }
        // The third is out of order in the capture, and arrives with the second.
        assert_eq!(arrivals, [(0, 0, 64), (1000, 1, 64), (1000, 2, 64), (3000, 3, 64)]);
        assert_eq!((port.counters().rx_frames, port.counters().tx_frames, pool.live()), (4, 4, 0));
        drop(port);
        let mut reader = CaptureReader::new(File::open(&output).unwrap()).unwrap();
        let mut times = Vec::new();
        while let Some(packet) = reader.read_packet().unwrap() {
            times.push(packet.ns.unwrap() - start);
        }
        assert_eq!(times, [0, 1000, 1000, 3000]);
        std::fs::remove_file(input).unwrap();
        std::fs::remove_file(output).unwrap();
    }

    #[test]
    fn a_truncated_capture_delivers_whole_packets_and_then_reports_the_place() {
        let input = path("cut");
        write(&input, &[5, 6], &[1, 2, 3]);
        let mut pool = FramePool::default();
        let mut port = Pcap::open("p", Some(&input), None).unwrap();
        let mut burst = Burst::new();
        let error = port.rx_burst(Time::from_ps(1_000_000), &mut pool, &mut burst).unwrap_err();
        assert_eq!(burst.len(), 2);
        assert!(error.to_string().starts_with("port p: file is cut in the middle of packet 3"), "{error}");
        assert_eq!(port.next_at(), None);
        std::fs::remove_file(input).unwrap();
    }

    #[test]
    fn a_file_that_is_not_a_capture_is_refused() {
        let input = path("text");
        std::fs::write(&input, "not a capture").unwrap();
        let error = Pcap::open("p", Some(&input), None).err().unwrap().to_string();
        assert!(error.starts_with("port p: not a pcap or pcapng file"), "{error}");
        std::fs::remove_file(&input).unwrap();
        let error = Pcap::open("p", Some(&input), None).err().unwrap().to_string();
        assert!(error.starts_with("port p: opening the capture"), "{error}");
    }
}
