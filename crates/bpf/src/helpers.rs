//! The numbers of linux/bpf.h that programs use: helpers, verdicts, and the fields of a packet's
//! context.

/// Helpers (`enum bpf_func_id`).
pub mod helper {
    #![allow(missing_docs)]
    pub const MAP_LOOKUP: i32 = 1;
    pub const MAP_UPDATE: i32 = 2;
    pub const KTIME_NS: i32 = 5;
    pub const STORE_BYTES: i32 = 9;
    pub const L3_CSUM_REPLACE: i32 = 10;
    pub const L4_CSUM_REPLACE: i32 = 11;
    pub const TAIL_CALL: i32 = 12;
    pub const CLONE_REDIRECT: i32 = 13;
    pub const VLAN_PUSH: i32 = 18;
    pub const VLAN_POP: i32 = 19;
    pub const REDIRECT: i32 = 23;
    pub const LOAD_BYTES: i32 = 26;
    pub const CHANGE_TAIL: i32 = 38;
    pub const PULL_DATA: i32 = 39;
    pub const SPIN_LOCK: i32 = 93;
    pub const SPIN_UNLOCK: i32 = 94;
    pub const RING_RESERVE: i32 = 131;
    pub const RING_SUBMIT: i32 = 132;
    pub const REDIRECT_PEER: i32 = 155;
    pub const KTIME_COARSE_NS: i32 = 160;
    pub const LOOP: i32 = 181;
}

/// The verdict that drops a packet (`TCX_DROP`).
pub const DROP: i32 = 2;
/// The verdict of a redirection (`TCX_REDIRECT`).
pub const REDIRECTED: u32 = 7;

/// Offsets in `struct __sk_buff`.
pub mod skb {
    #![allow(missing_docs)]
    pub const LEN: i16 = 0;
    pub const MARK: i16 = 8;
    pub const VLAN_PRESENT: i16 = 20;
    pub const VLAN_TCI: i16 = 24;
    pub const VLAN_PROTO: i16 = 28;
    pub const IFINDEX: i16 = 40;
    pub const DATA: i16 = 76;
    pub const DATA_END: i16 = 80;
    pub const GSO_SEGS: i16 = 164;
    pub const GSO_SIZE: i16 = 176;
}
