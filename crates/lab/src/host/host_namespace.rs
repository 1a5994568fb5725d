//! The network namespace of a host: one that the lab made, or one that it found.

use crate::kernel::namespace::{Namespace, within_file};
use fastpath_spec::Attach;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The network namespace of a host.
#[derive(Debug)]
pub enum HostNamespace {
    /// The lab made it.
    Own(Namespace),
    /// The lab found it.
    Attached(AttachedNamespace),
}

impl HostNamespace {
    /// Returns the namespace if the lab made it.
    pub fn own(&self) -> Option<&Namespace> {
        match self {
            HostNamespace::Own(namespace) => Some(namespace),
            HostNamespace::Attached(_) => None,
        }
    }

    /// Runs `work` on a thread inside the namespace and waits for it. A panic in `work` is
    /// propagated.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        match self {
            HostNamespace::Own(namespace) => namespace.within(work),
            HostNamespace::Attached(namespace) => namespace.within(work),
        }
    }
}

/// A network namespace that this lab did not make.
#[derive(Clone, Debug)]
pub struct AttachedNamespace {
    /// Its name in the spec.
    attach: Attach,
    /// `None` while there is none.
    current: Arc<Mutex<Option<Joined>>>,
}

/// A namespace in which a host is.
#[derive(Clone, Debug)]
struct Joined {
    file: PathBuf,
    /// By interface of the host: its name there.
    names: BTreeMap<usize, String>,
}

impl AttachedNamespace {
    /// Returns the namespace of this name, which has not been found yet.
    pub(crate) fn new(attach: Attach) -> AttachedNamespace {
        AttachedNamespace { attach, current: Arc::default() }
    }

    /// Returns its name in the spec.
    pub fn name(&self) -> &Attach {
        &self.attach
    }

    /// Returns whether the host has its interfaces now.
    pub fn is_there(&self) -> bool {
        self.place().is_some()
    }

    /// Runs `work` on a thread inside the namespace and waits for it.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, format!("{} is gone", self.attach));
        within_file(&File::open(self.place().ok_or_else(gone)?)?, work)
    }

    /// Returns the file of the namespace; `None` while there is none.
    pub(crate) fn place(&self) -> Option<PathBuf> {
        self.current().as_ref().map(|joined| joined.file.clone())
    }

    /// Returns the names that the interfaces of the host have there, by their numbers.
    pub(crate) fn names(&self) -> BTreeMap<usize, String> {
        self.current().as_ref().map(|joined| joined.names.clone()).unwrap_or_default()
    }

    /// Notes that interfaces are in the namespace that is this file, under these names.
    pub(crate) fn join(&self, file: PathBuf, placed: &[(usize, String)]) {
        let mut current = self.current();
        let mut names = current.take().map(|joined| joined.names).unwrap_or_default();
        names.extend(placed.iter().cloned());
        *current = Some(Joined { file, names });
    }

    /// Notes that the namespace is gone.
    pub(crate) fn leave(&self) {
        *self.current() = None;
    }

    fn current(&self) -> MutexGuard<'_, Option<Joined>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
