//! The file of a per-packet log in virtual time (pcapng).

use crate::error::{Error, Result};
use fastpath_net::packet_log;
use fastpath_spec::Topology;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// The file of a [`PacketLog`](packet_log::PacketLog), and the first error of writing it.
pub struct LogFile {
    path: PathBuf,
    writer: packet_log::Writer<BufWriter<File>>,
    failure: io::Result<()>,
}

impl LogFile {
    /// Creates the file for a network whose time zero is `start_ns` nanoseconds after 1970.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path, topology: &Topology, start_ns: u64) -> Result<LogFile> {
        let file = File::create(path).map_err(|error| {
            Error::file(path)(io::Error::new(error.kind(), format!("cannot write this file: {error}")))
        })?;
        let writer = packet_log::Writer::new(BufWriter::new(file), topology, start_ns);
        Ok(LogFile { path: path.to_owned(), writer: writer.map_err(Error::file(path))?, failure: Ok(()) })
    }

    /// Writes out what is in memory.
    ///
    /// # Errors
    /// The first error of writing the file.
    pub fn flush(&mut self) -> Result<()> {
        let written = std::mem::replace(&mut self.failure, Ok(())).and_then(|()| self.writer.flush());
        written.map_err(Error::file(&self.path))
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first error of writing the file.
    pub fn finish(mut self) -> Result<()> {
        self.flush()
    }
}

impl packet_log::Sink for LogFile {
    fn take(&mut self, entry: packet_log::LogEntry, bytes: &[u8]) {
        if self.failure.is_ok() {
            self.failure = self.writer.write(&entry, bytes);
        }
    }

    fn rearranged(&mut self, topology: &Topology) {
        if self.failure.is_ok() {
            self.failure = self.writer.rearrange(topology);
        }
    }
}
