//! DPDK's testpmd, where it is installed: it forwards frames between two AF_XDP ports and emulates
//! nothing.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub(crate) const PROGRAM: &str = "dpdk-testpmd";
/// Its usual name.
pub(crate) const NAME: &str = "DPDK testpmd";

/// A running testpmd, which ends on drop. It busy-polls, so it is suspended while others are
/// measured.
#[derive(Debug)]
pub(crate) struct Testpmd {
    child: Child,
    /// The directory of its sockets.
    directory: PathBuf,
}

impl Testpmd {
    /// Starts testpmd in the thread's namespace. It forwards between the interfaces of each pair,
    /// both ways, on one core.
    pub(crate) fn start(program: &Path, interfaces: &[String]) -> io::Result<Testpmd> {
        let directory = std::env::temp_dir().join(format!("fastpath-testpmd-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let devices = interfaces.iter().enumerate();
        let devices =
            devices.flat_map(|(n, name)| ["--vdev".to_owned(), format!("net_af_xdp{n},iface={name}")]);
        // Without --stats-period it would wait for a key.
        let child = Command::new(program)
            .args(["--lcores", "0@0,1@1", "--no-huge", "-m", "512", "--no-pci", "--no-shconf"])
            .args(devices)
            .args(["--", "--forward-mode=io", "--auto-start", "--nb-cores=1"])
            .args(["--total-num-mbufs=16384", "--stats-period=3600"])
            .env("RUNTIME_DIRECTORY", &directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Testpmd { child, directory })
    }

    /// Whether the program is still running.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Suspends or resumes the program.
    pub(crate) fn pause(&self, is_paused: bool) {
        let signal = if is_paused { Signal::SIGSTOP } else { Signal::SIGCONT };
        // This fails only if the program has ended, which the results show.
        let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        // A suspended process handles no signal but SIGKILL.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
