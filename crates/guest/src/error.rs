//! Why a kernel is not built, or a guest does not run.

use std::io;
use std::path::PathBuf;

/// Why the kernel of guests could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no directory for it.
    #[error("no directory for the kernel: set HOME, XDG_DATA_HOME or FASTPATH_GUEST")]
    NoHome,
    /// User Mode Linux does not run on this processor.
    #[error("guests run on x86-64 only: User Mode Linux has no other processor")]
    Processor,
    /// Programs are missing that only the system's packages have.
    #[error("{} not found; apt install {}", .programs.join(", "), .packages.join(" "))]
    Programs {
        /// The programs.
        programs: Vec<&'static str>,
        /// Debian's packages of them.
        packages: Vec<&'static str>,
    },
    /// The file system has too little room.
    #[error("{}: {free} MiB are free, and the build takes {needed} MiB; free some, or set FASTPATH_GUEST to a directory elsewhere", .path.display())]
    Room {
        /// Where.
        path: PathBuf,
        /// MiB free.
        free: u64,
        /// MiB that the build takes.
        needed: u64,
    },
    /// No package of a kernel's source was found.
    #[error(
        "no package linux-source-* found in {suites}; give a source with --source DIR (linux 6.12 or newer)"
    )]
    NoSource {
        /// The suites that were asked for.
        suites: String,
    },
    /// A directory that was given is not the source of a kernel.
    #[error("{}: not the source of a kernel (no file Kbuild and arch/um)", .0.display())]
    NotSource(PathBuf),
    /// The kernel lacks what guests need.
    #[error("the configuration of this kernel lacks {}; use another source", .0.join(", "))]
    Configuration(Vec<String>),
    /// A program has failed.
    #[error("{step}: {program} has failed; the end of {}:\n{end}", .log.display())]
    Step {
        /// What was done.
        step: &'static str,
        /// The program.
        program: String,
        /// The file with its output.
        log: PathBuf,
        /// The last lines of it.
        end: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The new kernel does not run.
    #[error("the new kernel does not run: {0}")]
    Trial(Box<RunError>),
}

/// Why a guest did not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// There is no kernel.
    #[error("no kernel for guests; build it once (about 10 minutes of CPU): fastpath guest build")]
    NoKernel,
    /// The kernel was built by another version of fastpath.
    #[error("the kernel for guests is of another version of fastpath; build it again: fastpath guest build")]
    OldKernel,
    /// A file could not be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The kernel could not be started.
    #[error("{}: {source}", .path.display())]
    Start {
        /// The kernel.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The kernel ended before its job.
    #[error("the kernel of the guest ended before its program ({status}){said}")]
    Ended {
        /// How its process ended.
        status: String,
        /// What it said last.
        said: String,
    },
    /// What the first process of the guest could not do.
    #[error("in the guest: {0}")]
    Init(String),
    /// No virtual time has passed for very long.
    #[error(
        "no virtual time has passed for {seconds} s: {program} computes, or waits in a loop that neither sleeps nor reads the clock, and such a loop never ends in virtual time"
    )]
    Stuck {
        /// Seconds of the machine's time.
        seconds: u64,
        /// The program, and its host.
        program: String,
    },
    /// It was asked to end.
    #[error("ended by a signal")]
    Stopped,
}
