//! The rows of a sweep and their file.
//!
//! While a sweep runs, each finished row is appended as one line, so a killed sweep loses only the
//! rows in progress. An incomplete last line is removed. When all points are done the file is
//! rewritten in the order of the points and replaces the old one atomically: the finished file does
//! not depend on the number of threads.
//!
//! The last cell of a row is its checksum. A row that was altered is refused.

use crate::error::{Error, Result};
use fastpath_sim::sweep::Sweep;
use fastpath_units::matrix::checksum;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The title of the last column of the file.
const CHECKSUM: &str = "checksum";

/// The rows of a sweep, by point.
pub struct Results {
    columns: Vec<String>,
    rows: BTreeMap<u64, Vec<String>>,
    file: Option<Journal>,
}

/// A row of a sweep: the values of its axes, and what was found there.
#[derive(Clone, Copy, Debug)]
pub struct SweepRow<'r> {
    columns: &'r [String],
    cells: &'r [String],
}

impl<'r> SweepRow<'r> {
    /// Returns the cell of a column; `None` if there is no such column, or nothing in it.
    pub fn text(&self, column: &str) -> Option<&'r str> {
        let at = self.columns.iter().position(|name| name == column)?;
        self.cells.get(at).map(String::as_str).filter(|cell| !cell.is_empty())
    }

    /// Returns the number in a column; `None` if it has none.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.text(column)?.parse().ok()
    }

    /// Returns why the point could not be run to its end; `None` if it was.
    pub fn problem(&self) -> Option<&'r str> {
        self.cells.last().map(String::as_str).filter(|problem| !problem.is_empty())
    }

    /// Returns the cells, in the order of the columns.
    pub fn cells(&self) -> &'r [String] {
        self.cells
    }
}

/// The file, locked while it is open: two sweeps into one file would do everything twice.
struct Journal {
    path: PathBuf,
    file: File,
}

impl Results {
    /// Starts without rows, or with those that the file holds.
    ///
    /// # Errors
    /// A file of another sweep, one that another sweep writes, or one that cannot be read.
    pub fn open(sweep: &Sweep, path: Option<&Path>) -> Result<Results> {
        let mut results = Results { columns: sweep.columns(), rows: BTreeMap::new(), file: None };
        if let Some(path) = path {
            results.file = Some(Journal::open(path)?);
            results.read(sweep, path)?;
        }
        Ok(results)
    }

    /// Whether the point has been done.
    pub fn has(&self, point: u64) -> bool {
        self.rows.contains_key(&point)
    }

    /// Returns all rows in the order of their points.
    pub fn rows(&self) -> impl Iterator<Item = SweepRow<'_>> {
        self.rows.values().map(|cells| SweepRow { columns: &self.columns, cells })
    }

    /// Returns the number of points that could not be run to their end.
    pub fn failed(&self) -> usize {
        self.rows().filter(|row| row.problem().is_some()).count()
    }

    /// Adds a finished point, in the file too.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, point: u64, row: Vec<String>) -> Result<()> {
        if let Some(journal) = &mut self.file {
            // One write, so that no kill leaves half a row behind on a local disk.
            journal.file.write_all(&checked(&row)).map_err(Error::file(&journal.path))?;
        }
        self.rows.insert(point, row);
        Ok(())
    }

    /// Rewrites the file in the order of the points.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(&self) -> Result<()> {
        let Some(Journal { path, .. }) = &self.file else { return Ok(()) };
        let sorted = self.csv();
        if fs::read(path).map_err(Error::file(path))? == sorted {
            return Ok(());
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let temporary = PathBuf::from(name);
        let write = || {
            let mut file = File::create(&temporary)?;
            file.write_all(&sorted)?;
            file.sync_all()
        };
        write().map_err(Error::file(&temporary))?;
        fs::rename(&temporary, path).map_err(Error::file(path))
    }

    /// Returns the whole table as CSV, with the checksum of each row in the last column.
    pub fn csv(&self) -> Vec<u8> {
        let mut text = line(&titles(&self.columns));
        self.rows().for_each(|row| text.extend(checked(row.cells)));
        text
    }

    /// Reads the rows that the file holds.
    fn read(&mut self, sweep: &Sweep, path: &Path) -> Result<()> {
        let journal = self.file.as_mut().expect("opened before it is read");
        let titles = titles(&self.columns);
        let text = journal.complete_lines(&titles).map_err(Error::file(path))?;
        let refuse = |text: String| Error::Argument(format!("{}: {text}", path.display()));
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        for (i, record) in reader.records().enumerate() {
            let record = record.map_err(|error| refuse(error.to_string()))?;
            let mut row: Vec<String> = record.iter().map(str::to_owned).collect();
            // Concatenated files repeat the titles.
            if row == titles {
                continue;
            }
            if i == 0 {
                return Err(refuse(
                    "not the results of this sweep: other columns; name another file".to_owned(),
                ));
            }
            let stated = row.pop().unwrap_or_default();
            if row.len() != self.columns.len() || row[0] != sweep.configuration() {
                return Err(refuse(format!(
                    "line {}: a row of another sweep (or another version of the simulator); name another file",
                    i + 1
                )));
            }
            let computed = checksum(&row);
            if stated != computed {
                return Err(refuse(format!(
                    "line {}: the row of point {:?} was altered: its checksum is {stated:?}, that of its cells is \
                     {computed:?}; delete the line to simulate the point again",
                    i + 1,
                    row[1]
                )));
            }
            let point = row[1].parse().ok().filter(|&point| point < sweep.points());
            let unknown = || refuse(format!("line {}: {:?} is not a point of this sweep", i + 1, row[1]));
            self.rows.insert(point.ok_or_else(unknown)?, row);
        }
        Ok(())
    }
}

impl Journal {
    fn open(path: &Path) -> Result<Journal> {
        let options = OpenOptions::new().read(true).append(true).create(true).open(path);
        let file = options.map_err(Error::file(path))?;
        match file.try_lock() {
            Ok(()) => Ok(Journal { path: path.to_owned(), file }),
            Err(TryLockError::WouldBlock) => Err(Error::Argument(format!(
                "{}: another sweep is writing this file; give this one its own",
                path.display()
            ))),
            Err(TryLockError::Error(error)) => Err(Error::file(path)(error)),
        }
    }

    /// Reads the complete lines of the file and removes an incomplete last one. A file without rows
    /// gets the titles.
    fn complete_lines(&mut self, columns: &[String]) -> io::Result<String> {
        let mut text = String::new();
        self.file.read_to_string(&mut text)?;
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            self.file.set_len(whole as u64)?;
            text.truncate(whole);
        }
        self.file.seek(SeekFrom::End(0))?;
        // A sweep that was killed before its first row left only titles.
        let is_bare = text.lines().count() == 1 && text.split(',').next() == Some(&columns[0]);
        if is_bare {
            self.file.set_len(0)?;
            text.clear();
        }
        if text.is_empty() {
            self.file.write_all(&line(columns))?;
        }
        Ok(text)
    }
}

/// Returns the titles of the columns of the file.
fn titles(columns: &[String]) -> Vec<String> {
    columns.iter().cloned().chain([CHECKSUM.to_owned()]).collect()
}

/// Formats a row and its checksum as a line of CSV.
fn checked(row: &[String]) -> Vec<u8> {
    line(&row.iter().cloned().chain([checksum(row)]).collect::<Vec<_>>())
}

/// Formats cells as a line of CSV.
fn line(row: &[String]) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(row).expect("writing to memory cannot fail");
    writer.into_inner().expect("writing to memory cannot fail")
}
