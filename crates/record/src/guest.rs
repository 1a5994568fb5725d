//! Runs in the virtual time of a guest: what has to be equal so that a run is the same again.

use crate::RecordError;
use crate::run::RUN;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// SHA-256, hexadecimal, by name. Files that were gone have none.
pub type Sums = BTreeMap<String, Option<String>>;

/// Where a run in a guest comes from, and what came out of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GuestOrigin {
    /// The version of the guest's kernel.
    pub kernel: String,
    /// SHA-256 of the kernel.
    pub kernel_sha256: String,
    /// SHA-256 of this program.
    pub program_sha256: String,
    /// The name of the processor, which programs can read.
    pub processor: String,
    /// The seed of all entropy.
    pub seed: u64,
    /// Memory of the guest, bytes.
    pub memory: u64,
    /// The arguments of this program in the guest.
    pub arguments: Vec<String>,
    /// The working directory.
    pub directory: PathBuf,
    /// SHA-256 of the value of each variable of the environment. Values may be secret.
    pub environment: Sums,
    /// SHA-256 of each file of the machine that was read.
    pub files: Sums,
    /// SHA-256 of what came out: files, by their path in the guest, and both output streams.
    pub results: Sums,
    /// Paths that came out and were not there before.
    pub new: Vec<PathBuf>,
    /// The exit code.
    pub exit_code: u8,
    /// Virtual time, seconds.
    pub virtual_s: f64,
}

impl GuestOrigin {
    /// The key of `run.json`.
    const KEY: &'static str = "guest";

    /// Adds this to the `run.json` of a record.
    ///
    /// # Errors
    /// The file cannot be read or written, or is no record.
    pub fn add_to(&self, directory: &Path) -> Result<(), RecordError> {
        let path = directory.join(RUN);
        let mut keys = read(&path)?;
        keys.insert(GuestOrigin::KEY.to_owned(), serde_json::to_value(self).expect("plain data"));
        let text = serde_json::to_string_pretty(&Value::Object(keys)).expect("plain data") + "\n";
        fs::write(&path, text).map_err(RecordError::file(&path))
    }

    /// Reads it from the `run.json` of a record; `None` if the run was in real time.
    ///
    /// # Errors
    /// The file cannot be read, or is no record.
    pub fn of(directory: &Path) -> Result<Option<GuestOrigin>, RecordError> {
        let path = directory.join(RUN);
        let Some(value) = read(&path)?.remove(GuestOrigin::KEY) else { return Ok(None) };
        let wrong = |error: serde_json::Error| RecordError::content(&path, error.to_string());
        serde_json::from_value(value).map(Some).map_err(wrong)
    }
}

fn read(path: &Path) -> Result<Map<String, Value>, RecordError> {
    let text = fs::read_to_string(path).map_err(RecordError::file(path))?;
    match serde_json::from_str(&text) {
        Ok(Value::Object(keys)) => Ok(keys),
        Ok(_) => Err(RecordError::content(path, "not a JSON object")),
        Err(error) => Err(RecordError::content(path, error.to_string())),
    }
}
