//! Reads a network description from a file: TOML, or an Emulab script (`.ns`).

use crate::error::{Error, Result};
use fastpath_spec::{Mistake, Spec, Warning};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Longest description, bytes. The bound keeps a wrong path from filling the memory.
const BYTES_MAX: u64 = 64 << 20;

/// A network description without mistakes.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The network, and the settings of the engine.
    pub spec: Spec,
    /// What is legal but probably not meant.
    pub warnings: Vec<Warning>,
    /// The file it was read from.
    pub path: PathBuf,
}

/// A description, or all its mistakes.
pub type Parsed = std::result::Result<(Spec, Vec<Warning>), Vec<Mistake>>;

/// Loads a network description.
///
/// # Errors
/// [`Error::File`] if a file cannot be read; [`Error::Mistakes`] with every mistake of the
/// description.
pub fn load(path: impl AsRef<Path>) -> Result<Loaded> {
    let path = path.as_ref();
    match parse(path)? {
        Ok((spec, warnings)) => Ok(Loaded { spec, warnings, path: path.to_owned() }),
        Err(mistakes) => Err(Error::Mistakes(mistakes.iter().map(|mistake| at(path, mistake)).collect())),
    }
}

/// Reads a spec file, or an Emulab script if the name ends in `.ns`. Files that the description
/// names are searched relative to it.
///
/// # Errors
/// [`Error::File`] if the description cannot be read.
pub fn parse(path: &Path) -> Result<Parsed> {
    let text = text(path).map_err(Error::file(path))?;
    let is_script = path.extension().is_some_and(|extension| extension == "ns");
    let files = |file: &str| {
        let file = path.parent().unwrap_or(Path::new("")).join(file);
        self::text(&file).map_err(|error| error.to_string())
    };
    if !is_script {
        return Ok(fastpath_spec::read(&text, &files));
    }
    let spec = |(topology, warnings)| (Spec { topology, ..Spec::default() }, warnings);
    Ok(fastpath_emulab::parse(&text).map(spec))
}

/// Formats a mistake or warning with the name of its file: `FILE:LINE:COLUMN: …`.
pub fn at(path: &Path, remark: &impl Display) -> String {
    format!("{}:{remark}", path.display())
}
fn text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::other(format!("longer than {BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8 text"))
}
