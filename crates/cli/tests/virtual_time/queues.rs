//! Queues and impairments against those of the guest's Linux, packet by packet: what arrives at the
//! kernel's queue is replayed through ours.

use crate::common::skip;
use crate::place::{Place, text};
use fastpath_wire::pcap::{CaptureReader, LINKTYPE_ETHERNET, Writer};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// The kernel reads the clock, 256 ns each, between the arrival of a packet and the decision on it.
const READINGS_NS: i64 = 2_000;

/// Times of datagrams by their numbers, ns.
type Times = BTreeMap<u32, i64>;

/// What the two did with the same datagrams.
struct Compared {
    arrived: Times,
    /// When they left the queue of the kernel, and ours.
    kernel: Times,
    ours: Times,
}

/// A queue of the kernel, and ours that means the same.
struct Case {
    name: &'static str,
    /// Whether more arrives than leaves.
    is_busy: bool,
    /// Whether a token bucket of one packet stands for a link: while it is busy it serves at its
    /// rate, but the first packet passes at once, and is left out.
    is_link: bool,
    /// Commands of tc, and `;` between them.
    kernel: &'static str,
    link: &'static str,
}

impl Case {
    fn run(&self) -> Option<Compared> {
        let place = Place::new(&format!("kernel queue {}", self.name))?;
        for program in ["ip", "tc", "tcpdump", "python3"] {
            let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
            if !found.is_ok_and(|found| found.status.success()) {
                skip("queues of the kernel", &format!("no {program} here"));
                return None;
            }
        }
        fs::write(place.path.join("send.py"), include_str!("send.py")).unwrap();
        fs::write(place.path.join("queue.sh"), include_str!("queue.sh")).unwrap();
        let pattern = if self.is_busy { "busy" } else { "idle" };
        let command = ["sh", "queue.sh", pattern, self.kernel];
        let words = ["lab", "run", "net.toml", "--time", "virtual", "--"];
        let output = place.run(&[&words[..], &command].concat());
        assert!(output.status.success(), "{}: {}", self.name, text(&output));
        let first = usize::from(self.is_link);
        let arrived = cut(&place.read("in.pcap"), first);
        fs::write(place.path.join("cut.pcap"), &arrived).unwrap();
        let link = format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n{}\n", self.link);
        fs::write(place.path.join("ours.toml"), link).unwrap();
        let output = place.run(&["replay", "ours.toml", "--in", "a=cut.pcap", "--out", "b=ours.pcap"]);
        assert!(output.status.success(), "{}: {}", self.name, text(&output));
        let (arrived, mut kernel) = (times(&arrived), times(&place.read("out.pcap")));
        kernel.retain(|number, _| arrived.contains_key(number));
        assert!(arrived.len() > 1000, "{}: {} datagrams", self.name, arrived.len());
        Some(Compared { arrived, kernel, ours: times(&place.read("ours.pcap")) })
    }
}

impl Compared {
    /// The numbers of the datagrams that one of the two dropped and the other did not, and those
    /// that both dropped.
    fn drops(&self) -> (Vec<u32>, Vec<u32>) {
        let lost = self.arrived.keys().copied();
        let lost =
            lost.filter(|number| !(self.kernel.contains_key(number) && self.ours.contains_key(number)));
        lost.partition(|number| self.kernel.contains_key(number) || self.ours.contains_key(number))
    }

    /// How much later the kernel was, of every datagram below `end`, ns.
    fn later(&self, end: u32) -> Vec<i64> {
        let ours = self.ours.range(..end);
        ours.filter_map(|(number, ours)| Some(self.kernel.get(number)? - ours)).collect()
    }

    /// The share of the datagrams below `end` that left at one time, up to readings of the clock.
    fn in_time(&self, end: u32) -> f64 {
        let later = self.later(end);
        let in_time = later.iter().filter(|later| later.abs() <= READINGS_NS).count();
        in_time as f64 / later.len() as f64
    }
}

/// Returns a capture without its first packets.
fn cut(capture: &[u8], first: usize) -> Vec<u8> {
    let mut reader = CaptureReader::new(capture).unwrap();
    let mut writer = Writer::new(Vec::new(), LINKTYPE_ETHERNET).unwrap();
    let mut number = 0;
    while let Some(packet) = reader.read_packet().unwrap() {
        if number >= first {
            writer.write_packet(packet.ns.unwrap(), packet.orig_len, packet.data).unwrap();
        }
        number += 1;
    }
    writer.finish().unwrap()
}

fn times(capture: &[u8]) -> Times {
    let mut reader = CaptureReader::new(capture).unwrap();
    let mut times = Times::new();
    while let Some(packet) = reader.read_packet().unwrap() {
        let number = packet.data[42..].first_chunk().expect("a datagram with its number");
        times.insert(u32::from_be_bytes(*number), packet.ns.unwrap() as i64);
    }
    times
}

#[test]
fn packets_leave_when_they_leave_the_queue_of_the_kernel() {
    let cases = [
        Case {
            name: "netem",
            is_busy: false,
            is_link: false,
            kernel: "qdisc add dev r1 root netem delay 20ms rate 10mbit limit 10000",
            link: "delay = '20ms'\nrate = '10Mbit'\nqueue = '10000p'",
        },
        Case {
            name: "netem slots",
            is_busy: false,
            is_link: false,
            kernel: "qdisc add dev r1 root netem slot 20ms packets 9 limit 10000",
            link: "slots = { min = '20ms', max = '20ms', packets = 9 }",
        },
        Case {
            name: "netem reorder",
            is_busy: false,
            is_link: false,
            kernel: "qdisc add dev r1 root netem delay 10ms reorder 100% gap 5 limit 10000",
            link: "delay = '10ms'\nreorder = { probability = '100%', gap = 5 }\nqueue = '10000p'",
        },
        Case {
            name: "tbf with a peak",
            is_busy: false,
            is_link: false,
            kernel: "qdisc add dev r1 root tbf rate 4mbit burst 20000 limit 1000000 peakrate 8mbit mtu 1514",
            link: "queue = { kind = 'token-bucket', rate = '4Mbit', burst = '20000B', limit = '1000000B', \
                   peak = '8Mbit', peak_burst = '1514B' }",
        },
        Case {
            name: "drr",
            is_busy: true,
            is_link: true,
            kernel: "qdisc add dev r1 root handle 1: tbf rate 10mbit burst 1443 limit 10000000;\
                     qdisc add dev r1 parent 1: handle 2: drr;\
                     class add dev r1 parent 2: classid 2:1 drr quantum 3000;\
                     class add dev r1 parent 2: classid 2:2 drr quantum 1514;\
                     class add dev r1 parent 2: classid 2:3 drr quantum 500;\
                     filter add dev r1 parent 2: protocol ip u32 match ip sport 5000 0xffff flowid 2:1;\
                     filter add dev r1 parent 2: protocol ip u32 match ip sport 5001 0xffff flowid 2:2;\
                     filter add dev r1 parent 2: protocol ip u32 match ip sport 5002 0xffff flowid 2:3",
            link: "rate = '10Mbit'\nqueue = { kind = 'drr', classes = [\
                   { dscp = [4], quantum = '3000B', limit = '9999p' }, { quantum = '1514B', limit = '9999p' }, \
                   { dscp = [2], quantum = '500B', limit = '9999p' }] }",
        },
        Case {
            name: "fq_codel",
            is_busy: true,
            is_link: true,
            kernel: "qdisc add dev r1 root handle 1: tbf rate 10mbit burst 1443 limit 10000000;\
                     qdisc add dev r1 parent 1: fq_codel limit 10000 target 5s interval 50s quantum 1514 flows 65536",
            link: "rate = '10Mbit'\nqueue = { kind = 'fq-codel', target = '5s', interval = '50s', \
                   limit = '10000p', quantum = '1514B' }",
        },
    ];
    for case in cases {
        let Some(found) = case.run() else { return };
        let (one, both) = found.drops();
        assert!(one.is_empty() && both.is_empty(), "{}: {one:?} {both:?}", case.name);
        // Of two packets that come and go within the readings, the scheduler may take another one
        // next. Both are in time again after that round.
        let least = if case.is_link { 0.9 } else { 1.0 };
        let share = found.in_time(u32::MAX);
        assert!(share >= least, "{}: {share} of the packets left in time", case.name);
    }
}

#[test]
fn a_full_token_bucket_drops_what_the_kernel_drops() {
    let case = Case {
        name: "tbf",
        is_busy: true,
        is_link: false,
        kernel: "qdisc add dev r1 root tbf rate 10mbit burst 5000 limit 20000",
        link: "queue = { kind = 'token-bucket', rate = '10Mbit', burst = '5000B', limit = '20000B' }",
    };
    let Some(found) = case.run() else { return };
    // An arrival within the readings of a departure finds room in one and not in the other.
    let (one, both) = found.drops();
    assert!(one.len() * 20 <= both.len() && both.len() > 100, "{} and {}", one.len(), both.len());
    let end = one.first().copied().unwrap_or(u32::MAX);
    assert!(both.iter().filter(|number| **number < end).count() > 5, "{one:?} {both:?}");
    assert_eq!(found.in_time(end), 1.0, "{:?}", found.later(end));
}

#[test]
fn codel_drops_as_linux_does_up_to_its_approximation_of_the_square_root() {
    let case = Case {
        name: "codel",
        is_busy: true,
        is_link: true,
        kernel: "qdisc add dev r1 root handle 1: tbf rate 10mbit burst 1443 limit 10000000;\
                 qdisc add dev r1 parent 1: codel limit 10000",
        link: "rate = '10Mbit'\nqueue = { kind = 'codel', limit = '10000p' }",
    };
    let Some(found) = case.run() else { return };
    let lost = |times: &Times| -> Vec<u32> {
        found.arrived.keys().copied().filter(|number| !times.contains_key(number)).collect()
    };
    let (kernel, ours) = (lost(&found.kernel), lost(&found.ours));
    // The first two drops follow from the interval alone. For the third Linux takes 1/2 for 1/√2
    // (one step of Newton's method), and RFC 8289 the root.
    assert_eq!(kernel[..2], ours[..2]);
    assert!(kernel[2] < ours[2], "{kernel:?} {ours:?}");
    assert_eq!(found.in_time(kernel[0]), 1.0, "{:?}", found.later(kernel[0]));
    // Later steps are exact to a few percent.
    assert!((kernel.len() as f64 / ours.len() as f64 - 1.0).abs() < 0.1, "{kernel:?} {ours:?}");
}
