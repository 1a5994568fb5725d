//! How much more a running network can carry: headroom of workers and links, and a warning before
//! frames are too late.
//!
//! ```text
//!  worker ──Pulse, once per second──▶ HeadroomWatch ─┬─▶ notice, once, and once when it is over
//!                                                    └─▶ recent load of workers, in reports
//! ```
//!
//! The headroom of a worker is the share of the time in which it moves no frame. That of a
//! direction of a link is the smaller of the unused share of its rate and the headroom of the
//! busiest worker.

use crate::pulse::{Pulse, RecentWorker};
use crate::report::{LinkReport, PipeReport, Report};
use crate::worker_group::WorkerGroup;
use fastpath_port::Notice;
use fastpath_units::stats::per_second;
use fastpath_units::{Duration, Rate};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

/// The interval between two pulses.
const PERIOD: std::time::Duration = std::time::Duration::from_secs(1);
/// Share of the time from which a worker has too little headroom.
const BUSY_MAX: f64 = 0.85;
/// Share of frames whose lateness may exceed half of the tolerance.
const NEAR_MAX: f64 = 0.01;
/// Pulses in a row that start a warning, or end it.
const PULSES: u32 = 3;

/// Watches the workers of a run.
#[derive(Debug)]
pub(crate) struct HeadroomWatch {
    tolerance: Duration,
    /// Whether the author gave the tolerance. Otherwise only the load is watched.
    is_stated: bool,
    workers: Vec<WatchedWorker>,
}

#[derive(Clone, Debug, Default)]
struct WatchedWorker {
    last: Option<Pulse>,
    /// Pulses in a row with too little headroom, or with enough while there is a warning.
    count: u32,
    is_warned: bool,
    /// What it lacks, since it was told.
    warning: Option<String>,
}

impl HeadroomWatch {
    pub(crate) fn new(workers: usize, tolerance: Duration, is_stated: bool) -> HeadroomWatch {
        HeadroomWatch { tolerance, is_stated, workers: vec![WatchedWorker::default(); workers] }
    }

    /// Takes the next pulse of a worker. Returns what it did, and what to tell the user.
    pub(crate) fn observe(&mut self, number: usize, pulse: Pulse) -> (RecentWorker, Option<String>) {
        let (load, text) = self.judge(number, pulse);
        let worker = &mut self.workers[number];
        if text.is_some() {
            worker.warning = text.clone().filter(|_| worker.is_warned);
        }
        (RecentWorker { load, warning: worker.warning.clone() }, text)
    }

    fn judge(&mut self, number: usize, pulse: Pulse) -> (f64, Option<String>) {
        let worker = &mut self.workers[number];
        let before = worker.last.replace(pulse).unwrap_or_default();
        let seconds = pulse.at.since(before.at).as_secs_f64();
        let busy = per_second(pulse.busy.saturating_sub(before.busy).as_secs_f64(), seconds).min(1.0);
        let released = pulse.released.saturating_sub(before.released);
        let near = pulse.near.saturating_sub(before.near) as f64 / released.max(1) as f64;
        let is_near = self.is_stated && near > NEAR_MAX;
        let lacks = busy >= BUSY_MAX || is_near;
        worker.count = if lacks == worker.is_warned { 0 } else { worker.count + 1 };
        if worker.count < PULSES {
            return (busy, None);
        }
        (worker.count, worker.is_warned) = (0, lacks);
        let percent = 100.0 * busy;
        let text = match (lacks, is_near) {
            (false, _) => {
                format!("worker {number} has headroom again: it is busy {percent:.0} % of the time")
            }
            (true, false) => format!(
                "worker {number} is busy {percent:.0} % of the time: with more load frames will be late or lost; \
                 `fastpath check --capacity` says what would help"
            ),
            (true, true) => format!(
                "worker {number} releases {:.1} % of frames later than half of the tolerance of {} (it is busy {percent:.0} % \
                 of the time)",
                100.0 * near,
                self.tolerance
            ),
        };
        (busy, Some(text))
    }
}

/// The thread that watches the workers. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct HeadroomThread {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HeadroomThread {
    /// Starts to watch the workers of a group.
    pub(crate) fn start(
        workers: WorkerGroup,
        mut watch: HeadroomWatch,
        notice: Notice,
    ) -> std::io::Result<HeadroomThread> {
        let (stop, stopped) = channel();
        let run = move || {
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let Some(pulses) = workers.pulses() else { return };
                let mut recent = Vec::with_capacity(pulses.len());
                for (number, pulse) in pulses.into_iter().enumerate() {
                    let (worker, text) = watch.observe(number, pulse);
                    recent.push(worker);
                    text.iter().for_each(|text| notice.send(text));
                }
                workers.set_recent(recent);
            }
        };
        let thread = std::thread::Builder::new().name("fastpath-headroom".to_owned()).spawn(run)?;
        Ok(HeadroomThread { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for HeadroomThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A panic there has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Returns the share of the time in which each worker moved frames between two reports of one
/// network.
pub fn worker_loads(before: &Report, after: &Report) -> Vec<f64> {
    let seconds = after.uptime_s - before.uptime_s;
    let busy = |number: usize| before.workers.get(number).map_or(0.0, |worker| worker.busy_s);
    let workers = after.workers.iter().enumerate();
    workers
        .map(|(number, worker)| per_second(worker.busy_s - busy(number), seconds).clamp(0.0, 1.0))
        .collect()
}

/// Returns the used share of the rate of a direction of a link in the `seconds` since `before`;
/// `None` without a rate. A direction that `before` does not have was idle.
pub fn pipe_load(before: Option<&PipeReport>, pipe: &PipeReport, seconds: f64) -> Option<f64> {
    let rate: Rate = pipe.rate.parse().ok()?;
    let grown =
        |counter: fn(&PipeReport) -> u64| counter(pipe).saturating_sub(before.map_or(0, counter)) as f64;
    let bytes = grown(|pipe| pipe.bytes_out) + f64::from(pipe.overhead) * grown(|pipe| pipe.frames_out);
    Some(per_second(8.0 * bytes, seconds) / rate.as_bps() as f64)
}

/// Returns the headroom of workers together: that of the busiest.
pub fn headroom_of_workers(loads: &[f64]) -> f64 {
    1.0 - loads.iter().copied().fold(0.0, f64::max)
}

/// Returns the headroom of a direction of a link with this load, beside that of the workers.
pub fn pipe_headroom(load: Option<f64>, of_workers: f64) -> f64 {
    (1.0 - load.unwrap_or(0.0)).clamp(0.0, 1.0).min(of_workers)
}

/// Returns the headroom of both directions of each link between two reports of one network, in the
/// order of links.
pub fn link_headrooms(before: &Report, after: &Report) -> Vec<[f64; 2]> {
    let of_workers = headroom_of_workers(&worker_loads(before, after));
    let seconds = after.uptime_s - before.uptime_s;
    let earlier = |place: usize, link: &LinkReport| {
        before.links.get(place).filter(|before| before.name == link.name).map(|before| &before.directions)
    };
    let of_link = |(place, link): (usize, &LinkReport)| {
        let before = earlier(place, link);
        [0, 1].map(|index| {
            let load = pipe_load(before.map(|pipes| &pipes[index]), &link.directions[index], seconds);
            pipe_headroom(load, of_workers)
        })
    };
    after.links.iter().enumerate().map(of_link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pulses once per second, from (busy share, frames, near frames) in each.
    fn told(is_stated: bool, seconds: &[(f64, u64, u64)]) -> Vec<Option<String>> {
        let mut watch = HeadroomWatch::new(1, Duration::from_ms(1), is_stated);
        let mut pulse = Pulse::default();
        let each = seconds.iter().map(|&(busy, released, near)| {
            pulse.at = pulse.at.saturating_add(Duration::from_secs(1));
            pulse.busy = pulse.busy.saturating_add(Duration::from_us((1e6 * busy) as u64));
            pulse.released += released;
            pulse.near += near;
            let (recent, text) = watch.observe(0, pulse);
            assert!((recent.load - busy).abs() < 1e-6);
            if let Some(text) = &text {
                let is_over = text.contains("headroom again");
                assert_eq!(recent.warning.as_ref(), Some(text).filter(|_| !is_over));
            }
            text
        });
        each.collect()
    }

    #[test]
    fn a_busy_worker_is_told_once_and_once_when_it_is_over() {
        let busy = [(0.9, 100, 0); 6];
        let idle = [(0.2, 100, 0); 4];
        let texts = told(false, &[busy.as_slice(), &idle].concat());
        let places: Vec<usize> = (0..10).filter(|place| texts[*place].is_some()).collect();
        assert_eq!(places, [2, 8], "{texts:?}");
        assert!(texts[2].as_ref().unwrap().contains("busy 90 %"), "{texts:?}");
        assert!(texts[8].as_ref().unwrap().contains("headroom again"), "{texts:?}");
    }

    #[test]
    fn a_short_burst_is_no_warning() {
        let mut seconds = [(0.99, 100, 0); 9];
        (2..9).step_by(3).for_each(|place| seconds[place] = (0.5, 100, 0));
        assert!(told(true, &seconds).iter().all(Option::is_none));
    }

    #[test]
    fn late_frames_are_told_before_a_stated_tolerance_breaks() {
        let seconds = [(0.3, 1000, 15); 3];
        let texts = told(true, &seconds);
        assert!(
            texts[2].as_ref().unwrap().contains("1.5 % of frames later than half of the tolerance of 1ms"),
            "{texts:?}"
        );
        assert!(told(false, &seconds).iter().all(Option::is_none), "no tolerance is given");
        assert!(told(true, &[(0.3, 1000, 10); 5]).iter().all(Option::is_none));
    }

    fn report(uptime_s: f64, busy_s: f64, bytes_out: u64) -> Report {
        let pipe = |rate: &str| {
            serde_json::json!({ "from": "a", "to": "b", "rate": rate, "delay": "0s", "loss": "0%", "queue": "9p",
                "overhead": 0, "frames_in": 0, "bytes_in": 0, "frames_out": 10, "bytes_out": bytes_out, "marked": 0,
                "dropped": {}, "held": 0 })
        };
        let worker = crate::report::WorkerReport { busy_s, ..Default::default() };
        serde_json::from_value(serde_json::json!({ "uptime_s": uptime_s, "ports": [], "workers": [worker],
            "links": [{ "name": "a-b", "directions": [pipe("8Mbit"), pipe("unlimited")] }],
            "conservation": { "in": 0, "delivered": 0, "dropped": {}, "held": 0 } }))
        .unwrap()
    }

    #[test]
    fn a_link_has_the_headroom_of_its_rate_or_of_the_worker() {
        // 2 s, 0.4 s busy, 1.2 MB over 8 Mbit/s: 60 % of the rate.
        let (before, after) = (report(1.0, 0.5, 0), report(3.0, 0.9, 1_200_000));
        assert_eq!(worker_loads(&before, &after), [0.2]);
        let [forward, backward] = link_headrooms(&before, &after)[0];
        assert!((forward - 0.4).abs() < 1e-9 && (backward - 0.8).abs() < 1e-9, "{forward} {backward}");
        let [forward, _] = link_headrooms(&before, &report(3.0, 2.4, 1_200_000))[0];
        assert!((forward - 0.05).abs() < 1e-9, "{forward}");
    }
}
