//! Which ports to poll: those that may have frames, so that thousands of idle ports cost nothing.
//!
//! ```text
//!  few ports, or without a descriptor ──▶ always     polled every iteration, if the worker polls
//!  the others ──epoll──▶ hot ──a poll finds nothing──▶ (out)
//! ```

use crate::Idle;
use fastpath_sys::epoll::Epoll;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Up to this number, polling all ports costs no more than asking the kernel which to poll.
const FEW: usize = 8;
/// The number of the doorbell among the ports.
const BELL: u64 = u64::MAX;

/// See the head of this file. Ports are identified by their number.
pub(crate) struct Ready {
    epoll: Epoll,
    always: Vec<u32>,
    hot: Vec<u32>,
    is_hot: Vec<bool>,
    /// Whether each port is in `epoll` and not in `always`.
    is_watched: Vec<bool>,
    watched: usize,
    /// The next port that [`Ready::suspect`] names.
    next_suspect: usize,
    /// By port: its number in `epoll`, which stays when ports are renumbered. `None`: not in it.
    tokens: Vec<Option<u32>>,
    /// By number in `epoll`: the port, if it is in use.
    ports: Vec<Option<u32>>,
    /// The kernel refused to watch a port, which is polled instead.
    has_refused: bool,
}

impl Ready {
    /// Creates the set from the descriptors of the ports and the doorbell that ends a wait. A
    /// worker that never waits leaves the descriptors of few ports out of the epoll set, because a
    /// member costs the sender of every frame.
    pub(crate) fn new(
        ports: &[Option<BorrowedFd<'_>>],
        bell: BorrowedFd<'_>,
        idle: Idle,
    ) -> io::Result<Ready> {
        let mut ready = Ready {
            epoll: Epoll::new()?,
            always: Vec::new(),
            hot: Vec::new(),
            is_hot: Vec::new(),
            is_watched: Vec::new(),
            watched: 0,
            next_suspect: 0,
            tokens: Vec::new(),
            ports: Vec::new(),
            has_refused: false,
        };
        ready.epoll.add(bell, BELL)?;
        ready.rearrange(&vec![None; ports.len()], ports, &[], idle);
        if ready.has_refused {
            return Err(io::Error::last_os_error());
        }
        Ok(ready)
    }

    /// Renumbers the ports: port `number` is the one that had the number `from[number]`, or a new
    /// one. `removed` has the descriptors, still open, of those that are not there any more, by
    /// their former number.
    pub(crate) fn rearrange(
        &mut self,
        from: &[Option<usize>],
        ports: &[Option<BorrowedFd<'_>>],
        removed: &[Option<BorrowedFd<'_>>],
        idle: Idle,
    ) {
        let mut former = std::mem::take(&mut self.tokens);
        for (number, fd) in removed.iter().enumerate() {
            if let (Some(fd), Some(token)) = (fd, former[number].take()) {
                self.epoll.remove(*fd);
                self.ports[token as usize] = None;
            }
        }
        let was_hot = std::mem::replace(&mut self.is_hot, vec![false; ports.len()]);
        let was_watched = std::mem::replace(&mut self.is_watched, vec![false; ports.len()]);
        self.always.clear();
        self.hot.clear();
        self.hot.reserve(ports.len());
        (self.watched, self.next_suspect, self.has_refused) = (0, 0, false);
        let is_asked = ports.len() > FEW || idle == Idle::Sleep;
        let tokens = self.ports.iter().enumerate();
        let mut unused: Vec<usize> =
            tokens.filter(|(_, port)| port.is_none()).map(|(token, _)| token).collect();
        for (number, fd) in ports.iter().enumerate() {
            let mut token = from[number].and_then(|former_number| former[former_number]);
            if let Some(fd) = fd.filter(|_| token.is_none() && (is_asked || idle != Idle::Busy)) {
                let free = unused.pop().unwrap_or_else(|| {
                    self.ports.push(None);
                    self.ports.len() - 1
                });
                match self.epoll.add(fd, free as u64) {
                    Ok(()) => token = Some(free as u32),
                    Err(_) => {
                        self.has_refused = true;
                        unused.push(free);
                    }
                }
            }
            if let Some(token) = token {
                self.ports[token as usize] = Some(number as u32);
            }
            self.tokens.push(token);
            if token.is_some() && is_asked {
                self.is_watched[number] = true;
                self.watched += 1;
                // What was polled always may have frames.
                let was = from[number].map(|former| was_hot[former] || !was_watched[former]);
                if was.unwrap_or(false) {
                    self.is_hot[number] = true;
                    self.hot.push(number as u32);
                }
            } else {
                self.always.push(number as u32);
            }
        }
    }

    /// Returns whether the kernel refused to watch a port.
    pub(crate) fn has_refused(&self) -> bool {
        self.has_refused
    }

    /// Returns the ports that are polled every iteration.
    pub(crate) fn always(&self) -> &[u32] {
        &self.always
    }

    /// Returns the port at a place of the list of ports to poll now: `always`, then the hot ones.
    pub(crate) fn at(&self, place: usize) -> Option<usize> {
        let hot = || self.hot.get(place - self.always.len());
        self.always.get(place).or_else(hot).map(|&number| number as usize)
    }

    /// Records that a poll of the port at `place` found nothing. Returns true if the next port is
    /// now at that place.
    pub(crate) fn found_nothing(&mut self, place: usize) -> bool {
        let Some(place) = place.checked_sub(self.always.len()) else { return false };
        let number = self.hot.swap_remove(place);
        self.is_hot[number as usize] = false;
        true
    }

    /// Learns which ports have become readable. Returns true if the doorbell rings.
    pub(crate) fn refresh(&mut self) -> bool {
        if self.watched == 0 {
            return false;
        }
        let mut is_ringing = false;
        for token in self.epoll.ready() {
            is_ringing |= token == BELL;
            note(token, (&self.ports, &self.is_watched), (&mut self.is_hot, &mut self.hot));
        }
        is_ringing
    }

    /// [`Ready::wait`] and [`Ready::refresh`] by one system call. Returns whether something woke it
    /// up, and whether the doorbell rings.
    pub(crate) fn wait_and_refresh(&mut self, timeout: Duration) -> (bool, bool) {
        let (mut is_woken, mut is_ringing) = (false, false);
        for token in self.epoll.wait_ready(timeout) {
            is_woken = true;
            is_ringing |= token == BELL;
            note(token, (&self.ports, &self.is_watched), (&mut self.is_hot, &mut self.hot));
        }
        (is_woken, is_ringing)
    }

    /// Waits until a port is readable or broken, the doorbell rings, or `timeout` has passed.
    /// Returns false on a timeout.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        self.epoll.wait(timeout)
    }

    /// Adds another silent port to those that are polled, because a removed device does not always
    /// report it.
    pub(crate) fn suspect(&mut self) {
        if self.watched == 0 {
            return;
        }
        let number = self.next_suspect;
        self.next_suspect = (number + 1) % self.is_watched.len();
        if self.is_watched[number] && !std::mem::replace(&mut self.is_hot[number], true) {
            self.hot.push(number as u32);
        }
    }

    /// Removes a port. Its descriptor must still be open.
    pub(crate) fn remove(&mut self, number: usize, fd: Option<BorrowedFd<'_>>) {
        if let (Some(fd), Some(token)) = (fd, self.tokens[number].take()) {
            self.epoll.remove(fd);
            self.ports[token as usize] = None;
        }
        self.always.retain(|&port| port as usize != number);
        self.hot.retain(|&port| port as usize != number);
        self.is_hot[number] = false;
        self.watched -= usize::from(std::mem::take(&mut self.is_watched[number]));
    }
}

/// Makes the port with a number in `epoll` hot, if it is watched.
fn note(
    token: u64,
    (ports, is_watched): (&[Option<u32>], &[bool]),
    (is_hot, hot): (&mut [bool], &mut Vec<u32>),
) {
    let Some(number) = ports.get(token as usize).copied().flatten() else { return };
    if is_watched[number as usize] && !std::mem::replace(&mut is_hot[number as usize], true) {
        hot.push(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    fn to_poll(ready: &Ready) -> Vec<usize> {
        (0..).map_while(|place| ready.at(place)).collect()
    }

    #[test]
    fn only_readable_ones_of_many_ports_are_polled_until_they_are_empty() {
        let mut pairs: Vec<_> = (0..100).map(|_| UnixStream::pair().unwrap()).collect();
        let (bell, mut ring) = UnixStream::pair().unwrap();
        let fds: Vec<_> = pairs.iter().map(|(port, _)| Some(port.as_fd())).chain([None]).collect();
        let mut ready = Ready::new(&fds, bell.as_fd(), Idle::Busy).unwrap();
        assert!(!ready.refresh());
        assert_eq!(to_poll(&ready), [100]);
        pairs[7].1.write_all(b"x").unwrap();
        assert!(ready.wait(Duration::from_secs(5)));
        assert!(!ready.refresh() && !ready.refresh());
        assert_eq!(to_poll(&ready), [100, 7]);
        assert!(!ready.found_nothing(0));
        assert!(ready.found_nothing(1));
        assert_eq!(to_poll(&ready), [100]);
        // Port 7 is still readable, so it is polled again.
        ring.write_all(b"x").unwrap();
        assert!(ready.refresh());
        assert_eq!(to_poll(&ready), [100, 7]);
        ready.remove(7, Some(pairs[7].0.as_fd()));
        assert!(ready.refresh());
        assert_eq!(to_poll(&ready), [100]);
        (0..101).for_each(|_| ready.suspect());
        assert_eq!(to_poll(&ready).len(), 1 + 99);
    }

    #[test]
    fn few_ports_are_always_polled() {
        let (port, mut far) = UnixStream::pair().unwrap();
        let (bell, _ring) = UnixStream::pair().unwrap();
        let mut ready = Ready::new(&[Some(port.as_fd()), None], bell.as_fd(), Idle::Save).unwrap();
        assert_eq!(to_poll(&ready), [0, 1]);
        assert!(!ready.found_nothing(0) && !ready.refresh() && !ready.wait(Duration::ZERO));
        far.write_all(b"x").unwrap();
        assert!(ready.wait(Duration::from_secs(5)));
        ready.remove(0, Some(port.as_fd()));
        assert_eq!(to_poll(&ready), [1]);
        // A worker that never waits leaves the descriptor out of the epoll set.
        let ready = Ready::new(&[Some(port.as_fd())], bell.as_fd(), Idle::Busy).unwrap();
        assert!(!ready.wait(Duration::ZERO));
        assert_eq!(to_poll(&ready), [0]);
    }
}
