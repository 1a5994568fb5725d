//! Programs: checked and loaded by the kernel, attached to interfaces, or run on a packet at once.

use super::{Btf, Instruction, address, bpf, check, make, name_of};
use std::ffi::{CStr, c_int};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

// linux/bpf.h: commands, types.
const PROG_LOAD: c_int = 5;
const PROG_TEST_RUN: c_int = 10;
const LINK_CREATE: c_int = 28;
/// The helpers in use are available to programs of every licence.
const LICENSE: &CStr = c"MIT";
/// Bytes of the verifier's report.
const LOG_SIZE: usize = 1 << 20;

/// Where a program runs: its type and the place of its attachment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProgramKind {
    /// In a driver or in front of the network stack.
    Xdp,
    /// On what an interface receives, behind its driver (tcx).
    TcxIngress,
}

impl ProgramKind {
    /// The program type and the attach type of linux/bpf.h.
    const fn numbers(self) -> (u32, u32) {
        match self {
            ProgramKind::Xdp => (6, 37),
            ProgramKind::TcxIngress => (3, 46),
        }
    }
}

/// The type of the function that begins at an instruction (`struct bpf_func_info`).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FunctionInfo {
    /// The number of its first instruction.
    pub first: u32,
    /// Its number in the descriptions of types.
    pub kind: u32,
}

/// What a program is made of.
#[derive(Clone, Copy, Debug)]
pub struct ProgramSpec<'s> {
    /// Where it runs.
    pub kind: ProgramKind,
    /// Its name in the kernel, at most 15 letters.
    pub name: &'s str,
    /// Its instructions.
    pub instructions: &'s [Instruction],
    /// The types of its functions; needed if one is called back.
    pub types: Option<(&'s Btf, &'s [FunctionInfo])>,
}

/// Why the kernel did not load a program.
#[derive(Debug, thiserror::Error)]
#[error("loading the BPF program {name}: {source}{}", last_line(.log))]
pub struct LoadError {
    /// Its name.
    pub name: String,
    /// The kernel's answer.
    pub source: io::Error,
    /// The verifier's report; empty if it was not asked.
    pub log: String,
}

impl LoadError {
    /// Returns whether this process may not load programs.
    pub fn is_refusal(&self) -> bool {
        matches!(self.source.raw_os_error(), Some(libc::EPERM | libc::EACCES)) && self.log.is_empty()
    }
}

/// The reason in a report of the verifier, which ends with statistics.
fn last_line(log: &str) -> String {
    let lines = log.lines().rev().filter(|line| !line.starts_with("processed ") && !line.is_empty());
    lines.take(1).map(|line| format!(": {line}")).collect()
}

/// A loaded program.
#[derive(Debug)]
pub struct LoadedProgram(OwnedFd);

/// A program on an interface. Dropping it detaches the program.
#[derive(Debug)]
pub struct Attached(#[expect(dead_code, reason = "keeps the program attached")] OwnedFd);

/// A packet for [`LoadedProgram::test_run`].
#[derive(Clone, Copy, Debug)]
pub struct TestPacket<'p> {
    /// Its bytes, from the Ethernet header.
    pub bytes: &'p [u8],
    /// The index of the interface that it seems to come from.
    pub interface: u32,
}

/// What a program did with a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestRun {
    /// What it returned.
    pub verdict: u32,
    /// The bytes of the packet afterwards.
    pub bytes: Vec<u8>,
    /// The mean time of a run, nanoseconds.
    pub duration_ns: u32,
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
    prog_btf_fd: u32,
    func_info_rec_size: u32,
    func_info: u64,
    func_info_cnt: u32,
    line_info_rec_size: u32,
    line_info: u64,
    line_info_cnt: u32,
    attach_btf_id: u32,
}

#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
struct ProgTestRun {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
}

impl LoadedProgram {
    /// Loads a program, which the kernel checks.
    ///
    /// # Errors
    /// The kernel refused it. After a refusal for another reason than privilege it is asked again
    /// with a report, which is in the error.
    pub fn load(spec: &ProgramSpec<'_>) -> Result<LoadedProgram, LoadError> {
        let failed = |source, log: &[u8]| {
            let log = log.split(|byte| *byte == 0).next().unwrap_or_default();
            LoadError { name: spec.name.to_owned(), source, log: String::from_utf8_lossy(log).into_owned() }
        };
        match LoadedProgram::try_load(spec, &mut []) {
            Ok(program) => Ok(program),
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(failed(error, &[])),
            Err(_) => {
                let mut log = vec![0; LOG_SIZE];
                LoadedProgram::try_load(spec, &mut log).map_err(|error| failed(error, &log))
            }
        }
    }

    fn try_load(spec: &ProgramSpec<'_>, log: &mut [u8]) -> io::Result<LoadedProgram> {
        let (prog_type, expected_attach_type) = spec.kind.numbers();
        let (btf, functions) =
            spec.types.map_or((0, &[][..]), |(btf, functions)| (btf.fd().as_raw_fd() as u32, functions));
        let mut load = ProgLoad {
            prog_type,
            insn_cnt: spec.instructions.len() as u32,
            insns: address(spec.instructions),
            license: LICENSE.as_ptr() as u64,
            log_level: u32::from(!log.is_empty()),
            log_size: log.len() as u32,
            log_buf: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
            kern_version: 0,
            prog_flags: 0,
            prog_name: name_of(spec.name),
            prog_ifindex: 0,
            expected_attach_type,
            prog_btf_fd: btf,
            func_info_rec_size: size_of::<FunctionInfo>() as u32,
            func_info: if functions.is_empty() { 0 } else { address(functions) },
            func_info_cnt: functions.len() as u32,
            line_info_rec_size: 0,
            line_info: 0,
            line_info_cnt: 0,
            attach_btf_id: 0,
        };
        if functions.is_empty() {
            load.func_info_rec_size = 0;
        }
        // SAFETY: the structure is what the command takes; its pointers are null or to
        // instructions, a text, descriptions and room for a report, which live through the call;
        // the answer is a descriptor.
        unsafe { make(PROG_LOAD, &mut load) }.map(LoadedProgram)
    }

    /// Attaches a [`ProgramKind::TcxIngress`] to the interface with this index of the thread's
    /// network namespace (Linux 6.6).
    pub fn attach_tcx(&self, interface: u32) -> io::Result<Attached> {
        self.attach(interface, ProgramKind::TcxIngress, 0)
    }

    pub(super) fn attach(&self, interface: u32, kind: ProgramKind, flags: u32) -> io::Result<Attached> {
        let mut link = LinkCreate {
            prog_fd: self.0.as_raw_fd() as u32,
            target_ifindex: interface,
            attach_type: kind.numbers().1,
            flags,
        };
        // SAFETY: the structure is what the command takes, without pointers; the answer is a
        // descriptor. The link keeps the program, and the program its maps.
        unsafe { make(LINK_CREATE, &mut link) }.map(Attached)
    }

    /// Returns another descriptor of the program.
    pub fn try_clone(&self) -> io::Result<LoadedProgram> {
        self.0.try_clone().map(LoadedProgram)
    }

    /// Runs a [`ProgramKind::TcxIngress`] on a packet, `repeat` times, in the kernel but outside of
    /// its network stack: a redirection is a verdict, and is not carried out.
    pub fn test_run(&self, packet: TestPacket<'_>, repeat: u32) -> io::Result<TestRun> {
        // struct __sk_buff up to `ifindex`, which is its eleventh word.
        let mut context = [0u32; 48];
        context[10] = packet.interface;
        let mut bytes = vec![0; packet.bytes.len() + 256];
        let mut run = ProgTestRun {
            prog_fd: self.0.as_raw_fd() as u32,
            retval: 0,
            data_size_in: packet.bytes.len() as u32,
            data_size_out: bytes.len() as u32,
            data_in: address(packet.bytes),
            data_out: bytes.as_mut_ptr() as u64,
            repeat,
            duration: 0,
            ctx_size_in: size_of_val(&context) as u32,
            ctx_size_out: 0,
            ctx_in: address(&context),
            ctx_out: 0,
            flags: 0,
            cpu: 0,
        };
        // SAFETY: the structure is what the command takes; its pointers are null or to as many
        // bytes as it says, which live through the call.
        check(unsafe { bpf(PROG_TEST_RUN, &mut run) })?;
        bytes.truncate(run.data_size_out as usize);
        Ok(TestRun { verdict: run.retval, bytes, duration_ns: run.duration })
    }
}

impl AsFd for LoadedProgram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
