//! From the path of a network description to a topology, with the file's name before every remark.

use anyhow::{Context, anyhow, ensure};
use fastpath_spec::{Mistake, Spec, Warning};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// No description is longer, bytes. A bound, so that a wrong path cannot fill the memory.
const BYTES_MAX: u64 = 64 << 20;

/// What a description says, or all its mistakes.
pub(crate) type Parsed = Result<(Spec, Vec<Warning>), Vec<Mistake>>;

/// Reads a spec file, or an Emulab script if the name ends in `.ns`. The error is a file that
/// cannot be read. Files that a spec names are looked for from where it is.
pub(crate) fn parse(path: &Path) -> anyhow::Result<Parsed> {
    let text = text(path).with_context(|| path.display().to_string())?;
    let is_script = path.extension().is_some_and(|extension| extension == "ns");
    let beside = |file: &str| {
        let place = path.parent().unwrap_or(Path::new("")).join(file);
        self::text(&place).map_err(|error| crate::explain(&error))
    };
    if !is_script {
        return Ok(fastpath_spec::read(&text, &beside));
    }
    let spec = |(topology, warnings)| (Spec { topology, ..Spec::default() }, warnings);
    Ok(fastpath_emulab::parse(&text).map(spec))
}

/// The topology of a description without mistakes; warnings go to standard error.
pub(crate) fn load(path: &Path) -> anyhow::Result<Spec> {
    let (spec, warnings) = read(path)?;
    warnings.iter().for_each(|warning| eprintln!("{}", remark(path, warning)));
    Ok(spec)
}

/// The same, whose warnings have been said before.
pub(crate) fn load_again(path: &Path) -> anyhow::Result<Spec> {
    Ok(read(path)?.0)
}

fn read(path: &Path) -> anyhow::Result<(Spec, Vec<Warning>)> {
    match parse(path)? {
        Ok(read) => Ok(read),
        Err(mistakes) => {
            let lines: Vec<String> = mistakes.iter().map(|mistake| remark(path, mistake)).collect();
            Err(anyhow!(lines.join("\n")))
        }
    }
}

/// `FILE:LINE:COLUMN: …`
pub(crate) fn remark(path: &Path, remark: &impl std::fmt::Display) -> String {
    format!("{}:{remark}", path.display())
}

fn text(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= BYTES_MAX, "longer than {BYTES_MAX} bytes");
    String::from_utf8(bytes).context("not UTF-8 text")
}
