//! What the links of a running network do at the moment: the difference of two reports.

use fastpath_engine::headroom::{headroom_of_workers, pipe_headroom, pipe_load, worker_loads};
use fastpath_engine::{PipeReport, Report};
use fastpath_units::stats::per_second;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// One direction of a link during an interval.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LinkLoad {
    /// The link.
    pub link: String,
    /// The node it leads from.
    pub from: String,
    /// The node it leads to.
    pub to: String,
    /// `up`, `down` or `paused`.
    pub state: String,
    /// The used fraction of the rate; `None` without a rate.
    pub load: Option<f64>,
    /// How much more it can carry: the unused fraction of the rate, at most that of the busiest
    /// worker.
    pub headroom: f64,
    /// Bits per second that entered, without overhead.
    pub in_bps: f64,
    /// Bits per second that left, without overhead.
    pub out_bps: f64,
    /// Frames in the queue at the end, including the frame on the wire.
    pub queued_frames: u64,
    /// Bytes of these frames.
    pub queued_bytes: u64,
    /// The queueing delay at the end, in microseconds.
    pub queueing_delay_us: f64,
    /// Frames dropped during the interval, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Frames released later than tolerated during the interval; `None` where the link leads to a
    /// router or switch.
    pub late: Option<u64>,
    /// The 99th percentile of the lateness since the start, in microseconds.
    pub lateness_p99_us: Option<f64>,
}

/// The links of a network during an interval.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LinkLoads {
    /// Seconds since the start of the network, at the end of the interval.
    pub uptime_s: f64,
    /// The length of the interval in seconds.
    pub interval_s: f64,
    /// The load of each worker during the interval: the fraction in which it moved frames.
    pub workers: Vec<f64>,
    /// What workers lack for their load at the end.
    pub warnings: Vec<String>,
    /// The directions of all links: those that drop first, then by load and rate.
    pub links: Vec<LinkLoad>,
}

impl LinkLoads {
    /// Returns what the links did between two reports of one network. A link that only the later
    /// report has was idle until then.
    pub fn between(before: &Report, after: &Report) -> LinkLoads {
        let interval_s = after.uptime_s - before.uptime_s;
        let earlier: HashMap<&str, &[PipeReport; 2]> =
            before.links.iter().map(|link| (link.name.as_str(), &link.directions)).collect();
        let workers = worker_loads(before, after);
        let of_workers = headroom_of_workers(&workers);
        let mut links = Vec::new();
        for link in &after.links {
            for (index, pipe) in link.directions.iter().enumerate() {
                let earlier = earlier.get(link.name.as_str()).map(|pipes| &pipes[index]);
                links.push(LinkLoad::between(&link.name, earlier, pipe, (interval_s, of_workers)));
            }
        }
        // The order is stable: links that do nothing keep the order of the spec.
        links.sort_by(|a, b| {
            let key = |load: &LinkLoad| [load.load.unwrap_or(0.0), load.queueing_delay_us, load.out_bps];
            let [a, b] = [key(a), key(b)];
            let first = b[0].total_cmp(&a[0]);
            first.then(b[1].total_cmp(&a[1])).then(b[2].total_cmp(&a[2]))
        });
        let warnings = after.workers.iter().filter_map(|worker| worker.warning.clone()).collect();
        LinkLoads { uptime_s: after.uptime_s, interval_s, workers, warnings, links }
    }
}

impl LinkLoad {
    fn between(
        link: &str,
        earlier: Option<&PipeReport>,
        pipe: &PipeReport,
        (seconds, of_workers): (f64, f64),
    ) -> LinkLoad {
        let growth = |counter: fn(&PipeReport) -> u64| {
            per_second(counter(pipe).saturating_sub(earlier.map_or(0, counter)) as f64, seconds)
        };
        let in_bps = 8.0 * growth(|pipe| pipe.bytes_in);
        let out_bps = 8.0 * growth(|pipe| pipe.bytes_out);
        let load = pipe_load(earlier, pipe, seconds);
        let dropped = pipe.dropped.iter().filter_map(|(why, &count)| {
            let before = earlier.and_then(|earlier| earlier.dropped.get(why)).copied().unwrap_or(0);
            (count > before).then(|| (why.clone(), count - before))
        });
        let late_before = earlier.and_then(|pipe| pipe.lateness).map_or(0, |lateness| lateness.late);
        LinkLoad {
            link: link.to_owned(),
            from: pipe.from.clone(),
            to: pipe.to.clone(),
            state: pipe.state.clone(),
            load,
            headroom: pipe_headroom(load, of_workers),
            in_bps,
            out_bps,
            queued_frames: pipe.queued_frames,
            queued_bytes: pipe.queued_bytes,
            queueing_delay_us: pipe.queueing_delay_us,
            dropped: dropped.collect(),
            late: pipe.lateness.map(|lateness| lateness.late.saturating_sub(late_before)),
            lateness_p99_us: pipe.lateness.map(|lateness| lateness.p99_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(uptime_s: f64, pipes: [(&str, u64, u64); 2]) -> Report {
        let pipe = |(rate, bytes, drops): (&str, u64, u64)| {
            json!({ "from": "a\u{1b}[31m", "to": "b", "rate": rate, "delay": "0s", "loss": "0%", "queue": "9p",
                "overhead": 0, "state": "up", "frames_in": 0, "bytes_in": 0, "frames_out": 0,
                "bytes_out": bytes, "marked": 0, "dropped": { "queue-full": drops }, "held": 0,
                "queued_frames": 7, "queued_bytes": 700, "queueing_delay_us": 2500.0 })
        };
        let link = json!({ "name": "a-b", "directions": pipes.map(pipe) });
        serde_json::from_value(json!({ "uptime_s": uptime_s, "links": [link], "ports": [],
            "conservation": { "in": 0, "delivered": 0, "dropped": {}, "held": 0 } }))
        .unwrap()
    }

    #[test]
    fn loads_are_differences_over_the_interval() {
        let before = report(10.0, [("unlimited", 0, 1), ("10Mbit", 1_000_000, 5)]);
        let after = report(10.5, [("unlimited", 500, 1), ("10Mbit", 1_312_500, 8)]);
        let loads = LinkLoads::between(&before, &after);
        let [first, second] = &loads.links[..] else { panic!("two directions") };
        assert_eq!((first.load, first.out_bps), (Some(0.5), 5_000_000.0));
        assert_eq!(first.dropped, BTreeMap::from([("queue-full".to_owned(), 3)]));
        assert_eq!((second.load, second.out_bps, second.dropped.len()), (None, 8000.0, 0));
    }
}
