//! The numbers that the programs and this process share: the state of a packet, the operations of
//! rows, and the records of test runs.
//!
//! ```text
//!  state of a packet (a value of each CPU):
//!    key │ port of entry, TTL, tags … │ steps: what will be done │ the action set
//! ```

/// The packet's key: sixteen words.
pub(super) const KEY: i16 = 0;
/// The number of the port of entry.
pub(super) const IN_PORT: i16 = 128;
/// Its place in the tables of ports.
pub(super) const IN_SLOT: i16 = 136;
/// Its [`port`] bits.
pub(super) const IN_FLAGS: i16 = 144;
/// The TTL or hop limit, as the rules so far left it.
pub(super) const TTL: i16 = 152;
/// The number of VLAN tags, as the rules so far left it.
pub(super) const TAGS: i16 = 160;
/// The key's word of tags behind the outermost one.
pub(super) const INNER: i16 = 168;
/// 4 or 6 for IPv4 and IPv6, else 0.
pub(super) const VERSION: i16 = 176;
/// The place of the transport header behind the network header.
pub(super) const L4: i16 = 184;
/// The place of the transport checksum behind the network header; 0 without one.
pub(super) const SUM: i16 = 192;
/// Flags of `bpf_l4_csum_replace` that belong to the protocol.
pub(super) const SUM_FLAGS: i16 = 200;
/// Segments that the packet stands for.
pub(super) const SEGMENTS: i16 = 208;
/// The end of all headers behind the network header, where there are segments.
pub(super) const HEADERS: i16 = 216;
/// VLAN tags of the packet, in metadata and in the frame.
pub(super) const REAL_TAGS: i16 = 224;
/// The place of the network header in the frame.
pub(super) const L3: i16 = 232;
/// Bytes of all segments as frames.
pub(super) const LEN: i16 = 240;
/// The interface that the packet leaves by if nothing changes it any more; 0 for none.
pub(super) const PENDING: i16 = 248;
/// The number of outcomes.
pub(super) const OUTCOMES: i16 = 256;
/// The number of steps.
pub(super) const STEPS: i16 = 264;
/// A bit for each action of the set.
pub(super) const SET_MASK: i16 = 272;
/// The table without a rule for the packet, plus one.
pub(super) const MISSED: i16 = 280;
/// The point of the packet in the shares of a group.
pub(super) const POINT: i16 = 288;
/// The operations to leave out.
pub(super) const SKIP: i16 = 296;
/// Not 0 for a part of a larger packet.
pub(super) const FRAGMENT: i16 = 304;
/// The interface by which user space gets packets of the port of entry; 0 if packets just go on.
pub(super) const IN_USER: i16 = 312;
/// The best rule so far in a table. It is in memory because the verifier would follow each value
/// that a register can have.
pub(super) const BEST: i16 = 320;
/// The steps: [`STEP`] bytes each.
pub(super) const LIST: i16 = 328;
/// Bytes of a step: kind, argument, value.
pub(super) const STEP: i16 = 16;
/// The most steps of a packet.
pub(super) const STEPS_MAX: i16 = 48;
/// The action set: operations of [`OP`] bytes.
pub(super) const SET: i16 = LIST + STEP * STEPS_MAX;
/// The most actions of a set.
pub(super) const SET_MAX: i16 = 24;
/// Bytes of the whole state.
pub(super) const STATE: u32 = (SET + SET_MAX * OP) as u32;

/// Bytes of an operation of a row.
pub(super) const OP: i16 = 32;
/// Bytes before the operations of a row: number of its counter, flags, count, next table.
pub(super) const ROW_HEAD: i16 = 16;
/// The most operations of a row.
pub(super) const OPS_MAX: i16 = 48;

/// In a row: user space executes packets that match this rule.
pub(super) const ROW_IN_USER: u8 = 1;
/// In a row: no further table.
pub(super) const ROW_LAST: u16 = 0xffff;

/// What is not in an operation: a condition, a place in the set, a word of the key.
pub(super) const NOTHING: u8 = 0xff;

/// Kinds of operations and steps. From [`kind::ETH`] on they change the packet.
pub(super) mod kind {
    /// Counts the packet at a counter.
    pub(crate) const COUNT: u8 = 1;
    /// A copy leaves by a port.
    pub(crate) const OUT: u8 = 2;
    /// A copy leaves by the port of entry.
    pub(crate) const OUT_IN: u8 = 3;
    /// A copy is dropped.
    pub(crate) const DROP: u8 = 4;
    /// Changes the key only.
    pub(crate) const KEY: u8 = 5;
    /// Clears the action set.
    pub(crate) const CLEAR: u8 = 6;
    /// Finds the packet's point in the shares of a group.
    pub(crate) const SHARE: u8 = 7;
    /// Leaves the next operations out, unless the point is in the share.
    pub(crate) const SKIP: u8 = 8;
    /// Sets a MAC address.
    pub(crate) const ETH: u8 = 16;
    /// Sets bits of the outermost VLAN tag.
    pub(crate) const VLAN: u8 = 17;
    /// Inserts a VLAN tag.
    pub(crate) const PUSH: u8 = 18;
    /// Removes the outermost VLAN tag.
    pub(crate) const POP: u8 = 19;
    /// Decrements the TTL.
    pub(crate) const DEC_TTL: u8 = 20;
    /// Sets the TTL.
    pub(crate) const SET_TTL: u8 = 21;
    /// Sets bits of the traffic class.
    pub(crate) const TOS: u8 = 22;
    /// Sets an IPv4 address.
    pub(crate) const IPV4: u8 = 23;
    /// Sets a port of TCP or UDP.
    pub(crate) const PORT: u8 = 24;
}

/// Bits of a port.
pub(super) mod port {
    /// It may send.
    pub(crate) const SENDS: u32 = 1;
    /// It exists.
    pub(crate) const EXISTS: u32 = 2;
    /// It may receive.
    pub(crate) const RECEIVES: u32 = 4;
    /// One of several outputs of a flood, which leaves the port of entry out.
    pub(crate) const FLOOD: u32 = 8;
}

/// Bytes of the counters of a port, in the order of
/// [`PortCounters`](fastpath_switch::PortCounters).
pub(super) const PORT_COUNTERS: u32 = 48;

/// Bytes of a record of a test run: kind, argument, length, VLAN tag in metadata, then the frame.
pub(super) const RECORD: i32 = 2048;
/// Where the frame is in a record.
pub(super) const RECORD_HEAD: i32 = 32;
/// The kinds of records.
pub(super) const RECORD_OUTPUT: i32 = 1;
pub(super) const RECORD_DROP: i32 = 2;

/// Why a packet goes to user space. The program counts these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToUser {
    /// Its headers are not read in the kernel.
    Packet,
    /// A rule that it matches has actions that the kernel has not.
    Rule,
    /// Its TTL has run out, which controllers are told.
    Ttl,
    /// Its rules do more than a packet has room for.
    Steps,
}

impl ToUser {
    /// All reasons, in the order of their numbers.
    pub(crate) const ALL: [ToUser; 4] = [ToUser::Packet, ToUser::Rule, ToUser::Ttl, ToUser::Steps];

    /// Returns what is said of such packets.
    pub const fn why(self) -> &'static str {
        match self {
            ToUser::Packet => "its headers are not read in the kernel",
            ToUser::Rule => "a rule that it matches has actions that the kernel has not",
            ToUser::Ttl => "its TTL has run out, which controllers are told",
            ToUser::Steps => "its rules do more than a packet has room for",
        }
    }
}

/// What functions of the program return for a packet of user space: this and the number of a
/// reason.
pub(super) const TO_USER: i32 = 0x1000;
/// What they return for a packet whose last table this was.
pub(super) const END: i32 = 0xfff;
