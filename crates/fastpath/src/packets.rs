//! Captures all links of a lab into a file, from its start to its end.

use crate::{Error, Result};
use fastpath_engine::CaptureFilter;
use fastpath_lab::Lab;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// A capture of all links under way. It ends when the network ends.
pub struct PacketsRecorder {
    path: PathBuf,
    thread: JoinHandle<io::Result<u64>>,
}

impl PacketsRecorder {
    /// Starts to capture whole frames, with those that links drop, into a new file.
    ///
    /// # Errors
    /// The file cannot be made; the network has ended.
    pub fn start(path: &Path, lab: &Lab) -> Result<PacketsRecorder> {
        let filter = CaptureFilter { drops: true, ..CaptureFilter::default() };
        let capture = lab.capture(&filter).map_err(|error| Error::Argument(error.to_string()))?;
        let mut out = BufWriter::new(File::create(path).map_err(Error::file(path))?);
        let thread = std::thread::Builder::new().name("fastpath-packets".to_owned());
        let thread = thread.spawn(move || capture.write_to(&mut out)).map_err(Error::file(path))?;
        Ok(PacketsRecorder { path: path.to_owned(), thread })
    }

    /// Waits until the file is complete. The network has to end first.
    ///
    /// # Errors
    /// [`Error::File`] if the file is not complete.
    pub fn finish(self) -> Result<()> {
        let panicked = |_| Error::argument("internal error: the writer of packets panicked");
        let missed = self.thread.join().map_err(panicked)?.map_err(Error::file(&self.path))?;
        if missed > 0 {
            let text = format!("{missed} frames are missing: the disk was too slow");
            return Err(Error::file(&self.path)(io::Error::other(text)));
        }
        Ok(())
    }
}
