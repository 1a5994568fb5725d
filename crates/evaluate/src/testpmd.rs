//! A peer over veth where it is installed: DPDK's testpmd, which passes frames between two AF_XDP
//! ports, and nothing else.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub(super) const PROGRAM: &str = "dpdk-testpmd";
/// What people call it.
pub(super) const NAME: &str = "DPDK testpmd";

/// The program, until it is dropped. It polls, so it is stopped whenever others are measured.
#[derive(Debug)]
pub(super) struct Testpmd {
    child: Child,
    /// Where it keeps its sockets.
    directory: PathBuf,
}

impl Testpmd {
    /// Starts it in the thread's namespace; each two interfaces are one way and back. One core
    /// forwards.
    pub(super) fn start(program: &Path, interfaces: &[String]) -> io::Result<Testpmd> {
        let directory = std::env::temp_dir().join(format!("fastpath-testpmd-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let devices = interfaces.iter().enumerate();
        let devices =
            devices.flat_map(|(n, name)| ["--vdev".to_owned(), format!("net_af_xdp{n},iface={name}")]);
        // Without a period for statistics it would wait for a key.
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

    /// True as long as it has not ended by itself.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Stops it, or lets it go on.
    pub(super) fn pause(&self, is_paused: bool) {
        let signal = if is_paused { Signal::SIGSTOP } else { Signal::SIGCONT };
        // It fails only if the program has ended, which shows in the figures.
        let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        // Nothing of it is needed any more, and whoever is stopped does not listen to less.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
