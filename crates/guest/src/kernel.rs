//! The kernel of guests: where it is, and what is known of it.

use crate::RunError;
use crate::recipe::recipe;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The file that describes the kernel.
pub(crate) const DESCRIPTION: &str = "kernel.json";

/// A kernel for guests.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Kernel {
    /// Its version, as `uname -r` prints it.
    pub version: String,
    /// The file.
    pub path: PathBuf,
    /// SHA-256 of the file, hexadecimal.
    pub sha256: String,
    /// Where its source is from: a package with its version, or a directory.
    pub source: String,
    /// SHA-256 of configuration and patch, hexadecimal.
    pub recipe: String,
    /// The command that builds it.
    pub command: String,
    /// Options of our configuration that this version of the kernel does not have.
    #[serde(default)]
    pub without: Vec<String>,
}

/// What is known of the kernel of this user.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct KernelStatus {
    /// The directory in which it is looked for; `None` without a home directory.
    pub directory: Option<PathBuf>,
    /// The kernel, if one is there.
    pub kernel: Option<Kernel>,
    /// Whether it is the one that this version of fastpath builds.
    pub is_current: bool,
    /// What to do, if something is to be done.
    pub advice: Option<String>,
}

/// Returns the directory of the kernel: $FASTPATH_GUEST, or `fastpath/guest` in the user's data
/// directory (XDG base directory specification).
pub fn home() -> Option<PathBuf> {
    let given = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = || given("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let home = || Some(given("HOME")?.join(".local/share"));
    let path = given("FASTPATH_GUEST").or_else(|| Some(data().or_else(home)?.join("fastpath/guest")))?;
    // Programs run in other directories.
    std::path::absolute(path).ok()
}

/// Says what is known of the kernel.
pub fn status() -> KernelStatus {
    let directory = home();
    let kernel = directory.as_deref().and_then(Kernel::in_directory);
    let is_current = kernel.as_ref().is_some_and(Kernel::is_current);
    let advice = match &kernel {
        Some(_) if is_current => None,
        Some(_) => Some(RunError::OldKernel.to_string()),
        None => Some(RunError::NoKernel.to_string()),
    };
    KernelStatus { directory, kernel, is_current, advice }
}

impl Kernel {
    /// Returns the kernel of this user.
    ///
    /// # Errors
    /// There is none, or it was built by another version of fastpath.
    pub fn find() -> Result<Kernel, RunError> {
        let kernel = home().as_deref().and_then(Kernel::in_directory).ok_or(RunError::NoKernel)?;
        if kernel.is_current() { Ok(kernel) } else { Err(RunError::OldKernel) }
    }

    /// Returns the kernel of a directory.
    pub fn in_directory(directory: &Path) -> Option<Kernel> {
        let text = fs::read(directory.join(DESCRIPTION)).ok()?;
        let mut kernel: Kernel = serde_json::from_slice(&text).ok()?;
        // The directory may have been moved.
        kernel.path = directory.join(kernel.path.file_name()?);
        kernel.path.is_file().then_some(kernel)
    }

    fn is_current(&self) -> bool {
        self.recipe == recipe()
    }
}
