//! Frames in memory that enter a replay: times and bytes as columns.

use super::attachment::HostInterface;
use crate::error::{Error, Result};
use fastpath_units::Time;

/// Frames in memory that enter at a host.
#[derive(Clone, Debug)]
pub struct FramesAt<'a> {
    /// The host or interface at which the frames enter.
    pub at: HostInterface,
    /// When they enter, picoseconds from time zero of the run, in order.
    pub times_ps: &'a [u64],
    /// The bytes of all frames, one after another.
    pub bytes: &'a [u8],
    /// The length of each frame.
    pub lengths: FrameLengths<'a>,
}

/// The lengths of frames in memory.
#[derive(Clone, Copy, Debug)]
pub enum FrameLengths<'a> {
    /// All frames have this length.
    All(usize),
    /// One length per frame.
    Each(&'a [u32]),
}

/// The frames of a run, merged by time.
pub(super) struct Arrays<'a> {
    arrays: Vec<Cursor<'a>>,
}

struct Cursor<'a> {
    frames: FramesAt<'a>,
    next: usize,
    offset: usize,
}

impl<'a> Arrays<'a> {
    /// Checks lengths and the order of times.
    pub(super) fn new(arrays: &[FramesAt<'a>]) -> Result<Arrays<'a>> {
        arrays.iter().try_for_each(check)?;
        let cursor = |frames: &FramesAt<'a>| Cursor { frames: frames.clone(), next: 0, offset: 0 };
        Ok(Arrays { arrays: arrays.iter().map(cursor).collect() })
    }

    /// The time of the next frame, and its array. Of equal times the first array is the next.
    pub(super) fn next_at(&self) -> Option<(Time, usize)> {
        let at = |(index, cursor): (usize, &Cursor)| {
            let ps = *cursor.frames.times_ps.get(cursor.next)?;
            Some((Time::from_ps(ps), index))
        };
        self.arrays.iter().enumerate().filter_map(at).min()
    }

    /// Takes the next frame of an array, which has one.
    pub(super) fn take(&mut self, index: usize) -> &'a [u8] {
        let Cursor { frames, next, offset } = &mut self.arrays[index];
        let len = match frames.lengths {
            FrameLengths::All(len) => len,
            FrameLengths::Each(lengths) => lengths[*next] as usize,
        };
        let bytes = &frames.bytes[*offset..*offset + len];
        (*next, *offset) = (*next + 1, *offset + len);
        bytes
    }
}

fn check(frames: &FramesAt) -> Result<()> {
    let FramesAt { at, times_ps, bytes, lengths } = frames;
    let needed = match lengths {
        FrameLengths::All(len) => times_ps.len().checked_mul(*len),
        FrameLengths::Each(lengths) if lengths.len() != times_ps.len() => {
            return Err(Error::Argument(format!(
                "{at}: {} times and {} frames; give one time per frame",
                times_ps.len(),
                lengths.len()
            )));
        }
        FrameLengths::Each(lengths) => Some(lengths.iter().map(|&len| len as usize).sum()),
    };
    if needed != Some(bytes.len()) {
        return Err(Error::Argument(format!(
            "{at}: {} bytes for {} frames; give one frame per time",
            bytes.len(),
            times_ps.len()
        )));
    }
    if let Some(place) = times_ps.windows(2).position(|pair| pair[1] < pair[0]) {
        return Err(Error::Argument(format!(
            "{at}: times[{}] = {} ps is before times[{place}] = {} ps; sort the frames by time",
            place + 1,
            times_ps[place + 1],
            times_ps[place]
        )));
    }
    Ok(())
}
