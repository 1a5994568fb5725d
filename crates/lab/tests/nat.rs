//! NATs between real sockets: UDP hole punching, as in `crates/net/tests/nat.rs` in virtual time.
#![cfg(target_os = "linux")]

mod common;

use common::{run, up, up_with};
use fastpath_lab::Lab;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// examples/hole-punching.toml with other mappings.
fn spec(x_mapping: &str) -> String {
    let text = include_str!("../../../examples/hole-punching.toml");
    let changed = text.replacen("\"endpoint-independent\"", &format!("{x_mapping:?}"), 1);
    changed.replacen("address-dependent\"", "address-and-port-dependent\"", 2)
}

fn socket(lab: &Lab, host: &str) -> UdpSocket {
    let host = lab.host(host).unwrap();
    let address = SocketAddr::new(host.address().unwrap(), 4321);
    let socket = host.namespace.within(|| UdpSocket::bind(address)).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

/// Introduces a and b to each other and returns whether each is reached by the other.
fn punch(lab: &Lab) -> [bool; 2] {
    let [a, b, server] = ["a", "b", "server"].map(|host| socket(lab, host));
    let to = server.local_addr().unwrap();
    let mut buffer = [0; 16];
    let mut outside = |socket: &UdpSocket| {
        socket.send_to(b"who am I", to).unwrap();
        server.recv_from(&mut buffer).expect("the server is reached").1
    };
    let (a_outside, b_outside) = (outside(&a), outside(&b));
    // Twice each: the first opens the own NAT. What a host sends to the server afterwards is behind
    // it on the links to the core, so once that has arrived the NAT is open; and what the server
    // sends then is behind it on the links from the core.
    for _ in 0..2 {
        a.send_to(b"a", b_outside).unwrap();
        b.send_to(b"b", a_outside).unwrap();
        assert_eq!((outside(&a), outside(&b)), (a_outside, b_outside));
    }
    let reached = |socket: &UdpSocket, outside: SocketAddr| {
        server.send_to(b"end", outside).unwrap();
        let mut buffer = [0; 16];
        let mut is_reached = false;
        loop {
            match socket.recv_from(&mut buffer).expect("the mapping lives").0 {
                3 => return is_reached,
                _ => is_reached = true,
            }
        }
    };
    [reached(&a, a_outside), reached(&b, b_outside)]
}

#[test]
fn holes_are_punched_through_independent_mappings_and_not_through_dependent_ones() {
    let test = "hole punching";
    let Some(lab) = up(test, &spec("endpoint-independent")) else { return };
    assert_eq!(punch(&lab), [true; 2]);
    drop(lab);
    let Some(lab) = up(test, &spec("address-and-port-dependent")) else { return };
    assert_eq!(punch(&lab), [false; 2]);
}

#[test]
fn ping_traceroute_and_large_datagrams_cross_a_nat() {
    let Some(lab) = up_with("ping through a NAT", "ping", &spec("endpoint-independent")) else { return };
    let server = lab.host("server").unwrap().address().unwrap().to_string();
    let (output, text) = run(&lab, "a", &["ping", "-n", "-c2", "-W9", "-s", "4000", &server]);
    assert!(output.status.success(), "fragments: {text}");
    let (_, text) = run(&lab, "a", &["ping", "-n", "-c1", "-W9", "-t", "2", &server]);
    assert!(text.contains("Time to live exceeded"), "{text}");
}
