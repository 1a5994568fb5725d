//! The receive window: how far beyond what has arrived a receiver takes bytes. It grows with what
//! arrives, and as the program reads, as Linux tunes it (`tcp_grow_window`,
//! `tcp_rcv_space_adjust`).

use fastpath_units::{Duration, Time};

/// The most that a receiver offers first, bytes: the largest window without scaling.
const FIRST: u64 = 65_535;
/// What fits into the first receive buffer of 128 KiB when segments of an Ethernet take 2,304 bytes
/// of memory for 1,514, bytes.
const ROOM: u64 = 85_760;
/// Segments in the first round trip, which the first measure of what is read compares with.
const FIRST_SPACE: u64 = 10;
/// The length of the timestamp option, with its padding (RFC 7323 §3.2).
const TIMESTAMP_LEN: u64 = 12;

/// See the head of this file.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveWindow {
    /// What is offered.
    size: u64,
    /// What it may grow to with what arrives.
    clamp: u64,
    /// What the clamp may grow to.
    most: u64,
    /// What was read in the round trip that has set the clamp.
    space: u64,
    /// Since when, and from where on, reading is measured: from the first data on.
    since: Option<(Time, u64)>,
    /// The round trip by timestamps of the sender, eight times, ms: a shorter one at once, longer
    /// ones by an eighth. 0: not known.
    rtt_ms_8: u64,
    /// The timestamp that was measured last.
    echo: u32,
    /// The end of what was offered.
    edge: u64,
}

impl ReceiveWindow {
    /// The window of a receiver of segments with `mss` bytes that takes at most `most` bytes.
    pub(crate) fn new(mss: u64, most: u64) -> ReceiveWindow {
        let advertised = mss + TIMESTAMP_LEN;
        let first = FIRST.checked_div(advertised).unwrap_or(0).max(1) * advertised;
        ReceiveWindow {
            size: first.min(most),
            clamp: ROOM.max(first).min(most),
            most,
            space: FIRST_SPACE * mss,
            since: None,
            rtt_ms_8: 0,
            echo: 0,
            edge: 0,
        }
    }

    /// Takes note of a segment with data in order that arrived. `echo`: the timestamp that it
    /// returns, ms. Returns whether the window grew.
    pub(crate) fn grow(&mut self, now: Time, len: u64, echo: u32) -> bool {
        if echo != self.echo {
            self.echo = echo;
            let now_ms = now.since(Time::ZERO).as_ms_f64() as u64;
            let (sample, known) = (now_ms.saturating_sub(u64::from(echo)).max(1), self.rtt_ms_8);
            let is_less = known == 0 || sample << 3 < known;
            self.rtt_ms_8 = if is_less { sample << 3 } else { known - (known >> 3) + sample };
        }
        let grown = (self.clamp - self.size.min(self.clamp)).min(2 * len);
        self.size += grown;
        grown > 0
    }

    /// Takes note that the program has read all up to `position`.
    pub(crate) fn read(&mut self, now: Time, position: u64) {
        let (since, from) = *self.since.get_or_insert((now, 1));
        let rtt = Duration::from_ms(self.rtt_ms_8 >> 3);
        if self.rtt_ms_8 == 0 || now.since(since) < rtt {
            return;
        }
        let read = position.saturating_sub(from);
        if read > self.space {
            // The sender may double its rate within the round trip for which the window is late.
            let doubled = 2 * read;
            let grown = doubled + 2 * (doubled * (read - self.space) / self.space);
            self.space = read;
            self.clamp = self.clamp.max(grown.min(self.most));
        }
        self.since = Some((now, position));
    }

    /// Returns the window that is offered with an acknowledgement of all up to `position`. The end
    /// of what was offered does not move back (RFC 9293 §3.8.6).
    pub(crate) fn offer(&mut self, position: u64) -> u64 {
        self.edge = self.edge.max(position + self.size);
        self.edge - position
    }
}
