//! Files of records and tables: what was measured, read for models and reports, and the reports.

use crate::error::{Error, Result};
use fastpath_model::Table;
use fastpath_model::platform::{self, Platform};
use fastpath_report::{CommandOutput, Fonts, Measurement, Record, Report};
use serde_json::Value;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

/// What a report is made of: records, and the --json output of `fastpath model` and `evaluate`.
#[derive(Default)]
pub struct RecordFiles {
    /// Records of measurements.
    pub records: Vec<Record>,
    /// Outputs of other commands.
    pub outputs: Vec<CommandOutput>,
}

impl RecordFiles {
    /// Reads files of JSON lines: records and outputs, in any order.
    ///
    /// # Errors
    /// A file that cannot be read, a line that is neither, or nothing in the files.
    pub fn read<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<RecordFiles> {
        let mut files = RecordFiles::default();
        for path in paths {
            let path = path.as_ref();
            let text = fs::read_to_string(path).map_err(Error::file(path))?;
            let refuse = |place: &str, error: &dyn Display| {
                Error::Argument(format!("{}: {place}: {error}", path.display()))
            };
            for (place, value) in objects(&text).map_err(|(place, error)| refuse(&place, &error))? {
                files.add(value).map_err(|error| refuse(&place, &error))?;
            }
        }
        if files.records.is_empty() && files.outputs.is_empty() {
            return Err(Error::argument("nothing in these files: measure with `fastpath measure … -o FILE`"));
        }
        Ok(files)
    }

    fn add(&mut self, value: Value) -> std::result::Result<(), String> {
        if value.get("kind").is_some() {
            self.records.push(serde_json::from_value(value).map_err(|error| error.to_string())?);
        } else {
            self.outputs.push(CommandOutput::parse(value).map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    /// Makes the report.
    pub fn report(&self) -> Report {
        self.outputs.iter().fold(Report::new(&self.records), Report::with_output)
    }
}

/// Returns the JSON objects of a text, one per line or a single one over several lines, each with its
/// place. The error has the place too.
fn objects(text: &str) -> std::result::Result<Vec<(String, Value)>, (String, String)> {
    if let Ok(object) = serde_json::from_str(text) {
        return Ok(vec![("line 1".to_owned(), object)]);
    }
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let object = |(line, number): (&str, usize)| match serde_json::from_str(line) {
        Ok(object) => Ok((format!("line {number}"), object)),
        Err(_) => Err((format!("line {number}"), "not a record (one JSON object)".to_owned())),
    };
    lines.map(object).collect()
}

/// Writes a report. The extension of the file decides its format: html, md, svg or png.
///
/// # Errors
/// [`Error::Argument`] for another extension; [`Error::File`] if the file cannot be written.
pub fn write_report(path: &Path, report: &Report) -> Result<()> {
    let bytes = match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => report.html().into_bytes(),
        Some("md") => report.markdown().into_bytes(),
        Some("svg") => report.svg().into_bytes(),
        Some("png") => report.png(system_fonts()).map_err(at(path))?,
        _ => {
            let path = path.display();
            return Err(Error::Argument(format!("{path}: name the report *.html, *.md, *.svg or *.png")));
        }
    };
    fs::write(path, bytes).map_err(Error::file(path))
}

/// Opens a file to append records to, and creates it if it does not exist.
///
/// # Errors
/// [`Error::File`] if the file cannot be opened.
pub fn open_records(path: &Path) -> Result<File> {
    OpenOptions::new().create(true).append(true).open(path).map_err(Error::file(path))
}

/// Appends records to a file, one JSON object per line.
///
/// # Errors
/// The system's reason.
pub fn append_records(file: &mut File, records: &[Record]) -> io::Result<()> {
    records.iter().try_for_each(|record| writeln!(file, "{}", serde_json::to_string(record)?))
}

/// Reads a table from a CSV file, or from records of `fastpath measure pipeline`.
///
/// # Errors
/// A file that cannot be read, or that holds neither.
pub fn read_table(path: &Path) -> Result<Table> {
    let text = read_text(path)?;
    if text.trim_start().starts_with('{') {
        let measured = Measurement::parse(&text).map_err(at(path))?;
        return Measurement::table(&measured).map_err(at(path));
    }
    Table::from_csv(&text).map_err(at(path))
}

/// Reads platforms from records of `fastpath measure host`, or from a CSV file.
///
/// # Errors
/// A file that cannot be read, or without a platform.
pub fn read_platforms(path: &Path) -> Result<Vec<Platform>> {
    let text = read_text(path)?;
    let platforms: Vec<Platform> = if text.trim_start().starts_with('{') {
        let measured = Measurement::parse(&text).map_err(at(path))?;
        measured.into_iter().filter_map(|measurement| measurement.platform).collect()
    } else {
        platform::from_csv(&text).map_err(at(path))?
    };
    if platforms.is_empty() {
        let path = path.display();
        return Err(Error::Argument(format!(
            "{path}: no platform in it: measure with `fastpath measure host`"
        )));
    }
    Ok(platforms)
}

/// Reads text as spreadsheets write it: UTF-8, UTF-16 with a byte order mark, or Latin-1. The path `-`
/// is standard input.
///
/// # Errors
/// A file that cannot be read, or that is not text.
pub fn read_text(path: &Path) -> Result<String> {
    if path.as_os_str() == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(Error::file(path))?;
        return Ok(text);
    }
    let bytes = fs::read(path).map_err(Error::file(path))?;
    let not_text = || Error::Argument(format!("{}: not text in UTF-8, UTF-16 or Latin-1", path.display()));
    decoded(bytes).ok_or_else(not_text)
}

fn decoded(bytes: Vec<u8>) -> Option<String> {
    let utf_16 = |unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
        String::from_utf16(&units).ok()
    };
    match bytes[..] {
        [0xff, 0xfe, ..] => return utf_16(u16::from_le_bytes),
        [0xfe, 0xff, ..] => return utf_16(u16::from_be_bytes),
        _ => {}
    }
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        // These control characters occur in no text.
        Err(error) if error.as_bytes().iter().any(|byte| *byte < 0x20 && !b"\t\n\r".contains(byte)) => None,
        Err(error) => Some(error.as_bytes().iter().map(|byte| char::from(*byte)).collect()),
    }
}

/// The fonts installed on this machine.
fn system_fonts() -> Fonts {
    let mut fonts = Fonts::new();
    fonts.load_system_fonts();
    fonts
}

/// Adds the name of a file to an error of its contents.
fn at<E: Display>(path: &Path) -> impl Fn(E) -> Error + '_ {
    move |error| Error::Argument(format!("{}: {error}", path.display()))
}
