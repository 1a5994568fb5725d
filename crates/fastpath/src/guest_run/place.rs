//! Where the record of a run in virtual time is: where it is asked for, or among the last ones of
//! the user, so that a failure that showed once can be examined.

use crate::{Error, Result};
use fastpath_record::RecordError;
use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How many records are kept that were not asked for.
const KEPT: usize = 5;

/// The directory of a record, made for a run. No other run removes it while this exists.
#[derive(Debug)]
pub struct RecordPlace {
    /// The directory.
    pub path: PathBuf,
    /// What would not be there without this run, and what others leave: guests do not see it.
    pub hidden: Vec<PathBuf>,
    _lock: File,
}

impl RecordPlace {
    /// Makes the directory that was asked for, if it is not there.
    ///
    /// # Errors
    /// [`Error::Argument`] if it has a record; [`Error::File`].
    pub fn named(path: &Path) -> Result<RecordPlace> {
        let path = std::path::absolute(path).map_err(Error::file(path))?;
        if path.join(super::HEAD).exists() {
            let what = "there is a record already; name another directory";
            return Err(Error::Argument(RecordError::content(&path, what).to_string()));
        }
        let hidden = absent(&path);
        fs::create_dir_all(&path).map_err(Error::file(&path))?;
        RecordPlace::locked(path, hidden.into_iter().collect())
    }

    /// Makes a directory among the last records, and removes the oldest of those.
    ///
    /// # Errors
    /// [`Error::File`] if neither the cache of the user nor the temporary directory can be written.
    pub fn unnamed(name: &str) -> Result<RecordPlace> {
        let mut refusal = None;
        // The temporary directory is that of all users.
        let user = fs::metadata("/proc/self").map_or(0, |about| about.uid());
        let temporary = env::temp_dir().join(format!("fastpath-{user}"));
        for parent in cache().map(|cache| cache.join("fastpath")).into_iter().chain([temporary]) {
            let parent = parent.join("virtual");
            let hidden = absent(&parent);
            match fs::create_dir_all(&parent).and_then(|()| free_name(&parent, name)) {
                Ok(path) => {
                    let place =
                        RecordPlace::locked(path, hidden.into_iter().chain([parent.clone()]).collect())?;
                    remove_oldest(&parent);
                    return Ok(place);
                }
                Err(source) => refusal = Some(Error::File { path: parent, source }),
            }
        }
        Err(refusal.expect("there are parents"))
    }

    fn locked(path: PathBuf, hidden: Vec<PathBuf>) -> Result<RecordPlace> {
        let lock = File::open(&path).map_err(Error::file(&path))?;
        lock.lock_shared().map_err(Error::file(&path))?;
        Ok(RecordPlace { path, hidden, _lock: lock })
    }
}

impl Drop for RecordPlace {
    fn drop(&mut self) {
        // Nothing stays of a run that could not start. Other directories than empty ones stay.
        if !self.hidden.is_empty() {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// The directory of the user's caches (XDG base directory specification).
pub(crate) fn cache() -> Option<PathBuf> {
    let given = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    given("XDG_CACHE_HOME").or_else(|| Some(given("HOME")?.join(".cache")))
}

/// Returns the first directory on the way to `path` that is not there.
fn absent(path: &Path) -> Option<PathBuf> {
    path.ancestors().take_while(|path| !path.exists()).last().map(Path::to_owned)
}

/// Makes a new directory whose name is `name` and a number.
fn free_name(parent: &Path, name: &str) -> io::Result<PathBuf> {
    let mut number = 1u64;
    loop {
        let path = parent.join(format!("{name}-{number}"));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            made => return made.map(|()| path),
        }
    }
}

/// Removes the oldest records that no run is writing.
fn remove_oldest(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut records: Vec<(SystemTime, PathBuf)> =
        entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    records.sort();
    for (_, path) in records.iter().rev().skip(KEPT) {
        if File::open(path).is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_records_are_kept_and_those_that_are_written() {
        let parent = env::temp_dir().join(format!("fastpath-places-{}", std::process::id()));
        fs::create_dir_all(&parent).unwrap();
        let written = RecordPlace::locked(free_name(&parent, "net").unwrap(), Vec::new()).unwrap();
        for _ in 0..2 * KEPT {
            free_name(&parent, "net").unwrap();
        }
        remove_oldest(&parent);
        let left = fs::read_dir(&parent).unwrap().count();
        assert!(left == KEPT || left == KEPT + 1, "{left}");
        assert!(written.path.is_dir());
        drop(written);
        remove_oldest(&parent);
        assert_eq!(fs::read_dir(&parent).unwrap().count(), KEPT);
        fs::remove_dir_all(parent).unwrap();
    }

    #[test]
    fn what_would_not_be_there_is_hidden() {
        let parent = env::temp_dir().join(format!("fastpath-named-{}", std::process::id()));
        let place = RecordPlace::named(&parent.join("a/b")).unwrap();
        assert_eq!(place.hidden, std::slice::from_ref(&parent));
        assert_eq!(RecordPlace::named(&parent.join("a/b")).unwrap().hidden, [] as [PathBuf; 0]);
        fs::write(place.path.join("run.json"), "{}").unwrap();
        let said = RecordPlace::named(&place.path).unwrap_err().to_string();
        assert!(said.contains("there is a record already"), "{said}");
        fs::remove_dir_all(parent).unwrap();
    }
}
