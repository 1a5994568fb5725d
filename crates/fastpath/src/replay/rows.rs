//! The times of every frame of a replay: lines of the times file, columns in memory, or neither.

use crate::error::{Error, Result};
use fastpath_net::{EdgeId, Reason};
use fastpath_units::Time;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// How a frame ended.
#[derive(Clone, Copy)]
pub(super) enum FrameEnd {
    Delivered(Time, EdgeId),
    Dropped(Reason),
    /// Consumed by the router it was addressed to.
    Absorbed,
}

/// What is known of a frame.
pub(super) struct FrameRow {
    pub(super) entered: Time,
    /// The edge at which it entered, or would have.
    pub(super) edge: EdgeId,
    /// Its number in its capture, from 1; `None`: it is of no capture.
    pub(super) capture_frame: Option<u64>,
    /// `None`: it is still in the network.
    pub(super) end: Option<FrameEnd>,
}

/// The times of every frame, in the order in which the frames entered. Times are picoseconds from
/// time zero of the run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TimeColumns {
    /// When the frame entered.
    pub in_ps: Vec<u64>,
    /// When it was delivered; [`TimeColumns::NEVER`] if it was not.
    pub out_ps: Vec<u64>,
    /// How it ended: an index of `ends`.
    pub end: Vec<u8>,
    /// `delivered`, drop reasons, `absorbed` by a router that it was addressed to, or `held` in the
    /// network at the end of the run.
    pub ends: Vec<&'static str>,
    /// The input by which it entered, in the order in which the inputs were given.
    pub input: Vec<u32>,
    /// The edge at which it was delivered; `u32::MAX` if it was not.
    pub edge: Vec<u32>,
    /// Its length, bytes.
    pub len: Vec<u32>,
}

impl TimeColumns {
    /// Stands for no time. As a signed number it is -1.
    pub const NEVER: u64 = u64::MAX;

    fn store(&mut self, entered: Time, end: Option<FrameEnd>) {
        let (out, edge) = match end {
            Some(FrameEnd::Delivered(at, edge)) => (at.as_ps(), edge.0),
            _ => (TimeColumns::NEVER, u32::MAX),
        };
        let name = name(end);
        let place = self.ends.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.ends.push(name);
            self.ends.len() - 1
        });
        self.in_ps.push(entered.as_ps());
        self.out_ps.push(out);
        self.edge.push(edge);
        self.end.push(u8::try_from(place).expect("fewer drop reasons than 256"));
    }
}

/// Where the rows go.
#[derive(Default)]
pub(super) enum Rows {
    #[default]
    Nowhere,
    File {
        path: PathBuf,
        out: BufWriter<File>,
        /// Picosecond since 1970 at which the run began.
        start_ps: u128,
        /// The host of each edge, with its interface if the host has several.
        hosts: Vec<String>,
    },
    Columns(TimeColumns),
}

impl Rows {
    /// Starts the times file.
    pub(super) fn file(
        path: PathBuf,
        mut out: BufWriter<File>,
        start_ps: u128,
        hosts: Vec<String>,
    ) -> Result<Rows> {
        writeln!(out, "index,host,capture_frame,in_ps,out_ps").map_err(Error::file(&path))?;
        Ok(Rows::File { path, out, start_ps, hosts })
    }

    /// Notes the input and the length of the next frame that enters.
    pub(super) fn entering(&mut self, input: usize, len: usize) {
        if let Rows::Columns(columns) = self {
            columns.input.push(input as u32);
            columns.len.push(len as u32);
        }
    }

    /// Stores the row of a frame, which is the `index`-th that entered.
    pub(super) fn store(&mut self, index: u64, row: &FrameRow) -> Result<()> {
        let FrameRow { entered, end, .. } = *row;
        match self {
            Rows::Nowhere => Ok(()),
            Rows::Columns(columns) => {
                columns.store(entered, end);
                Ok(())
            }
            Rows::File { path, out, start_ps, hosts } => {
                let absolute = |at: Time| *start_ps + u128::from(at.as_ps());
                let entered = absolute(entered);
                let host = &hosts[row.edge.0 as usize];
                let mut begun = || match row.capture_frame {
                    Some(number) => write!(out, "{index},{host},{number},{entered},"),
                    None => write!(out, "{index},{host},,{entered},"),
                };
                let begun = begun();
                let ended = begun.and_then(|()| match end {
                    Some(FrameEnd::Delivered(at, _)) => writeln!(out, "{}", absolute(at)),
                    _ => writeln!(out, "{}", name(end)),
                });
                ended.map_err(Error::file(path))
            }
        }
    }

    /// Completes the file. Returns the columns, empty without them.
    pub(super) fn finish(self) -> Result<TimeColumns> {
        match self {
            Rows::Nowhere => Ok(TimeColumns::default()),
            Rows::Columns(columns) => Ok(columns),
            Rows::File { path, mut out, .. } => {
                out.flush().map_err(Error::file(&path))?;
                Ok(TimeColumns::default())
            }
        }
    }
}

fn name(end: Option<FrameEnd>) -> &'static str {
    match end {
        Some(FrameEnd::Delivered(..)) => "delivered",
        Some(FrameEnd::Dropped(reason)) => reason.name(),
        Some(FrameEnd::Absorbed) => "absorbed",
        None => "held",
    }
}
