//! Messages about the connection and the switch as a whole (§7.3.1, §7.3.2, §7.3.9, §7.3.10, §7.5).

use super::VERSION;
use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use super::packet::PortDescription;
use fastpath_switch::{Version, Versions};

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
    /// OFPCRR_ bits. OpenFlow 1.4.
    pub role_status: [u32; 2],
    /// OFPTR_ bits. OpenFlow 1.4.
    pub table_status: [u32; 2],
    /// OFPRFR_ bits. OpenFlow 1.4.
    pub request_forward: [u32; 2],
}

/// One mask of an OFPT_SET_ASYNC of OpenFlow 1.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsyncMask {
    /// The type of messages: 0 packet-in, 1 port status, 2 flow removed, 3 role status, 4 table
    /// status, 5 request forward.
    pub message: u16,
    /// Whether it applies while the controller is a slave, or otherwise.
    pub is_of_slaves: bool,
    /// A bit for each reason.
    pub mask: u32,
}

/// OFPT_ROLE_STATUS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoleStatus {
    /// OFPCRR_: 0 another controller has become master.
    pub reason: u8,
    /// The role of the controller now.
    pub role: RoleMessage,
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

impl Role {
    /// Returns the number (OFPCR_ROLE_).
    pub(super) fn number(self) -> u32 {
        match self {
            Role::NoChange => 0,
            Role::Equal => 1,
            Role::Master => 2,
            Role::Slave => 3,
        }
    }

    pub(super) fn from_number(number: u32) -> Result<Role, Fault> {
        Ok(match number {
            0 => Role::NoChange,
            1 => Role::Equal,
            2 => Role::Master,
            3 => Role::Slave,
            _ => return Err(Fault::RoleBad(number)),
        })
    }
}

impl RoleMessage {
    pub(super) fn read(r: &mut ByteReader<'_>) -> Result<RoleMessage, Fault> {
        let number = r.u32()?;
        r.skip(4)?;
        let generation_id = r.u64()?;
        Ok(RoleMessage { role: Role::from_number(number)?, generation_id })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.role.number());
        out.u32(0);
        out.u64(self.generation_id);
    }
}

impl Async {
    /// The masks of a new connection (§6.3.5, §7.3.10): everything but packet-ins for an invalid
    /// TTL for masters and equals, port changes for slaves.
    pub const DEFAULT: Async =
        Async { packet_in: [0x3, 0], port_status: [0x7, 0x7], flow_removed: [0xf, 0], ..Async::NONE };

    /// No messages.
    pub(crate) const NONE: Async = Async {
        packet_in: [0; 2],
        port_status: [0; 2],
        flow_removed: [0; 2],
        role_status: [0; 2],
        table_status: [0; 2],
        request_forward: [0; 2],
    };

    /// Returns the masks of a new connection of this version. Those of OpenFlow 1.4 are as in Open
    /// vSwitch: no messages of the types that are new.
    pub(crate) fn of(version: Version) -> Async {
        match version {
            Version::V10 | Version::V13 => Async::DEFAULT,
            _ => Async { packet_in: [0x3b, 0], flow_removed: [0x3f, 0], ..Async::DEFAULT },
        }
    }

    /// Returns the masks without the bits of reasons that do not exist in this version.
    pub(crate) fn known(self, version: Version) -> Async {
        let keep = |words: [u32; 2], bits: u32| words.map(|word| word & bits);
        let (packet_in, flow_removed) = if version < Version::V14 { (0x7, 0xf) } else { (0x3f, 0x3f) };
        Async {
            packet_in: keep(self.packet_in, packet_in),
            port_status: keep(self.port_status, 0x7),
            flow_removed: keep(self.flow_removed, flow_removed),
            role_status: keep(self.role_status, 0x7),
            table_status: keep(self.table_status, 0x18),
            request_forward: keep(self.request_forward, 0x3),
        }
    }

    /// Sets one mask.
    pub(crate) fn set(&mut self, AsyncMask { message, is_of_slaves, mask }: AsyncMask) {
        self.words()[usize::from(message)][usize::from(is_of_slaves)] = mask;
    }

    /// Returns all masks, those of slaves first.
    pub(crate) fn masks(mut self) -> Vec<AsyncMask> {
        let all = (0..).zip(self.words());
        let both = all.flat_map(|(message, words)| {
            [true, false].map(|is_of_slaves| {
                let mask = words[usize::from(is_of_slaves)];
                AsyncMask { message, is_of_slaves, mask }
            })
        });
        both.collect()
    }

    /// Returns the masks of each type of messages, in the order of the properties of OpenFlow 1.4.
    fn words(&mut self) -> [&mut [u32; 2]; 6] {
        let Async { packet_in, port_status, flow_removed, role_status, table_status, request_forward } = self;
        [packet_in, port_status, flow_removed, role_status, table_status, request_forward]
    }

    pub(super) fn read(r: &mut ByteReader<'_>) -> Result<Async, Fault> {
        let mut two = || -> Result<[u32; 2], Fault> { Ok([r.u32()?, r.u32()?]) };
        Ok(Async { packet_in: two()?, port_status: two()?, flow_removed: two()?, ..Async::NONE })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        [self.packet_in, self.port_status, self.flow_removed]
            .as_flattened()
            .iter()
            .for_each(|mask| out.u32(*mask));
    }
}
