//! The result of an audit, as JSON and as a table.

use super::implied::Implied;
use super::judge::{bursty_loss_interval, rate_agrees, rtt_agrees};
use super::{Observed, Subject};
use fastpath_engine::{FrameAccounting, LinkReport, Report};
use fastpath_units::Duration;
use fastpath_units::stats::quantile;
use serde::Serialize;
use std::fmt;

/// An audit's result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Audit {
    /// One for each pair of hosts, and one more where the paths there and back differ.
    pub pairs: Vec<Pair>,
    /// The links and their counters.
    pub links: Vec<LinkReport>,
    /// The frame accounting.
    #[serde(rename = "conservation")]
    pub accounting: FrameAccounting,
    /// Notes on the figures.
    pub notes: Vec<String>,
    /// Whether everything judged is within its tolerance.
    pub verdict: AuditVerdict,
}

/// The verdict of an audit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditVerdict {
    /// Everything judged is within its tolerance, and every frame is accounted for.
    Pass,
    /// A judged result is outside its tolerance, or a frame is unaccounted for.
    Fail,
}

/// A pair of hosts.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Pair {
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// Round-trip time of an echo.
    pub rtt_ms: Rtt,
    /// Payload of datagrams over the saturated path.
    pub udp_mbit: RateFigures,
    /// Payload of one TCP connection.
    pub tcp_mbit: RateFigures,
    /// Random loss, one way.
    pub loss: LossFigures,
}

/// Whether a figure is within its tolerance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Judgement {
    /// Within.
    Pass,
    /// Outside.
    Fail,
    /// Reported without a judgement.
    Shown,
}

/// Round-trip times, milliseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rtt {
    /// Propagation, with the mean of jitter, and serialisation, there and back.
    pub configured: f64,
    /// Mean of the replies, where there is jitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Median of the replies.
    pub median: Option<f64>,
    /// 99th percentile of the replies.
    pub p99: Option<f64>,
    /// Echoes requested.
    pub sent: usize,
    /// Replies.
    pub received: usize,
    /// Whether the median is within 1 % and 0.3 ms. With jitter: whether the mean is within that
    /// and the scatter of the jitter. Not judged where delays are correlated or have no variance.
    pub judgement: Judgement,
}

/// A rate, Mbit/s.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RateFigures {
    /// The payload rate that the path allows; `None` if no link has a rate.
    pub expected: Option<f64>,
    /// The measured rate.
    pub observed: Option<f64>,
    /// UDP: whether within 1 % and the scatter of random loss behind the bottleneck. TCP is not
    /// judged.
    pub judgement: Judgement,
}

/// Random loss, as probabilities.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LossFigures {
    /// Of all links of the path together.
    pub configured: f64,
    /// Share lost of those sent.
    pub observed: f64,
    /// Packets sent.
    pub sent: u64,
    /// Packets lost.
    pub lost: u64,
    /// Range of losses that links as configured give in 999 of 1000 runs.
    pub interval: (u64, u64),
    /// Whether the losses are within the interval. Not judged where a link loses by a pattern or
    /// with netem's correlation.
    pub judgement: Judgement,
}

impl Audit {
    pub(super) fn new(pairs: Vec<Pair>, engine: Report, notes: Vec<String>) -> Audit {
        let judged = pairs.iter().flat_map(Pair::judgements);
        let good = judged.into_iter().all(|judgement| judgement != Judgement::Fail);
        let verdict =
            if good && engine.accounting.balances() { AuditVerdict::Pass } else { AuditVerdict::Fail };
        Audit { pairs, links: engine.links, accounting: engine.accounting, notes, verdict }
    }
}

impl Pair {
    fn judgements(&self) -> [Judgement; 4] {
        [self.rtt_ms.judgement, self.udp_mbit.judgement, self.tcp_mbit.judgement, self.loss.judgement]
    }
}

/// Compares the results of a pair with what the spec implies.
pub(super) fn pair(subject: &Subject<'_>, observed: &Observed) -> Pair {
    let implied = &subject.implied;
    Pair {
        from: subject.from.name.clone(),
        to: subject.to.name.clone(),
        rtt_ms: rtt(implied, observed),
        udp_mbit: udp(implied, observed),
        tcp_mbit: RateFigures {
            expected: implied.tcp_mbit,
            observed: observed.tcp_mbit,
            judgement: Judgement::Shown,
        },
        loss: loss(implied, observed),
    }
}

fn rtt(implied: &Implied, observed: &Observed) -> Rtt {
    let configured = implied.rtt.as_ms_f64();
    let replies = observed.rtts_ms.len();
    let quantile = |p| (replies > 0).then(|| quantile(&observed.rtts_ms, p));
    let median = quantile(0.5);
    let has_jitter = implied.rtt_sd != Some(Duration::ZERO);
    let mean = median.filter(|_| has_jitter).map(|_| observed.rtts_ms.iter().sum::<f64>() / replies as f64);
    let agrees = |sd: Duration| {
        mean.or(median).is_some_and(|rtt| rtt_agrees(configured, rtt, sd.as_ms_f64(), replies))
    };
    Rtt {
        configured,
        mean,
        median,
        p99: quantile(0.99),
        sent: observed.echoes,
        received: replies,
        judgement: implied.rtt_sd.map_or(Judgement::Shown, |sd| judgement(agrees(sd))),
    }
}

fn udp(implied: &Implied, observed: &Observed) -> RateFigures {
    let mbit = |(per_second, _): (f64, u64)| per_second * implied.datagram as f64 * 8.0 / 1e6;
    let verdict = implied.saturation.zip(implied.loss_inflation).map(|(saturation, inflation)| {
        observed.saturation.is_some_and(|(per_second, packets)| {
            rate_agrees(saturation.carried, per_second, saturation.loss_after, inflation, packets)
        })
    });
    RateFigures {
        expected: implied.udp_mbit(),
        observed: observed.saturation.map(mbit),
        judgement: verdict.map_or(Judgement::Shown, judgement),
    }
}

fn loss(implied: &Implied, observed: &Observed) -> LossFigures {
    let (sent, lost) = (observed.loss.sent, observed.loss.lost());
    let interval = implied
        .loss_inflation
        .map_or((0, sent), |inflation| bursty_loss_interval(sent, implied.loss, inflation));
    let agrees = sent > 0 && (interval.0..=interval.1).contains(&lost);
    LossFigures {
        configured: implied.loss,
        observed: if sent == 0 { 0.0 } else { lost as f64 / sent as f64 },
        sent,
        lost,
        interval,
        judgement: implied.loss_inflation.map_or(Judgement::Shown, |_| judgement(agrees)),
    }
}

fn judgement(agrees: bool) -> Judgement {
    if agrees { Judgement::Pass } else { Judgement::Fail }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", links_table(&self.links))?;
        writeln!(f, "{}", pairs_table(&self.pairs))?;
        writeln!(
            f,
            "judged: RTT (its mean where there is jitter) within 1 % + 0.3 ms, UDP within 1 %, loss within its 99.9 % interval; \
             ! outside, (…) not judged"
        )?;
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        let FrameAccounting { total_in, delivered, dropped, held } = &self.accounting;
        let reasons: Vec<String> =
            dropped.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let all = dropped.values().sum::<u64>();
        let why = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
        writeln!(f, "frames: {total_in} in = {delivered} delivered + {all} dropped{why} + {held} held")?;
        let verdict = match self.verdict {
            AuditVerdict::Pass => "pass",
            AuditVerdict::Fail => "FAIL",
        };
        write!(f, "verdict: {verdict}")
    }
}

fn links_table(links: &[LinkReport]) -> comfy_table::Table {
    let mut table = table();
    table.set_header(["link", "", "rate", "delay", "loss", "queue", "frames in", "out", "dropped"]);
    for link in links {
        let [forward, backward] = &link.directions;
        for direction in [forward, backward] {
            table.add_row([
                link.name.clone(),
                format!("{} → {}", direction.from, direction.to),
                direction.rate.clone(),
                direction.delay.clone(),
                direction.loss.clone(),
                direction.queue.clone(),
                direction.frames_in.to_string(),
                direction.frames_out.to_string(),
                direction.dropped.values().sum::<u64>().to_string(),
            ]);
        }
    }
    table
}

fn pairs_table(pairs: &[Pair]) -> comfy_table::Table {
    let mut table = table();
    table.set_header([
        "pair",
        "RTT ms\nimplied",
        "median",
        "error",
        "p99",
        "UDP Mbit/s\nimplied",
        "observed",
        "error",
        "TCP Mbit/s\nimplied",
        "observed",
        "error",
        "loss\nimplied",
        "observed",
    ]);
    for pair in pairs {
        let Pair { rtt_ms, udp_mbit, tcp_mbit, loss, .. } = pair;
        let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
        let percent = |value: f64| format!("{:.2}%", value * 100.0);
        let rate_error = |rate: &RateFigures| error(rate.expected, rate.observed, rate.judgement);
        table.add_row([
            format!("{} → {}", pair.from, pair.to),
            number(Some(rtt_ms.configured)),
            number(rtt_ms.median),
            error(Some(rtt_ms.configured), rtt_ms.mean.or(rtt_ms.median), rtt_ms.judgement),
            number(rtt_ms.p99),
            number(udp_mbit.expected),
            number(udp_mbit.observed),
            rate_error(udp_mbit),
            number(tcp_mbit.expected),
            number(tcp_mbit.observed),
            rate_error(tcp_mbit),
            percent(loss.configured),
            mark(format!("{} ({}/{})", percent(loss.observed), loss.lost, loss.sent), loss.judgement),
        ]);
    }
    table
}

/// The relative error in percent, marked with its judgement.
fn error(expected: Option<f64>, observed: Option<f64>, judgement: Judgement) -> String {
    let text = match (expected, observed) {
        (Some(expected), Some(observed)) if expected > 0.0 => {
            format!("{:+.2}%", (observed / expected - 1.0) * 100.0)
        }
        _ => "–".to_owned(),
    };
    mark(text, judgement)
}

fn mark(text: String, judgement: Judgement) -> String {
    match judgement {
        Judgement::Pass => text,
        Judgement::Fail => format!("{text} !"),
        Judgement::Shown => format!("({text})"),
    }
}

fn table() -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table
}
