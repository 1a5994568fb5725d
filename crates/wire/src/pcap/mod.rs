//! Captures: streaming readers and writers of pcap and pcapng with nanosecond resolution.
//!
//! The reader detects the format from the first bytes, keeps one packet in memory and trusts no
//! length field. A truncated file gives all its complete packets, then an error with the position.
//! Compressed files are not supported.
//!
//! Two existing crates were rejected. pcap-parser (0.17) reads `if_tsoffset` as little-endian in
//! big-endian sections and keeps only 32 bits of the seconds. pcap-file (3.0.0-rc.3) rejects
//! packets longer than the snap length, which occur in real files. Neither reports which packet is
//! damaged.
//!
//! Read first: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng §4.

mod classic;
mod ethernet;
mod ng;
mod source;
#[cfg(test)]
mod tests;
mod write;

pub use write::{Interface, NgWriter, Writer};

use source::Source;
use std::io::Read;

/// The LINKTYPE of Ethernet frames. [`Packet::ethernet`] makes frames of those of other link types.
pub const LINKTYPE_ETHERNET: u16 = 1;

/// The maximum length of a captured packet in bytes. A larger length field means that the file is
/// damaged.
pub const PACKET_BYTES_MAX: u32 = 1 << 20;

/// One packet of a capture. Its bytes are valid until the next packet is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Nanoseconds since 1970-01-01 UTC; finer resolutions are rounded down. `None` for the simple
    /// packet blocks of pcapng.
    pub ns: Option<u64>,
    /// Length of the frame on the wire in bytes: greater than `data.len()` if a snap length
    /// truncated the frame, equal otherwise.
    pub orig_len: u32,
    /// Index of the interface within its section; 0 for pcap.
    pub interface: u32,
    /// LINKTYPE of `data`: [`LINKTYPE_ETHERNET`] for Ethernet frames.
    pub link_type: u16,
    /// The captured bytes.
    pub data: &'a [u8],
}

/// Why a capture cannot be read further. Packets are numbered from 1; offsets are in bytes from 0.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file has no bytes.
    #[error("the file is empty; a capture has at least a header")]
    Empty,
    /// The file has another format.
    #[error("not a pcap or pcapng file: it starts with {0:02x?}; convert it, or decompress it first")]
    UnknownFormat([u8; 4]),
    /// The file ends inside its header.
    #[error("file is cut in the middle of its header")]
    CutHeader,
    /// The file ends inside a packet or another record.
    #[error(
        "file is cut in the middle of packet {packet} (offset {offset}); the packets before it are complete"
    )]
    Cut {
        /// Number of the incomplete packet, or of the packet that would follow the incomplete
        /// record.
        packet: u64,
        /// Offset of the record.
        offset: u64,
    },
    /// A record has invalid content.
    #[error(
        "file is damaged at packet {packet} (offset {offset}): {damage}; the packets before it are complete"
    )]
    Damaged {
        /// Number of the damaged packet, or of the packet that would follow the damaged record.
        packet: u64,
        /// Offset of the record.
        offset: u64,
        /// What is wrong.
        damage: Damage,
    },
    /// Reading the input failed.
    #[error("reading packet {packet} (offset {offset}): {error}")]
    Io {
        /// Number of the packet that was being read.
        packet: u64,
        /// Offset of its record.
        offset: u64,
        /// The error of the input.
        error: std::io::Error,
    },
}

/// What is wrong with a record of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Damage {
    /// A length exceeds [`PACKET_BYTES_MAX`].
    #[error("the packet length {0} exceeds the maximum of {PACKET_BYTES_MAX} bytes")]
    PacketTooLong(u32),
    /// A block length is not a multiple of four, too small for its type, or too small for the
    /// content of the block.
    #[error("the block length {0} is invalid")]
    BlockLength(u32),
    /// The length at the end of a block differs from the length at its start.
    #[error("the block length is {0} at the start of the block and {1} at its end")]
    BlockTrailer(u32, u32),
    /// The byte-order magic of a section is unknown.
    #[error("the byte-order magic {0:#010x} is unknown")]
    ByteOrder(u32),
    /// The major version is not 1.
    #[error("pcapng version {0} is not supported")]
    Version(u16),
    /// A packet refers to an interface without a preceding description.
    #[error("interface {0} has no interface description block before this packet")]
    UnknownInterface(u32),
    /// A section has too many interfaces.
    #[error("the section has more than {0} interfaces")]
    TooManyInterfaces(usize),
    /// A timestamp is before 1970 or after 2554.
    #[error("the timestamp is before 1970 or after 2554")]
    Timestamp,
}

/// A streaming reader of captures. It supports pcap with both byte orders, in microseconds and
/// nanoseconds, and pcapng with any sections, interfaces and resolutions, and with enhanced, simple
/// and obsolete packet blocks.
///
/// ```
/// # let file = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
/// let mut reader = fastpath_wire::pcap::CaptureReader::new(&file[..])?;
/// while let Some(packet) = reader.read_packet()? {
///     println!("{:?} {} bytes", packet.ns, packet.data.len());
/// }
/// # Ok::<(), fastpath_wire::pcap::ReadError>(())
/// ```
pub struct CaptureReader<R> {
    source: Source<R>,
    format: Format,
    data: Vec<u8>,
    done: bool,
}

enum Format {
    Classic(classic::Header),
    Ng(ng::Section),
}

/// The fields of a packet whose bytes are in the reader's buffer.
struct Record {
    ns: Option<u64>,
    orig_len: u32,
    interface: u32,
    link_type: u16,
}

/// The byte order of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Endian {
    Little,
    Big,
}

impl<R: Read> CaptureReader<R> {
    /// Opens a capture and detects its format. The reader buffers `input`.
    pub fn new(input: R) -> Result<CaptureReader<R>, ReadError> {
        let mut source = Source::new(input);
        let magic = source.header_bytes::<4>()?;
        let format = match classic::Header::magic(magic) {
            Some(flavour) => Format::Classic(classic::Header::read(&mut source, flavour)?),
            None if magic == ng::SECTION_HEADER => Format::Ng(ng::Section::read_first(&mut source)?),
            None => return Err(ReadError::UnknownFormat(magic)),
        };
        Ok(CaptureReader { source, format, data: Vec::new(), done: false })
    }

    /// Reads the next packet. Returns `None` at the end of the file and after an error.
    pub fn read_packet(&mut self) -> Result<Option<Packet<'_>>, ReadError> {
        if self.done {
            return Ok(None);
        }
        let record = match &mut self.format {
            Format::Classic(header) => header.read_packet(&mut self.source, &mut self.data),
            Format::Ng(section) => section.read_packet(&mut self.source, &mut self.data),
        };
        self.done = !matches!(record, Ok(Some(_)));
        let data = &self.data;
        Ok(record?.map(|record| Packet {
            ns: record.ns,
            orig_len: record.orig_len.max(data.len() as u32),
            interface: record.interface,
            link_type: record.link_type,
            data,
        }))
    }
}

impl Endian {
    fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Endian::Little => u16::from_le_bytes(bytes),
            Endian::Big => u16::from_be_bytes(bytes),
        }
    }

    fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Endian::Little => u32::from_le_bytes(bytes),
            Endian::Big => u32::from_be_bytes(bytes),
        }
    }

    fn i64(self, bytes: [u8; 8]) -> i64 {
        match self {
            Endian::Little => i64::from_le_bytes(bytes),
            Endian::Big => i64::from_be_bytes(bytes),
        }
    }

    /// Decodes the 32-bit words of a record.
    fn words<const N: usize>(self, bytes: &[u8]) -> [u32; N] {
        let (words, _) = bytes.as_chunks::<4>();
        std::array::from_fn(|i| self.u32(words[i]))
    }
}
