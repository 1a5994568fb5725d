//! DPDK's testpmd, where it is installed: it forwards frames between two AF_XDP ports and emulates
//! nothing.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub(crate) const PROGRAM: &str = "dpdk-testpmd";
/// Its usual name.
pub(crate) const NAME: &str = "DPDK testpmd";

/// Names tried for a directory.
const NAMES: u32 = 1000;

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
        let directory = new_directory(&std::env::temp_dir())?;
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

/// Makes a directory in one that others may write to. An existing one is not used: another user
/// may have made it.
fn new_directory(parent: &Path) -> io::Result<PathBuf> {
    let names = (0..NAMES).map(|number| format!("fastpath-testpmd-{}-{number}", std::process::id()));
    for name in names {
        let directory = parent.join(name);
        match DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| directory),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        // A suspended process handles no signal but SIGKILL.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_directory_is_new_whatever_others_have_made() {
        let parent = new_directory(&std::env::temp_dir()).unwrap();
        let theirs = parent.join("theirs");
        fs::create_dir(&theirs).unwrap();
        for number in 0..2 {
            let name = format!("fastpath-testpmd-{}-{number}", std::process::id());
            std::os::unix::fs::symlink(&theirs, parent.join(name)).unwrap();
        }
        let made = new_directory(&parent).unwrap();
        assert!(made.symlink_metadata().unwrap().is_dir());
        assert_ne!(new_directory(&parent).unwrap(), made);
        fs::remove_dir_all(&parent).unwrap();
    }
}
