//! The rows of a sweep and their file.
//!
//! While a sweep runs a row is one appended line, so a killed sweep loses the rows under way and no
//! others. A last line without its end is cut off. When all is done the file is written anew in the
//! order of the points and takes the old one's place in one step: the finished file does not depend
//! on who did what when.

use anyhow::{Context, bail, ensure};
use fastpath_sim::sweep::Sweep;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

pub(super) struct Results {
    columns: Vec<String>,
    rows: BTreeMap<u64, Vec<String>>,
    file: Option<Journal>,
}

/// The file, locked as long as it is open: two sweeps into one file would do everything twice.
struct Journal {
    path: PathBuf,
    file: File,
}

impl Results {
    /// No rows, or those the file holds. Refuses a file of another sweep.
    pub(super) fn open(sweep: &Sweep, path: Option<&Path>) -> anyhow::Result<Results> {
        let mut results = Results { columns: sweep.columns(), rows: BTreeMap::new(), file: None };
        if let Some(path) = path {
            let journal = Journal::open(path).with_context(|| path.display().to_string())?;
            results.file = Some(journal);
            results.read(sweep).with_context(|| path.display().to_string())?;
        }
        Ok(results)
    }

    pub(super) fn has(&self, point: u64) -> bool {
        self.rows.contains_key(&point)
    }

    /// All rows in the order of their points.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[String]> {
        self.rows.values().map(Vec::as_slice)
    }

    pub(super) fn add(&mut self, point: u64, row: Vec<String>) -> anyhow::Result<()> {
        if let Some(journal) = &mut self.file {
            // One write, so that no kill leaves half a row behind on a local disk.
            let written = journal.file.write_all(&line(&row)?);
            written.with_context(|| journal.path.display().to_string())?;
        }
        self.rows.insert(point, row);
        Ok(())
    }

    /// Puts the file in order.
    pub(super) fn finish(&self) -> anyhow::Result<()> {
        let Some(Journal { path, .. }) = &self.file else { return Ok(()) };
        let place = || path.display().to_string();
        let sorted = self.csv()?;
        if fs::read(path).with_context(place)? == sorted {
            return Ok(());
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let temporary = PathBuf::from(name);
        let mut file = File::create(&temporary).with_context(|| temporary.display().to_string())?;
        file.write_all(&sorted)
            .and_then(|()| file.sync_all())
            .with_context(|| temporary.display().to_string())?;
        fs::rename(&temporary, path).with_context(place)
    }

    /// The whole table as text.
    pub(super) fn csv(&self) -> anyhow::Result<Vec<u8>> {
        let mut text = line(&self.columns)?;
        for row in self.rows() {
            text.extend(line(row)?);
        }
        Ok(text)
    }

    fn read(&mut self, sweep: &Sweep) -> anyhow::Result<()> {
        let journal = self.file.as_mut().expect("opened before it is read");
        let mut text = String::new();
        journal.file.read_to_string(&mut text)?;
        // What a kill cut in two is done again.
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            journal.file.set_len(whole as u64)?;
            text.truncate(whole);
        }
        journal.file.seek(SeekFrom::End(0))?;
        // A sweep that came to nothing left its titles only.
        let is_bare = text.lines().count() == 1 && text.split(',').next() == Some(&self.columns[0]);
        if is_bare {
            journal.file.set_len(0)?;
        }
        if text.is_empty() || is_bare {
            journal.file.write_all(&line(&self.columns)?)?;
            return Ok(());
        }
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        for (i, record) in reader.records().enumerate() {
            let record = record?;
            let row: Vec<String> = record.iter().map(str::to_owned).collect();
            // Concatenated files repeat the titles.
            if row == self.columns {
                continue;
            }
            ensure!(i > 0, "not the results of this sweep: other columns; name another file");
            ensure!(
                row.len() == self.columns.len() && row[0] == sweep.configuration(),
                "line {}: a row of another sweep (or another version of the simulator); name another file",
                i + 1
            );
            let point = row[1].parse().ok().filter(|&point| point < sweep.points());
            let Some(point) = point else { bail!("line {}: {:?} is no point of this sweep", i + 1, row[1]) };
            self.rows.insert(point, row);
        }
        Ok(())
    }
}

impl Journal {
    fn open(path: &Path) -> anyhow::Result<Journal> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Journal { path: path.to_owned(), file }),
            Err(TryLockError::WouldBlock) => {
                bail!("another sweep is writing this file; give this one its own")
            }
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }
}

/// A row as a line of CSV.
fn line(row: &[String]) -> anyhow::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(row)?;
    writer.into_inner().map_err(|error| error.into_error().into())
}
