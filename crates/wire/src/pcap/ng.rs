//! pcapng files: sections of blocks, each with its length before and after it
//! (draft-ietf-opsawg-pcapng §3–4).
//!
//! Only what gives packets their bytes and times is read; every other block and option is passed
//! over.

use super::source::Source;
use super::{Damage, Endian, ReadError, Record};
use std::io::Read;

/// The block type of a section header, the same in both byte orders.
pub(super) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// More interfaces than any section has; a bound on memory.
const INTERFACES_MAX: usize = 1 << 16;
/// Type and both lengths.
const BLOCK_OVERHEAD: u32 = 12;

/// The section being read.
pub(super) struct Section {
    endian: Endian,
    interfaces: Vec<Clock>,
}

/// An interface: what its packets are and how its clock ticks.
#[derive(Clone, Copy)]
struct Clock {
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
    /// The first section header, after its block type.
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

    /// A section header (§4.1) after its type: a new byte order, and no interfaces yet.
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
        // Minor version, section length (not relied on), options.
        source.skip(len - BLOCK_OVERHEAD - 6)?;
        self.read_trailer(source, len)
    }

    /// An interface description (§4.2).
    fn read_interface<R: Read>(&mut self, source: &mut Source<R>, body: u32) -> Result<(), ReadError> {
        let options = self.left(source, body, 8)?;
        if self.interfaces.len() == INTERFACES_MAX {
            return Err(source.damaged(Damage::TooManyInterfaces(INTERFACES_MAX)));
        }
        let link_type = self.endian.u16(source.bytes()?);
        source.skip(2)?;
        let snap_len = self.endian.u32(source.bytes()?);
        let resolution = Resolution::Decimal(6);
        let mut clock = Clock { link_type, snap_len, resolution, offset_secs: 0 };
        self.read_clock_options(source, options, &mut clock)?;
        self.interfaces.push(clock);
        Ok(())
    }

    /// `if_tsresol` and `if_tsoffset` among the options (§3.5, §4.2) of `len` bytes.
    fn read_clock_options<R: Read>(
        &self,
        source: &mut Source<R>,
        mut len: u32,
        clock: &mut Clock,
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

    /// An enhanced packet (§4.3).
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

    /// A packet block as written before enhanced ones (appendix A).
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

    /// The data of a packet block, of which `room` bytes are left, and what its clock says.
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

    /// A simple packet (§4.4): the first interface's, without a time, as long as its snap length
    /// allows.
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

    /// `len` bytes of packet, then padding and options, `room` bytes in all.
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

    fn clock<R: Read>(&self, source: &Source<R>, interface: u32) -> Result<Clock, ReadError> {
        let clock = self.interfaces.get(interface as usize).copied();
        clock.ok_or_else(|| source.damaged(Damage::UnknownInterface(interface)))
    }

    /// What is left of `room` bytes after `taken`.
    fn left<R: Read>(&self, source: &Source<R>, room: u32, taken: u32) -> Result<u32, ReadError> {
        room.checked_sub(taken).ok_or_else(|| source.damaged(Damage::BlockLength(room + BLOCK_OVERHEAD)))
    }

    fn read_trailer<R: Read>(&self, source: &mut Source<R>, len: u32) -> Result<(), ReadError> {
        let trailer = self.endian.u32(source.bytes()?);
        if trailer == len { Ok(()) } else { Err(source.damaged(Damage::BlockTrailer(len, trailer))) }
    }
}

impl Clock {
    /// Nanoseconds since 1970 at a tick; `None` when a `u64` cannot hold them.
    fn ns(&self, ticks: u64) -> Option<u64> {
        const NS_PER_S: u128 = 1_000_000_000;
        let scaled = u128::from(ticks) * NS_PER_S;
        let ns = match self.resolution {
            // 10^38 is the largest power of ten in a u128; a u64 of finer ticks is less than a
            // nanosecond.
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
    /// The `if_tsresol` option: the top bit chooses the base.
    fn new(option: u8) -> Resolution {
        match option {
            0..=0x7f => Resolution::Decimal(option),
            0x80.. => Resolution::Binary(option & 0x7f),
        }
    }
}
