//! Writers of pcap and pcapng: little-endian, with times in nanoseconds.

use std::io::{Error, ErrorKind, Result, Write};

const NS_PER_S: u64 = 1_000_000_000;

/// A writer of a pcap file with nanosecond times.
pub struct Writer<W> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// Writes the file header. All packets have the link type `link_type`, for example
    /// [`super::LINKTYPE_ETHERNET`]. `out` should be buffered.
    pub fn new(mut out: W, link_type: u16) -> Result<Writer<W>> {
        // Magic, version 2.4, two reserved fields, snap length (none), link type.
        let words = [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, super::PACKET_BYTES_MAX, u32::from(link_type)];
        write_words(&mut out, &words)?;
        Ok(Writer { out })
    }

    /// Appends a packet captured `ns` nanoseconds after 1970 with `orig_len` bytes on the wire.
    /// Returns an error for times after 2106, which the format cannot represent.
    pub fn write_packet(&mut self, ns: u64, orig_len: u32, data: &[u8]) -> Result<()> {
        let secs = u32::try_from(ns / NS_PER_S);
        let secs =
            secs.map_err(|_| Error::new(ErrorKind::InvalidInput, "a pcap file holds times up to 2106 only"))?;
        let len = packet_len(data)?;
        write_words(&mut self.out, &[secs, (ns % NS_PER_S) as u32, len, orig_len])?;
        self.out.write_all(data)
    }

    /// Flushes the output and returns it.
    pub fn finish(mut self) -> Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// A writer of a pcapng file with one section, any number of interfaces and a comment per packet.
pub struct NgWriter<W> {
    out: W,
    interfaces: u32,
    block: Vec<u8>,
}

/// An interface of a pcapng file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface<'a> {
    /// LINKTYPE of its packets ([`super::LINKTYPE_ETHERNET`]).
    pub link_type: u16,
    /// Name, such as `eth0`; omitted if empty.
    pub name: &'a str,
    /// Description for people; omitted if empty.
    pub description: &'a str,
}

const OPTION_COMMENT: u16 = 1;

impl<W: Write> NgWriter<W> {
    /// Flushes the output.
    pub fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }

    /// Writes the section header with the name of the application. `out` should be buffered.
    pub fn new(out: W, application: &str) -> Result<NgWriter<W>> {
        const OPTION_APPLICATION: u16 = 4;
        let mut writer = NgWriter { out, interfaces: 0, block: Vec::new() };
        // Byte-order magic, version 1.0, section length not stated.
        writer.start(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]);
        writer.text(OPTION_APPLICATION, application);
        writer.end(0x0a0d_0d0a)?;
        Ok(writer)
    }

    /// Writes an interface description and returns the number of the interface, for
    /// [`NgWriter::write_packet`].
    pub fn add_interface(&mut self, interface: &Interface<'_>) -> Result<u32> {
        const INTERFACE_DESCRIPTION: u32 = 1;
        const OPTION_NAME: u16 = 2;
        const OPTION_DESCRIPTION: u16 = 3;
        const OPTION_TSRESOL: u16 = 9;
        self.start(&[u32::from(interface.link_type), 0]);
        self.text(OPTION_NAME, interface.name);
        self.text(OPTION_DESCRIPTION, interface.description);
        self.option(OPTION_TSRESOL, &[9]);
        self.end(INTERFACE_DESCRIPTION)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Appends a packet captured on an interface `ns` nanoseconds after 1970 with `orig_len` bytes
    /// on the wire. An empty comment is omitted. Panics if the interface was not added.
    pub fn write_packet(
        &mut self,
        interface: u32,
        ns: u64,
        orig_len: u32,
        data: &[u8],
        comment: &str,
    ) -> Result<()> {
        const ENHANCED_PACKET: u32 = 6;
        assert!(interface < self.interfaces, "interface {interface} of {} was not added", self.interfaces);
        self.start(&[interface, (ns >> 32) as u32, ns as u32, packet_len(data)?, orig_len]);
        self.padded(data);
        self.text(OPTION_COMMENT, comment);
        self.end(ENHANCED_PACKET)
    }

    /// Appends the statistics of an interface (draft-ietf-opsawg-pcapng §4.6): `received` frames
    /// were to be captured by `ns` nanoseconds after 1970, and `missed` of them are not in the
    /// file. Panics if the interface was not added.
    pub fn write_statistics(&mut self, interface: u32, ns: u64, received: u64, missed: u64) -> Result<()> {
        const INTERFACE_STATISTICS: u32 = 5;
        const OPTION_RECEIVED: u16 = 4;
        const OPTION_MISSED: u16 = 5;
        assert!(interface < self.interfaces, "interface {interface} of {} was not added", self.interfaces);
        self.start(&[interface, (ns >> 32) as u32, ns as u32]);
        self.option(OPTION_RECEIVED, &received.to_le_bytes());
        self.option(OPTION_MISSED, &missed.to_le_bytes());
        self.end(INTERFACE_STATISTICS)
    }

    /// Returns the output, for example to take what has been written.
    pub fn output_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Flushes the output and returns it.
    pub fn finish(mut self) -> Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// Starts the body of a block.
    fn start(&mut self, words: &[u32]) {
        self.block.clear();
        self.block.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    /// Adds a text option, truncated to the maximum of 65 535 bytes; omits it if it is empty.
    fn text(&mut self, code: u16, value: &str) {
        let value = &value[..value.floor_char_boundary(usize::from(u16::MAX))];
        if !value.is_empty() {
            self.option(code, value.as_bytes());
        }
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.padded(value);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Ends the options and writes the block with both lengths.
    fn end(&mut self, kind: u32) -> Result<()> {
        self.block.extend([0; 4]);
        let len = self.block.len() as u32 + 12;
        write_words(&mut self.out, &[kind, len])?;
        self.out.write_all(&self.block)?;
        write_words(&mut self.out, &[len])
    }
}

fn write_words<W: Write>(out: &mut W, words: &[u32]) -> Result<()> {
    words.iter().try_for_each(|word| out.write_all(&word.to_le_bytes()))
}

fn packet_len(data: &[u8]) -> Result<u32> {
    let len = u32::try_from(data.len()).ok().filter(|len| *len <= super::PACKET_BYTES_MAX);
    len.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "a captured packet has at most 1 MiB"))
}
