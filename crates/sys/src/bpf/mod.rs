//! BPF by bpf(2) directly, so that no BPF compiler or loader is needed: maps, programs, and the
//! links that attach them. A link is a descriptor, so the kernel detaches a program when the
//! process ends for any reason; maps and programs end with the last of their descriptors too.

mod instruction;
mod map;
mod program;
mod redirect;
mod ring;

pub use instruction::Instruction;
pub use map::{Btf, Map, MapKind, MapSpec};
pub use program::{
    Attached, FunctionInfo, LoadError, LoadedProgram, ProgramKind, ProgramSpec, TestPacket, TestRun,
};
pub use redirect::{Mode, Redirect};
pub use ring::RingBuffer;

use super::check;
use std::ffi::{c_int, c_long};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// What every pointer in an attribute is to the kernel.
fn address<T: ?Sized>(of: &T) -> u64 {
    (&raw const *of).cast::<()>() as u64
}

/// A name of a kernel object: letters, digits, `_` and `.`, at most 15.
fn name_of(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    name.iter_mut().zip(text.bytes().take(15)).for_each(|(to, from)| *to = from);
    name
}

/// # Safety
/// `attributes` is the structure that `command` takes, and pointers in it are good for the call.
unsafe fn bpf<T>(command: c_int, attributes: &mut T) -> c_int {
    let len = size_of::<T>() as c_long;
    // SAFETY: guaranteed by the caller. The kernel reads `len` bytes, and takes what is missing as
    // zero. It writes only where the command has answers in the structure.
    unsafe { libc::syscall(libc::SYS_bpf, c_long::from(command), &raw mut *attributes, len) as c_int }
}

/// # Safety
/// As for [`bpf`], and the command answers with a new descriptor.
unsafe fn make<T>(command: c_int, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: guaranteed by the caller.
    let fd = check(unsafe { bpf(command, attributes) })?;
    // SAFETY: the descriptor was just created and nothing else owns it (the kernel sets
    // close-on-exec).
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
