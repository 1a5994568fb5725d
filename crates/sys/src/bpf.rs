//! The XDP program that redirects frames to AF_XDP sockets, loaded by bpf(2) directly, so that no
//! BPF compiler or loader is needed. The program stays attached as long as a descriptor (a BPF
//! link) is open, so the kernel detaches it when the process ends for any reason.

use super::check;
use std::ffi::{CStr, c_int, c_long};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

// linux/bpf.h: commands, types, flags.
const MAP_CREATE: c_int = 0;
const MAP_UPDATE_ELEM: c_int = 2;
const PROG_LOAD: c_int = 5;
const LINK_CREATE: c_int = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const CALL_REDIRECT_MAP: i32 = 51;
/// The verdict that passes a frame on to the network stack.
const XDP_PASS: i32 = 2;
/// The offset of the receive queue in `struct xdp_md`.
const RX_QUEUE_INDEX: i16 = 16;
/// The helper is available to programs of every licence.
const LICENSE: &CStr = c"MIT";

/// Where the program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// In the network stack, on any device: `XDP_FLAGS_SKB_MODE`.
    Generic = 2,
    /// In the driver: `XDP_FLAGS_DRV_MODE`.
    Native = 4,
}

/// One instruction (`struct bpf_insn`).
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

#[repr(C)]
struct MapUpdate {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
}

#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

/// `return redirect_map(sockets, packet.rx_queue_index, PASS)`: a frame goes to the socket of its
/// receive queue, or to the network stack if there is none.
fn program(sockets: c_int) -> [Instruction; 6] {
    let instruction = |code, destination: u8, source: u8, offset, immediate| {
        let little = cfg!(target_endian = "little");
        let registers = if little { source << 4 | destination } else { destination << 4 | source };
        Instruction { code, registers, offset, immediate }
    };
    [
        // r2 = *(u32 *)(r1 + RX_QUEUE_INDEX)
        instruction(0x61, 2, 1, RX_QUEUE_INDEX, 0),
        // r1 = the map, in two slots; source 1 means that the number is a descriptor
        instruction(0x18, 1, 1, 0, sockets),
        instruction(0, 0, 0, 0, 0),
        // r3 = PASS, the verdict where the map has no socket (since Linux 5.3)
        instruction(0xb7, 3, 0, 0, XDP_PASS),
        instruction(0x85, 0, 0, 0, CALL_REDIRECT_MAP),
        instruction(0x95, 0, 0, 0, 0),
    ]
}

/// The program on an interface. Dropping it detaches the program.
#[derive(Debug)]
pub struct Redirect {
    sockets: OwnedFd,
    _link: OwnedFd,
}

impl Redirect {
    /// Attaches the program to the interface with this index. Nothing is redirected yet.
    pub fn attach(index: u32, queues: u32, mode: Mode) -> io::Result<Redirect> {
        let map = MapCreate {
            map_type: MAP_TYPE_XSKMAP,
            key_size: 4,
            value_size: 4,
            max_entries: queues,
            map_flags: 0,
        };
        // SAFETY: the structure is what the command takes, without pointers; the answer is a
        // descriptor.
        let sockets = unsafe { make(MAP_CREATE, &map) }?;
        let instructions = program(sockets.as_raw_fd());
        let load = ProgLoad {
            prog_type: PROG_TYPE_XDP,
            insn_cnt: instructions.len() as u32,
            insns: instructions.as_ptr() as u64,
            license: LICENSE.as_ptr() as u64,
            log_level: 0,
            log_size: 0,
            log_buf: 0,
            kern_version: 0,
            prog_flags: 0,
            prog_name: *b"fastpath\0\0\0\0\0\0\0\0",
            prog_ifindex: 0,
            expected_attach_type: ATTACH_XDP,
        };
        // SAFETY: the structure is what the command takes; its pointers are to instructions and a
        // text that live through the call; the answer is a descriptor.
        let program = unsafe { make(PROG_LOAD, &load) }?;
        let link = LinkCreate {
            prog_fd: program.as_raw_fd() as u32,
            target_ifindex: index,
            attach_type: ATTACH_XDP,
            flags: mode as u32,
        };
        // SAFETY: as for the map. The link keeps the program, and the program the map.
        let link = unsafe { make(LINK_CREATE, &link) }?;
        Ok(Redirect { sockets, _link: link })
    }

    /// Redirects a receive queue to a bound AF_XDP socket until the socket is closed.
    pub fn send_to(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let socket = socket.as_raw_fd();
        let update = MapUpdate {
            map_fd: self.sockets.as_raw_fd() as u32,
            padding: 0,
            key: (&raw const queue) as u64,
            value: (&raw const socket) as u64,
            flags: 0,
        };
        // SAFETY: the structure is what the command takes; its pointers are to four bytes each,
        // which live through the call.
        check(unsafe { bpf(MAP_UPDATE_ELEM, &update) })?;
        Ok(())
    }
}

/// # Safety
/// `attributes` is the structure that `command` takes, and pointers in it are good for the call.
unsafe fn bpf<T>(command: c_int, attributes: &T) -> c_int {
    let len = size_of::<T>() as c_long;
    // SAFETY: guaranteed by the caller. The kernel reads `len` bytes, and takes what is missing as
    // zero.
    unsafe { libc::syscall(libc::SYS_bpf, c_long::from(command), &raw const *attributes, len) as c_int }
}

/// # Safety
/// As for [`bpf`], and the command answers with a new descriptor.
unsafe fn make<T>(command: c_int, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: guaranteed by the caller.
    let fd = check(unsafe { bpf(command, attributes) })?;
    // SAFETY: the descriptor was just created and nothing else owns it (the kernel sets
    // close-on-exec).
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_these_bytes() {
        let code: Vec<[u8; 8]> = program(7)
            .map(|i| {
                let [offset, immediate] =
                    [i.offset.to_le_bytes().to_vec(), i.immediate.to_le_bytes().to_vec()];
                [vec![i.code, i.registers], offset, immediate].concat().try_into().unwrap()
            })
            .to_vec();
        // As clang compiles `return bpf_redirect_map(&sockets, packet->rx_queue_index, XDP_PASS)`.
        let expected: [[u8; 8]; 6] = [
            [0x61, 0x12, 0x10, 0, 0, 0, 0, 0],
            [0x18, 0x11, 0, 0, 7, 0, 0, 0],
            [0; 8],
            [0xb7, 0x03, 0, 0, 2, 0, 0, 0],
            [0x85, 0, 0, 0, 51, 0, 0, 0],
            [0x95, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert!(cfg!(target_endian = "big") || code == expected, "{code:x?}");
    }
}
