//! The ledger: what became of every packet on every link, as a pcapng file that opens in Wireshark.
//!
//! ```text
//!  Network ─notes─▶ Ledger ─Entry─▶ Sink: a Writer in virtual time, a bounded queue to one in real time
//!                                      Writer ─▶ pcapng: an interface per direction of a link, a comment per packet
//! ```
//!
//! One record per packet and link, at the time of its end there: arrival at the far end, or the
//! drop. Its comment is words `key=value`, times in seconds of the run to the picosecond:
//!
//! ```text
//! frame=17 queued=1.000000000000 dequeued=1.001000000000 delivered=1.026000000000 marked
//! frame=18 arrived=1.000200000000 dropped=queue-full
//! ```
//!
//! The same `frame` is the same packet on its next link. What a router or switch discards is a
//! record on an interface of that node. Nothing here runs unless a [`Ledger`] observes the network.

use crate::fate::Reason;
use crate::network::EdgeId;
use crate::observer::{Observer, Passage, PipeId, Place};
use crate::pool::Frame;
use fastpath_link::{Alteration, Fate};
use fastpath_spec::{NodeKind, Topology};
use fastpath_units::Time;
use fastpath_wire::pcap::{Interface, LINKTYPE_ETHERNET, NgWriter};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::{self, Write};

/// Bytes of each frame that are kept: all headers there are, and some payload. The length on the
/// wire is told in full.
pub const SNAP_LEN: usize = 256;

/// One packet's fate on one link, or at one node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Entry {
    /// Where.
    pub place: Place,
    /// The packet's number, from 1 in the order in which packets appeared.
    pub frame: u64,
    /// When it came.
    pub arrived: Time,
    /// When it had left the queue, all of it sent; `None` if it never did.
    pub dequeued: Option<Time>,
    /// When it reached the end, or was discarded.
    pub at: Time,
    /// Its end here.
    pub end: End,
    /// Bytes of the frame.
    pub len: u32,
}

/// How it went.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum End {
    /// It was queued, and left like this.
    Left(Fate),
    /// It was not taken.
    Refused(Reason),
}

/// Takes entries as they come.
pub trait Sink {
    /// Takes an entry with the first bytes of its frame, at most [`SNAP_LEN`].
    fn take(&mut self, entry: Entry, bytes: &[u8]);
}

/// An [`Observer`] that makes entries.
#[derive(Debug)]
pub struct Ledger<S> {
    sink: S,
    /// The number of each frame inside and when it came to the link it is on, by slot.
    inside: BTreeMap<u32, (u64, Time)>,
    frames: u64,
}

impl<S> Ledger<S> {
    /// A ledger kept in `sink`.
    pub fn new(sink: S) -> Ledger<S> {
        Ledger { sink, inside: BTreeMap::new(), frames: 0 }
    }

    /// Where it is kept.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Ends it.
    pub fn into_sink(self) -> S {
        self.sink
    }

    /// The number of a frame, a new one if it was made inside the network, and when it came.
    fn known(&mut self, frame: &Frame, at: Time) -> (u64, Time) {
        let frames = &mut self.frames;
        *self.inside.entry(frame.slot()).or_insert_with(|| {
            *frames += 1;
            (*frames, at)
        })
    }
}

impl<S: Sink> Observer for Ledger<S> {
    fn notes_departures(&self) -> bool {
        true
    }

    fn entered(&mut self, at: Time, _edge: EdgeId, frame: &Frame) {
        self.inside.remove(&frame.slot());
        self.known(frame, at);
    }

    fn arrived(&mut self, at: Time, _pipe: PipeId, frame: &Frame) {
        let (number, _) = self.known(frame, at);
        self.inside.insert(frame.slot(), (number, at));
    }

    fn left(&mut self, passage: Passage<'_>) {
        let Passage { at, departed: dequeued, pipe, frame, bytes, fate } = passage;
        let (number, arrived) = self.known(frame, at);
        let place = Place::Pipe(pipe);
        let entry = Entry {
            place,
            frame: number,
            arrived,
            dequeued,
            at,
            end: End::Left(fate),
            len: frame.len() as u32,
        };
        self.sink.take(entry, &bytes[..bytes.len().min(SNAP_LEN)]);
    }

    fn refused(&mut self, at: Time, place: Place, frame: &Frame, bytes: &[u8], reason: Reason) {
        let (number, _) = self.known(frame, at);
        let end = End::Refused(reason);
        let entry =
            Entry { place, frame: number, arrived: at, dequeued: None, at, end, len: frame.len() as u32 };
        self.sink.take(entry, &bytes[..bytes.len().min(SNAP_LEN)]);
    }

    fn delivered(&mut self, _at: Time, _edge: EdgeId, frame: &Frame) {
        self.inside.remove(&frame.slot());
    }

    fn ended(&mut self, _at: Time, frame: &Frame, _reason: Option<Reason>) {
        self.inside.remove(&frame.slot());
    }
}

impl fmt::Display for Entry {
    /// The comment, as at the head of this file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame={}", self.frame)?;
        match self.end {
            End::Refused(reason) => write!(f, " arrived={} dropped={}", Seconds(self.at), reason.name()),
            End::Left(fate) => {
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

impl Entry {
    /// What a delivered frame's comment ends with.
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

/// A time in seconds with all its digits.
struct Seconds(Time);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PS_PER_S: u64 = 1_000_000_000_000;
        let ps = self.0.as_ps();
        write!(f, "{}.{:012}", ps / PS_PER_S, ps % PS_PER_S)
    }
}

/// Entries into a pcapng file.
pub struct Writer<W> {
    out: NgWriter<W>,
    /// Time zero of the run, nanoseconds since 1970.
    start_ns: u64,
    /// The number of each router's and switch's interface in the file, by node.
    nodes: Vec<Option<u32>>,
    comment: String,
}

impl<W: Write> Writer<W> {
    /// Begins the file of a run of `topology` that starts `start_ns` after 1970: an interface for
    /// each direction of each link, then one for each router and switch. Buffer `out`.
    pub fn new(out: W, topology: &Topology, start_ns: u64) -> io::Result<Writer<W>> {
        let mut out = NgWriter::new(out, concat!("fastpath ", env!("CARGO_PKG_VERSION")))?;
        let mut add = |name: &str, description: &str| {
            out.add_interface(&Interface { link_type: LINKTYPE_ETHERNET, name, description })
        };
        for link in &topology.links {
            let [a, b] = link.ends.map(|(node, _)| topology.node(node).name.as_str());
            for (from, to) in [(a, b), (b, a)] {
                add(
                    &format!("{}/{from}_to_{to}", link.name),
                    &format!("link {} from {from} to {to}", link.name),
                )?;
            }
        }
        let mut nodes = Vec::new();
        for node in &topology.nodes {
            let kind = match node.kind {
                NodeKind::Host { .. } => None,
                NodeKind::Router => Some("router"),
                NodeKind::Switch => Some("switch"),
                NodeKind::OpenFlow { .. } => Some("openflow"),
            };
            nodes.push(
                kind.map(|kind| add(&node.name, &format!("discarded by {kind} {}", node.name)))
                    .transpose()?,
            );
        }
        Ok(Writer { out, start_ns, nodes, comment: String::new() })
    }

    /// Writes an entry with the first bytes of its frame.
    pub fn write(&mut self, entry: &Entry, bytes: &[u8]) -> io::Result<()> {
        let interface = match entry.place {
            Place::Pipe(PipeId { link, index }) => 2 * link.0 + index as u32,
            Place::Node(node) => self.nodes[node.0 as usize].expect("hosts discard nothing"),
        };
        self.comment.clear();
        write!(self.comment, "{entry}").expect("writing to a string");
        self.out.write_packet(interface, self.start_ns + entry.at.as_ns(), entry.len, bytes, &self.comment)
    }

    /// Completes the file and gives the output back.
    pub fn finish(self) -> io::Result<W> {
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Network, Options};
    use fastpath_spec::NodeId;
    use fastpath_wire::pcap::Reader;
    use std::num::NonZeroUsize;

    /// Keeps the comments, each with its place.
    #[derive(Default)]
    struct Comments(Vec<String>);

    impl Sink for Comments {
        fn take(&mut self, entry: Entry, bytes: &[u8]) {
            assert!(bytes.len() <= SNAP_LEN && entry.len as usize >= bytes.len());
            let place = match entry.place {
                Place::Pipe(pipe) => format!("link{}.{}", pipe.link.0, pipe.index),
                Place::Node(node) => format!("node{}", node.0),
            };
            self.0.push(format!("{place} {entry}"));
        }
    }

    fn options() -> Options {
        Options::new(1, NonZeroUsize::MAX)
    }

    /// Frames of `lens` bytes enter at host 0 at time 0; all that happens is noted.
    fn ledger(spec: &str, lens: &[usize]) -> Vec<String> {
        let (topology, _) = fastpath_spec::parse(spec).expect("a valid spec");
        let mut network = Network::observed(topology, options(), Ledger::new(Comments::default()));
        for &len in lens {
            let frame = network.pool_mut().insert(&vec![0xff; len]).expect("room");
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
    fn every_packet_has_a_line_on_every_link_with_all_its_times() {
        // 1250 bytes at 10 Mbit/s take 1 ms; the queue holds two, one of them on the wire.
        let spec = "[host.a]\n[switch.s]\n[host.b]\n[[link]]\nbetween = ['a', 's']\nrate = '10Mbit'\ndelay = '5ms'\nqueue = '2p'\n\
                    [[link]]\nbetween = ['s', 'b']\ndelay = '1ms'";
        assert_eq!(
            ledger(spec, &[1250, 1250, 1250]),
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
    fn the_time_of_leaving_the_queue_is_known_whatever_the_delay_does() {
        let link = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '10Mbit'\ndelay = '5ms'\n";
        let jitter = "jitter = { law = 'trace', values = ['3ms', '0ms'], reorder = 'allow' }\n";
        assert_eq!(
            ledger(&format!("{link}{jitter}"), &[1250, 1250]),
            [
                "link0.0 frame=2 queued=0.000000000000 dequeued=0.002000000000 delivered=0.007000000000",
                "link0.0 frame=1 queued=0.000000000000 dequeued=0.001000000000 delivered=0.009000000000",
            ]
        );
        // The second may not overtake the first, which has the longer delay.
        let cut = "[[event]]\nat = '1500us'\nlink = 'a-b'\ndelay = '1ms'\n";
        assert_eq!(
            ledger(&format!("{link}{cut}"), &[1250, 1250]),
            [
                "link0.0 frame=1 queued=0.000000000000 dequeued=0.001000000000 delivered=0.006000000000",
                "link0.0 frame=2 queued=0.000000000000 dequeued=0.002000000000 delivered=0.006000000000",
            ]
        );
        // What is lost behind the bottleneck had been sent.
        let egress = "loss = { probability = '100%', at = 'egress' }\n";
        let lost = "link0.0 frame=1 queued=0.000000000000 dequeued=0.001000000000 discarded=0.001000000000 dropped=loss";
        assert_eq!(ledger(&format!("{link}{egress}"), &[1250]), [lost]);
    }

    #[test]
    fn a_copy_that_leaves_later_is_a_packet_of_its_own() {
        let spec = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\ndelay = '5ms'\n\
                    duplicate = { probability = '100%', later = '2ms' }";
        assert_eq!(
            ledger(spec, &[60]),
            [
                "link0.0 frame=1 queued=0.000000000000 dequeued=0.000000000000 delivered=0.005000000000 duplicated=1",
                "link0.0 frame=2 queued=0.005000000000 delivered=0.007000000000",
            ]
        );
    }

    #[test]
    fn what_a_router_discards_is_on_its_own_interface() {
        let spec =
            "[host.a]\n[router.r]\n[host.b]\n[[link]]\nbetween = ['a', 'r']\n[[link]]\nbetween = ['r', 'b']";
        let lines = ledger(spec, &[60]);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[1], "node1 frame=1 arrived=0.000000000000 dropped=not-addressed");
    }

    #[test]
    fn the_file_reads_back_with_an_interface_for_each_direction() {
        let spec =
            "[host.a]\n[router.r]\n[host.b]\n[[link]]\nbetween = ['a', 'r']\n[[link]]\nbetween = ['r', 'b']";
        let (topology, _) = fastpath_spec::parse(spec).expect("a valid spec");
        let mut writer = Writer::new(Vec::new(), &topology, 1_000_000_000).expect("memory");
        let pipe = PipeId { link: fastpath_spec::LinkId(1), index: 1 };
        let at = Time::from_ps(2_500_000);
        let mut entry = Entry {
            place: Place::Pipe(pipe),
            frame: 1,
            arrived: at,
            dequeued: None,
            at,
            end: End::Refused(Reason::NoRoute),
            len: 400,
        };
        writer.write(&entry, &[1; 256]).expect("memory");
        entry.place = Place::Node(NodeId(1));
        writer.write(&entry, &[1; 256]).expect("memory");
        let file = writer.finish().expect("memory");
        let mut reader = Reader::new(&file[..]).expect("a capture");
        let mut read = || {
            let packet = reader.read_packet().expect("whole").expect("a packet");
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
}
