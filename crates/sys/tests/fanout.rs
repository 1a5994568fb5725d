//! The kernel splits what arrives on an interface between sockets by flows (PACKET_FANOUT_HASH):
//! each flow comes to one socket, in order, and every socket gets some.
#![cfg(target_os = "linux")]

use fastpath_sys::interface;
use fastpath_sys::packet::PacketSocket;
use fastpath_units::Rng;
use nix::sched::{CloneFlags, unshare};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

const FLOWS: u32 = 300;
const ROUNDS: u32 = 30;
/// Frames sent before the sockets are read.
const BURST: usize = 64;
/// No step takes longer, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

const SET_UP: &str = "set -e
sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
ip link add f0 type veth peer name f1
ip link set f0 up
ip link set f1 up";

/// Moves this thread to a namespace of its own with a pair of interfaces. False, with a message,
/// where that is not possible.
fn has_namespace(test: &str) -> bool {
    let why = match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => match Command::new("sh").args(["-c", SET_UP]).output() {
            Ok(output) if output.status.success() => return true,
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    };
    println!("SKIPPED {test}: a namespace with a veth pair: {why}");
    false
}

/// A frame of a flow: IPv4 or IPv6 with UDP or TCP, some with a VLAN tag. Its last bytes are the
/// numbers of the flow and of the frame in it.
fn frame(flow: u32, number: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    if flow.is_multiple_of(5) {
        frame.extend([0x81, 0, 0, 7]);
    }
    let (protocol, address) = (if flow.is_multiple_of(2) { 17 } else { 6 }, (flow / 7) as u8);
    if flow.is_multiple_of(3) {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 28, protocol, 64]);
        frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, address]);
        frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    } else {
        frame.extend([8, 0, 0x45, 0, 0, 48, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, address, 10, 0, 1, 1]);
    }
    frame.extend((1000 + flow as u16).to_be_bytes());
    frame.extend([0, 80]);
    let rest: [u8; 16] = match protocol {
        17 => [0, 28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        _ => [0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 9, 0, 0, 0, 0],
    };
    frame.extend(rest);
    frame.extend(flow.to_be_bytes());
    frame.extend(number.to_be_bytes());
    frame
}

/// Returns the flow of a frame and its number in it.
fn numbers(bytes: &[u8]) -> (u32, u32) {
    let number = |at: usize| u32::from_be_bytes(bytes[bytes.len() - at..][..4].try_into().expect("4 bytes"));
    (number(8), number(4))
}

/// Sends the frames of all flows, and returns what each socket receives, in order.
fn split(sockets: &mut [PacketSocket], sender: &PacketSocket, seed: u64) -> Vec<Vec<(u32, u32)>> {
    let mut rng = Rng::new(seed);
    let mut received: Vec<Vec<(u32, u32)>> = vec![Vec::new(); sockets.len()];
    let mut sent = 0;
    for round in 0..ROUNDS {
        let mut flows: Vec<u32> = (0..FLOWS).collect();
        for place in (1..flows.len()).rev() {
            flows.swap(place, rng.below(place as u64 + 1) as usize);
        }
        for some in flows.chunks(BURST) {
            let frames: Vec<Vec<u8>> = some.iter().map(|flow| frame(*flow, round)).collect();
            let mut left = &frames[..];
            let end = Instant::now() + TIMEOUT;
            while !left.is_empty() {
                left = &left[sender.send(left.iter().map(Vec::as_slice)).expect("frames are sent")..];
                assert!(Instant::now() < end, "the interface takes no frames");
            }
            sent += some.len();
            while received.iter().map(Vec::len).sum::<usize>() < sent {
                for (socket, received) in sockets.iter_mut().zip(&mut received) {
                    received.extend(socket.receive(|one| numbers(one.bytes)));
                }
                assert!(Instant::now() < end, "frames were lost");
            }
        }
    }
    received
}

#[test]
fn each_flow_comes_to_one_socket_in_order_and_every_socket_gets_some() {
    if !has_namespace("fanout by flows") {
        return;
    }
    let [near, far] = ["f0", "f1"].map(|name| interface::index_of(name).expect("an interface"));
    let sender = PacketSocket::sender(far).expect("a sender");
    for count in 1..=4 {
        let mut sockets = PacketSocket::open_group(near, count, 2048, 1024).expect("a group");
        let received = split(&mut sockets, &sender, count as u64);
        let mut socket_of = BTreeMap::new();
        for (socket, frames) in received.iter().enumerate() {
            let mut next = BTreeMap::new();
            for (flow, number) in frames {
                assert_eq!(*socket_of.entry(*flow).or_insert(socket), socket, "flow {flow} of {count}");
                let expected = next.entry(*flow).or_insert(0);
                assert_eq!(number, expected, "flow {flow} at socket {socket} of {count}");
                *expected += 1;
            }
            assert!(next.values().all(|frames| *frames == ROUNDS));
            // Fair shares are expected; half of one is far from them.
            assert!(next.len() * count * 2 > FLOWS as usize, "{} flows at {socket} of {count}", next.len());
        }
        assert_eq!(socket_of.len(), FLOWS as usize);
        // Nothing comes twice.
        assert!(
            sockets.iter_mut().all(|socket| socket.receive(|_| ()).is_none() && socket.take_drops() == 0)
        );
    }
}
