//! Programs from distribution packages, unchanged, in the hosts of a lab.
#![cfg(target_os = "linux")]

mod common;

use common::{run, start, up, up_with};
use fastpath_lab::Lab;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// a – r – s – b, all fast; the link in the middle takes packets of 1280 bytes.
const CHAIN: &str = r#"
    [host.a]
    [host.b]
    [router.r]
    [router.s]
    [[link]]
    between = ["a", "r"]
    rate    = "100Mbit"
    delay   = "1ms"
    [[link]]
    between = ["r", "s"]
    rate    = "20Mbit"
    delay   = "5ms"
    mtu     = 1280
    [[link]]
    between = ["s", "b"]
    rate    = "100Mbit"
    delay   = "1ms"
"#;

fn address(lab: &Lab, host: &str, wanted: fn(&IpAddr) -> bool) -> IpAddr {
    let addresses = lab.host(host).unwrap().addresses().into_iter().map(|net| net.addr());
    addresses.into_iter().find(wanted).expect("an address of that family")
}

#[test]
fn ping_measures_the_delay_of_both_directions() {
    let Some(lab) = up_with("ping", "ping", CHAIN) else { return };
    let (output, text) = run(&lab, "a", &["ping", "-n", "-c5", "-i0.2", "b"]);
    assert!(output.status.success(), "{text}");
    let minimum = text.rsplit_once("= ").and_then(|(_, times)| times.split('/').next()).unwrap();
    let minimum: f64 = minimum.parse().unwrap();
    assert!((14.0..114.0).contains(&minimum), "{minimum} ms:\n{text}");
}

#[test]
fn ping_works_over_ipv6() {
    let Some(lab) = up_with("ping over IPv6", "ping", CHAIN) else { return };
    let target = address(&lab, "b", IpAddr::is_ipv6).to_string();
    let (output, text) = run(&lab, "a", &["ping", "-6", "-n", "-c3", "-i0.2", &target]);
    assert!(output.status.success() && text.contains("3 received"), "{text}");
}

#[test]
fn traceroute_shows_every_router() {
    let Some(lab) = up_with("traceroute", "traceroute", CHAIN) else { return };
    let (output, text) = run(&lab, "a", &["traceroute", "-n", "-q1", "-w2", "b"]);
    assert!(output.status.success(), "{text}");
    let topology = lab.topology();
    let hops: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
    let owner = |hop: &&str| {
        let hop: IpAddr = hop.parse().unwrap_or_else(|_| panic!("{text}"));
        let mine = |node: &&fastpath_spec::Node| {
            node.interfaces.iter().flat_map(|i| &i.addresses).any(|net| net.addr() == hop)
        };
        topology.nodes.iter().find(mine).map(|node| node.name.as_str()).unwrap_or("unknown")
    };
    assert_eq!(hops.iter().map(owner).collect::<Vec<_>>(), ["r", "s", "b"], "{text}");
}

#[test]
fn a_packet_too_big_for_a_link_is_reported_with_its_mtu() {
    let Some(lab) = up_with("path MTU", "ping", CHAIN) else { return };
    // 1280 bytes less the headers of IP and ICMP, and one too many.
    for (family, fits) in [("-4", 1252), ("-6", 1232)] {
        let ping = |payload: u32| {
            let payload = payload.to_string();
            run(&lab, "a", &["ping", family, "-n", "-M", "do", "-s", &payload, "-c1", "-W3", "b"])
        };
        let (output, text) = ping(fits + 1);
        assert!(!output.status.success() && text.contains("1280"), "{text}");
        let (output, text) = ping(fits);
        assert!(output.status.success(), "{text}");
    }
}

#[test]
fn curl_fetches_a_page_whole_across_a_smaller_mtu() {
    const LEN: usize = 2_000_000;
    let Some(lab) = up_with("curl", "curl", CHAIN) else { return };
    let at = SocketAddr::new(address(&lab, "b", IpAddr::is_ipv4), 80);
    let listener = lab.host("b").unwrap().namespace.within(|| TcpListener::bind(at)).unwrap().unwrap();
    let server = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let _ = client.read(&mut request).unwrap();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LEN}\r\nConnection: close\r\n\r\n");
        client.write_all(head.as_bytes()).unwrap();
        client.write_all(&page(LEN)).unwrap();
    });
    let (output, _) = run(&lab, "a", &["curl", "-sS", "--max-time", "20", "http://b/"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout == page(LEN), "{} bytes came, not all as sent", output.stdout.len());
    server.join().unwrap();
}

fn page(len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

#[test]
fn iperf3_fills_the_slowest_link_and_no_more() {
    let Some(lab) = up_with("iperf3", "iperf3", CHAIN) else { return };
    let mut server = start(&lab, "b", &["iperf3", "-s", "-1", "--forceflush"]);
    let mut said = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains("listening")), "the server does not start");
    let began = Instant::now();
    let (output, text) = run(&lab, "a", &["iperf3", "-J", "-c", "b", "-n", "6M"]);
    let took = began.elapsed();
    assert!(output.status.success(), "{text}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let received = report["end"]["sum_received"]["bytes"].as_f64().unwrap();
    // 1228 of 1294 bytes are payload. Host stalls make the whole time longer, never shorter.
    let (mbit, most) = (received * 8.0 / took.as_secs_f64() / 1e6, 20.0 * 1228.0 / 1294.0);
    assert!((most * 0.1..most).contains(&mbit), "{mbit} of {most} Mbit/s:\n{text}");
    said.for_each(drop);
    server.wait().unwrap();
}

#[test]
fn a_session_that_idles_between_lines_stays_usable() {
    let Some(lab) = up("a session", CHAIN) else { return };
    let at = SocketAddr::new(address(&lab, "b", IpAddr::is_ipv4), 2222);
    let listener = lab.host("b").unwrap().namespace.within(|| TcpListener::bind(at)).unwrap().unwrap();
    let server = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut bytes = [0; 64];
        while let Ok(len @ 1..) = client.read(&mut bytes) {
            client.write_all(&bytes[..len]).unwrap();
        }
    });
    let mut session = lab.host("a").unwrap().namespace.within(|| TcpStream::connect(at)).unwrap().unwrap();
    for line in [&b"ls\n"[..], b"uptime\n", b"exit\n"] {
        session.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        session.write_all(line).unwrap();
        let mut echoed = vec![0; line.len()];
        session.read_exact(&mut echoed).unwrap();
        assert_eq!(echoed, line);
        session.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        // Idle for a while: nothing arrives.
        assert!(session.read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
    }
    drop(session);
    server.join().unwrap();
}

#[test]
fn datagrams_of_any_size_come_back_fragmented_where_they_must() {
    let Some(lab) = up("datagrams", CHAIN) else { return };
    let at = SocketAddr::new(address(&lab, "b", IpAddr::is_ipv4), 53);
    let server = lab.host("b").unwrap().namespace.within(|| UdpSocket::bind(at)).unwrap().unwrap();
    let client = lab.host("a").unwrap().namespace.within(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    for socket in [&server, &client] {
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    }
    let (mut there, mut back) = (vec![0; 65_536], vec![0; 65_536]);
    for len in [0, 1, 64, 512, 1232, 1233, 1472, 1473, 4000, 20_000] {
        let sent = page(len);
        let from = exchange(&client, at, &sent, &server, &mut there);
        exchange(&server, from, &sent, &client, &mut back);
    }
}

/// Sends until the datagram arrives, and returns its source. The first datagram above the smallest
/// MTU only discovers the path MTU (RFC 1191). Datagrams repeated after a host stall may arrive
/// later.
fn exchange(
    from: &UdpSocket,
    to: SocketAddr,
    sent: &[u8],
    sink: &UdpSocket,
    buffer: &mut [u8],
) -> SocketAddr {
    for _ in 0..10 {
        from.send_to(sent, to).unwrap();
        while let Ok((len, from)) = sink.recv_from(buffer) {
            if buffer[..len] == *sent {
                return from;
            }
        }
    }
    panic!("{} bytes do not arrive", sent.len());
}
