//! The claim of a lab's name: a directory whose lock file one process has locked.
//!
//! The lock alone decides whether a lab is alive. The kernel releases the lock when its holder
//! ends, for any reason. The holder writes its identity into the directory right after it has
//! locked it, and removes what an earlier holder left. To end a lab, a process signals the holder,
//! or takes the lock itself and then removes the directory. A process removes a directory only
//! while it holds the lock.

use crate::programs::process::ProcessId;
use crate::programs::scope::Boundary;
use crate::state::lab_files::{CONTAINERS, PRIVATE, ROUTERS};
use crate::uplink;
use nix::unistd::Uid;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file that is locked.
const LOCK: &str = "lock";
/// The file with the [`Holder`].
const HOLDER: &str = "holder.json";
/// Time for a process to hold the lock without a [`Holder`]: while it starts a lab, removes one, or
/// checks whether one is alive.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// Interval between two attempts to lock.
pub(crate) const POLL: Duration = Duration::from_millis(10);

/// The process that holds a lab.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Holder {
    /// Its identity.
    pub(crate) process: ProcessId,
    /// Its session (setsid(2)): programs started from one terminal have the same.
    pub(crate) session: i32,
}

impl Holder {
    /// Whether the process has not ended.
    pub(crate) fn runs(&self) -> bool {
        self.process.open().is_ok_and(|process| process.is_some())
    }
}

/// Describes a process in an error.
pub(crate) fn process(pid: Option<i32>) -> String {
    pid.map_or_else(|| "a process that cannot be seen from here".to_owned(), |pid| format!("process {pid}"))
}

/// A state directory that does not belong to this user.
#[derive(Debug, thiserror::Error)]
#[error(
    "state directory {path} {what}: remove it, or write another directory in FASTPATH_STATE_DIR",
    path = .path.display()
)]
pub struct ForeignDirectory {
    path: PathBuf,
    what: String,
}

/// The state directory of a lab, locked by this process. Programs and files left in it are ended
/// and removed on drop.
#[derive(Debug)]
pub(crate) struct Claim {
    directory: PathBuf,
    /// Locked for as long as it is open.
    _lock: File,
}

/// The result of an attempt to lock a directory.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// It is locked now.
    Claimed(Claim),
    /// Another process holds the lock.
    Held,
    /// The directory does not exist, or no longer.
    Gone,
}

impl Claim {
    /// Makes the directory if it does not exist, and locks it. Removes what a dead lab left, and
    /// writes down who holds it.
    pub(crate) fn take(directory: &Path) -> io::Result<Attempt> {
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let attempt = Claim::lock(directory)?;
        if let Attempt::Claimed(claim) = &attempt {
            claim.clear()?;
            let session = nix::unistd::getsid(None)?.as_raw();
            let holder = Holder { process: ProcessId::own()?, session };
            claim.write(HOLDER, &serde_json::to_vec(&holder)?)?;
        }
        Ok(attempt)
    }

    /// Locks an existing directory.
    pub(crate) fn lock(directory: &Path) -> io::Result<Attempt> {
        let path = directory.join(LOCK);
        let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let lock = match OpenOptions::new().write(true).create(true).truncate(false).open(&path) {
            Err(error) if gone(&error) => return Ok(Attempt::Gone),
            opened => opened?,
        };
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Attempt::Held),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The former holder may have removed the file between the two steps.
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let own = identity(lock.metadata()?);
        match fs::metadata(&path).map(identity) {
            Ok(current) if current == own => {
                Ok(Attempt::Claimed(Claim { directory: directory.to_owned(), _lock: lock }))
            }
            Err(error) if !gone(&error) => Err(error),
            _ => Ok(Attempt::Gone),
        }
    }

    /// Returns the directory of the lab's files.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes a file of the directory atomically.
    pub(crate) fn write(&self, file: &str, content: &[u8]) -> io::Result<()> {
        let partial = self.directory.join(format!(".{file}"));
        fs::write(&partial, content)?;
        fs::rename(partial, self.directory.join(file))
    }

    /// Writes a file of the directory in place: programs that see it elsewhere (a bind mount) see
    /// the new content.
    pub(crate) fn overwrite(&self, file: &str, content: &[u8]) -> io::Result<()> {
        let mut open = File::options();
        let file = open.write(true).create(true).truncate(false).open(self.directory.join(file))?;
        file.write_all_at(content, 0)?;
        file.set_len(content.len() as u64)
    }

    /// Ends the programs of the lab and removes its directory. Returns the number of programs.
    pub(crate) fn remove(&self) -> io::Result<usize> {
        let ended = self.clear()?;
        // Only now may another process make the directory again.
        fs::remove_file(self.directory.join(LOCK))?;
        match fs::remove_dir(&self.directory) {
            // Another process has made its lock file already.
            Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(error),
            _ => Ok(ended),
        }
    }

    /// Ends the programs and removes every file but the lock.
    fn clear(&self) -> io::Result<usize> {
        let ended = Boundary::recorded(&self.directory).map_or(0, |boundary| boundary.end());
        uplink::clear(&self.directory);
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if entry.file_name() == LOCK {
            } else if [PRIVATE, CONTAINERS, ROUTERS].iter().any(|name| entry.file_name() == *name) {
                fs::remove_dir_all(entry.path())?;
            } else if entry.file_type()?.is_dir() {
                // Empty, or a mount point of this mount namespace.
                fs::remove_dir(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(ended)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // What remains after an error is removed by the next `up` or `down` of the name.
        let _ = self.remove();
    }
}

/// Whether a process holds the lab with this directory.
pub(crate) fn is_alive(directory: &Path) -> bool {
    let Ok(lock) = File::open(directory.join(LOCK)) else { return false };
    matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Returns the process that has written last that it holds the directory. It may have ended.
pub(crate) fn holder(directory: &Path) -> Option<Holder> {
    serde_json::from_slice(&fs::read(directory.join(HOLDER)).ok()?).ok()
}

/// Checks that a directory is a directory of this user that other users cannot write to. One that
/// does not exist is not foreign.
pub(crate) fn check_owner(directory: &Path) -> Result<(), ForeignDirectory> {
    let foreign = |what| Err(ForeignDirectory { path: directory.to_owned(), what });
    let Ok(metadata) = fs::symlink_metadata(directory) else { return Ok(()) };
    let user = Uid::effective().as_raw();
    if !metadata.is_dir() {
        return foreign("is not a directory".to_owned());
    }
    if metadata.uid() != user {
        return foreign(format!("belongs to user {}, not to user {user}", metadata.uid()));
    }
    if metadata.mode() & 0o022 != 0 {
        return foreign("may be written to by other users".to_owned());
    }
    Ok(())
}

/// Checks that no other user can replace a directory of the directory `base`. One that does not
/// exist is not foreign.
pub(crate) fn check_base(base: &Path) -> Result<(), ForeignDirectory> {
    let foreign = |what| Err(ForeignDirectory { path: base.to_owned(), what });
    let Ok(metadata) = fs::metadata(base) else { return Ok(()) };
    let (owner, user) = (metadata.uid(), Uid::effective().as_raw());
    if owner != user && owner != 0 {
        return foreign(format!("belongs to user {owner}, not to user {user}"));
    }
    // In a sticky directory only the owner of an entry removes it.
    if metadata.mode() & 0o1002 == 0o002 {
        return foreign("may be written to by other users".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{ClaimError, DownError, alive, base, claim, down};
    use std::os::unix::fs::PermissionsExt;
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    #[test]
    fn one_process_holds_a_name_however_many_take_and_remove_it() {
        let directory = base().join(format!("claims-{}", std::process::id()));
        fs::create_dir_all(base()).unwrap();
        let (holders, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let take = || {
            while taken.load(Ordering::SeqCst) < 300 {
                let Attempt::Claimed(claim) = Claim::take(&directory).unwrap() else { continue };
                assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two have the name");
                assert!(claim.directory().join(HOLDER).exists());
                taken.fetch_add(1, Ordering::SeqCst);
                holders.fetch_sub(1, Ordering::SeqCst);
            }
        };
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(take))));
        assert!(!directory.exists());
    }

    #[test]
    fn down_does_not_signal_a_process_with_the_number_of_a_dead_holder() {
        let name = format!("stranger-{}", std::process::id());
        let claim = claim(&name).unwrap();
        let mut stranger = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        // The dead holder started at boot, long before the process that has its number now.
        let process = ProcessId { pid: stranger.id() as i32, started: 0 };
        let stale = Holder { process, session: 0 };
        claim.write(HOLDER, &serde_json::to_vec(&stale).unwrap()).unwrap();
        assert!(matches!(down(&name), Err(DownError::Stuck { holder: None, .. })));
        assert!(claim.directory().join(LOCK).exists(), "locked is not dead");
        assert_eq!(stranger.try_wait().unwrap(), None, "it runs");
        drop(stranger.stdin.take());
        assert!(stranger.wait().unwrap().success());
    }

    #[test]
    fn a_base_in_which_another_user_can_replace_directories_is_refused() {
        let base = std::env::temp_dir().join(format!("fastpath-base-{}", std::process::id()));
        assert!(check_base(&base).is_ok(), "it does not exist");
        fs::create_dir(&base).unwrap();
        let with = |mode| {
            fs::set_permissions(&base, fs::Permissions::from_mode(mode)).unwrap();
            check_base(&base).is_ok()
        };
        assert_eq!([0o700, 0o775, 0o1777, 0o777, 0o702].map(with), [true, true, true, false, false]);
        assert!(with(0o700));
        if std::os::unix::fs::chown(&base, Some(12_345), None).is_ok() {
            assert!(check_base(&base).is_err());
        } else {
            crate::skip("a_base_in_which_another_user_can_replace_directories_is_refused", "not root");
        }
        fs::remove_dir(&base).unwrap();
    }

    #[test]
    fn the_directory_of_another_user_is_refused() {
        let test = "the_directory_of_another_user_is_refused";
        let name = format!("foreign-{}", std::process::id());
        let directory = base().join(&name);
        fs::create_dir_all(&directory).unwrap();
        let refused = || {
            assert!(matches!(claim(&name), Err(ClaimError::Foreign(_))));
            assert!(matches!(down(&name), Err(DownError::Foreign(_))));
            assert!(alive(&name).is_err() && directory.exists());
        };
        if std::os::unix::fs::chown(&directory, Some(12_345), None).is_ok() {
            refused();
            std::os::unix::fs::chown(&directory, Some(Uid::effective().as_raw()), None).unwrap();
        } else {
            crate::skip(test, "not root");
        }
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(&directory, open).unwrap();
        refused();
        fs::remove_dir(&directory).unwrap();
    }
}
