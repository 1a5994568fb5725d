//! Reads pcapng files: sections of blocks, each with its length before and after its body
//! (draft-ietf-opsawg-pcapng §3–4).
//!
//! Only the blocks and options that determine the bytes and times of packets are read; all others
//! are skipped.

use super::source::Source;
use super::{Damage, Endian, ReadError, Record};
use std::io::Read;

/// The block type of a section header, which is the same in both byte orders.
pub(super) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// The maximum number of interfaces of a section, which bounds the memory used.
const INTERFACES_MAX: usize = 1 << 16;
/// Length of the block type and both block lengths in bytes.
const BLOCK_OVERHEAD: u32 = 12;

/// The section being read.
pub(super) struct Section {
    endian: Endian,
    interfaces: Vec<InterfaceClock>,
}

/// An interface: the link type, snap length and clock of its packets.
#[derive(Clone, Copy)]
struct InterfaceClock {
    link_type: u16,
    snap_len: u32,
    resolution: Resolution,
    offset_secs: i64,
}

/// The length of one tick.
#[derive(Clone, Copy)]
enum Resolution {
    /// 10^-n seconds.
    Decimal(u8),
    /// 2^-n seconds.
    Binary(u8),
}

impl Section {
    /// Reads the first section header, after its block type.
    pub(super) fn read_first<R: Read>(source: &mut Source<R>) -> Result<Section, ReadError> {
        let mut section = Section { endian: Endian::Little, interfaces: Vec::new() };
        match section.read_header(source) {
            Err(ReadError::Cut { .. }) => Err(ReadError::CutHeader),
            other => other.map(|()| section),
        }
    }

    pub(super) fn read_packet<R: Read>(
        &mut self,
        source: &mut Source<R>,
        data: &mut Vec<u8>,
    ) -> Result<Option<Record>, ReadError> {
        while let Some(kind) = source.start_record::<4>()? {
            if kind == SECTION_HEADER {
                self.read_header(source)?;
                continue;
            }
            let len = self.endian.u32(source.bytes()?);
            if len < BLOCK_OVERHEAD || !len.is_multiple_of(4) {
                return Err(source.damaged(Damage::BlockLength(len)));
            }
            let body = len - BLOCK_OVERHEAD;
            let record = match self.endian.u32(kind) {
                INTERFACE_DESCRIPTION => {
                    self.read_interface(source, body)?;
                    None
                }
                ENHANCED_PACKET => Some(self.read_enhanced(source, body, data)?),
                OBSOLETE_PACKET => Some(self.read_obsolete(source, body, data)?),
                SIMPLE_PACKET => Some(self.read_simple(source, body, data)?),
                _ => {
                    source.skip(body)?;
                    None
                }
            };
            self.read_trailer(source, len)?;
            if record.is_some() {
                source.end_packet();
                return Ok(record);
            }
        }
        Ok(None)
    }

    /// Reads a section header (§4.1) after its type. It sets the byte order and clears the
    /// interfaces.
    fn read_header<R: Read>(&mut self, source: &mut Source<R>) -> Result<(), ReadError> {
        const MAGIC: u32 = 0x1a2b_3c4d;
        let len = source.bytes::<4>()?;
        let magic = source.bytes::<4>()?;
        self.endian = match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
            (MAGIC, _) => Endian::Little,
            (_, MAGIC) => Endian::Big,
            (other, _) => return Err(source.damaged(Damage::ByteOrder(other))),
        };
        self.interfaces.clear();
        let len = self.endian.u32(len);
        if len < 28 || !len.is_multiple_of(4) {
            return Err(source.damaged(Damage::BlockLength(len)));
        }
        let version = self.endian.u16(source.bytes()?);
        if version != 1 {
            return Err(source.damaged(Damage::Version(version)));
        }
        // Minor version, section length (ignored), options.
        source.skip(len - BLOCK_OVERHEAD - 6)?;
        self.read_trailer(source, len)
    }

    /// Reads an interface description (§4.2).
    fn read_interface<R: Read>(&mut self, source: &mut Source<R>, body: u32) -> Result<(), ReadError> {
        let options = self.left(source, body, 8)?;
        if self.interfaces.len() == INTERFACES_MAX {
            return Err(source.damaged(Damage::TooManyInterfaces(INTERFACES_MAX)));
        }
        let link_type = self.endian.u16(source.bytes()?);
        source.skip(2)?;
        let snap_len = self.endian.u32(source.bytes()?);
        let resolution = Resolution::Decimal(6);
        let mut clock = InterfaceClock { link_type, snap_len, resolution, offset_secs: 0 };
        self.read_clock_options(source, options, &mut clock)?;
        self.interfaces.push(clock);
        Ok(())
    }

    /// Reads `if_tsresol` and `if_tsoffset` from the options (§3.5, §4.2), which have `len` bytes.
    fn read_clock_options<R: Read>(
        &self,
        source: &mut Source<R>,
        mut len: u32,
        clock: &mut InterfaceClock,
    ) -> Result<(), ReadError> {
        const END: u16 = 0;
        const TSRESOL: u16 = 9;
        const TSOFFSET: u16 = 14;
        while len >= 4 {
            let code = self.endian.u16(source.bytes()?);
            let value_len = self.endian.u16(source.bytes()?);
            len -= 4;
            if code == END {
                break;
            }
            let padded = u32::from(value_len).next_multiple_of(4);
            let Some(rest) = len.checked_sub(padded) else {
                return Err(source.damaged(Damage::BlockLength(len)));
            };
            match (code, value_len) {
                (TSRESOL, 1) => clock.resolution = Resolution::new(source.bytes::<4>()?[0]),
                (TSOFFSET, 8) => clock.offset_secs = self.endian.i64(source.bytes()?),
                _ => source.skip(padded)?,
            }
            len = rest;
        }
        source.skip(len)
    }

    /// Reads an enhanced packet block (§4.3).
    fn read_enhanced<R: Read>(
        &self,
        source: &mut Source<R>,
        body: u32,
        data: &mut Vec<u8>,
    ) -> Result<Record, ReadError> {
        let room = self.left(source, body, 20)?;
        let [interface, high, low, len, orig_len] = self.endian.words(&source.bytes::<20>()?);
        self.read_timed(source, (interface, high, low, orig_len), len, room, data)
    }

    /// Reads an obsolete packet block, the predecessor of the enhanced one (appendix A).
    fn read_obsolete<R: Read>(
        &self,
        source: &mut Source<R>,
        body: u32,
        data: &mut Vec<u8>,
    ) -> Result<Record, ReadError> {
        let room = self.left(source, body, 20)?;
        let interface = u32::from(self.endian.u16(source.bytes()?));
        source.skip(2)?;
        let [high, low, len, orig_len] = self.endian.words(&source.bytes::<16>()?);
        self.read_timed(source, (interface, high, low, orig_len), len, room, data)
    }

    /// Reads the data of a packet block with `room` remaining bytes and converts its timestamp.
    fn read_timed<R: Read>(
        &self,
        source: &mut Source<R>,
        (interface, high, low, orig_len): (u32, u32, u32, u32),
        len: u32,
        room: u32,
        data: &mut Vec<u8>,
    ) -> Result<Record, ReadError> {
        let clock = self.clock(source, interface)?;
        self.read_data(source, len, room, data)?;
        let ns = clock.ns(u64::from(high) << 32 | u64::from(low));
        let ns = ns.ok_or_else(|| source.damaged(Damage::Timestamp))?;
        Ok(Record { ns: Some(ns), orig_len, interface, link_type: clock.link_type })
    }

    /// Reads a simple packet block (§4.4). It belongs to the first interface and has no timestamp;
    /// the snap length of the interface limits its data.
    fn read_simple<R: Read>(
        &self,
        source: &mut Source<R>,
        body: u32,
        data: &mut Vec<u8>,
    ) -> Result<Record, ReadError> {
        let room = self.left(source, body, 4)?;
        let orig_len = self.endian.u32(source.bytes()?);
        let clock = self.clock(source, 0)?;
        let snap_len = if clock.snap_len == 0 { u32::MAX } else { clock.snap_len };
        self.read_data(source, orig_len.min(snap_len), room, data)?;
        Ok(Record { ns: None, orig_len, interface: 0, link_type: clock.link_type })
    }

    /// Reads `len` bytes of packet and skips padding and options: `room` bytes in total.
    fn read_data<R: Read>(
        &self,
        source: &mut Source<R>,
        len: u32,
        room: u32,
        data: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let rest = self.left(source, room, len)?;
        source.data(len, data)?;
        source.skip(rest)
    }

    fn clock<R: Read>(&self, source: &Source<R>, interface: u32) -> Result<InterfaceClock, ReadError> {
        let clock = self.interfaces.get(interface as usize).copied();
        clock.ok_or_else(|| source.damaged(Damage::UnknownInterface(interface)))
    }

    /// Returns `room - taken`, or the error that the block is too short.
    fn left<R: Read>(&self, source: &Source<R>, room: u32, taken: u32) -> Result<u32, ReadError> {
        room.checked_sub(taken).ok_or_else(|| source.damaged(Damage::BlockLength(room + BLOCK_OVERHEAD)))
    }

    fn read_trailer<R: Read>(&self, source: &mut Source<R>, len: u32) -> Result<(), ReadError> {
        let trailer = self.endian.u32(source.bytes()?);
        if trailer == len { Ok(()) } else { Err(source.damaged(Damage::BlockTrailer(len, trailer))) }
    }
}

impl InterfaceClock {
    /// Converts ticks to nanoseconds since 1970; `None` if these exceed a `u64`.
    fn ns(&self, ticks: u64) -> Option<u64> {
        const NS_PER_S: u128 = 1_000_000_000;
        let scaled = u128::from(ticks) * NS_PER_S;
        let ns = match self.resolution {
            // 10^38 is the largest power of ten in a u128. With finer ticks any u64 is less than
            // one nanosecond.
            Resolution::Decimal(n) => {
                10u128.checked_pow(n.into()).map_or(0, |per_second| scaled / per_second)
            }
            Resolution::Binary(n) => scaled >> n,
        };
        let offset = i128::from(self.offset_secs) * NS_PER_S as i128;
        u64::try_from(ns as i128 + offset).ok()
    }
}

impl Resolution {
    /// Decodes the `if_tsresol` option: its top bit selects the base.
    fn new(option: u8) -> Resolution {
        match option {
            0..=0x7f => Resolution::Decimal(option),
            0x80.. => Resolution::Binary(option & 0x7f),
        }
    }
}
