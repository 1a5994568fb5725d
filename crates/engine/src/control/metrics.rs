//! A report in the Prometheus text exposition format 0.0.4.

use crate::delays::DelayReport;
use crate::headroom::link_headrooms;
use crate::lateness::BOUNDS_NS;
use crate::packet_log::PacketLogReport;
use crate::report::{PipeReport, Report};
use fastpath_units::{Duration, Rate};
use std::fmt::Write;

/// The value of a metric for a direction of a link.
type PipeValue = fn(&PipeReport) -> f64;

/// The families with one sample for each direction of a link: name, kind, help, value.
const PIPE_FAMILIES: [(&str, &str, &str, PipeValue); 11] = [
    ("link_in_frames_total", "counter", "Frames that arrived at a direction of a link.", |pipe| {
        pipe.frames_in as f64
    }),
    ("link_in_bytes_total", "counter", "Bytes that arrived at a direction of a link.", |pipe| {
        pipe.bytes_in as f64
    }),
    ("link_out_frames_total", "counter", "Frames that left a direction of a link.", |pipe| {
        pipe.frames_out as f64
    }),
    ("link_out_bytes_total", "counter", "Bytes that left a direction of a link.", |pipe| {
        pipe.bytes_out as f64
    }),
    ("link_marked_frames_total", "counter", "Frames marked with ECN CE.", |pipe| pipe.marked as f64),
    ("link_duplicated_frames_total", "counter", "Frames that were duplicated.", |pipe| {
        pipe.duplicated as f64
    }),
    ("link_corrupted_frames_total", "counter", "Frames that left with flipped bits.", |pipe| {
        pipe.corrupted as f64
    }),
    ("link_queued_frames", "gauge", "Frames in the queue.", |pipe| pipe.queued_frames as f64),
    ("link_queueing_delay_seconds", "gauge", "How long the frame on the wire was in the queue.", |pipe| {
        pipe.queueing_delay_us / 1e6
    }),
    ("link_configured_delay_seconds", "gauge", "The delay of the link, without its queue.", |pipe| {
        pipe.delay.parse().map_or(0.0, |delay: Duration| delay.as_secs_f64())
    }),
    ("link_held_frames", "gauge", "Frames in the queue and in flight.", |pipe| pipe.held as f64),
];

/// Writes the metrics of a report. `before` is an earlier one of the same network, for what is a
/// share of the time since then.
pub(super) fn metrics(report: &Report, before: Option<&Report>) -> String {
    let mut text = String::new();
    family(
        &mut text,
        "uptime_seconds",
        "gauge",
        "Seconds since the engine started.",
        [(String::new(), report.uptime_s)],
    );
    for (name, kind, help, value) in PIPE_FAMILIES {
        let samples = pipes(report).map(|(link, pipe)| (direction(link, pipe), value(pipe)));
        family(&mut text, name, kind, help, samples);
    }
    let up =
        pipes(report).map(|(link, pipe)| (direction(link, pipe), f64::from(u8::from(pipe.state != "down"))));
    family(&mut text, "link_up", "gauge", "1 while the link is up.", up);
    let rates = pipes(report).filter_map(|(link, pipe)| {
        let rate: Rate = pipe.rate.parse().ok()?;
        Some((direction(link, pipe), rate.as_bps() as f64))
    });
    let help = "The rate of a direction of a link. Without a limit there is none.";
    family(&mut text, "link_configured_rate_bits_per_second", "gauge", help, rates);
    delays(&mut text, report);
    let drops = pipes(report).flat_map(|(link, pipe)| {
        let labels = direction(link, pipe);
        pipe.dropped
            .iter()
            .map(move |(why, count)| (format!("{labels},reason=\"{}\"", escape(why)), *count as f64))
    });
    family(
        &mut text,
        "link_dropped_frames_total",
        "counter",
        "Frames dropped by a direction of a link, by reason.",
        drops,
    );
    lateness(&mut text, report);
    packet_log(&mut text, report);
    workers(&mut text, report);
    headroom(&mut text, report, before);
    ports(&mut text, report);
    let accounting = &report.accounting;
    let all = [
        ("in", accounting.total_in),
        ("delivered", accounting.delivered),
        ("dropped", accounting.dropped.values().sum()),
        ("held", accounting.held),
    ];
    let all = all.map(|(place, count)| (format!("place=\"{place}\""), count as f64));
    family(&mut text, "frames", "gauge", "Frame accounting: in = delivered + dropped + held.", all);
    text
}

fn ports(text: &mut String, report: &Report) {
    let all = || {
        report
            .ports
            .iter()
            .map(|port| (format!("host=\"{}\",port=\"{}\"", escape(&port.host), escape(&port.name)), port))
    };
    let received = all().map(|(labels, port)| (labels, port.counters.rx_frames as f64));
    family(text, "port_received_frames_total", "counter", "Frames received by a port.", received);
    let sent = all().map(|(labels, port)| (labels, port.counters.tx_frames as f64));
    family(text, "port_sent_frames_total", "counter", "Frames sent by a port.", sent);
    let up = all().map(|(labels, port)| (labels, f64::from(u8::from(port.failure.is_none()))));
    family(text, "port_up", "gauge", "1 while the port works, 0 after it failed.", up);
}

fn packet_log(text: &mut String, report: &Report) {
    let mut add = |name, kind, help, value: fn(&PacketLogReport) -> f64| {
        family(text, name, kind, help, report.packet_log.iter().map(|log| (String::new(), value(log))));
    };
    let is_up: fn(&PacketLogReport) -> f64 = |log| f64::from(u8::from(log.failure.is_none()));
    add("packet_log_entries_total", "counter", "Entries of the per-packet log.", |log| log.written as f64);
    add("packet_log_missing_entries_total", "counter", "Entries that the log lacks.", |log| {
        log.missing as f64
    });
    add("packet_log_up", "gauge", "1 while the per-packet log is written, 0 after it failed.", is_up);
}

/// Configured and measured delays with jitter, by link.
fn delays(text: &mut String, report: &Report) {
    let figures = [
        ("asked", "mean", (|delays| Some(delays.asked.mean_ms)) as fn(&DelayReport) -> Option<f64>),
        ("asked", "sd", |delays| delays.asked.sd_ms),
        ("realised", "mean", |delays| Some(delays.realised.mean_ms)),
        ("realised", "sd", |delays| delays.realised.sd_ms),
    ];
    let jitter = pipes(report).flat_map(|(link, pipe)| {
        let labels = direction(link, pipe);
        figures.into_iter().filter_map(move |(of, figure, value)| {
            let seconds = value(pipe.jitter.as_ref()?)? / 1e3;
            Some((format!("{labels},of=\"{of}\",figure=\"{figure}\""), seconds))
        })
    });
    let help =
        "Mean and standard deviation of a delay with jitter, configured (asked) and measured (realised).";
    family(text, "link_delay_seconds", "gauge", help, jitter);
}

/// The lateness of frames released to hosts, by link.
fn lateness(text: &mut String, report: &Report) {
    let released = || pipes(report).filter_map(|(link, pipe)| Some((direction(link, pipe), pipe.lateness?)));
    let name = "fastpath_lateness_seconds";
    let write = |text: &mut String| -> std::fmt::Result {
        writeln!(text, "# HELP {name} Lateness of released frames.\n# TYPE {name} histogram")?;
        for (labels, late) in released() {
            for (bound, count) in BOUNDS_NS.iter().zip(late.within) {
                writeln!(text, "{name}_bucket{{{labels},le=\"{}\"}} {count}", *bound as f64 / 1e9)?;
            }
            writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", late.frames)?;
            writeln!(text, "{name}_sum{{{labels}}} {}", late.sum_us / 1e6)?;
            writeln!(text, "{name}_count{{{labels}}} {}", late.frames)?;
        }
        Ok(())
    };
    write(text).expect("writing to a string");
    let late = released().map(|(labels, late)| (labels, late.late as f64));
    family(text, "late_frames_total", "counter", "Frames later than the tolerance.", late);
    let interrupted = released().map(|(labels, late)| (labels, late.late_interrupted as f64));
    let help = "Late frames explained by a host stall or preemption of the worker.";
    family(text, "late_interrupted_frames_total", "counter", help, interrupted);
}

fn workers(text: &mut String, report: &Report) {
    let workers = || report.workers.iter().enumerate();
    let busy = workers().map(|(number, worker)| (format!("worker=\"{number}\""), worker.busy_s));
    family(text, "worker_busy_seconds_total", "counter", "Seconds in which a worker moved frames.", busy);
    let interruptions = || {
        workers().flat_map(|(number, worker)| {
            [("stall", worker.stalled), ("preemption", worker.preempted)]
                .map(|(kind, interruptions)| (format!("worker=\"{number}\",kind=\"{kind}\""), interruptions))
        })
    };
    let counts = interruptions().map(|(labels, interruptions)| (labels, interruptions.count as f64));
    family(
        text,
        "worker_interruptions_total",
        "counter",
        "Intervals in which a ready worker did not run.",
        counts,
    );
    let lengths = interruptions().map(|(labels, interruptions)| (labels, interruptions.total_ms / 1e3));
    family(text, "worker_interruption_seconds_total", "counter", "Length of these intervals.", lengths);
}

/// How much more workers and links can carry.
fn headroom(text: &mut String, report: &Report, before: Option<&Report>) {
    let workers = || report.workers.iter().enumerate();
    let cpu = workers().map(|(number, worker)| (format!("worker=\"{number}\""), worker.cpu_s));
    family(text, "worker_cpu_seconds_total", "counter", "Seconds for which a worker had a core.", cpu);
    let free = workers().map(|(number, worker)| (format!("worker=\"{number}\""), worker.headroom));
    let help = "Share of the last second in which a worker moved no frame.";
    family(text, "worker_headroom_ratio", "gauge", help, free);
    let links = before.map(|before| link_headrooms(before, report)).unwrap_or_default();
    let free = pipes(report).zip(links.into_iter().flatten());
    let free = free.map(|((link, pipe), headroom)| (direction(link, pipe), headroom));
    let help = "Unused share of the rate of a direction of a link, at most the headroom of the busiest worker, since \
                the metrics were last read.";
    family(text, "link_headroom_ratio", "gauge", help, free);
}

fn pipes(report: &Report) -> impl Iterator<Item = (&str, &PipeReport)> {
    report.links.iter().flat_map(|link| link.directions.iter().map(|pipe| (link.name.as_str(), pipe)))
}

fn direction(link: &str, pipe: &PipeReport) -> String {
    format!("link=\"{}\",from=\"{}\",to=\"{}\"", escape(link), escape(&pipe.from), escape(&pipe.to))
}

fn family(
    text: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    samples: impl IntoIterator<Item = (String, f64)>,
) {
    let write = |text: &mut String| -> std::fmt::Result {
        writeln!(text, "# HELP fastpath_{name} {help}\n# TYPE fastpath_{name} {kind}")?;
        for (labels, value) in samples {
            match labels.as_str() {
                "" => writeln!(text, "fastpath_{name} {value}")?,
                labels => writeln!(text, "fastpath_{name}{{{labels}}} {value}")?,
            }
        }
        Ok(())
    };
    write(text).expect("writing to a string");
}

/// Escapes the value of a label.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        assert_eq!(escape("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
