//! The result of an audit, as JSON and as a table.

use super::implied::Implied;
use super::judge::{Scatter, bursty_loss_interval, modelled_loss_interval, rate_agrees, rtt_agrees};
use super::model::REPLICAS;
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
    /// Nothing fails, but a result is outside its tolerance in a round in which the machine took
    /// the core away. It says nothing about the network.
    Disturbed,
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
    /// Outside, in a round in which the machine took the core away.
    Disturbed,
    /// Reported without a judgement.
    Shown,
}

/// Where an implied value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImpliedBy {
    /// From the parameters of the links, in closed form.
    #[default]
    ClosedForm,
    /// From the same packets in the same network in virtual time, with several seeds.
    VirtualTime,
}

/// What a figure is called that the machine disturbed.
const DISTURBED: &str = "disturbed";
/// The quantiles at which round-trip times are compared with those of the model.
pub(crate) const QUARTILES: [f64; 3] = [0.25, 0.5, 0.75];

/// Round-trip times, milliseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rtt {
    /// Propagation, with the mean of jitter, and serialisation, there and back. In virtual time:
    /// the median.
    pub configured: f64,
    /// Where it comes from.
    pub implied_by: ImpliedBy,
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
    /// and the scatter of the jitter. In virtual time: whether all quartiles are within that and
    /// the scatter of the model.
    pub judgement: Judgement,
    /// Why it is not judged, or what disturbed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A rate, Mbit/s.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RateFigures {
    /// The payload rate that the path allows; `None` if no link has a rate.
    pub expected: Option<f64>,
    /// The measured rate.
    pub observed: Option<f64>,
    /// Where it comes from.
    pub implied_by: ImpliedBy,
    /// UDP: whether within 1 % and the scatter of random loss behind the bottleneck, or of the
    /// model. TCP is not judged.
    pub judgement: Judgement,
    /// Why it is not judged, or what disturbed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Random loss, as probabilities.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LossFigures {
    /// Of all links of the path together.
    pub configured: f64,
    /// Where it comes from.
    pub implied_by: ImpliedBy,
    /// Share lost of those sent.
    pub observed: f64,
    /// Packets sent.
    pub sent: u64,
    /// Packets lost.
    pub lost: u64,
    /// Range of losses that links as configured give in 999 of 1000 runs.
    pub interval: (u64, u64),
    /// Whether the losses are within the interval.
    pub judgement: Judgement,
    /// Why they are not judged, or what disturbed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Audit {
    pub(super) fn new(pairs: Vec<Pair>, engine: Report, notes: Vec<String>) -> Audit {
        let has = |wanted| pairs.iter().flat_map(Pair::judgements).any(|judgement| judgement == wanted);
        let verdict = if has(Judgement::Fail) || !engine.accounting.balances() {
            AuditVerdict::Fail
        } else if has(Judgement::Disturbed) {
            AuditVerdict::Disturbed
        } else {
            AuditVerdict::Pass
        };
        Audit { pairs, links: engine.links, accounting: engine.accounting, notes, verdict }
    }
}

impl Audit {
    /// Says why the verdict is [`AuditVerdict::Fail`].
    pub fn failures(&self) -> String {
        let of_pair = |pair: &Pair| {
            let Pair { from, to, rtt_ms, udp_mbit, loss, .. } = pair;
            let all = [("RTT", rtt_ms.judgement), ("UDP", udp_mbit.judgement), ("loss", loss.judgement)];
            let failed = all.into_iter().filter(|(_, judgement)| *judgement == Judgement::Fail);
            let failed: Vec<&str> = failed.map(|(figure, _)| figure).collect();
            (!failed.is_empty()).then(|| format!("{from} → {to} ({})", failed.join(", ")))
        };
        let pairs: Vec<String> = self.pairs.iter().filter_map(of_pair).collect();
        let mut reasons = Vec::new();
        if !pairs.is_empty() {
            reasons.push(format!("outside the tolerance: {}", several(&pairs)));
        }
        if !self.accounting.balances() {
            reasons.push("frame accounting does not balance".to_owned());
        }
        reasons.join("; ")
    }

    /// Says what was disturbed, and by what.
    pub fn disturbances(&self) -> String {
        let disturbed = self.unjudged().into_iter().filter(|(what, ..)| *what == DISTURBED);
        let said = disturbed.map(|(_, pairs, figures, why)| format!("{pairs} ({figures}): {why}"));
        said.collect::<Vec<_>>().join("; ")
    }

    /// Returns the figures that were disturbed or not judged, except TCP: which of both, the pairs,
    /// the figures, and why.
    fn unjudged(&self) -> Vec<(&'static str, String, String, &str)> {
        let mut groups: Vec<(&'static str, Vec<String>, Vec<&str>, &str)> = Vec::new();
        for pair in &self.pairs {
            let Pair { rtt_ms, udp_mbit, loss, .. } = pair;
            let reasons = [
                ("RTT", rtt_ms.judgement, &rtt_ms.reason),
                ("UDP", udp_mbit.judgement, &udp_mbit.reason),
                ("loss", loss.judgement, &loss.reason),
            ];
            for (figure, judgement, reason) in reasons {
                let Some(reason) = reason.as_deref() else { continue };
                let what = if judgement == Judgement::Disturbed { DISTURBED } else { "not judged" };
                let name = format!("{} → {}", pair.from, pair.to);
                match groups.iter_mut().find(|group| (group.0, group.3) == (what, reason)) {
                    Some((_, pairs, figures, _)) => {
                        pairs.extend((!pairs.contains(&name)).then_some(name));
                        figures.extend((!figures.contains(&figure)).then_some(figure));
                    }
                    None => groups.push((what, vec![name], vec![figure], reason)),
                }
            }
        }
        let text = |(what, pairs, figures, reason): (_, Vec<String>, Vec<&str>, _)| {
            (what, several(&pairs), figures.join(", "), reason)
        };
        groups.into_iter().map(text).collect()
    }
}

/// Names up to three pairs.
fn several(pairs: &[String]) -> String {
    match pairs {
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second}, {third} and {} more pairs", rest.len())
        }
        all => all.join(", "),
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
            implied_by: ImpliedBy::ClosedForm,
            judgement: Judgement::Shown,
            reason: Some(TCP_REASON.to_owned()),
        },
        loss: loss(implied, observed),
    }
}

/// Why TCP is not judged.
const TCP_REASON: &str = "what a connection of the kernel reaches is not implied by the links alone";

fn rtt(implied: &Implied, observed: &Observed) -> Rtt {
    let replies = observed.rtts_ms.len();
    let at = |p| (replies > 0).then(|| quantile(&observed.rtts_ms, p));
    let median = at(0.5);
    let has_jitter = implied.rtt_sd != Some(Duration::ZERO);
    let mean = median.filter(|_| has_jitter).map(|_| observed.rtts_ms.iter().sum::<f64>() / replies as f64);
    let closed = implied.rtt.as_ms_f64();
    let (configured, implied_by, judged) = if implied.by_model.rtt {
        let modelled = modelled(&observed.modelled.rtts_ms, implied, "no echo is answered");
        let scatters =
            modelled.map(|all| [0, 1, 2].map(|i| Scatter::of(all.iter().map(|quartiles| quartiles[i]))));
        let agrees = |scatters: &[Scatter; 3]| {
            scatters
                .iter()
                .zip(QUARTILES)
                .all(|(scatter, p)| at(p).is_some_and(|rtt| scatter.rtt_agrees(rtt)))
        };
        let median = scatters.as_ref().map_or(closed, |scatters| scatters[1].mean);
        (median, ImpliedBy::VirtualTime, scatters.map(|scatters| agrees(&scatters)))
    } else {
        let agrees = |sd: Duration| {
            mean.or(median).is_some_and(|rtt| rtt_agrees(closed, rtt, sd.as_ms_f64(), replies))
        };
        let no_variance = || "its delays have no variance".to_owned();
        (closed, ImpliedBy::ClosedForm, implied.rtt_sd.map(agrees).ok_or_else(no_variance))
    };
    let (judgement, reason) = judgement(judged, &observed.disturbed.rtt);
    Rtt {
        configured,
        implied_by,
        mean,
        median,
        p99: at(0.99),
        sent: observed.echoes,
        received: replies,
        judgement,
        reason,
    }
}

fn udp(implied: &Implied, observed: &Observed) -> RateFigures {
    let mbit = |per_second: f64| per_second * implied.datagram as f64 * 8.0 / 1e6;
    let found = observed.saturation;
    let (expected, implied_by, judged) = if implied.by_model.loss {
        let modelled = modelled(&observed.modelled.rates, implied, "no datagram arrives");
        let scatter = modelled.map(|rates| Scatter::of(rates.iter().copied()));
        let expected = scatter.as_ref().ok().map(|scatter| mbit(scatter.mean));
        let agrees = |scatter: Scatter| scatter.rate_agrees(found.map_or(0.0, |(rate, _)| rate));
        (expected, ImpliedBy::VirtualTime, scatter.map(agrees))
    } else {
        let no_rate = || "no link of the path has a rate".to_owned();
        let agrees = implied.saturation.zip(implied.loss_inflation).map(|(saturation, inflation)| {
            found.is_some_and(|(rate, packets)| {
                rate_agrees(saturation.carried, rate, saturation.loss_after, inflation, packets)
            })
        });
        (implied.udp_mbit(), ImpliedBy::ClosedForm, agrees.ok_or_else(no_rate))
    };
    let (judgement, reason) = judgement(judged, &observed.disturbed.rate);
    RateFigures { expected, observed: found.map(|(rate, _)| mbit(rate)), implied_by, judgement, reason }
}

fn loss(implied: &Implied, observed: &Observed) -> LossFigures {
    let (sent, lost) = (observed.loss.sent, observed.loss.lost());
    let (configured, implied_by, interval) = if implied.by_model.loss {
        let modelled = modelled(&observed.modelled.lost, implied, "no datagram arrives");
        let scatter = modelled.map(|lost| Scatter::of(lost.iter().copied()));
        let share = scatter.as_ref().map_or(0.0, |scatter| scatter.mean / sent.max(1) as f64);
        let configured = if implied.is_share_exact { implied.loss } else { share };
        let interval = scatter.map(|scatter| modelled_loss_interval(sent, &scatter));
        (configured, ImpliedBy::VirtualTime, interval)
    } else {
        let no_variance = || "its losses have no variance".to_owned();
        let interval =
            implied.loss_inflation.map(|inflation| bursty_loss_interval(sent, implied.loss, inflation));
        (implied.loss, ImpliedBy::ClosedForm, interval.ok_or_else(no_variance))
    };
    let agrees = |interval: &(u64, u64)| sent > 0 && (interval.0..=interval.1).contains(&lost);
    let judged = interval.as_ref().map(agrees).map_err(Clone::clone);
    let (judgement, reason) = judgement(judged, &observed.disturbed.loss);
    LossFigures {
        configured,
        implied_by,
        observed: if sent == 0 { 0.0 } else { lost as f64 / sent as f64 },
        sent,
        lost,
        interval: interval.unwrap_or((0, sent)),
        judgement,
        reason,
    }
}

/// Returns what the model gives, or why it is not compared.
fn modelled<'m, T>(values: &'m [T], implied: &Implied, nothing: &str) -> Result<&'m [T], String> {
    if let Some(reason) = &implied.unmodelled {
        return Err(reason.clone());
    }
    if values.len() < REPLICAS {
        return Err(format!(
            "{nothing} in the model: it has no kernel routers, no controllers of switches and no more than \
             2 million packets of a measurement"
        ));
    }
    Ok(values)
}

fn judgement(agrees: Result<bool, String>, disturbed: &Option<String>) -> (Judgement, Option<String>) {
    match agrees {
        Ok(true) => (Judgement::Pass, None),
        Ok(false) if disturbed.is_some() => (Judgement::Disturbed, disturbed.clone()),
        Ok(false) => (Judgement::Fail, None),
        Err(reason) => (Judgement::Shown, Some(reason)),
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", links_table(&self.links))?;
        writeln!(f, "{}", pairs_table(&self.pairs))?;
        writeln!(
            f,
            "judged: RTT (its mean where there is jitter) within 1 % + 0.3 ms, UDP within 1 %, loss within its 99.9 % interval; \
             where no formula holds, as the same packets fare in virtual time; ! outside, ~ outside while the \
             machine took the core away, (…) not judged"
        )?;
        for (what, pairs, figures, reason) in self.unjudged() {
            writeln!(f, "{what}: {figures} of {pairs}: {reason}")?;
        }
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
            AuditVerdict::Pass => "pass".to_owned(),
            AuditVerdict::Fail => format!("FAIL: {}", self.failures()),
            AuditVerdict::Disturbed => {
                "disturbed: the machine took the core away, so this run says nothing".to_owned()
            }
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
        Judgement::Disturbed => format!("{text} ~"),
        Judgement::Shown => format!("({text})"),
    }
}

fn table() -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(to: &str, rtt: Judgement, loss: Judgement) -> Pair {
        let implied_by = ImpliedBy::ClosedForm;
        let rate =
            |judgement| RateFigures { expected: None, observed: None, implied_by, judgement, reason: None };
        Pair {
            from: "a".to_owned(),
            to: to.to_owned(),
            rtt_ms: Rtt {
                configured: 20.0,
                implied_by,
                mean: None,
                median: None,
                p99: None,
                sent: 0,
                received: 0,
                judgement: rtt,
                reason: None,
            },
            udp_mbit: rate(Judgement::Pass),
            tcp_mbit: rate(Judgement::Shown),
            loss: LossFigures {
                configured: 0.0,
                implied_by,
                observed: 0.0,
                sent: 0,
                lost: 0,
                interval: (0, 0),
                judgement: loss,
                reason: None,
            },
        }
    }

    #[test]
    fn the_line_of_the_verdict_says_what_failed() {
        let last = |pairs: Vec<Pair>, total_in| {
            let accounting = FrameAccounting { total_in, ..FrameAccounting::default() };
            let verdict = AuditVerdict::Fail;
            let audit = Audit { pairs, links: Vec::new(), accounting, notes: Vec::new(), verdict };
            audit.to_string().lines().last().unwrap().to_owned()
        };
        let pairs = || {
            vec![
                pair("b", Judgement::Fail, Judgement::Fail),
                pair("c", Judgement::Pass, Judgement::Disturbed),
                pair("d", Judgement::Pass, Judgement::Fail),
            ]
        };
        let outside = "verdict: FAIL: outside the tolerance: a → b (RTT, loss), a → d (loss)";
        assert_eq!(last(pairs(), 0), outside);
        assert_eq!(last(pairs(), 1), format!("{outside}; frame accounting does not balance"));
        assert_eq!(last(Vec::new(), 1), "verdict: FAIL: frame accounting does not balance");
    }
}
