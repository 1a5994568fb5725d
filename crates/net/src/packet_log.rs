//! The per-packet log: the fate of each packet on each link, as a pcapng file for Wireshark.
//!
//! ```text
//!  Network ─▶ PacketLog ─LogEntry─▶ Sink ─▶ Writer ─▶ pcapng
//! ```
//!
//! In virtual time the [`Sink`] is a [`Writer`]; in real time it is a bounded queue to one. The
//! file has an interface for each direction of a link and a comment for each packet.
//!
//! The log has one entry for each packet and link. Its time is the arrival at the end of the link,
//! or the drop. Its comment consists of `key=value` pairs; times are in seconds since the start of
//! the run, with picosecond resolution:
//!
//! ```text
//! frame=17 queued=1.000000000000 dequeued=1.001000000000 delivered=1.026000000000 marked
//! frame=18 arrived=1.000200000000 dropped=queue-full
//! ```
//!
//! A packet has the same `frame` number on all links: the first frame that enters the network is 1,
//! as the first of a capture is in Wireshark. A packet that is made inside the network (the copy of
//! a flooded one, a fragment, an answer of a router) has `made=N` instead, with numbers of their
//! own; so has a packet that was inside when the log began. A drop in a router or switch is an
//! entry on an interface for that node. The log has no cost unless a [`PacketLog`] observes the
//! network.

use crate::fate::Reason;
use crate::id::{EdgeId, Location, PipeId};
use crate::observer::{FrameTag, Observer, Passage};
use crate::pool::{Frame, FramePool};
use fastpath_link::{Alteration, Fate};
use fastpath_spec::{KernelForwarder, LinkId, NodeKind, Topology};
use fastpath_units::Time;
use fastpath_wire::pcap::{Interface, LINKTYPE_ETHERNET, NgWriter};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The maximum number of logged bytes of a frame: its headers and some payload. Each entry also has
/// the full length of its frame.
pub const SNAP_LEN: usize = 256;

/// The fate of one packet on one link or in one node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LogEntry {
    /// The pipe or node.
    pub location: Location,
    /// The number of the packet.
    pub frame: FrameNumber,
    /// The arrival time.
    pub arrived: Time,
    /// The time at which the packet left the queue, after its last byte was sent; `None` if it
    /// never left.
    pub dequeued: Option<Time>,
    /// The time at which the packet reached the end of the link or was dropped.
    pub at: Time,
    /// The fate of the packet at this location.
    pub outcome: PacketOutcome,
    /// The length of the frame in bytes.
    pub len: u32,
}

/// The number of a packet, from 1 in the order of appearance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameNumber {
    /// Among the frames that entered the network.
    Entered(u64),
    /// Among the packets made inside it.
    Made(u64),
}

/// The fate of a packet at one location.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PacketOutcome {
    /// The packet was queued and left with this fate.
    Left(Fate),
    /// The packet was not accepted.
    Refused(Reason),
}

/// A consumer of log entries.
pub trait Sink {
    /// Consumes an entry with the first bytes of its frame, at most [`SNAP_LEN`].
    fn take(&mut self, entry: LogEntry, bytes: &[u8]);
    /// Later entries have the numbers of this topology: see [`Writer::rearrange`].
    fn rearranged(&mut self, topology: &Topology);
    /// What was collected may be passed on: see [`Observer::flush`].
    fn flush(&mut self, _now: Time, _is_quiet: bool) {}
}

/// An [`Observer`] that creates log entries.
#[derive(Debug)]
pub struct PacketLog<S> {
    sink: S,
    /// The frames inside the network, by slot: number, and arrival time at the current link.
    inside: BTreeMap<u32, (FrameNumber, Time)>,
    numbers: Arc<FrameNumbers>,
}

/// The numbers of frames given out so far. In real time the parts of a network share them.
#[derive(Debug, Default)]
pub struct FrameNumbers {
    /// Frames that entered.
    entered: AtomicU64,
    /// Packets that were made inside the network.
    made: AtomicU64,
}

impl FrameNumbers {
    /// Numbers another frame that entered.
    pub fn next_entered(&self) -> FrameNumber {
        FrameNumber::Entered(self.entered.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Numbers another packet that was made inside.
    pub fn next_made(&self) -> FrameNumber {
        FrameNumber::Made(self.made.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl<S> PacketLog<S> {
    /// Creates a log that passes its entries to `sink`.
    pub fn new(sink: S) -> PacketLog<S> {
        PacketLog::of_part(sink, Arc::default())
    }

    /// Creates the log of a part of a network, all parts of which have the same `numbers`.
    pub fn of_part(sink: S, numbers: Arc<FrameNumbers>) -> PacketLog<S> {
        PacketLog { sink, inside: BTreeMap::new(), numbers }
    }

    /// Returns the sink.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Ends the log and returns the sink.
    pub fn into_sink(self) -> S {
        self.sink
    }

    /// Returns number and arrival time of a frame. A frame generated inside the network gets a new
    /// number.
    fn known(&mut self, slot: u32, at: Time) -> (FrameNumber, Time) {
        *self.inside.entry(slot).or_insert_with(|| (self.numbers.next_made(), at))
    }

    /// Leaves out the number of a frame that could not enter.
    pub fn skip_number(&mut self) {
        self.numbers.next_entered();
    }

    /// Notes that a frame entered. `slot` identifies it until [`PacketLog::note_end`].
    pub fn note_entry(&mut self, at: Time, slot: u32) {
        self.inside.insert(slot, (self.numbers.next_entered(), at));
    }

    /// Notes that a frame arrived at a pipe.
    pub fn note_arrival(&mut self, at: Time, slot: u32) {
        let (number, _) = self.known(slot, at);
        self.inside.insert(slot, (number, at));
    }

    /// Notes that a frame is no longer in the network.
    pub fn note_end(&mut self, slot: u32) {
        self.inside.remove(&slot);
    }
}

impl<S: Sink> PacketLog<S> {
    /// Notes that a frame of `len` bytes left a pipe. `bytes` are the first of it.
    pub fn note_exit(&mut self, slot: u32, exit: LoggedExit, len: u32, bytes: &[u8]) {
        let LoggedExit { at, departed: dequeued, pipe, fate } = exit;
        let (frame, arrived) = self.known(slot, at);
        let (location, outcome) = (Location::Pipe(pipe), PacketOutcome::Left(fate));
        self.take(LogEntry { location, frame, arrived, dequeued, at, outcome, len }, bytes);
    }

    /// Notes that a frame of `len` bytes was not accepted. `bytes` are the first of it.
    pub fn note_refusal(
        &mut self,
        slot: u32,
        (at, location, reason): (Time, Location, Reason),
        len: u32,
        bytes: &[u8],
    ) {
        let (frame, _) = self.known(slot, at);
        let outcome = PacketOutcome::Refused(reason);
        self.take(LogEntry { location, frame, arrived: at, dequeued: None, at, outcome, len }, bytes);
    }

    fn take(&mut self, entry: LogEntry, bytes: &[u8]) {
        self.sink.take(entry, &bytes[..bytes.len().min(SNAP_LEN)]);
    }
}

/// The exit of a frame from a pipe.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LoggedExit {
    /// The exit time.
    pub at: Time,
    /// The time at which the frame left the queue; `None` if it never did.
    pub departed: Option<Time>,
    /// The pipe.
    pub pipe: PipeId,
    /// The fate of the frame in the pipe.
    pub fate: Fate,
}

impl<S: Sink> Observer for PacketLog<S> {
    fn records_departures(&self) -> bool {
        true
    }

    fn entered(&mut self, at: Time, _edge: EdgeId, frame: &Frame, _pool: &FramePool) {
        self.note_entry(at, frame.slot());
    }

    fn arrived(&mut self, at: Time, _pipe: PipeId, frame: &Frame) {
        self.note_arrival(at, frame.slot());
    }

    fn left(&mut self, passage: Passage<'_>) {
        let Passage { at, departed, pipe, frame, pool, fate } = passage;
        let exit = LoggedExit { at, departed, pipe, fate };
        self.note_exit(frame.slot(), exit, frame.len() as u32, pool.bytes(frame));
    }

    fn refused(&mut self, at: Time, location: Location, frame: &Frame, pool: &FramePool, reason: Reason) {
        self.note_refusal(frame.slot(), (at, location, reason), frame.len() as u32, pool.bytes(frame));
    }

    fn delivered(&mut self, _at: Time, _edge: EdgeId, frame: &Frame, _pool: &FramePool) {
        self.note_end(frame.slot());
    }

    fn ended(&mut self, _at: Time, frame: &Frame, _reason: Option<Reason>) {
        self.note_end(frame.slot());
    }

    fn rearranged(&mut self, topology: &Topology) {
        self.sink.rearranged(topology);
    }

    fn flush(&mut self, now: Time, is_quiet: bool) {
        self.sink.flush(now, is_quiet);
    }

    fn crossed(&mut self, frame: &Frame) -> Option<FrameTag> {
        let (number, arrived) = self.inside.remove(&frame.slot())?;
        let number = match number {
            FrameNumber::Entered(number) => 2 * number,
            FrameNumber::Made(number) => 2 * number + 1,
        };
        Some(FrameTag { number, arrived })
    }

    fn joined(&mut self, frame: &Frame, FrameTag { number, arrived }: FrameTag) {
        let kind = if number.is_multiple_of(2) { FrameNumber::Entered } else { FrameNumber::Made };
        self.inside.insert(frame.slot(), (kind(number / 2), arrived));
    }
}

impl fmt::Display for LogEntry {
    /// Prints the comment, as described at the head of this file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.frame {
            FrameNumber::Entered(number) => write!(f, "frame={number}")?,
            FrameNumber::Made(number) => write!(f, "made={number}")?,
        }
        match self.outcome {
            PacketOutcome::Refused(reason) => {
                write!(f, " arrived={} dropped={}", Seconds(self.at), reason.name())
            }
            PacketOutcome::Left(fate) => {
                write!(f, " queued={}", Seconds(self.arrived))?;
                if let Some(dequeued) = self.dequeued {
                    write!(f, " dequeued={}", Seconds(dequeued))?;
                }
                match fate {
                    Fate::Dropped(reason) => {
                        write!(f, " discarded={} dropped={}", Seconds(self.at), reason.name())
                    }
                    Fate::Delivered { marked } => {
                        self.altered(f, Alteration { marked, ..Alteration::default() })
                    }
                    Fate::Altered(alteration) => self.altered(f, alteration),
                }
            }
        }
    }
}

impl LogEntry {
    /// Writes the end of the comment of a delivered frame.
    fn altered(&self, f: &mut fmt::Formatter<'_>, alteration: Alteration) -> fmt::Result {
        write!(f, " delivered={}", Seconds(self.at))?;
        if alteration.marked {
            f.write_str(" marked")?;
        }
        if alteration.corruption.is_some() {
            f.write_str(" corrupted")?;
        }
        if alteration.copies > 0 {
            write!(f, " duplicated={}", alteration.copies)?;
        }
        Ok(())
    }
}

/// A time in seconds, printed with picosecond resolution.
pub(crate) struct Seconds(pub(crate) Time);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PS_PER_S: u64 = 1_000_000_000_000;
        let ps = self.0.as_ps();
        write!(f, "{}.{:012}", ps / PS_PER_S, ps % PS_PER_S)
    }
}

/// Returns the name and the description of the interface of a pipe in a capture.
pub(crate) fn interface_of(topology: &Topology, pipe: PipeId) -> (String, String) {
    let link = topology.link(pipe.link);
    let [from, to] = [pipe.index, 1 - pipe.index].map(|end| &topology.node(link.ends[end].0).name);
    (format!("{}/{from}_to_{to}", link.name), format!("link {} from {from} to {to}", link.name))
}

/// A writer of log entries to a pcapng file.
pub struct Writer<W> {
    out: NgWriter<W>,
    /// The start of the run in nanoseconds since 1970.
    start_ns: u64,
    /// The pcapng interfaces so far, by name and description.
    interfaces: BTreeMap<(String, String), u32>,
    /// By pipe: its pcapng interface.
    pipes: Vec<u32>,
    /// By node: the pcapng interface of a router or switch.
    nodes: Vec<Option<u32>>,
    comment: String,
}

impl<W: Write> Writer<W> {
    /// Writes the start of the file: an interface for each direction of each link, then one for
    /// each router and switch. The run starts `start_ns` nanoseconds after 1970. `out` should be
    /// buffered.
    pub fn new(out: W, topology: &Topology, start_ns: u64) -> io::Result<Writer<W>> {
        let out = NgWriter::new(out, concat!("fastpath ", env!("CARGO_PKG_VERSION")))?;
        let (interfaces, comment) = (BTreeMap::new(), String::new());
        let mut writer = Writer { out, start_ns, interfaces, pipes: Vec::new(), nodes: Vec::new(), comment };
        writer.rearrange(topology)?;
        Ok(writer)
    }

    /// Follows a change of the topology: later entries have its numbers. What was there keeps its
    /// interface, and what is new gets one here, in the middle of the file.
    pub fn rearrange(&mut self, topology: &Topology) -> io::Result<()> {
        self.pipes.clear();
        self.nodes.clear();
        for link in (0..topology.links.len() as u32).map(LinkId) {
            for index in 0..2 {
                let interface = self.interface(interface_of(topology, PipeId { link, index }))?;
                self.pipes.push(interface);
            }
        }
        for node in &topology.nodes {
            let kind = match node.kind {
                NodeKind::Host { .. }
                | NodeKind::Uplink { .. }
                | NodeKind::KernelRouter { forwarder: KernelForwarder::Namespace, .. } => None,
                NodeKind::Switch => Some("switch"),
                NodeKind::OpenFlow { .. } => Some("openflow"),
                NodeKind::Router { .. }
                | NodeKind::Nat { .. }
                | NodeKind::KernelRouter { forwarder: KernelForwarder::Engine, .. } => Some("router"),
            };
            let named = kind.map(|kind| (node.name.clone(), format!("discarded by {kind} {}", node.name)));
            let interface = named.map(|named| self.interface(named)).transpose()?;
            self.nodes.push(interface);
        }
        Ok(())
    }

    /// Returns the number of an interface, which is added if there is none of this name and
    /// description.
    fn interface(&mut self, named: (String, String)) -> io::Result<u32> {
        if let Some(interface) = self.interfaces.get(&named) {
            return Ok(*interface);
        }
        let (name, description) = (&*named.0, &*named.1);
        let interface =
            self.out.add_interface(&Interface { link_type: LINKTYPE_ETHERNET, name, description })?;
        self.interfaces.insert(named, interface);
        Ok(interface)
    }

    /// Writes an entry with the first bytes of its frame.
    pub fn write(&mut self, entry: &LogEntry, bytes: &[u8]) -> io::Result<()> {
        let interface = match entry.location {
            Location::Pipe(PipeId { link, index }) => self.pipes[2 * link.0 as usize + index],
            Location::Node(node) => self.nodes[node.0 as usize].expect("hosts drop no frames"),
        };
        self.comment.clear();
        write!(self.comment, "{entry}").expect("writing to a string");
        self.out.write_packet(interface, self.start_ns + entry.at.as_ns(), entry.len, bytes, &self.comment)
    }

    /// Flushes the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Flushes the file and returns the output.
    pub fn finish(self) -> io::Result<W> {
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Network;
    use crate::options::Options;
    use fastpath_spec::NodeId;
    use fastpath_wire::pcap::CaptureReader;

    /// A sink that keeps the comments, each with its location.
    #[derive(Default)]
    struct Comments(Vec<String>);

    impl Sink for Comments {
        fn take(&mut self, entry: LogEntry, bytes: &[u8]) {
            assert!(bytes.len() <= SNAP_LEN && entry.len as usize >= bytes.len());
            let location = match entry.location {
                Location::Pipe(pipe) => format!("link{}.{}", pipe.link.0, pipe.index),
                Location::Node(node) => format!("node{}", node.0),
            };
            self.0.push(format!("{location} {entry}"));
        }

        fn rearranged(&mut self, _topology: &Topology) {}
    }

    /// Returns the log of a run in which frames of `lens` bytes enter at edge 0 at time 0.
    fn log(spec: &str, lens: &[usize]) -> Vec<String> {
        let (topology, _) = fastpath_spec::parse(spec).expect("a valid spec");
        let mut network =
            Network::observed(topology, Options::default(), PacketLog::new(Comments::default()));
        for &len in lens {
            let frame = network.pool_mut().insert(&vec![0xff; len]).expect("the pool is not full");
            network.push(Time::ZERO, EdgeId(0), frame);
        }
        while let Some(at) = network.next_at() {
            while let Some(delivery) = network.pop(at) {
                network.pool_mut().free(delivery.frame);
            }
        }
        assert!(network.observer().inside.is_empty(), "every frame has ended");
        std::mem::take(&mut network.observer_mut().sink_mut().0)
    }

    #[test]
    fn every_packet_has_an_entry_on_every_link_with_all_its_times() {
        // 1250 bytes at 10 Mbit/s take 1 ms; the queue holds two, one of them on the wire.
        let spec = "[host.a]\n[switch.s]\n[host.b]\n[[link]]\nbetween = ['a', 's']\nrate = '10Mbit'\ndelay = '5ms'\nqueue = '2p'\n\
                    [[link]]\nbetween = ['s', 'b']\ndelay = '1ms'";
        assert_eq!(
            log(spec, &[1250, 1250, 1250]),
            [
                "link0.0 frame=3 arrived=0.000000000000 dropped=queue-full",
                "link0.0 frame=1 queued=0.000000000000 dequeued=0.001000000000 delivered=0.006000000000",
                "link0.0 frame=2 queued=0.000000000000 dequeued=0.002000000000 delivered=0.007000000000",
                "link1.0 frame=1 queued=0.006000000000 dequeued=0.006000000000 delivered=0.007000000000",
                "link1.0 frame=2 queued=0.007000000000 dequeued=0.007000000000 delivered=0.008000000000",
            ]
        );
    }

    #[test]
    fn the_departure_from_the_queue_is_logged_for_any_kind_of_delay() {
        let link = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '10Mbit'\ndelay = '5ms'\n";
        let jitter = "jitter = { law = 'trace', values = ['3ms', '0ms'], reorder = 'allow' }\n";
        assert_eq!(
            log(&format!("{link}{jitter}"), &[1250, 1250]),
            [
                "link0.0 frame=2 queued=0.000000000000 dequeued=0.002000000000 delivered=0.007000000000",
                "link0.0 frame=1 queued=0.000000000000 dequeued=0.001000000000 delivered=0.009000000000",
            ]
        );
        // The second packet must not overtake the first, which has the longer delay.
        let shorter = "[[event]]\nat = '1500us'\nlink = 'a-b'\ndelay = '1ms'\n";
        assert_eq!(
            log(&format!("{link}{shorter}"), &[1250, 1250]),
            [
                "link0.0 frame=1 queued=0.000000000000 dequeued=0.001000000000 delivered=0.006000000000",
                "link0.0 frame=2 queued=0.000000000000 dequeued=0.002000000000 delivered=0.006000000000",
            ]
        );
        // A packet lost at the egress was transmitted first.
        let egress = "loss = { probability = '100%', at = 'egress' }\n";
        let lost = "link0.0 frame=1 queued=0.000000000000 dequeued=0.001000000000 discarded=0.001000000000 dropped=loss";
        assert_eq!(log(&format!("{link}{egress}"), &[1250]), [lost]);
    }

    #[test]
    fn a_copy_that_leaves_later_has_its_own_entry() {
        let spec = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\ndelay = '5ms'\n\
                    duplicate = { probability = '100%', later = '2ms' }";
        assert_eq!(
            log(spec, &[60]),
            [
                "link0.0 frame=1 queued=0.000000000000 dequeued=0.000000000000 delivered=0.005000000000 duplicated=1",
                "link0.0 made=1 queued=0.005000000000 delivered=0.007000000000",
            ]
        );
    }

    #[test]
    fn a_drop_in_a_router_is_on_the_interface_of_the_router() {
        let spec =
            "[host.a]\n[router.r]\n[host.b]\n[[link]]\nbetween = ['a', 'r']\n[[link]]\nbetween = ['r', 'b']";
        let lines = log(spec, &[60]);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[1], "node1 frame=1 arrived=0.000000000000 dropped=not-addressed");
    }

    #[test]
    fn the_file_has_an_interface_for_each_direction_and_is_read_back() {
        let spec =
            "[host.a]\n[router.r]\n[host.b]\n[[link]]\nbetween = ['a', 'r']\n[[link]]\nbetween = ['r', 'b']";
        let (topology, _) = fastpath_spec::parse(spec).expect("a valid spec");
        let mut writer = Writer::new(Vec::new(), &topology, 1_000_000_000).expect("memory");
        let pipe = PipeId { link: fastpath_spec::LinkId(1), index: 1 };
        let at = Time::from_ps(2_500_000);
        let mut entry = LogEntry {
            location: Location::Pipe(pipe),
            frame: FrameNumber::Entered(1),
            arrived: at,
            dequeued: None,
            at,
            outcome: PacketOutcome::Refused(Reason::NoRoute),
            len: 400,
        };
        writer.write(&entry, &[1; 256]).expect("memory");
        entry.location = Location::Node(NodeId(1));
        writer.write(&entry, &[1; 256]).expect("memory");
        let file = writer.finish().expect("memory");
        let mut reader = CaptureReader::new(&file[..]).expect("a capture");
        let mut read = || {
            let packet = reader.read_packet().expect("a valid file").expect("a packet");
            (packet.interface, packet.ns, packet.orig_len, packet.data.len())
        };
        assert_eq!(read(), (3, Some(1_000_002_500), 400, 256));
        assert_eq!(read(), (4, Some(1_000_002_500), 400, 256));
        for text in [
            "a-r/a_to_r",
            "r-b/b_to_r",
            "discarded by router r",
            "frame=1 arrived=0.000002500000 dropped=no-route",
        ] {
            assert!(file.windows(text.len()).any(|bytes| bytes == text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn the_file_follows_a_change_of_the_topology() {
        let link = |a: &str, b: &str| format!("[[link]]\nbetween = ['{a}', '{b}']\n");
        let hosts = "[host.a]\n[host.b]\n[host.c]\n[router.r]\n";
        let resolve = |links: &[String]| {
            let text = hosts.to_owned() + &links.concat();
            fastpath_spec::parse(&text).expect("a valid spec").0
        };
        let (first, second) = (link("a", "r"), link("r", "b"));
        let mut writer =
            Writer::new(Vec::new(), &resolve(&[first.clone(), second.clone()]), 0).expect("memory");
        let entry = |link, index| LogEntry {
            location: Location::Pipe(PipeId { link: LinkId(link), index }),
            frame: FrameNumber::Entered(1),
            arrived: Time::ZERO,
            dequeued: None,
            at: Time::ZERO,
            outcome: PacketOutcome::Refused(Reason::NoRoute),
            len: 60,
        };
        writer.write(&entry(1, 0), &[1; 60]).expect("memory");
        // A link comes first, one stays, and one goes and comes back.
        writer.rearrange(&resolve(&[link("c", "r"), second.clone()])).expect("memory");
        writer.write(&entry(1, 0), &[1; 60]).expect("memory");
        writer.write(&entry(0, 1), &[1; 60]).expect("memory");
        writer.rearrange(&resolve(&[second, first])).expect("memory");
        writer.write(&entry(1, 0), &[1; 60]).expect("memory");
        let file = writer.finish().expect("memory");
        let mut reader = CaptureReader::new(&file[..]).expect("a capture");
        let mut read = || reader.read_packet().expect("a valid file").expect("a packet").interface;
        // Four pipes and the router come first.
        assert_eq!([read(), read(), read(), read()], [2, 2, 6, 0]);
    }
}
