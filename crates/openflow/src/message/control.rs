//! Messages about the connection and the switch as a whole (§7.3.1, §7.3.2, §7.3.9, §7.3.10, §7.5).

use super::VERSION;
use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use super::packet::PortDescription;
use super::versions::Versions;
use fastpath_switch::Version;

/// OFPT_HELLO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The highest version that the sender supports.
    pub version: u8,
    /// A bit for each version that the sender supports, if it sent a bitmap.
    pub bitmap: Option<u32>,
}

/// OFPT_ERROR.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ErrorMessage {
    /// OFPET_.
    pub kind: u16,
    /// The code; its meaning depends on the type.
    pub code: u16,
    /// The beginning of the request, or a text.
    pub data: Vec<u8>,
}

/// OFPT_FEATURES_REPLY.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the specification names them")]
pub struct Features {
    pub datapath_id: u64,
    pub buffers: u32,
    pub tables: u8,
    pub auxiliary_id: u8,
    pub capabilities: u32,
    /// A bit for each type of action. OpenFlow 1.0 only.
    pub actions: u32,
    /// The ports. OpenFlow 1.0 only.
    pub ports: Vec<PortDescription>,
}

/// OFPT_SET_CONFIG and OFPT_GET_CONFIG_REPLY.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// OFPC_FRAG_.
    pub flags: u16,
    /// Bytes of a packet to send to the controller where no flow specifies it.
    pub miss_send_len: u16,
}

/// The role of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// No change: only report the role.
    NoChange,
    /// Full access, shared with other controllers.
    Equal,
    /// Full access, as the only master.
    Master,
    /// Read-only access.
    Slave,
}

/// OFPT_ROLE_REQUEST and OFPT_ROLE_REPLY.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoleMessage {
    /// The role.
    pub role: Role,
    /// The generation id of the election.
    pub generation_id: u64,
}

/// OFPT_SET_ASYNC and OFPT_GET_ASYNC_REPLY: which asynchronous messages are sent, by reason, for
/// masters and equals and for slaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Async {
    /// OFPR_ bits.
    pub packet_in: [u32; 2],
    /// OFPPR_ bits.
    pub port_status: [u32; 2],
    /// OFPRR_ bits.
    pub flow_removed: [u32; 2],
}

impl Hello {
    /// The hello of a switch or controller of OpenFlow 1.3 only.
    pub fn ours() -> Hello {
        Hello::of(Versions::only(Version::V13))
    }

    /// The hello that offers these versions. OpenFlow 1.0 alone has no bitmap.
    pub fn of(versions: Versions) -> Hello {
        let version = versions.highest().number();
        Hello { version, bitmap: (version >= VERSION).then(|| versions.bitmap()) }
    }

    /// Returns the version that is used with a peer of this hello, if these are ours (§6.3.1: by
    /// the bitmaps if both sides sent one, otherwise the smaller of the versions).
    pub fn negotiate(&self, ours: Versions) -> Option<Version> {
        match self.bitmap {
            Some(theirs) => ours.iter().rev().find(|version| theirs & 1 << version.number() != 0),
            None => {
                let version = Version::from_number(self.version.min(ours.highest().number()))?;
                ours.contains(version).then_some(version)
            }
        }
    }

    /// Unknown elements are skipped, as are bytes that form none.
    pub(super) fn read(version: u8, r: &mut ByteReader<'_>) -> Hello {
        let mut hello = Hello { version, bitmap: None };
        let mut elements = || -> Result<(), Fault> {
            while !r.is_empty() {
                let (kind, len) = (r.u16()?, usize::from(r.u16()?));
                let mut body = r.part(len.checked_sub(4).ok_or(Fault::BadLen)?, Fault::BadLen)?;
                r.skip((len.next_multiple_of(8) - len).min(r.len()))?;
                if kind == 1 && hello.bitmap.is_none() {
                    hello.bitmap = Some(body.u32()?);
                }
            }
            Ok(())
        };
        let _ = elements();
        r.rest();
        hello
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        // The version is in the header, which was written before.
        let header = out.len() - super::HEADER_LEN;
        out[header] = self.version;
        if let Some(bitmap) = self.bitmap {
            out.u16(1);
            out.u16(8);
            out.u32(bitmap);
        }
    }
}

impl Features {
    pub(super) fn read(r: &mut ByteReader<'_>) -> Result<Features, Fault> {
        let (datapath_id, buffers, tables, auxiliary_id) = (r.u64()?, r.u32()?, r.u8()?, r.u8()?);
        r.skip(2)?;
        let capabilities = r.u32()?;
        r.skip(4)?;
        let (actions, ports) = (0, Vec::new());
        Ok(Features { datapath_id, buffers, tables, auxiliary_id, capabilities, actions, ports })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.u64(self.datapath_id);
        out.u32(self.buffers);
        out.u8(self.tables);
        out.u8(self.auxiliary_id);
        out.u16(0);
        out.u32(self.capabilities);
        out.u32(0);
    }
}

impl RoleMessage {
    pub(super) fn read(r: &mut ByteReader<'_>) -> Result<RoleMessage, Fault> {
        let number = r.u32()?;
        r.skip(4)?;
        let generation_id = r.u64()?;
        let role = match number {
            0 => Role::NoChange,
            1 => Role::Equal,
            2 => Role::Master,
            3 => Role::Slave,
            _ => return Err(Fault::RoleBad(number)),
        };
        Ok(RoleMessage { role, generation_id })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.u32(match self.role {
            Role::NoChange => 0,
            Role::Equal => 1,
            Role::Master => 2,
            Role::Slave => 3,
        });
        out.u32(0);
        out.u64(self.generation_id);
    }
}

impl Async {
    /// The masks of a new connection (§6.3.5, §7.3.10): everything but packet-ins for an invalid
    /// TTL for masters and equals, port changes for slaves.
    pub const DEFAULT: Async = Async { packet_in: [0x3, 0], port_status: [0x7, 0x7], flow_removed: [0xf, 0] };

    /// Returns the masks without the bits of reasons that do not exist.
    pub(crate) fn known(self) -> Async {
        let keep = |words: [u32; 2], bits: u32| words.map(|word| word & bits);
        Async {
            packet_in: keep(self.packet_in, 0x7),
            port_status: keep(self.port_status, 0x7),
            flow_removed: keep(self.flow_removed, 0xf),
        }
    }

    pub(super) fn read(r: &mut ByteReader<'_>) -> Result<Async, Fault> {
        let mut two = || -> Result<[u32; 2], Fault> { Ok([r.u32()?, r.u32()?]) };
        Ok(Async { packet_in: two()?, port_status: two()?, flow_removed: two()? })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        [self.packet_in, self.port_status, self.flow_removed]
            .as_flattened()
            .iter()
            .for_each(|mask| out.u32(*mask));
    }
}
