//! Bytes on the wire for links that send cells or strip headers: ATM under DSL, or a modem that
//! does not send the Ethernet header. The arithmetic is that of netem's `rate` (packet_time_ns in
//! `net/sched/sch_netem.c`).

use fastpath_units::Bytes;
use std::fmt;
use std::num::NonZeroU32;

/// A rule for the bytes on the wire, instead of [`PipeSpec::overhead`](crate::PipeSpec::overhead).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// Bytes added to each frame first; negative if the wire carries less than the frame. The
    /// result is at least zero.
    pub packet: i32,
    /// Cells into which the frame is cut then. The last cell is padded.
    pub cells: Option<Cells>,
}

/// Cells of one size. ATM's have 48 bytes of payload and 5 more (ITU-T I.361).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cells {
    /// Bytes of a frame that one cell carries.
    pub payload: NonZeroU32,
    /// Bytes of a cell in addition to its payload; may be negative, as in netem.
    pub overhead: i32,
}

impl Framing {
    /// Returns the bytes on the wire for a frame of `len` bytes.
    pub fn on_wire(&self, len: u32) -> Bytes {
        let bytes = (i64::from(len) + i64::from(self.packet)).max(0);
        let bytes = match self.cells {
            None => bytes,
            Some(Cells { payload, overhead }) => {
                let payload = i64::from(payload.get());
                // Both factors fit 33 bits.
                (bytes + payload - 1) / payload * (payload + i64::from(overhead)).max(0)
            }
        };
        Bytes(bytes as u64)
    }
}

impl fmt::Display for Framing {
    /// `-14 B`, `8 B, cells of 48 + 5 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.packet)?;
        match self.cells {
            None => Ok(()),
            Some(Cells { payload, overhead }) => write!(f, ", cells of {payload} + {overhead} B"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_fills_whole_cells() {
        let atm = |packet| {
            let payload = NonZeroU32::new(48).expect("not 0");
            Framing { packet, cells: Some(Cells { payload, overhead: 5 }) }
        };
        // AAL5 adds 8 bytes to the packet (RFC 2684). 40 + 8 bytes fill one cell; one byte more
        // takes a second cell.
        for (framing, len, bytes) in [
            (Framing { packet: -14, cells: None }, 1514, 1500),
            (Framing { packet: -14, cells: None }, 10, 0),
            (atm(8), 40, 53),
            (atm(8), 41, 106),
            (atm(8), 1500, 32 * 53),
            (atm(0), 0, 0),
            (atm(i32::MIN), u32::MAX, (u64::from(u32::MAX) - (1 << 31)).div_ceil(48) * 53),
        ] {
            assert_eq!(framing.on_wire(len), Bytes(bytes), "{framing} {len}");
        }
    }
}
