//! Records a running lab: a thread that takes a sample in every interval. The network never waits
//! for it; when the disk is full the record ends, and the network goes on.

use crate::{Error, Result};
use fastpath_engine::Notice;
use fastpath_lab::Lab;
use fastpath_record::{Origin, RunWriter};
use fastpath_units::Duration;
use serde_json::Map;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

/// The shortest interval.
const INTERVAL_MIN: Duration = Duration::from_ms(1);
/// Samples between two writes to the disk.
const FLUSH_SAMPLES: u32 = 50;

/// A record under way.
pub struct Recorder {
    directory: PathBuf,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<(RunWriter, io::Result<()>)>>,
}

impl Recorder {
    /// Starts to record a lab into a directory. `origin` says where the run comes from
    /// ([`crate::origin::of`]). A disk that fills is said on standard error at once.
    ///
    /// # Errors
    /// [`Error::Argument`] for an interval below a millisecond; otherwise as for
    /// [`RunWriter::create`].
    pub fn start(directory: &Path, origin: &Origin, lab: &Lab, interval: Duration) -> Result<Recorder> {
        if interval < INTERVAL_MIN {
            return Err(Error::Argument(format!(
                "--record-interval {interval}: write at least {INTERVAL_MIN}"
            )));
        }
        let Some(sampler) = lab.sampler() else { return Err(Error::argument("the network has ended")) };
        let notice = Notice::to_stderr();
        let mut writer = RunWriter::create(directory, &sampler.topology(), origin, interval)?;
        let (stop, stopped) = channel::<()>();
        let path = directory.to_owned();
        let work = move || {
            let (start, step) = (Instant::now(), interval.to_std());
            let mut next = start + step;
            for tick in 1u32.. {
                let wait = next.saturating_duration_since(Instant::now());
                let has_ended = stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
                // The network may have ended by itself.
                let Some(sample) = sampler.sample() else { break };
                let mut written = writer.write(&sample);
                if has_ended || tick.is_multiple_of(FLUSH_SAMPLES) {
                    written = written.and_then(|()| writer.flush());
                }
                if let Err(error) = written {
                    notice.send(&format!("record {}: {error}; the record ends there", path.display()));
                    return (writer, Err(error));
                }
                if has_ended {
                    break;
                }
                next = tick_after(start, step, Instant::now());
            }
            (writer, Ok(()))
        };
        let thread = std::thread::Builder::new().name("fastpath-record".to_owned()).spawn(work);
        let thread = thread.map_err(Error::file(directory))?;
        Ok(Recorder { directory: directory.to_owned(), stop: Some(stop), thread: Some(thread) })
    }

    /// Takes the last sample and completes the record with the changes made in the lab and the
    /// command of the run. Call it before the lab ends.
    ///
    /// # Errors
    /// [`Error::File`] if the record is not complete.
    pub fn finish(mut self, lab: &Lab, command: &[OsString]) -> Result<()> {
        drop(self.stop.take());
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let (writer, written) =
            thread.join().map_err(|_| Error::argument("internal error: the recorder panicked"))?;
        written.map_err(Error::file(&self.directory))?;
        let command: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let mut more = Map::from_iter([("command".to_owned(), command.into())]);
        let disturbed = lab.report().and_then(|report| report.disturbed());
        more.extend(disturbed.map(|why| ("disturbed".to_owned(), why.into())));
        Ok(writer.finish(&lab.changes(), more)?)
    }
}

/// Returns the first tick that is at least half a step after `now`. Ticks that were missed are not
/// made up for: samples a moment apart count single frames.
fn tick_after(start: Instant, step: std::time::Duration, now: Instant) -> Instant {
    let passed = (now.duration_since(start) + step / 2).as_nanos() / step.as_nanos();
    let ticks = u64::try_from((passed + 1) * step.as_nanos()).unwrap_or(u64::MAX);
    start + std::time::Duration::from_nanos(ticks)
}

impl Drop for Recorder {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_ticks_are_not_made_up_for() {
        let (start, ms) = (Instant::now(), std::time::Duration::from_millis);
        for (now, next) in [(0, 10), (4, 10), (6, 20), (10, 20), (14, 20), (2016, 2030), (2014, 2020)] {
            assert_eq!(tick_after(start, ms(10), start + ms(now)), start + ms(next), "{now}");
        }
    }
}
