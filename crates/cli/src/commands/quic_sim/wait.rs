//! Waits until a QUIC server answers.

use anyhow::{Context, bail, ensure};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long to wait, and how long after each probe.
const LONGEST: Duration = Duration::from_secs(10);
const BETWEEN: Duration = Duration::from_millis(500);
/// The bytes of a probe: a server need not answer a shorter one (RFC 9000 §14.1).
const PROBE_LEN: usize = 1207;

/// Waits until the server at `HOST:PORT` answers a QUIC packet of an unknown version by Version
/// Negotiation (RFC 8999 §6), for at most 10 s.
pub(super) fn for_server(server: &str, stop: &AtomicBool) -> anyhow::Result<()> {
    let instead = "write WAITFORSERVER=HOST:PORT";
    let mut addresses = server.to_socket_addrs().with_context(|| format!("{server}: {instead}"))?;
    let Some(address) = addresses.next() else { bail!("{server}: it has no address; {instead}") };
    println!("waiting for {server}");
    let start = Instant::now();
    ensure!(answers(address, LONGEST, stop)?, "{server} has not answered a QUIC packet within {LONGEST:?}");
    println!("{server} is available after {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Returns whether the server answers in time.
fn answers(server: SocketAddr, longest: Duration, stop: &AtomicBool) -> anyhow::Result<bool> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    let mut answer = [0; 1500];
    let end = Instant::now() + longest;
    while !stop.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        // A network that is not there yet is one that does not answer.
        let _ = socket.send_to(&probe(), server);
        socket.set_read_timeout(Some(left.min(BETWEEN).max(Duration::from_millis(1))))?;
        match socket.recv_from(&mut answer) {
            Ok((len, from)) if from.ip() == server.ip() => {
                let is_answer = fastpath::wire::udp::is_version_negotiation(&answer[..len]);
                ensure!(is_answer, "{server} answers, but not as QUIC does: it is not a QUIC server");
                return Ok(true);
            }
            Ok(_) => {}
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bail!("interrupted")
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// A long header with a version that does not exist, and no connection IDs.
fn probe() -> [u8; PROBE_LEN] {
    let mut probe = [0; PROBE_LEN];
    probe[..5].copy_from_slice(b"\xc0WAIT");
    probe
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a server that answers its second datagram, the first after the probe before.
    fn server(answer: &'static [u8]) -> SocketAddr {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut probe = [0; 1500];
            for _ in 0..2 {
                let (len, from) = socket.recv_from(&mut probe).unwrap();
                assert_eq!((len, &probe[1..5]), (PROBE_LEN, &b"WAIT"[..]));
                if probe[0] == 0xc0 {
                    socket.send_to(answer, from).unwrap();
                }
            }
        });
        address
    }

    #[test]
    fn a_server_is_there_once_it_negotiates_a_version() {
        let stop = AtomicBool::new(false);
        assert!(answers(server(b"\x80\0\0\0\0\0\0\0\0\0\x01"), LONGEST, &stop).unwrap());
        assert!(answers(server(b"HTTP/1.1 400"), LONGEST, &stop).is_err());
        let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = silent.local_addr().unwrap();
        assert!(!answers(address, Duration::from_millis(20), &stop).unwrap());
        stop.store(true, Ordering::Relaxed);
        assert!(answers(address, LONGEST, &stop).is_err());
    }
}
