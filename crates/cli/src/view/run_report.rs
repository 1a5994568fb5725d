//! What commands print of a network in real time (Linux): tables of its links and ports while it
//! runs; frame accounting, delays of links with jitter and lateness at its end.

use super::{Render, json_line};
use fastpath_engine::{FrameAccounting, PipeReport, Report};
use fastpath_report::text::{align_left, table};
use fastpath_spec as spec;
use std::io::{self, Write};

/// Formats the frame accounting: `frames: 12 in = 10 delivered + 2 dropped (2 queue-full) + 0
/// held`.
fn accounting_line(frames: &FrameAccounting) -> String {
    let dropped: u64 = frames.dropped.values().sum();
    let reasons: Vec<String> = frames.dropped.iter().map(|(why, n)| format!("{n} {why}")).collect();
    let why = if dropped == 0 { String::new() } else { format!(" ({})", reasons.join(", ")) };
    let FrameAccounting { total_in, delivered, held, .. } = frames;
    format!("frames: {total_in} in = {delivered} delivered + {dropped} dropped{why} + {held} held")
}

/// Returns lines on where all frames went, on the delays of links with jitter, and on traffic.
pub(crate) fn accounting_lines(report: &Report) -> Vec<String> {
    let mut lines = vec![accounting_line(&report.accounting)];
    for pipe in report.links.iter().flat_map(|link| &link.directions) {
        lines.extend(pipe.jitter.as_ref().map(|delays| format!("{} → {}: {delays}", pipe.from, pipe.to)));
    }
    lines.extend(report.traffic.iter().map(|flow| format!("traffic {flow}")));
    lines.extend(report.transfers.iter().map(|transfer| format!("transfer {transfer}")));
    lines
}

/// Returns lines on how late frames were released, on what kept the workers from running, and on a
/// tolerance that was exceeded.
pub(crate) fn lateness_lines(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    let ports = report.ports.iter().map(|port| port.lateness).filter(|late| late.frames > 0);
    if let Some(worst) = ports.clone().max_by(|a, b| a.p99_us.total_cmp(&b.p99_us)) {
        let max = ports.map(|late| late.max_us).fold(0.0, f64::max);
        lines.push(format!(
            "lateness: p50 {:.1} p99 {:.1} µs on the worst link, maximum {max:.1} µs; {} frames exceeded {}",
            worst.p50_us, worst.p99_us, report.lateness.late, report.lateness.tolerance
        ));
    }
    for (number, worker) in report.workers.iter().enumerate() {
        let (stalled, preempted) = (&worker.stalled, &worker.preempted);
        lines.push(format!(
            "worker {number}: load {:.0} %; host stalled {} times, {:.1} ms (longest {:.1}); preempted {} times, {:.1} ms",
            100.0 * worker.load,
            stalled.count,
            stalled.total_ms,
            stalled.longest_ms,
            preempted.count,
            preempted.total_ms
        ));
    }
    match report.lost_under_load() {
        0 => {}
        lost => lines.push(format!(
            "fastpath: {lost} frames were lost between hosts and links: the machine was too slow for this load"
        )),
    }
    lines.extend(report.shortfalls().into_iter().map(|line| format!("fastpath: {line}")));
    if report.is_broken() {
        lines.extend(report.broken().into_iter().map(|line| format!("fastpath: {line}")));
        lines.push(format!("fastpath: the tolerance of {} was exceeded", report.lateness.tolerance));
    }
    lines
}

/// The links of a running network.
pub(crate) struct LinkTable<'r>(pub(crate) &'r Report);

impl Render for LinkTable<'_> {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", link_table(self.0))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, &self.0.links)
    }
}

/// The links, ports and workers of a running network.
impl Render for Report {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}\n{}", link_table(self), port_table(self))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, self)
    }
}

/// Returns a table of the links of a running network: their values, and their frames by direction.
fn link_table(report: &Report) -> String {
    let mut titles = vec![
        "link",
        "from → to",
        "rate",
        "delay",
        "loss",
        "queue",
        "in",
        "out",
        "held",
        "queued",
        "waits",
        "dropped",
    ];
    let beside = report.links.iter().any(|link| link.directions.iter().any(|pipe| !beside(pipe).is_empty()));
    // Where the kernel has some, each link says where it runs.
    let in_kernel = report.links.iter().any(|link| link.data_path == "kernel");
    titles.extend(in_kernel.then_some("runs in"));
    titles.extend(beside.then_some("beside"));
    let mut table = table(titles);
    align_left(&mut table, [12, 13]);
    for link in &report.links {
        for pipe in &link.directions {
            let dropped: Vec<String> = pipe.dropped.iter().map(|(why, n)| format!("{n} {why}")).collect();
            let mut row = vec![
                link.name.clone(),
                format!("{} → {}", pipe.from, pipe.to),
                if pipe.state == "up" { pipe.rate.clone() } else { pipe.state.clone() },
                pipe.delay.clone(),
                pipe.loss.clone(),
                pipe.queue.clone(),
                pipe.frames_in.to_string(),
                pipe.frames_out.to_string(),
                pipe.held.to_string(),
                pipe.queued_frames.to_string(),
                format!("{:.2} ms", pipe.queueing_delay_us / 1000.0),
                if dropped.is_empty() { "0".to_owned() } else { dropped.join(", ") },
            ];
            let place = if link.data_path == "kernel" { "kernel" } else { "user space" };
            row.extend(in_kernel.then(|| place.to_owned()));
            row.extend(beside.then(|| self::beside(pipe)));
            table.add_row(row);
        }
    }
    table.to_string()
}

/// The values that have no column of their own, as a spec has them.
fn beside(pipe: &PipeReport) -> String {
    let own = ["rate", "delay", "loss", "queue", "state"];
    let values = pipe.values.iter().filter(|(key, _)| !own.contains(&key.as_str()));
    let values = values.map(|(key, value)| format!("{key} = {}", spec::inline(value)));
    let traces = pipe.traces.iter().map(|trace| format!("trace {trace}"));
    let cross = pipe
        .cross
        .map(|cross| format!("cross traffic: {} sent, {} dropped", cross.frames_sent, cross.frames_dropped));
    values.chain(pipe.opportunities.clone()).chain(traces).chain(cross).collect::<Vec<_>>().join("\n")
}

/// Returns a table of the ports and workers of a running network, and its frame accounting.
fn port_table(report: &Report) -> String {
    let over = format!("over {}", report.lateness.tolerance);
    let mut table = table(["host", "port", "late p50 µs", "p99", "p99.9", "max", &over, "state"]);
    for port in &report.ports {
        let late = port.lateness;
        let [p50, p99, p999, max] =
            [late.p50_us, late.p99_us, late.p999_us, late.max_us].map(|us| format!("{us:.1}"));
        let state = port.failure.clone().unwrap_or_else(|| "ok".to_owned());
        let over = late.late.to_string();
        table.add_row([port.host.clone(), port.name.clone(), p50, p99, p999, max, over, state]);
    }
    let workers = report.workers.iter().enumerate().map(|(number, worker)| {
        format!(
            "\nworker {number}: load {:.0} % (now {:.0} %, headroom {:.0} %), host stalls {:.1} ms, preemption {:.1} ms",
            100.0 * worker.load,
            100.0 * worker.recent_load,
            100.0 * worker.headroom,
            worker.stalled.total_ms,
            worker.preempted.total_ms
        )
    });
    let workers: String = workers.collect();
    format!("{table}{workers}\n{}, after {:.1} s", accounting_line(&report.accounting), report.uptime_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_engine::port::PortCounters;

    #[test]
    fn frames_lost_under_load_are_named() {
        let lateness =
            serde_json::json!({ "frames": 0, "p50_us": 0.0, "p99_us": 0.0, "p999_us": 0.0, "max_us": 0.0 });
        let counters = PortCounters { rx_overrun: 1, ..PortCounters::default() };
        let port =
            serde_json::json!({ "name": "eth0", "host": "a", "lateness": lateness, "counters": counters });
        let report: Report = serde_json::from_value(serde_json::json!({ "uptime_s": 1.0, "links": [],
            "ports": [port], "conservation": { "in": 0, "delivered": 0, "dropped": {}, "held": 0 } }))
        .unwrap();
        let lines = lateness_lines(&report);
        assert!(lines.iter().any(|line| line.contains("1 frames were lost")), "{lines:?}");
    }
}
