//! What a guest is to do: the file that its first process reads.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A program to run in a guest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// Its working directory.
    pub directory: PathBuf,
    /// Files and directories of the guest, and where they are on the machine: what is new in them,
    /// or has changed, comes back when the program has ended.
    pub outputs: Vec<(PathBuf, PathBuf)>,
    /// Files and directories of the machine that are not there in the guest. The kernel hides them,
    /// so that nothing else differs in the guest.
    #[serde(skip)]
    pub hidden: Vec<PathBuf>,
    /// A directory of the machine that is [`RECORD`] in the guest. What is written there needs no
    /// memory of the guest.
    #[serde(skip)]
    pub record: Option<PathBuf>,
}

/// A file that came back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Came {
    /// Where it was in the guest.
    pub inside: PathBuf,
    /// Where it is on the machine.
    pub outside: PathBuf,
    /// Whether it was not there before.
    pub is_new: bool,
}

/// The directory of the record in the guest.
pub const RECORD: &str = "/run/fastpath-record";

/// Files of a job, in a directory of its own.
pub(crate) const JOB: &str = "job.json";
pub(crate) const STDOUT: &str = "stdout";
pub(crate) const STDERR: &str = "stderr";
/// What the kernel prints.
pub(crate) const CONSOLE: &str = "console";
/// The exit code of the program, in decimal.
pub(crate) const EXIT: &str = "exit";
/// The files that came back: a list of [`Came`].
pub(crate) const CAME: &str = "came";
/// The names of the files that are not there, each ended by a zero.
pub(crate) const HIDDEN: &str = "hidden";
/// A symbolic link to the directory of the record, if there is one.
pub(crate) const RECORDED: &str = "recorded";
/// What the first process could not do.
pub(crate) const FAILURE: &str = "failure";
/// What runs in the guest (struct fastpath_state of the patch).
pub(crate) const STATE: &str = "state";
/// The names of the files that were opened, each ended by a zero.
pub(crate) const OPENED: &str = "opened";
