//! Captures: streaming readers and writers of pcap and pcapng, exact to the nanosecond.
//!
//! The reader finds the format in the first bytes, holds one packet at a time, and trusts no
//! length: a file cut in the middle gives all its complete packets and then one error that says
//! where. Compressed files are not opened here.
//!
//! Written here because neither crate for it does this: pcap-parser (0.17) reads `if_tsoffset`
//! little-endian in big-endian sections and keeps 32 bits of the seconds; pcap-file (3.0.0-rc.3)
//! refuses packets over the snap length, which real files hold; and neither says which packet is
//! broken.
//!
//! Read first: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng §4.

mod classic;
mod ng;
mod source;
#[cfg(test)]
mod tests;
mod write;

pub use write::{Interface, NgWriter, Writer};

use source::Source;
use std::io::Read;

/// LINKTYPE of Ethernet frames, the only ones the rest of this crate understands.
pub const LINKTYPE_ETHERNET: u16 = 1;

/// No packet of a capture may be longer than this, in bytes; longer lengths are damage, not data.
pub const PACKET_BYTES_MAX: u32 = 1 << 20;

/// One packet of a capture; its bytes live in the reader until the next one is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Nanoseconds since 1970-01-01 UTC, finer resolutions truncated; `None` in pcapng's simple
    /// packet blocks.
    pub ns: Option<u64>,
    /// Bytes of the frame on the wire, never less than `data.len()`: more when a snap length cut
    /// it.
    pub orig_len: u32,
    /// Index of the interface within its section; 0 in pcap.
    pub interface: u32,
    /// LINKTYPE of `data`, [`LINKTYPE_ETHERNET`] for frames.
    pub link_type: u16,
    /// The bytes captured.
    pub data: &'a [u8],
}

/// Why a capture cannot be read further. Packets are numbered from 1, offsets in bytes from 0.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Nothing in it.
    #[error("the file is empty; a capture has at least a header")]
    Empty,
    /// Another sort of file.
    #[error("not a pcap or pcapng file: it starts with {0:02x?}; convert it, or decompress it first")]
    UnknownFormat([u8; 4]),
    /// It ends inside its header.
    #[error("file is cut in the middle of its header")]
    CutHeader,
    /// It ends inside a packet or another record.
    #[error(
        "file is cut in the middle of packet {packet} (offset {offset}); the packets before it are whole"
    )]
    Cut {
        /// Number of the packet that is not whole, or that would follow a cut record of another
        /// sort.
        packet: u64,
        /// Where its record starts.
        offset: u64,
    },
    /// What is written there cannot be.
    #[error(
        "file is damaged at packet {packet} (offset {offset}): {damage}; the packets before it are whole"
    )]
    Damaged {
        /// Number of the packet that should come there.
        packet: u64,
        /// Where the record starts.
        offset: u64,
        /// What is wrong.
        damage: Damage,
    },
    /// The input itself failed.
    #[error("reading packet {packet} (offset {offset}): {error}")]
    Io {
        /// Number of the packet that was being read.
        packet: u64,
        /// Where its record starts.
        offset: u64,
        /// What the input said.
        error: std::io::Error,
    },
}

/// What is wrong with a record of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Damage {
    /// A length over [`PACKET_BYTES_MAX`].
    #[error("it claims {0} bytes, more than {PACKET_BYTES_MAX}")]
    PacketTooLong(u32),
    /// A block length that is not a multiple of four or too small for its type, or parts that do
    /// not fit in it.
    #[error("the block length {0} cannot be")]
    BlockLength(u32),
    /// The length at the end of a block is not the one at its start.
    #[error("the block is {0} bytes long at its start and {1} at its end")]
    BlockTrailer(u32, u32),
    /// A section whose byte order cannot be told.
    #[error("the byte-order magic is {0:#010x}")]
    ByteOrder(u32),
    /// A major version other than 1.
    #[error("pcapng version {0} is not known")]
    Version(u16),
    /// A packet of an interface that was not described.
    #[error("interface {0} has no description before it")]
    UnknownInterface(u32),
    /// More interfaces than anybody has.
    #[error("more than {0} interfaces")]
    TooManyInterfaces(usize),
    /// Before 1970 or after 2554.
    #[error("the timestamp is before 1970 or after 2554")]
    Timestamp,
}

/// A streaming reader of pcap (both byte orders, microseconds and nanoseconds) and pcapng (any
/// sections, interfaces and resolutions; enhanced, simple and the obsolete packet blocks).
///
/// ```
/// # let file = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
/// let mut reader = fastpath_wire::pcap::Reader::new(&file[..])?;
/// while let Some(packet) = reader.read_packet()? {
///     println!("{:?} {} bytes", packet.ns, packet.data.len());
/// }
/// # Ok::<(), fastpath_wire::pcap::ReadError>(())
/// ```
pub struct Reader<R> {
    source: Source<R>,
    format: Format,
    data: Vec<u8>,
    done: bool,
}

enum Format {
    Classic(classic::Header),
    Ng(ng::Section),
}

/// A packet's fields while its bytes are in the reader's buffer.
struct Record {
    ns: Option<u64>,
    orig_len: u32,
    interface: u32,
    link_type: u16,
}

/// Order of bytes in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Endian {
    Little,
    Big,
}

impl<R: Read> Reader<R> {
    /// Opens a capture by its first bytes. Buffers its input itself.
    pub fn new(input: R) -> Result<Reader<R>, ReadError> {
        let mut source = Source::new(input);
        let magic = source.header_bytes::<4>()?;
        let format = match classic::Header::magic(magic) {
            Some(flavour) => Format::Classic(classic::Header::read(&mut source, flavour)?),
            None if magic == ng::SECTION_HEADER => Format::Ng(ng::Section::read_first(&mut source)?),
            None => return Err(ReadError::UnknownFormat(magic)),
        };
        Ok(Reader { source, format, data: Vec::new(), done: false })
    }

    /// The next packet; `None` at the end. After an error there is nothing more: the next call
    /// gives `None`.
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

    /// The words of a record's fixed part.
    fn words<const N: usize>(self, bytes: &[u8]) -> [u32; N] {
        let (words, _) = bytes.as_chunks::<4>();
        std::array::from_fn(|i| self.u32(words[i]))
    }
}
