//! The record of a run: visits of packets to units ([`Visit`]), a fingerprint ([`TraceHash`]) and a
//! file for a trace viewer ([`ChromeTrace`]).
//!
//! Two runs are the same run if their hashes agree. The Chrome trace opens in Perfetto
//! (<https://ui.perfetto.dev>) or chrome://tracing: one row per server, one bar per visit.

use fastpath_units::{Duration, Time};
use std::io::{self, Write};

/// A packet's stay at one server of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The unit's number in [`Machine::units`](crate::Machine::units).
    pub unit: usize,
    /// The server, core, thread, port or link.
    pub server: u32,
    /// The packet's number in the run, from 0.
    pub packet: u64,
    /// The leg of the program: consecutive stages on one unit are one leg.
    pub leg: usize,
    /// When the server took the packet.
    pub start: Time,
    /// When the server finished the packet.
    pub end: Time,
}

/// A running 64-bit hash over (time, event kind, entity), the same on every machine. Each value is
/// mixed in with FNV-1a's xor-then-multiply on whole 64-bit words. A rotation then brings high bits
/// down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceHash(u64);

impl Default for TraceHash {
    fn default() -> Self {
        TraceHash(0xcbf2_9ce4_8422_2325)
    }
}

impl TraceHash {
    const PRIME: u64 = 0x0000_0100_0000_01b3;

    /// Mixes one event in.
    #[inline]
    pub fn record(&mut self, at: Time, kind: u8, entity: u32) {
        self.mix(at.as_ps());
        self.mix(u64::from(kind) << 32 | u64::from(entity));
    }

    #[inline]
    fn mix(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(Self::PRIME).rotate_left(29);
    }

    /// The hash of everything recorded so far.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Writes the JSON array form of the Chrome trace event format ("Trace Event Format", Google,
/// 2016).
#[derive(Debug)]
pub struct ChromeTrace<W: Write> {
    out: W,
    written: u64,
}

impl<W: Write> ChromeTrace<W> {
    /// Starts a trace on `out`.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(b"[")?;
        Ok(ChromeTrace { out, written: 0 })
    }

    /// Names row `row`. Quotes and backslashes in the name are dropped.
    pub fn name(&mut self, row: u32, name: &str) -> io::Result<()> {
        let name: String = name.chars().filter(|c| !matches!(c, '"' | '\\') && !c.is_control()).collect();
        self.separate()?;
        write!(
            self.out,
            r#"{{"name":"thread_name","ph":"M","pid":1,"tid":{row},"args":{{"name":"{name}"}}}}"#
        )
    }

    /// Draws a bar on `row` for `packet`, from `start` for `span`.
    pub fn bar(&mut self, row: u32, packet: u64, start: Time, span: Duration) -> io::Result<()> {
        self.separate()?;
        write!(
            self.out,
            r#"{{"name":"packet {packet}","ph":"X","pid":1,"tid":{row},"ts":{},"dur":{}}}"#,
            Micros(start.as_ps()),
            Micros(span.as_ps())
        )
    }

    /// Ends the array and returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(b"\n]\n")?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn separate(&mut self) -> io::Result<()> {
        let separator: &[u8] = if self.written == 0 { b"\n" } else { b",\n" };
        self.written += 1;
        self.out.write_all(separator)
    }
}

/// Picoseconds, printed as exact microseconds: the unit of the format.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_frozen_and_every_part_counts() {
        let hash = |at, kind, entity| {
            let mut hash = TraceHash::default();
            hash.record(Time::from_ps(at), kind, entity);
            hash.get()
        };
        let all = [hash(1, 2, 3), hash(2, 2, 3), hash(1, 3, 3), hash(1, 2, 4)];
        let distinct: std::collections::BTreeSet<u64> = all.into_iter().collect();
        assert_eq!(distinct.len(), 4);
        assert_eq!(all[0], 8654198778303255524);
    }

    #[test]
    fn a_trace_is_a_json_array_with_exact_microseconds() {
        let mut trace = ChromeTrace::new(Vec::new()).unwrap();
        trace.name(3, "co\"re 3").unwrap();
        trace.bar(3, 17, Time::from_ps(1_500_001), Duration::from_ns(250)).unwrap();
        let text = String::from_utf8(trace.finish().unwrap()).unwrap();
        let expected = r#"[
{"name":"thread_name","ph":"M","pid":1,"tid":3,"args":{"name":"core 3"}},
{"name":"packet 17","ph":"X","pid":1,"tid":3,"ts":1.500001,"dur":0.250000}
]
"#;
        assert_eq!(text, expected);
    }
}
