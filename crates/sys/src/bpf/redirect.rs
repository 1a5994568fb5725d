//! The XDP program that redirects frames to AF_XDP sockets.

use super::{Attached, Instruction, LoadedProgram, Map, MapKind, MapSpec, ProgramKind, ProgramSpec};
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

const CALL_REDIRECT_MAP: i32 = 51;
/// The verdict that passes a frame on to the network stack.
const XDP_PASS: i32 = 2;
/// The offset of the receive queue in `struct xdp_md`.
const RX_QUEUE_INDEX: i16 = 16;

/// Where the program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// In the network stack, on any device: `XDP_FLAGS_SKB_MODE`.
    Generic = 2,
    /// In the driver: `XDP_FLAGS_DRV_MODE`.
    Native = 4,
}

/// `return redirect_map(sockets, packet.rx_queue_index, PASS)`: a frame goes to the socket of its
/// receive queue, or to the network stack if there is none.
fn program(sockets: c_int) -> [Instruction; 6] {
    let instruction = Instruction::new;
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
    sockets: Map,
    _attached: Attached,
}

impl Redirect {
    /// Attaches the program to the interface with this index. Nothing is redirected yet.
    pub fn attach(index: u32, queues: u32, mode: Mode) -> io::Result<Redirect> {
        let sockets = Map::create(&MapSpec {
            kind: MapKind::Sockets,
            name: "fastpath",
            key: 4,
            value: 4,
            entries: queues,
            types: None,
            inner: None,
        })?;
        let program = LoadedProgram::load(&ProgramSpec {
            kind: ProgramKind::Xdp,
            name: "fastpath",
            instructions: &program(sockets.as_fd().as_raw_fd()),
            types: None,
        });
        let attached =
            program.map_err(|refused| refused.source)?.attach(index, ProgramKind::Xdp, mode as u32)?;
        Ok(Redirect { sockets, _attached: attached })
    }

    /// Redirects a receive queue to a bound AF_XDP socket until the socket is closed.
    pub fn send_to(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.sockets.set(&queue.to_ne_bytes(), socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_these_bytes() {
        let code: Vec<[u8; 8]> = program(7).map(Instruction::bytes).to_vec();
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
