//! What a frame is on a wire: bytes taken away and added, cells, preamble and gap.
//!
//! ```toml
//! framing = { }                                       # Ethernet, the default: 8 bytes before, 12 after
//! framing = { add = 50 }                              # in a tunnel: 50 bytes more in each frame
//! framing = { strip = 18, add = 16, cell = 48, cell_size = 53, preamble = 0, gap = 0 }   # AAL5 on ATM
//! ```
//!
//! With cells the bytes are cut into parts of `cell` bytes, the last one is filled up, and each part
//! takes `cell_size` bytes of the wire.

use crate::keys::read_table;
use fastpath_text::mistake::Remarks;

/// What a frame of a packet is on a wire. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Bytes of the frame that are not sent: an Ethernet header and FCS.
    pub strip: u32,
    /// Bytes that are sent in addition: headers of a tunnel, a trailer.
    pub add: u32,
    /// Bytes of the frame in a cell; 0: no cells.
    pub cell: u32,
    /// Bytes of a cell on the wire.
    pub cell_size: u32,
    /// Bytes before the frame: preamble and start delimiter.
    pub preamble: u32,
    /// Bytes of silence after the frame.
    pub gap: u32,
}

read_table!(Framing as "framing", "{ add = 50 }": {
    strip = 0,
    add = 0,
    cell = 0,
    cell_size = 0,
    preamble = 8,
    gap = 12,
});

impl Default for Framing {
    /// Ethernet (IEEE 802.3).
    fn default() -> Self {
        Framing { strip: 0, add: 0, cell: 0, cell_size: 0, preamble: 8, gap: 12 }
    }
}

/// The most bytes of any value.
const BYTES_MAX: u32 = 65_535;

impl Framing {
    /// Reports values out of range; `at` is the place of the table.
    pub(crate) fn check(&self, at: usize, remarks: &mut Remarks) {
        let all = [self.strip, self.add, self.cell, self.cell_size, self.preamble, self.gap];
        if all.iter().any(|&bytes| bytes > BYTES_MAX) {
            remarks.mistake(at, "framing is out of range", "write at most 65535 bytes for each value");
        }
        if self.cell_size < self.cell || (self.cell == 0 && self.cell_size > 0) {
            let instead = "write cell, the bytes of the frame in a cell, and cell_size, at least as large";
            remarks.mistake(at, "framing has no whole cells", instead);
        }
    }

    /// The bytes between preamble and gap of a frame of `size` bytes.
    pub fn bytes(&self, size: u32) -> u64 {
        let bytes = u64::from(size.saturating_sub(self.strip)) + u64::from(self.add);
        match self.cell {
            0 => bytes,
            cell => bytes.div_ceil(u64::from(cell)) * u64::from(self.cell_size),
        }
    }

    /// The bytes of a frame of `size` bytes with preamble and gap.
    pub fn with_gap(&self, size: u32) -> u64 {
        u64::from(self.preamble) + self.bytes(size) + u64::from(self.gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aal5_has_48_bytes_in_a_cell_of_53() {
        // RFC 2684 with LLC/SNAP: 8 bytes of header, 8 of trailer. A TCP acknowledgement of 40 bytes
        // takes two cells, 1500 bytes take 32.
        let text = "strip = 18\nadd = 16\ncell = 48\ncell_size = 53\npreamble = 0\ngap = 0";
        let aal5: Framing = crate::keys::of_text(text);
        let cells = |ip: u32| aal5.with_gap(ip + 18) / 53;
        assert_eq!([cells(32), cells(33), cells(40), cells(1500)], [1, 2, 2, 32]);
        assert_eq!(Framing::default().with_gap(64), 84);
        assert_eq!(Framing { add: 50, ..Framing::default() }.with_gap(1518), 1588);
    }
}
