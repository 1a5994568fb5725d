//! A stream of UDP datagrams at a given rate from one host to another, and what arrives of it.
//!
//! The sink uses the kernel's arrival times and its count of datagrams that did not fit the socket.
//! So it reports what reached the host, not what this process was able to read.

use super::echo::wall_clock;
use super::{AuditError, SocketError, Stop, open_in};
use fastpath_lab::Host;
use fastpath_lab::arrival;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, RecvMsg, recvmsg, setsockopt,
    sockopt::{RcvBuf, RcvBufForce, ReceiveTimestampns, RxqOvfl},
};
use nix::sys::time::TimeSpec;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Receive buffer, bytes: 40 ms at 1 Gbit/s.
const BUFFER: usize = 8 << 20;
/// Minimum sleep of the source. Datagrams due by then are sent in one burst.
const TICK: Duration = Duration::from_micros(500);
/// Number of datagrams after which a source that must not burst skips what it missed.
const BURST_MAX: f64 = 4.0;
/// Maximum number of arrivals recorded: 64 MB of memory.
const ARRIVALS_MAX: usize = 4 << 20;
/// Maximum number of datagrams of a stream that are told apart: 16 MB of memory.
const NUMBERS_MAX: usize = 128 << 20;

/// Datagrams to send.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stream {
    /// Bytes of payload, at least 8.
    pub payload: usize,
    /// Datagrams per second.
    pub per_second: f64,
    /// Duration of sending.
    pub duration: Duration,
    /// What to do after a delay of the source.
    pub late: LatePolicy,
    /// Time to wait for the last datagram.
    pub patience: Duration,
}

/// What a delayed source does with the datagrams that were due meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LatePolicy {
    /// Sends them at once, to keep the mean rate.
    CatchUp,
    /// Skips them, because bursts would fill queues.
    Skip,
}

/// The result of a stream.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StreamResult {
    /// Bytes of payload of a datagram.
    pub payload: usize,
    /// Datagrams sent.
    pub sent: u64,
    /// When each of the first datagrams was sent, on the wall clock. At most as many as arrivals
    /// are recorded.
    pub sent_at: Vec<Duration>,
    /// The arrival times, on the wall clock, of each datagram once: a copy of it does not count.
    pub arrivals: Vec<Duration>,
    /// When the sink stopped waiting, on the wall clock.
    pub ended: Duration,
    /// Datagrams that arrived but found the sink's socket full: lost by the machine, not by the
    /// network.
    pub missed: u64,
}

impl StreamResult {
    /// Returns the number of datagrams that did not arrive.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.arrivals.len() as u64 + self.missed)
    }

    /// Returns the arrivals per second in the `window` that begins `settle` after the first, and
    /// their number.
    pub fn rate(&self, settle: Duration, window: Duration) -> Option<(f64, u64)> {
        // The time of an overflow is unknown: overflows are spread over the stream.
        rate_of(&self.arrivals, settle, window).map(|(rate, count)| {
            let missed = self.missed as f64 / self.arrivals.len() as f64;
            (rate * (1.0 + missed * count as f64 / (count as f64 - 1.0)), count)
        })
    }
}

/// Returns the arrivals per second in the `window` that begins `settle` after the first, and their
/// number.
pub(crate) fn rate_of(arrivals: &[Duration], settle: Duration, window: Duration) -> Option<(f64, u64)> {
    let from = *arrivals.first()? + settle;
    let steady = arrivals.iter().filter(|&&at| at >= from && at <= from + window);
    let (count, last) = steady.clone().fold((0u64, None), |(count, _), at| (count + 1, Some(*at)));
    let span = last?.checked_sub(*steady.clone().next()?)?;
    (count >= 2 && !span.is_zero()).then(|| ((count as f64 - 1.0) / span.as_secs_f64(), count))
}

/// Sends the stream from a host to an address of another, and returns what arrived.
pub fn run(
    from: &Host,
    to: &Host,
    address: IpAddr,
    stream: Stream,
    stop: &Stop,
) -> Result<StreamResult, AuditError> {
    let sink = open_in(to, "UDP", || open_sink(address))?;
    let target = sink.local_addr().map_err(|source| SocketError { what: "the sink's address", source })?;
    let source = open_in(from, "UDP", || open_source(target))?;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&sink, stream, &done));
        let sent = send(&source, stream, stop);
        let waited = if sent.is_ok() { stop.sleep(stream.patience) } else { Ok(()) };
        // Also on errors: the receiver waits for this flag.
        done.store(true, Ordering::Relaxed);
        let ended = wall_clock();
        let mut outcome = receiver.join().expect("the sink does not panic")?;
        (outcome.sent, outcome.sent_at) = sent?;
        (outcome.ended, outcome.payload) = (ended, stream.payload);
        waited?;
        Ok(outcome)
    })
}

fn open_sink(address: IpAddr) -> io::Result<UdpSocket> {
    let sink = UdpSocket::bind(SocketAddr::new(address, 0))?;
    setsockopt(&sink, ReceiveTimestampns, &true)?;
    setsockopt(&sink, RxqOvfl, &1)?;
    // Above the system's limit only with CAP_NET_ADMIN.
    setsockopt(&sink, RcvBufForce, &BUFFER).or_else(|_| setsockopt(&sink, RcvBuf, &BUFFER))?;
    sink.set_read_timeout(Some(super::ATTENTION))?;
    Ok(sink)
}

fn open_source(target: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = if target.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let source = UdpSocket::bind(SocketAddr::new(any, 0))?;
    source.connect(target)?;
    Ok(source)
}

fn send(source: &UdpSocket, stream: Stream, stop: &Stop) -> Result<(u64, Vec<Duration>), AuditError> {
    let mut times = Vec::new();
    let mut payload = vec![0; stream.payload.max(8)];
    let started = Instant::now();
    let (mut sent, mut due_from) = (0u64, 0.0);
    loop {
        let elapsed = started.elapsed();
        if elapsed >= stream.duration {
            return Ok((sent, times));
        }
        let due = elapsed.as_secs_f64() * stream.per_second;
        if stream.late == LatePolicy::Skip && due - due_from > BURST_MAX {
            due_from = due - 1.0;
        }
        while due_from < due {
            payload[..8].copy_from_slice(&sent.to_be_bytes());
            let now = wall_clock();
            match source.send(&payload) {
                Ok(_) => {
                    sent += 1;
                    if times.len() < ARRIVALS_MAX {
                        times.push(now);
                    }
                }
                // The interface did not take the datagram: it is not counted as sent.
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(SocketError { what: "sending datagrams", source: error }.into()),
            }
            due_from += 1.0;
        }
        let next = Duration::from_secs_f64(due_from / stream.per_second);
        stop.sleep(next.saturating_sub(started.elapsed()).max(TICK))?;
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN | libc::ECONNREFUSED | libc::EINTR))
}

fn receive(sink: &UdpSocket, stream: Stream, done: &AtomicBool) -> Result<StreamResult, AuditError> {
    let mut outcome = StreamResult::default();
    let mut bytes = vec![0; stream.payload.max(8) + 1];
    let mut numbers = Numbers::default();
    while !done.load(Ordering::Relaxed) && outcome.arrivals.len() < ARRIVALS_MAX {
        let mut control = cmsg_space!(TimeSpec, u32);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        match recvmsg::<()>(sink.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty()) {
            Ok(message) => {
                outcome.missed = overflow(&message).unwrap_or(outcome.missed);
                let at = message.cmsgs().ok().and_then(arrival);
                let number = u64::from_be_bytes(bytes[..8].try_into().expect("8 bytes"));
                outcome.arrivals.extend(at.filter(|_| numbers.is_new(number)));
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(error) => {
                return Err(SocketError { what: "receiving datagrams", source: error.into() }.into());
            }
        }
    }
    Ok(outcome)
}

/// The numbers of the datagrams that have arrived.
#[derive(Default)]
struct Numbers(Vec<u64>);

impl Numbers {
    /// Adds a number. Returns false if it was there. A number that cannot be one is as if it were
    /// there.
    fn is_new(&mut self, number: u64) -> bool {
        let Some(word) = usize::try_from(number / 64).ok().filter(|&word| word < NUMBERS_MAX / 64) else {
            return false;
        };
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let bit = 1 << (number % 64);
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }
}

/// Returns the number of datagrams for which the socket had no room so far.
fn overflow(message: &RecvMsg<'_, '_, ()>) -> Option<u64> {
    message.cmsgs().ok()?.find_map(|control| match control {
        ControlMessageOwned::RxqOvfl(count) => Some(u64::from(count)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_taken_between_arrivals_inside_the_window() {
        let ms = Duration::from_millis;
        // One every 10 ms, but a burst at the beginning.
        let arrivals = [0, 0, 0].into_iter().chain((1..=100).map(|i| i * 10)).map(ms).collect();
        let outcome = StreamResult { sent: 110, arrivals, ..StreamResult::default() };
        let (rate, count) = outcome.rate(ms(200), ms(500)).unwrap();
        assert!((rate - 100.0).abs() < 1e-9 && count == 51, "{rate} {count}");
        assert_eq!(outcome.lost(), 7);
        assert_eq!(StreamResult::default().rate(ms(0), ms(100)), None);
    }

    #[test]
    fn a_copy_of_a_datagram_does_not_arrive_again() {
        let mut numbers = Numbers::default();
        let new: Vec<bool> = [5, 0, 5, 64, 64, 0, u64::MAX].map(|number| numbers.is_new(number)).into();
        assert_eq!(new, [true, true, false, true, false, false, false]);
    }
}
