//! One TCP connection of the kernel that always has data to send.
//!
//! Its congestion control is CUBIC (RFC 9438), whatever the system's default is. CUBIC keeps a
//! drop-tail queue filled, while BBR drains the path at times to probe its RTT. Where BBR is the
//! default, the connection keeps BBR's pacing.

use super::{AuditError, SocketError, Stop, open_in};
use fastpath_lab::Host;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{Linger, TcpCongestion};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes written and read at a time.
const CHUNK: usize = 256 << 10;
/// Maximum number of reads recorded.
const READS_MAX: usize = 1 << 20;

/// Returns the goodput of one connection, Mbit/s, from `settle` to `duration` after its start;
/// `None` if it was not established.
pub fn run(
    from: &Host,
    to: &Host,
    address: IpAddr,
    (settle, duration): (Duration, Duration),
    stop: &Stop,
) -> Result<Option<f64>, AuditError> {
    let listener = open_in(to, "TCP", || TcpListener::bind(SocketAddr::new(address, 0)))?;
    let target =
        listener.local_addr().map_err(|source| SocketError { what: "the listener's address", source })?;
    let Some(source) = open_in(from, "TCP", || connect(target))? else { return Ok(None) };
    let (sink, _) = listener.accept().map_err(|source| SocketError { what: "accepting", source })?;
    for socket in [&source, &sink] {
        let set = || {
            socket.set_read_timeout(Some(super::ATTENTION))?;
            socket.set_write_timeout(Some(super::ATTENTION))
        };
        set().map_err(|source| SocketError { what: "setting timeouts", source })?;
    }
    // Without CUBIC in the kernel the default remains. The figure is not judged.
    let _ = setsockopt(&source, TcpCongestion, &"cubic".into());
    let started = Instant::now();
    thread::scope(|scope| {
        let sender = scope.spawn(|| fill(&source, started + duration, stop));
        let reads = drain(&sink, started, duration, stop)?;
        sender.join().expect("the source does not panic")?;
        // Reset the connection, to discard what is still queued.
        let _ = setsockopt(&source, Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
        Ok(Some(goodput(&reads, (settle, duration))))
    })
}

fn connect(target: SocketAddr) -> io::Result<Option<TcpStream>> {
    match TcpStream::connect_timeout(&target, Duration::from_secs(10)) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
        Err(error) => Err(error),
    }
}

fn fill(mut source: &TcpStream, until: Instant, stop: &Stop) -> Result<(), AuditError> {
    let chunk = vec![0; CHUNK];
    while Instant::now() < until {
        stop.check()?;
        match source.write(&chunk) {
            Ok(_) => {}
            Err(error) if is_timeout(&error) => {}
            Err(source) => return Err(SocketError { what: "sending over TCP", source }.into()),
        }
    }
    Ok(())
}

/// Reads until `duration` after `started`. Returns the times since then and the bytes read so far.
fn drain(
    mut sink: &TcpStream,
    started: Instant,
    duration: Duration,
    stop: &Stop,
) -> Result<Vec<(Duration, u64)>, AuditError> {
    let mut chunk = vec![0; CHUNK];
    let (mut reads, mut total) = (Vec::new(), 0);
    while started.elapsed() < duration && reads.len() < READS_MAX {
        stop.check()?;
        match sink.read(&mut chunk) {
            Ok(0) => break,
            Ok(len) => {
                total += len as u64;
                reads.push((started.elapsed(), total));
            }
            Err(error) if is_timeout(&error) => {}
            Err(source) => return Err(SocketError { what: "receiving over TCP", source }.into()),
        }
    }
    Ok(reads)
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Returns the Mbit/s from `settle` to `duration`: between the first and the last read in that
/// time, or over the whole time if these are less than half of it apart, as after losses or a host
/// stall.
fn goodput(reads: &[(Duration, u64)], (settle, duration): (Duration, Duration)) -> f64 {
    let (start, steady) = reads.split_at(reads.partition_point(|(at, _)| *at < settle));
    let mbit = |bytes: u64, time: Duration| bytes as f64 * 8.0 / time.as_secs_f64() / 1e6;
    match steady {
        [(from, before), .., (to, after)] if 2 * (*to - *from) >= duration - settle => {
            mbit(after - before, *to - *from)
        }
        _ => {
            let total = |reads: &[(Duration, u64)]| reads.last().map_or(0, |(_, total)| *total);
            mbit(total(reads) - total(start), duration - settle)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_leaves_the_start_out() {
        let second = Duration::from_secs;
        let window = |from, to| (second(from), second(to));
        let reads = [(second(1), 5), (second(2), 10), (second(3), 1_000_010), (second(4), 2_000_010)];
        assert_eq!(goodput(&reads, window(2, 4)), 8.0);
        assert_eq!(goodput(&reads, window(4, 8)), 2.0, "a single read");
        assert_eq!(goodput(&reads, window(3, 11)), 2.0, "a burst");
        assert_eq!(goodput(&reads, window(5, 8)), 0.0, "silence");
        assert_eq!(goodput(&[], window(0, 1)), 0.0);
    }
}
