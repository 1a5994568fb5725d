//! Files of records and tables: what was measured, read for models and reports, and the reports.

use crate::error::{Error, Result};
use fastpath_model::Table;
use fastpath_model::assign::{State, Task};
use fastpath_model::fit::Fit;
use fastpath_model::platform::{self, Platform};
use fastpath_record::{Measurement, Observation, Run};
use fastpath_report::{CommandOutput, Evaluation, Fonts, Report};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

pub use fastpath_report::ReportChoice;

/// Names that an error lists.
const NAMES_MAX: usize = 20;

/// What a report is made of: records, and the --json output of `fastpath model` and `evaluate`.
#[derive(Default)]
pub struct RecordFiles {
    /// Measurements.
    pub measurements: Vec<Measurement>,
    /// Outputs of other commands.
    pub outputs: Vec<CommandOutput>,
    /// Runs, each a directory.
    pub runs: Vec<Run>,
}

impl RecordFiles {
    /// Reads files of JSON lines (measurements and outputs), and runs (their directories or their
    /// `run.json`), in any order.
    ///
    /// # Errors
    /// A file that cannot be read, a line that is neither, or a file with nothing in it.
    pub fn read<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<RecordFiles> {
        let mut files = RecordFiles::default();
        for path in paths {
            let path = path.as_ref();
            if path.is_dir() || path.file_name().is_some_and(|name| name == "run.json") {
                files.runs.push(Run::read(path)?);
                continue;
            }
            let text = fs::read_to_string(path).map_err(Error::file(path))?;
            let refuse = |place: &str, error: &dyn Display| {
                Error::Argument(format!("{}: {place}: {error}", path.display()))
            };
            let objects = objects(&text).map_err(|(place, error)| refuse(&place, &error))?;
            if objects.is_empty() {
                let what = "no record in it: measure with `fastpath measure … -o FILE`";
                return Err(Error::Argument(format!("{}: {what}", path.display())));
            }
            for (place, value) in objects {
                files.add(value).map_err(|error| refuse(&place, &error))?;
            }
        }
        if files.measurements.is_empty() && files.outputs.is_empty() && files.runs.is_empty() {
            return Err(Error::argument("no file of records: measure with `fastpath measure … -o FILE`"));
        }
        Ok(files)
    }

    fn add(&mut self, value: Value) -> std::result::Result<(), String> {
        if value.get("kind").is_some() {
            self.measurements.push(serde_json::from_value(value).map_err(|error| error.to_string())?);
        } else {
            self.outputs.push(CommandOutput::parse(value).map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    /// Makes the report.
    pub fn report(&self) -> Report {
        self.report_of(&ReportChoice::default())
    }

    /// Makes the report with these links and flows of runs.
    pub fn report_of(&self, choice: &ReportChoice) -> Report {
        let report = Report::new(&self.measurements);
        self.outputs.iter().fold(report, Report::with_output).with_runs(&self.runs, choice)
    }

    /// Checks that the runs have the links and flows of a choice.
    ///
    /// # Errors
    /// [`Error::Argument`] with a name that no run has, and the names that there are.
    pub fn check_choice(&self, choice: &ReportChoice) -> Result<()> {
        let series = || self.runs.iter().filter_map(|run| run.series.as_ref());
        let links: BTreeSet<&str> =
            series().flat_map(|series| &series.links).map(|link| link.link.as_str()).collect();
        let flows: BTreeSet<&str> =
            series().flat_map(|series| &series.flows).map(|flow| flow.flow.as_str()).collect();
        let unknown = |what: &str, name: &str, known: &BTreeSet<&str>| {
            let known: Vec<&str> = known.iter().copied().take(NAMES_MAX).collect();
            let known = if known.is_empty() { "there is none".to_owned() } else { known.join(", ") };
            Err(Error::Argument(format!("no run has a {what} {name} (have: {known})")))
        };
        if let Some(name) = choice.links.iter().find(|name| !links.contains(name.as_str())) {
            return unknown("link", name, &links);
        }
        let is_unknown = |part: &&String| !flows.iter().any(|flow| flow.contains(part.as_str()));
        if let Some(part) = choice.flows.iter().find(is_unknown) {
            return unknown("flow", part, &flows);
        }
        Ok(())
    }
}

/// Returns the JSON objects of a text, one per line or a single one over several lines, each with
/// its place. The error has the place too.
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
    let extension = path.extension().and_then(|extension| extension.to_str());
    if matches!(extension, Some("svg" | "png")) && !report.has_charts() {
        let path = path.display();
        return Err(Error::Argument(format!(
            "{path}: there is no chart to draw; name the report *.html or *.md"
        )));
    }
    let bytes = match extension {
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
pub fn append_records<'r>(
    file: &mut File,
    records: impl IntoIterator<Item = &'r Measurement>,
) -> io::Result<()> {
    records.into_iter().try_for_each(|record| writeln!(file, "{}", serde_json::to_string(record)?))
}

/// Reads a table from a CSV file, or from records of `fastpath measure pipeline`.
///
/// # Errors
/// A file that cannot be read, or that holds neither.
pub fn read_table(path: &Path) -> Result<Table> {
    let text = read_text(path)?;
    if text.trim_start().starts_with('{') {
        let measured = Observation::parse(&text).map_err(at(path))?;
        return Observation::table(&measured).map_err(at(path));
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
        let measured = Observation::parse(&text).map_err(at(path))?;
        measured.into_iter().filter_map(|observation| observation.platform).collect()
    } else {
        platform::from_csv(&text).map_err(at(path))?
    };
    if platforms.is_empty() {
        let path = path.display();
        return Err(Error::Argument(format!(
            "{path}: contains no platform: measure with `fastpath measure host`"
        )));
    }
    Ok(platforms)
}

/// Reads the tasks of a packet program from a table (CSV) with the columns name, compute, memory,
/// code and state.
///
/// # Errors
/// A file that cannot be read, and invalid values of tasks, each with its line.
pub fn read_tasks(path: &Path) -> Result<Vec<Task>> {
    let rows = read_table(path)?;
    let refuse =
        |line: u64, text: String| Error::Argument(format!("{}: line {line}: {text}", path.display()));
    let numbers = |name: &str| -> Result<Vec<f64>> {
        let values = rows.numbers(name).map_err(at(path))?;
        match values.iter().position(|value| *value < 0.0) {
            Some(i) => Err(refuse(rows.line(i), format!("column `{name}`: {} is negative", values[i]))),
            None => Ok(values),
        }
    };
    let (names, states) = (rows.texts("name").map_err(at(path))?, rows.texts("state").map_err(at(path))?);
    let (compute, memory, code) = (numbers("compute")?, numbers("memory")?, numbers("code")?);
    let task = |i: usize| {
        let state = match states[i].as_str() {
            "private" => State::Private,
            "shared" => State::Shared,
            other => return Err(refuse(rows.line(i), format!("state `{other}`: write private or shared"))),
        };
        if code[i].fract() != 0.0 || code[i] > f64::from(u32::MAX) {
            let text = format!("code {} is not a number of instructions", code[i]);
            return Err(refuse(rows.line(i), text));
        }
        let (compute, memory, code) = (compute[i], memory[i], code[i] as u32);
        Ok(Task { name: names[i].clone(), compute, memory, code, state })
    };
    (0..rows.len()).map(task).collect()
}

/// Reads one platform: `FILE` with a single one, or `FILE:NAME`.
///
/// # Errors
/// A file that cannot be read, several platforms without a name, a name that is not in the file.
pub fn read_platform(text: &str) -> Result<Platform> {
    let whole = Path::new(text);
    let (path, name) = match text.rsplit_once(':') {
        Some((file, name)) if !whole.exists() => (Path::new(file), Some(name)),
        _ => (whole, None),
    };
    let mut platforms = read_platforms(path)?;
    let names = platforms.iter().map(|p| p.name.clone()).collect::<Vec<_>>().join(", ");
    if let Some(name) = name {
        platforms.retain(|p| p.name == name);
        if platforms.is_empty() {
            let path = path.display();
            return Err(Error::Argument(format!("{path}: no platform `{name}` (have: {names})")));
        }
    } else if platforms.len() > 1 {
        return Err(Error::Argument(format!("{text}: several platforms ({names}): write {text}:NAME")));
    }
    Ok(platforms.swap_remove(0))
}

/// Reads a fit as `fastpath model fit --json` prints it.
///
/// # Errors
/// A file that cannot be read, or that holds something else.
pub fn read_fit(path: &Path) -> Result<Fit> {
    let text = read_text(path)?;
    if !text.trim_start().starts_with('{') {
        let path = path.display();
        return Err(Error::Argument(format!("{path}: to fit a table, give --y COLUMN and --terms TERMS")));
    }
    serde_json::from_str(&text).map_err(|error| {
        let path = path.display();
        Error::Argument(format!("{path}: not a fit as `fastpath model fit --json` prints it: {error}"))
    })
}

/// Reads text as spreadsheets write it: UTF-8, UTF-16 with a byte order mark, or Latin-1. The path
/// `-` is standard input.
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
pub(crate) fn system_fonts() -> Fonts {
    #[cfg_attr(not(feature = "png"), expect(unused_mut, reason = "there is nothing to load"))]
    let mut fonts = Fonts::new();
    #[cfg(feature = "png")]
    fonts.load_system_fonts();
    fonts
}

/// Adds the name of a file to an error of its contents.
pub(crate) fn at<E: Display>(path: &Path) -> impl Fn(E) -> Error + '_ {
    move |error| Error::Argument(format!("{}: {error}", path.display()))
}

/// The files of an evaluation: one, or a directory of all formats.
#[derive(Clone, Debug)]
pub struct EvaluationFiles(Files);

#[derive(Clone, Debug)]
enum Files {
    One(PathBuf, FileFormat),
    Directory(PathBuf),
}

#[derive(Clone, Copy, Debug)]
enum FileFormat {
    Html,
    Markdown,
    Json,
}

impl FileFormat {
    const ALL: [(FileFormat, &'static str); 3] =
        [(FileFormat::Html, "html"), (FileFormat::Markdown, "md"), (FileFormat::Json, "json")];

    fn render(self, evaluation: &Evaluation) -> String {
        match self {
            FileFormat::Html => evaluation.report().html(),
            FileFormat::Markdown => evaluation.report().markdown(),
            FileFormat::Json => {
                serde_json::to_string_pretty(evaluation).expect("an evaluation is JSON") + "\n"
            }
        }
    }
}

impl EvaluationFiles {
    /// Creates the file or directory, so that it is known before anything is measured whether the
    /// report can be written.
    ///
    /// # Errors
    /// A name with another extension, or a path that cannot be written.
    pub fn new(path: &Path) -> Result<EvaluationFiles> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let known = FileFormat::ALL.iter().find(|(_, name)| Some(*name) == extension);
        match (known, extension) {
            (Some((format, _)), _) if !path.is_dir() => {
                fs::write(path, "").map_err(Error::file(path))?;
                Ok(EvaluationFiles(Files::One(path.to_owned(), *format)))
            }
            (None, Some(_)) if !path.is_dir() => Err(Error::Argument(format!(
                "{}: name the report *.html, *.md or *.json, or a directory",
                path.display()
            ))),
            _ => {
                fs::create_dir_all(path).map_err(Error::file(path))?;
                Ok(EvaluationFiles(Files::Directory(path.to_owned())))
            }
        }
    }

    /// Writes the evaluation.
    ///
    /// # Errors
    /// [`Error::File`] if a file cannot be written.
    pub fn write(&self, evaluation: &Evaluation) -> Result<()> {
        let files = match &self.0 {
            Files::One(path, format) => vec![(path.clone(), *format)],
            Files::Directory(directory) => FileFormat::ALL
                .iter()
                .map(|(format, name)| (directory.join(format!("report.{name}")), *format))
                .collect(),
        };
        for (path, format) in files {
            fs::write(&path, format.render(evaluation)).map_err(Error::file(&path))?;
        }
        Ok(())
    }
}
