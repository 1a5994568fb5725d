//! Says while it happens that the machine does not send the traffic that was asked for. The counts
//! of a whole run would hide a bad minute of an hour.

use super::flow::LabFlow;
use fastpath_engine::{Clock, Notice};
use fastpath_sys::thread::has_virtual_time;
use fastpath_traffic::FlowReport;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The interval between two looks, and so between two notices.
const PERIOD: Duration = Duration::from_secs(1);
/// Packets that may be due and not yet sent at any time, and their share of those of the interval.
const MISSED_MAX: u64 = 20;
const MISSED_SHARE: f64 = 0.01;

/// Packets of a flow that were due, and that were sent.
type DueAndSent = [u64; 2];

/// Compares the flows of a run with what they were one interval before.
#[derive(Debug, Default)]
struct ShortfallWatch {
    before: Vec<DueAndSent>,
}

impl ShortfallWatch {
    /// Takes the names and counts of all flows. Returns what to tell the user.
    fn observe(&mut self, flows: &[(&str, DueAndSent)]) -> Option<String> {
        self.before.resize(flows.len(), [0; 2]);
        let mut short = Vec::new();
        for ((name, [asked, sent]), before) in flows.iter().zip(&mut self.before) {
            let [due, gone] = [asked.saturating_sub(before[0]), sent.saturating_sub(before[1])];
            *before = [*asked, *sent];
            let missed = due.saturating_sub(gone);
            if missed > MISSED_MAX && missed as f64 > MISSED_SHARE * due as f64 {
                short.push((missed, due, *name));
            }
        }
        let &(missed, due, name) = short.iter().max()?;
        let others = match short.len() {
            1 => String::new(),
            2 => " (and one other flow)".to_owned(),
            count => format!(" (and {} other flows)", count - 1),
        };
        Some(format!(
            "traffic {name}: {missed} of {due} packets that were due in the last second were not sent{others}: the \
             machine does not carry it"
        ))
    }
}

/// The thread that watches the flows of a run. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct ShortfallThread {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ShortfallThread {
    /// Starts to watch flows. `None` without any, and in virtual time, where all is sent.
    pub(super) fn start(flows: &Arc<Vec<LabFlow>>, clock: Clock, notice: Notice) -> Option<ShortfallThread> {
        if flows.is_empty() || has_virtual_time() {
            return None;
        }
        let (flows, (stop, stopped)) = (Arc::clone(flows), channel());
        let run = move || {
            let mut watch = ShortfallWatch::default();
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let now = clock.now();
                let reports: Vec<FlowReport> = flows.iter().map(|flow| flow.report(now)).collect();
                let counts = reports.iter().map(|flow| (flow.name.as_str(), [flow.asked, flow.sent]));
                let text = watch.observe(&counts.collect::<Vec<_>>());
                text.iter().for_each(|text| notice.send(text));
            }
        };
        Some(ShortfallThread { stop: Some(stop), thread: Some(thread::spawn(run)) })
    }
}

impl Drop for ShortfallThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A panic there has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_in_which_packets_are_missed_is_told_and_only_that() {
        let mut watch = ShortfallWatch::default();
        let mut at = |video: DueAndSent, call: DueAndSent| watch.observe(&[("video", video), ("call", call)]);
        assert_eq!(at([1000, 1000], [50, 50]), None);
        let text = at([2000, 1400], [100, 100]).unwrap();
        assert!(
            text.starts_with("traffic video: 600 of 1000 packets that were due in the last second"),
            "{text}"
        );
        // All that was due in this second was sent. What was missed before stays missed.
        assert_eq!(at([3000, 2400], [150, 150]), None);
        let text = at([4000, 2400], [250, 150]).unwrap();
        assert!(text.contains("video: 1000 of 1000") && text.contains("(and one other flow)"), "{text}");
    }

    #[test]
    fn packets_that_wait_for_the_next_batch_are_not_missed() {
        let mut watch = ShortfallWatch::default();
        assert_eq!(watch.observe(&[("a", [1020, 1000])]), None);
        assert_eq!(watch.observe(&[("a", [100_000, 99_500])]), None, "less than 1 %");
    }
}
