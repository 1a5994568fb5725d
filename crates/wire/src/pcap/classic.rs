//! Reads pcap files: a header of 24 bytes, then records of 16 bytes followed by data
//! (draft-ietf-opsawg-pcap §4–5).

use super::source::Source;
use super::{Endian, ReadError, Record};
use std::io::Read;

/// The file header, which applies to every record.
pub(super) struct Header {
    endian: Endian,
    ns_per_tick: u64,
    link_type: u16,
}

impl Header {
    /// Returns byte order and nanoseconds per tick for the first four bytes of a file, or `None` if
    /// the file is not pcap.
    pub(super) fn magic(magic: [u8; 4]) -> Option<(Endian, u64)> {
        match u32::from_le_bytes(magic) {
            0xa1b2_c3d4 => Some((Endian::Little, 1000)),
            0xa1b2_3c4d => Some((Endian::Little, 1)),
            0xd4c3_b2a1 => Some((Endian::Big, 1000)),
            0x4d3c_b2a1 => Some((Endian::Big, 1)),
            _ => None,
        }
    }

    /// Reads the header after its magic number.
    pub(super) fn read<R: Read>(source: &mut Source<R>, magic: (Endian, u64)) -> Result<Header, ReadError> {
        let (endian, ns_per_tick) = magic;
        // Version, two reserved fields, snap length, link type. The snap length is not enforced,
        // because files exceed it.
        let rest = source.header_bytes::<20>()?;
        let [_, _, _, _, network] = endian.words(&rest);
        // The upper half contains the FCS length, the lower half the link type.
        Ok(Header { endian, ns_per_tick, link_type: network as u16 })
    }

    pub(super) fn read_packet<R: Read>(
        &self,
        source: &mut Source<R>,
        data: &mut Vec<u8>,
    ) -> Result<Option<Record>, ReadError> {
        let Some(record) = source.start_record::<16>()? else { return Ok(None) };
        let [secs, ticks, len, orig_len] = self.endian.words(&record);
        source.data(len, data)?;
        source.end_packet();
        let ns = u64::from(secs) * 1_000_000_000 + u64::from(ticks) * self.ns_per_tick;
        Ok(Some(Record { ns: Some(ns), orig_len, interface: 0, link_type: self.link_type }))
    }
}
