//! The packets of a capture, one after another.

use crate::failure::{argument, raise};
use fastpath::wire::pcap::{CaptureReader, Packet};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

/// A packet: its time in nanoseconds since 1970 or None, its bytes, and its length on the wire.
type PacketRow = (Option<u64>, Py<PyBytes>, u32);

/// Reads a capture (pcap or pcapng).
#[pyclass(module = "fastpath._native")]
pub(crate) struct CaptureFile {
    path: PathBuf,
    reader: CaptureReader<BufReader<File>>,
}

#[pymethods]
impl CaptureFile {
    #[new]
    fn new(path: PathBuf) -> PyResult<CaptureFile> {
        let file = File::open(&path)
            .map_err(|source| raise(fastpath::Error::File { path: path.clone(), source }))?;
        let reader = CaptureReader::new(BufReader::new(file));
        let reader = reader.map_err(|error| argument(format!("{}: {error}", path.display())))?;
        Ok(CaptureFile { path, reader })
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<PacketRow>> {
        let read = self.reader.read_packet();
        let read = read.map_err(|error| argument(format!("{}: {error}", self.path.display())))?;
        let row = |Packet { ns, orig_len, data, .. }| (ns, PyBytes::new(py, data).unbind(), orig_len);
        Ok(read.map(row))
    }
}
