//! The audit: measures every pair of hosts of a running lab from inside the hosts, and compares the
//! results with what the spec implies.
//!
//! ```text
//!  echo    all pairs, taking turns               RTT
//!  flood   below saturation, all pairs at once   random loss
//!  flood   above the implied rate                rate of the path
//!  bulk    one TCP connection                    goodput
//! ```
//!
//! Where no closed form gives what is implied, the same probes pass the same network in virtual
//! time (`model.rs`). Saturations and connections run at the same time only if they share no pipe.
//! The network drains between measurements. Read first: this file, then `implied.rs` and
//! `judge.rs`.
//!
//! Linux only; the crate is empty elsewhere.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

pub mod bulk;
pub mod core_time;
pub mod echo;
#[cfg(test)]
mod fixture;
pub mod flood;
mod implied;
pub mod judge;
mod model;
mod path;
mod report;

use core_time::CoreTime;
use echo::Echo;
use fastpath_engine::priority::with_high_priority;
use fastpath_lab::{Host, Lab};
use fastpath_net::Routes;
use fastpath_spec::NodeId;
use fastpath_units::stats::{quantile, sorted};
use flood::{LatePolicy, Stream, StreamResult};
use implied::{ECHO_PAYLOAD, Implied, frames_per_second, frames_per_second_at_most};
use model::{Modelled, PathModel, Probe, ProbeKind};
use path::{Path, PathHop};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub use report::{Audit, AuditVerdict, ImpliedBy, Judgement, LossFigures, Pair, RateFigures, Rtt};

/// How often RTT and rate of a pair are measured until they are within their tolerance. Losses are
/// measured once: repetition until they fit would invalidate their interval.
const ATTEMPTS: usize = 3;
/// How often a figure is measured that fails while the machine takes the core away, losses too.
const ATTEMPTS_DISTURBED: usize = 6;
/// How often a measurement checks the stop flag.
const ATTENTION: Duration = Duration::from_millis(50);
/// Minimum interval between two echoes, and the same in transmission times on the slowest link.
const SLOT_MIN: Duration = Duration::from_millis(3);
const SLOT_SENDINGS: u32 = 3;
/// Share of a pipe's rate that all loss streams over it use together, and the maximum rate of one
/// stream, datagrams per second.
const LOSS_SHARE: f64 = 0.5;
const LOSS_RATE_MAX: f64 = 2000.0;
/// Payload of a loss stream's datagrams, bytes, and the size of the frame. Small, so that many
/// datagrams fit.
const LOSS_PAYLOAD: usize = 64;
const LOSS_FRAME: u32 = LOSS_PAYLOAD as u32 + 8 + 40 + 14;
/// Load offered to a path without a rate, datagrams per second.
const UNLIMITED_OFFER: f64 = 20_000.0;
/// Maximum payload of simultaneous measurements, Mbit/s: they share this machine.
const TOGETHER_MAX_MBIT: f64 = 300.0;
/// Maximum time for a connection to recover from the losses of slow start (20 round trips).
const TCP_RECOVERY_MAX: Duration = Duration::from_secs(20);
/// Time limit for the network to drain.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// The extent of an audit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// Number of echoes of a pair.
    pub echoes: usize,
    /// How long the losses of a pair are counted.
    pub loss_duration: Duration,
    /// How long a saturated path is measured.
    pub rate_window: Duration,
    /// Minimum time before a TCP connection is measured.
    pub tcp_settle: Duration,
    /// How long a TCP connection is measured after it has settled.
    pub tcp_window: Duration,
    /// Maximum number of pairs; of more, an evenly spread sample is measured.
    pub pairs_max: usize,
}

impl Default for Options {
    /// An audit of 90 s on a topology of six pairs.
    fn default() -> Options {
        Options {
            echoes: 50,
            loss_duration: Duration::from_secs(5),
            rate_window: Duration::from_millis(2500),
            tcp_settle: Duration::from_secs(2),
            tcp_window: Duration::from_secs(8),
            pairs_max: 36,
        }
    }
}

/// The progress of an audit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuditProgress {
    /// The current step.
    pub step: &'static str,
    /// Steps done.
    pub done: usize,
    /// Number of steps.
    pub total: usize,
}

/// Why an audit gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The `stop` flag was set.
    #[error("interrupted")]
    Interrupted,
    /// Nothing to measure.
    #[error("no two hosts of this topology can reach each other by IP: give them addresses and a path")]
    NoPairs,
    /// The engine has ended.
    #[error("the engine has stopped")]
    EngineStopped,
    /// A socket of a measurement failed.
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// A socket operation that failed.
#[derive(Debug, thiserror::Error)]
#[error("audit: {what}: {source}")]
pub struct SocketError {
    /// The operation.
    pub what: &'static str,
    /// The reason.
    pub source: io::Error,
}

/// Measures the lab. Setting `stop` ends it early, for example from a signal handler. `progress` is
/// called before each step.
pub fn audit(
    lab: &Lab,
    options: Options,
    stop: &AtomicBool,
    progress: &dyn Fn(AuditProgress),
) -> Result<Audit, AuditError> {
    let stop = Stop(stop);
    let routes = Routes::compute(lab.topology());
    let (subjects, mut notes) = subjects(lab, &routes, options.pairs_max);
    if subjects.is_empty() {
        return Err(AuditError::NoPairs);
    }
    let mut observed: Vec<Observed> = subjects.iter().map(|_| Observed::default()).collect();
    let needs_model = subjects.iter().any(|subject| subject.implied.by_model.any());
    let model = || PathModel::new(lab, &routes, &subjects).ok_or(AuditError::EngineStopped);
    let mut model = needs_model.then(model).transpose()?;
    let saturations = batches(&subjects, |subject| subject.there.hops.clone());
    let connections: Vec<Vec<usize>> =
        batches(&subjects, |subject| [&subject.there.hops[..], &subject.back.hops].concat());
    let (total, mut done) = (2 + saturations.len() + connections.len(), 0);
    let mut next = |step| {
        progress(AuditProgress { step, done, total });
        done += 1;
    };

    next("round-trip times");
    let all: Vec<usize> = (0..subjects.len()).collect();
    let mut repeated = until_agreed(all.clone(), ATTEMPTS, |batch| {
        let disturbed = measure_rtt(lab, &subjects, batch, options, &stop, (&mut observed, model.as_mut()))?;
        batch.iter().for_each(|&index| observed[index].disturbed.rtt.clone_from(&disturbed));
        Ok(disagreeing(batch, &subjects, &observed, |pair| pair.rtt_ms.judgement))
    })?;
    next("losses");
    repeated += until_agreed(all, 1, |batch| {
        let found = measure_loss(lab, &subjects, batch, options, &stop, (&mut observed, model.as_mut()));
        let (note, disturbed) = found?;
        notes.extend(note);
        batch.iter().for_each(|&index| observed[index].disturbed.loss.clone_from(&disturbed));
        Ok(disagreeing(batch, &subjects, &observed, |pair| pair.loss.judgement))
    })?;
    for batch in saturations {
        next("rates");
        repeated += until_agreed(batch, ATTEMPTS, |batch| {
            measure_rates(lab, &subjects, batch, options, &stop, (&mut observed, model.as_mut()))?;
            Ok(disagreeing(batch, &subjects, &observed, |pair| pair.udp_mbit.judgement))
        })?;
    }
    notes.extend(note_of_repetitions(repeated));
    for batch in &connections {
        next("TCP");
        let run = |subject: &Subject<'_>| subject.connect(options, &stop);
        for (index, goodput) in together(&subjects, batch, &CoreTime::start(None), run)? {
            observed[index].tcp_mbit = goodput;
        }
        drain(lab, &stop)?;
    }
    let engine = lab.report().ok_or(AuditError::EngineStopped)?;
    let pairs = subjects.iter().zip(&observed).map(|(subject, observed)| report::pair(subject, observed));
    Ok(Audit::new(pairs.collect(), engine, notes))
}

/// Saturates the paths of a batch.
fn measure_rates(
    lab: &Lab,
    subjects: &[Subject<'_>],
    batch: &[usize],
    options: Options,
    stop: &Stop<'_>,
    (observed, model): (&mut [Observed], Option<&mut PathModel>),
) -> Result<(), AuditError> {
    let watch = CoreTime::start(lab.report().as_ref());
    let results = together(subjects, batch, &watch, |subject| subject.saturate(options, stop))?;
    let disturbed = watch.finish(lab.report().as_ref());
    for (index, result) in &results {
        let (settle, window) = subjects[*index].saturation_window(options);
        observed[*index].saturation = result.rate(settle, window);
        observed[*index].disturbed.rate.clone_from(&disturbed);
    }
    if let Some(model) = model {
        model_saturations(model, subjects, &results, options, observed);
    }
    drain(lab, stop)
}

fn note_of_repetitions(repeated: usize) -> Option<String> {
    let text = format!(
        "{repeated} measurements were outside their tolerance and were repeated, at most {} times each, or {} \
         times while the machine took the core away; the last result is reported",
        ATTEMPTS - 1,
        ATTEMPTS_DISTURBED - 1
    );
    (repeated > 0).then_some(text)
}

/// The figures of a batch that are outside their tolerance.
struct Disagreeing {
    /// In a round that the machine did not disturb.
    failed: Vec<usize>,
    /// In a disturbed one.
    disturbed: Vec<usize>,
}

/// Measures the subjects, and repeats those outside their tolerance: a host stall passes, a
/// property of the network stays. `attempts` is how often a figure is measured that fails without
/// a disturbance. Returns the number of repeated measurements.
fn until_agreed(
    mut batch: Vec<usize>,
    attempts: usize,
    mut measure: impl FnMut(&[usize]) -> Result<Disagreeing, AuditError>,
) -> Result<usize, AuditError> {
    let mut repeated = 0;
    for attempt in 1..=ATTEMPTS_DISTURBED {
        let Disagreeing { failed, disturbed } = measure(&batch)?;
        batch = disturbed;
        if attempt < attempts {
            batch.extend(failed);
            batch.sort_unstable();
        }
        if batch.is_empty() || attempt == ATTEMPTS_DISTURBED {
            break;
        }
        repeated += batch.len();
    }
    Ok(repeated)
}

fn disagreeing(
    batch: &[usize],
    subjects: &[Subject<'_>],
    observed: &[Observed],
    judgement: fn(&Pair) -> Judgement,
) -> Disagreeing {
    let judged = |index: usize| judgement(&report::pair(&subjects[index], &observed[index]));
    let those = |wanted| batch.iter().copied().filter(|&index| judged(index) == wanted).collect();
    Disagreeing { failed: those(Judgement::Fail), disturbed: those(Judgement::Disturbed) }
}

/// A pair of hosts, in the direction measured.
#[derive(Debug)]
struct Subject<'l> {
    from: &'l Host,
    to: &'l Host,
    address: IpAddr,
    there: Path,
    back: Path,
    implied: Implied,
}

/// The results of a pair.
#[derive(Clone, PartialEq, Debug, Default)]
struct Observed {
    echoes: usize,
    /// Sorted.
    rtts_ms: Vec<f64>,
    loss: StreamResult,
    /// Datagrams per second of a saturation, and the number counted.
    saturation: Option<(f64, u64)>,
    tcp_mbit: Option<f64>,
    /// What the model gives for the same probes.
    modelled: Modelled,
    disturbed: Disturbed,
}

/// What disturbed the latest round in which each figure was measured.
#[derive(Clone, PartialEq, Debug, Default)]
struct Disturbed {
    rtt: Option<String>,
    loss: Option<String>,
    rate: Option<String>,
}

impl Subject<'_> {
    fn rtt(&self) -> Duration {
        self.implied.rtt.to_std()
    }

    /// The nodes of the hosts.
    fn ends(&self) -> [NodeId; 2] {
        [self.from.node(), self.to.node()]
    }

    /// Returns when the rate of a saturation is steady, and how long it is measured.
    fn saturation_window(&self, options: Options) -> (Duration, Duration) {
        // An AQM needs time to reach its equilibrium.
        let settle = Duration::from_millis(if self.implied.drops_early { 2000 } else { 300 });
        (settle, options.rate_window)
    }

    fn saturate(&self, options: Options, stop: &Stop<'_>) -> Result<StreamResult, AuditError> {
        let (settle, window) = self.saturation_window(options);
        let by_rate = self.implied.saturation.map(|saturation| saturation.offered);
        let offered = if self.implied.by_model.loss { self.implied.offered } else { by_rate };
        let stream = Stream {
            payload: self.implied.datagram,
            per_second: offered.unwrap_or(UNLIMITED_OFFER),
            duration: settle + window + ATTENTION,
            late: LatePolicy::CatchUp,
            patience: self.rtt() + ATTENTION,
        };
        flood::run(self.from, self.to, self.address, stream, stop)
    }

    fn connect(&self, options: Options, stop: &Stop<'_>) -> Result<Option<f64>, AuditError> {
        // Slow start overshoots and takes some round trips to recover.
        let (settle, window) = if self.implied.tcp_held_back {
            (options.tcp_settle, options.tcp_window / 2)
        } else {
            (options.tcp_settle + (self.rtt() * 20).min(TCP_RECOVERY_MAX), options.tcp_window)
        };
        bulk::run(self.from, self.to, self.address, (settle, settle + window), stop)
    }
}

/// Returns every pair of hosts once; pairs with another path back, also in the other direction.
fn subjects<'l>(lab: &'l Lab, routes: &Routes, pairs_max: usize) -> (Vec<Subject<'l>>, Vec<String>) {
    let topology = lab.topology();
    let mut notes = Vec::new();
    let hosts = lab.hosts();
    let pairs: Vec<(usize, usize)> =
        (0..hosts.len()).flat_map(|a| (a + 1..hosts.len()).map(move |b| (a, b))).collect();
    let chosen = pairs.len().min(pairs_max);
    if chosen < pairs.len() {
        notes.push(format!("{chosen} of {} pairs measured, spread evenly", pairs.len()));
    }
    let mut subjects = Vec::new();
    for (a, b) in (0..chosen).map(|i| pairs[i * pairs.len() / chosen]) {
        let (a, b) = (&hosts[a], &hosts[b]);
        if let Some(gone) = [a, b].into_iter().find(|host| !host.is_there()) {
            notes.push(format!(
                "{} is not in its namespace now: {} and {} not measured",
                gone.name, a.name, b.name
            ));
            continue;
        }
        let directed = |from: &Host, to: &Host| Path::find(topology, routes, from.node(), to.address()?);
        let (Some(there), Some(back)) = (directed(a, b), directed(b, a)) else {
            notes.push(format!("{} and {} cannot reach each other by IP: not measured", a.name, b.name));
            continue;
        };
        let symmetric = there.pipes(topology).eq(back.pipes(topology).collect::<Vec<_>>().into_iter().rev());
        let mut add = |from, to: &'_ _, there: &Path, back: &Path| {
            let to: &Host = to;
            let Some(address) = to.address() else { return };
            let implied = Implied::new(topology, address, there, back);
            subjects.push((from, to.node(), address, there.clone(), back.clone(), implied));
        };
        add(a, b, &there, &back);
        if !symmetric {
            add(b, a, &back, &there);
        }
    }
    let subjects = subjects.into_iter().map(|(from, to, address, there, back, implied)| {
        let to = hosts.iter().find(|host| host.node() == to).expect("it came from there");
        Subject { from, to, address, there, back, implied }
    });
    (subjects.collect(), notes)
}

fn measure_rtt(
    lab: &Lab,
    subjects: &[Subject<'_>],
    batch: &[usize],
    options: Options,
    stop: &Stop<'_>,
    (observed, model): (&mut [Observed], Option<&mut PathModel>),
) -> Result<Option<String>, AuditError> {
    let mut echoes = batch
        .iter()
        .map(|&index| &subjects[index])
        .zip(1u16..)
        .map(|(subject, id)| Echo::new(subject.from, subject.address, id, (ECHO_PAYLOAD, subject.rtt())))
        .collect::<Result<Vec<Echo>, AuditError>>()?;
    let pipes = lab.topology().links.iter().flat_map(|link| &link.pipes);
    let slowest = pipes.filter_map(|pipe| frames_per_second(pipe, 118)).reduce(f64::min);
    let sending = slowest.map_or(Duration::ZERO, |frames| Duration::from_secs_f64(1.0 / frames));
    let slot = (sending * SLOT_SENDINGS).max(SLOT_MIN);
    let watch = CoreTime::start(lab.report().as_ref());
    with_high_priority(|| watch.of_thread(|| echo::run(&mut echoes, options.echoes, slot, stop)))?;
    let disturbed = watch.finish(lab.report().as_ref());
    if let Some(model) = model {
        model_echoes(model, &echoes, batch, observed);
    }
    for (echo, &index) in echoes.into_iter().zip(batch) {
        let observed = &mut observed[index];
        observed.echoes = echo.sent();
        observed.rtts_ms = echo.rtts_ms;
        observed.rtts_ms.sort_by(f64::total_cmp);
    }
    drain(lab, stop)?;
    Ok(disturbed)
}

/// Measures all pairs at once, and takes the results of a batch; together the pairs stay below
/// saturation of every pipe. Returns a note if
/// the engine was delayed and frames were lost before they entered the network, and what disturbed
/// the round.
fn measure_loss(
    lab: &Lab,
    subjects: &[Subject<'_>],
    batch: &[usize],
    options: Options,
    stop: &Stop<'_>,
    (observed, model): (&mut [Observed], Option<&mut PathModel>),
) -> Result<(Option<String>, Option<String>), AuditError> {
    let mut users: BTreeMap<PathHop, usize> = BTreeMap::new();
    for hop in subjects.iter().flat_map(|subject| &subject.there.hops) {
        *users.entry(*hop).or_default() += 1;
    }
    let share = |hop: &PathHop| {
        let share = LOSS_SHARE / users[hop] as f64;
        let most = frames_per_second_at_most(lab.topology(), hop, LOSS_FRAME);
        most.map_or(LOSS_RATE_MAX, |frames| frames * share)
    };
    let count = |subject: &Subject<'_>| {
        let shares = subject.there.hops.iter().map(share);
        let stream = Stream {
            payload: LOSS_PAYLOAD,
            per_second: shares.fold(LOSS_RATE_MAX, f64::min),
            duration: options.loss_duration,
            late: LatePolicy::Skip,
            patience: subject.rtt() + ATTENTION * 4,
        };
        flood::run(subject.from, subject.to, subject.address, stream, stop)
    };
    let all: Vec<usize> = (0..subjects.len()).collect();
    let before = overruns(lab)?;
    let watch = CoreTime::start(lab.report().as_ref());
    let outcomes = together(subjects, &all, &watch, count)?;
    let disturbed = watch.finish(lab.report().as_ref());
    if let Some(model) = model {
        model_losses(model, &outcomes, batch, observed);
    }
    let mut sent: BTreeMap<&str, u64> = BTreeMap::new();
    for (index, outcome) in &outcomes {
        *sent.entry(&subjects[*index].from.name).or_default() += outcome.sent;
    }
    let (mut missed, mut all_missed) = (overruns(lab)?, 0);
    for (host, count) in &mut missed {
        *count -= before.get(host).copied().unwrap_or(0).min(*count);
        all_missed += *count;
    }
    for (index, mut outcome) in outcomes.into_iter().filter(|(index, _)| batch.contains(index)) {
        let host = subjects[index].from.name.as_str();
        // The lost frames' pairs are unknown: divide them in proportion to what each pair sent.
        let missed = missed.get(host).copied().unwrap_or(0) * outcome.sent;
        outcome.missed += missed.checked_div(sent[host]).unwrap_or(0);
        observed[index].loss = outcome;
    }
    drain(lab, stop)?;
    let note = (all_missed > 0).then(|| {
        format!("{all_missed} datagrams did not enter the network because the engine was delayed: not counted as lost")
    });
    Ok((note, disturbed))
}

/// Sends the same echoes through the model.
fn model_echoes(model: &mut PathModel, echoes: &[Echo], batch: &[usize], observed: &mut [Observed]) {
    let probe = |subject, at| Probe { subject, at, payload: ECHO_PAYLOAD, kind: ProbeKind::Echo };
    let all = echoes.iter().zip(batch);
    let probes = all.flat_map(|(echo, &subject)| echo.times().iter().map(move |&at| probe(subject, at)));
    let Some((probes, networks)) = model.run(probes.collect(), echo::wall_clock()) else { return };
    for &subject in batch {
        let own = |arrivals: &Vec<Option<Duration>>| -> Option<[f64; 3]> {
            let pairs = probes.iter().zip(arrivals).filter(|(probe, _)| probe.subject == subject);
            let recorded = pairs.skip(echo::WARM_UP);
            let rtts = recorded.filter_map(|(probe, at)| Some(at.as_ref()?.saturating_sub(probe.at)));
            let rtts = sorted(rtts.map(|rtt| rtt.as_secs_f64() * 1e3));
            (!rtts.is_empty()).then(|| report::QUARTILES.map(|p| quantile(&rtts, p)))
        };
        observed[subject].modelled.rtts_ms = networks.iter().filter_map(own).collect();
    }
}

/// Sends the datagrams of streams through the model. Returns, for each stream and network, the
/// arrivals in order.
fn model_streams(model: &mut PathModel, streams: &[(usize, StreamResult)]) -> Vec<Vec<Vec<Duration>>> {
    let probes = streams.iter().flat_map(|(subject, stream)| {
        let (subject, payload) = (*subject, stream.payload);
        let probe = move |&at| Probe { subject, at, payload, kind: ProbeKind::Datagram };
        stream.sent_at.iter().map(probe)
    });
    let until = streams.iter().map(|(_, stream)| stream.ended).max().unwrap_or_default();
    let Some((probes, networks)) = model.run(probes.collect(), until) else { return Vec::new() };
    let of_stream = |(subject, stream): &(usize, StreamResult)| -> Vec<Vec<Duration>> {
        let of_network = |arrivals: &Vec<Option<Duration>>| {
            let own = probes.iter().zip(arrivals).filter(|(probe, _)| probe.subject == *subject);
            let mut own: Vec<Duration> =
                own.filter_map(|(_, at)| at.filter(|&at| at <= stream.ended)).collect();
            own.sort_unstable();
            own
        };
        networks.iter().map(of_network).collect()
    };
    streams.iter().map(of_stream).collect()
}

/// Whether packets reach their end in the model. Where none does in any network, a kernel router or
/// the controller of a switch stands in the way, and there is nothing to compare.
fn reaches(networks: &[Vec<Duration>]) -> bool {
    networks.iter().any(|arrivals| !arrivals.is_empty())
}

fn model_losses(
    model: &mut PathModel,
    streams: &[(usize, StreamResult)],
    batch: &[usize],
    observed: &mut [Observed],
) {
    for ((subject, stream), networks) in streams.iter().zip(model_streams(model, streams)) {
        let lost = |arrivals: &Vec<Duration>| stream.sent_at.len() as f64 - arrivals.len() as f64;
        let is_whole = stream.sent == stream.sent_at.len() as u64;
        if model.covers(*subject) && batch.contains(subject) && is_whole && reaches(&networks) {
            observed[*subject].modelled.lost = networks.iter().map(lost).collect();
        }
    }
}

fn model_saturations(
    model: &mut PathModel,
    subjects: &[Subject<'_>],
    streams: &[(usize, StreamResult)],
    options: Options,
    observed: &mut [Observed],
) {
    for ((subject, stream), networks) in streams.iter().zip(model_streams(model, streams)) {
        let (settle, window) = subjects[*subject].saturation_window(options);
        let rate =
            |arrivals: &Vec<Duration>| flood::rate_of(arrivals, settle, window).map_or(0.0, |(rate, _)| rate);
        if model.covers(*subject) && stream.sent == stream.sent_at.len() as u64 && reaches(&networks) {
            observed[*subject].modelled.rates = networks.iter().map(rate).collect();
        }
    }
}

/// Returns, by host, the frames that its ports lost before the engine took them.
fn overruns(lab: &Lab) -> Result<BTreeMap<String, u64>, AuditError> {
    let report = lab.report().ok_or(AuditError::EngineStopped)?;
    let mut overruns: BTreeMap<String, u64> = BTreeMap::new();
    for port in report.ports {
        *overruns.entry(port.host).or_default() += port.counters.rx_dropped();
    }
    Ok(overruns)
}

/// Measures each subject of a batch on its own thread.
fn together<T: Send>(
    subjects: &[Subject<'_>],
    batch: &[usize],
    watch: &CoreTime,
    measure: impl Fn(&Subject<'_>) -> Result<T, AuditError> + Sync,
) -> Result<Vec<(usize, T)>, AuditError> {
    let measure = &|subject: &Subject<'_>| watch.of_thread(|| measure(subject));
    thread::scope(|scope| {
        let running: Vec<_> = batch
            .iter()
            .map(|&index| (index, scope.spawn(move || with_high_priority(|| measure(&subjects[index])))))
            .collect();
        let joined = running.into_iter().map(|(index, thread)| {
            let result = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((index, result?))
        });
        joined.collect()
    })
}

/// Groups subjects that may be measured at the same time: without a common pipe, and within this
/// machine's capacity.
fn batches(subjects: &[Subject<'_>], pipes: impl Fn(&Subject<'_>) -> Vec<PathHop>) -> Vec<Vec<usize>> {
    let mut batches: Vec<(Vec<usize>, BTreeSet<PathHop>, f64)> = Vec::new();
    for (index, subject) in subjects.iter().enumerate() {
        let hops: BTreeSet<PathHop> = pipes(subject).into_iter().collect();
        let load = subject.implied.udp_mbit().unwrap_or(TOGETHER_MAX_MBIT);
        let fits = |(_, taken, sum): &&mut (Vec<usize>, BTreeSet<PathHop>, f64)| {
            taken.is_disjoint(&hops) && sum + load <= TOGETHER_MAX_MBIT
        };
        match batches.iter_mut().find(fits) {
            Some((members, taken, sum)) => {
                members.push(index);
                taken.extend(hops);
                *sum += load;
            }
            None => batches.push((vec![index], hops, load)),
        }
    }
    batches.into_iter().map(|(members, _, _)| members).collect()
}

/// Waits until the network holds no frame, so that measurements do not queue behind each other.
fn drain(lab: &Lab, stop: &Stop<'_>) -> Result<(), AuditError> {
    let deadline = Instant::now() + DRAIN_MAX;
    while lab.report().ok_or(AuditError::EngineStopped)?.accounting.held > 0 && Instant::now() < deadline {
        stop.sleep(ATTENTION / 5)?;
    }
    Ok(())
}

/// The flag that ends a measurement early.
#[derive(Clone, Copy)]
pub struct Stop<'a>(pub &'a AtomicBool);

impl Stop<'_> {
    /// Fails once the measurement is to stop.
    ///
    /// # Errors
    /// [`AuditError::Interrupted`].
    pub fn check(&self) -> Result<(), AuditError> {
        if self.0.load(Ordering::Relaxed) { Err(AuditError::Interrupted) } else { Ok(()) }
    }

    /// Sleeps, unless the flag is set meanwhile.
    pub fn sleep(&self, time: Duration) -> Result<(), AuditError> {
        let until = Instant::now() + time;
        loop {
            self.check()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(ATTENTION));
        }
    }
}

/// Opens a file or socket in the namespace of a host. It can then be used from any thread.
///
/// # Errors
/// [`SocketError`], with `what` in its text.
pub fn open_in<T: Send>(
    host: &Host,
    what: &'static str,
    open: impl FnOnce() -> io::Result<T> + Send,
) -> Result<T, AuditError> {
    let opened = host.namespace.within(open).and_then(|result| result);
    opened.map_err(|source| SocketError { what, source }.into())
}
