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
//! Saturations and connections run at the same time only if they share no pipe. The network drains
//! between measurements. Read first: this file, then `implied.rs` and `judge.rs`.
//!
//! Linux only; the crate is empty elsewhere.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

pub mod bulk;
pub mod echo;
#[cfg(test)]
mod fixture;
pub mod flood;
mod implied;
pub mod judge;
mod path;
mod report;

use echo::Echo;
use fastpath_engine::priority::with_high_priority;
use fastpath_lab::{Host, Lab};
use fastpath_net::Routes;
use flood::{LatePolicy, Stream, StreamResult};
use implied::{ECHO_PAYLOAD, Implied, frames_per_second};
use path::{Path, PathHop};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub use report::{Audit, AuditVerdict, Judgement, LossFigures, Pair, RateFigures, Rtt};

/// How often RTT and rate of a pair are measured until they are within their tolerance. Losses are
/// measured once: repetition until they fit would invalidate their interval.
const ATTEMPTS: usize = 3;
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
    let (subjects, mut notes) = subjects(lab, options.pairs_max);
    if subjects.is_empty() {
        return Err(AuditError::NoPairs);
    }
    let mut observed: Vec<Observed> = subjects.iter().map(|_| Observed::default()).collect();
    let saturations = batches(&subjects, |subject| subject.there.hops.clone());
    let connections: Vec<Vec<usize>> =
        batches(&subjects, |subject| [&subject.there.hops[..], &subject.back.hops].concat());
    let total = 2 + saturations.len() + connections.len();
    let mut done = 0;
    let mut next = |step| {
        progress(AuditProgress { step, done, total });
        done += 1;
    };

    let mut repeated = 0;
    next("round-trip times");
    let all: Vec<usize> = (0..subjects.len()).collect();
    repeated += until_agreed(all, |batch| {
        measure_rtt(lab, &subjects, batch, options, &stop, &mut observed)?;
        Ok(disagreeing(batch, &subjects, &observed, |pair| pair.rtt_ms.judgement))
    })?;
    next("losses");
    notes.extend(measure_loss(lab, &subjects, options, &stop, &mut observed)?);
    for batch in saturations {
        next("rates");
        let run = |subject: &Subject<'_>| subject.saturate(options, &stop);
        repeated += until_agreed(batch, |batch| {
            for (index, rate) in together(&subjects, batch, run)? {
                observed[index].saturation = rate;
            }
            drain(lab, &stop)?;
            Ok(disagreeing(batch, &subjects, &observed, |pair| pair.udp_mbit.judgement))
        })?;
    }
    notes.extend(note_of_repetitions(repeated));
    for batch in &connections {
        next("TCP");
        let run = |subject: &Subject<'_>| subject.connect(options, &stop);
        for (index, goodput) in together(&subjects, batch, run)? {
            observed[index].tcp_mbit = goodput;
        }
        drain(lab, &stop)?;
    }
    let engine = lab.report().ok_or(AuditError::EngineStopped)?;
    let pairs = subjects.iter().zip(&observed).map(|(subject, observed)| report::pair(subject, observed));
    Ok(Audit::new(pairs.collect(), engine, notes))
}

fn note_of_repetitions(repeated: usize) -> Option<String> {
    let text = format!(
        "{repeated} measurements of RTT or rate were outside their tolerance and were repeated, at most \
         {} times each; the last result is reported",
        ATTEMPTS - 1
    );
    (repeated > 0).then_some(text)
}

/// Measures the subjects, and repeats those outside their tolerance: a host stall passes, a
/// property of the network stays. Returns the number of repeated measurements.
fn until_agreed(
    mut batch: Vec<usize>,
    mut measure: impl FnMut(&[usize]) -> Result<Vec<usize>, AuditError>,
) -> Result<usize, AuditError> {
    let mut repeated = 0;
    for _ in 1..ATTEMPTS {
        batch = measure(&batch)?;
        if batch.is_empty() {
            return Ok(repeated);
        }
        repeated += batch.len();
    }
    measure(&batch)?;
    Ok(repeated)
}

fn disagreeing(
    batch: &[usize],
    subjects: &[Subject<'_>],
    observed: &[Observed],
    judgement: fn(&Pair) -> Judgement,
) -> Vec<usize> {
    let fails =
        |&&index: &&usize| judgement(&report::pair(&subjects[index], &observed[index])) == Judgement::Fail;
    batch.iter().filter(fails).copied().collect()
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
}

impl Subject<'_> {
    fn rtt(&self) -> Duration {
        self.implied.rtt.to_std()
    }

    fn saturate(&self, options: Options, stop: &Stop<'_>) -> Result<Option<(f64, u64)>, AuditError> {
        // An AQM needs time to reach its equilibrium.
        let settle = Duration::from_millis(if self.implied.drops_early { 2000 } else { 300 });
        let stream = Stream {
            payload: self.implied.datagram,
            per_second: self.implied.saturation.map_or(UNLIMITED_OFFER, |saturation| saturation.offered),
            duration: settle + options.rate_window + ATTENTION,
            late: LatePolicy::CatchUp,
            patience: self.rtt() + ATTENTION,
        };
        let outcome = flood::run(self.from, self.to, self.address, stream, stop)?;
        Ok(outcome.rate(settle, options.rate_window))
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
fn subjects(lab: &Lab, pairs_max: usize) -> (Vec<Subject<'_>>, Vec<String>) {
    let topology = lab.topology();
    let routes = Routes::compute(topology);
    let mut notes = Vec::new();
    if !topology.events.is_empty() {
        notes.push(
            "the spec schedules changes of links: measurements are compared with the values at the start"
                .to_owned(),
        );
    }
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
        let directed = |from: &Host, to: &Host| Path::find(topology, &routes, from.node(), to.address()?);
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
    observed: &mut [Observed],
) -> Result<(), AuditError> {
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
    with_high_priority(|| echo::run(&mut echoes, options.echoes, slot, stop))?;
    for (echo, &index) in echoes.into_iter().zip(batch) {
        let observed = &mut observed[index];
        observed.echoes = echo.sent();
        observed.rtts_ms = echo.rtts_ms;
        observed.rtts_ms.sort_by(f64::total_cmp);
    }
    drain(lab, stop)
}

/// Measures all pairs at once; together they stay below saturation of every pipe. Returns a note if
/// the engine was delayed and frames were lost before they entered the network.
fn measure_loss(
    lab: &Lab,
    subjects: &[Subject<'_>],
    options: Options,
    stop: &Stop<'_>,
    observed: &mut [Observed],
) -> Result<Option<String>, AuditError> {
    let mut users: BTreeMap<PathHop, usize> = BTreeMap::new();
    for hop in subjects.iter().flat_map(|subject| &subject.there.hops) {
        *users.entry(*hop).or_default() += 1;
    }
    let share = |hop: &PathHop| {
        let pipe = &lab.topology().link(hop.link).pipes[hop.pipe];
        let share = LOSS_SHARE / users[hop] as f64;
        frames_per_second(pipe, LOSS_FRAME).map_or(LOSS_RATE_MAX, |frames| frames * share)
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
    let outcomes = together(subjects, &all, count)?;
    let mut sent: BTreeMap<&str, u64> = BTreeMap::new();
    for (index, outcome) in &outcomes {
        *sent.entry(&subjects[*index].from.name).or_default() += outcome.sent;
    }
    let (mut missed, mut all_missed) = (overruns(lab)?, 0);
    for (host, count) in &mut missed {
        *count -= before.get(host).copied().unwrap_or(0).min(*count);
        all_missed += *count;
    }
    for (index, mut outcome) in outcomes {
        let host = subjects[index].from.name.as_str();
        // The lost frames' pairs are unknown: divide them in proportion to what each pair sent.
        let missed = missed.get(host).copied().unwrap_or(0) * outcome.sent;
        outcome.missed += missed.checked_div(sent[host]).unwrap_or(0);
        observed[index].loss = outcome;
    }
    drain(lab, stop)?;
    Ok((all_missed > 0).then(|| {
        format!("{all_missed} datagrams did not enter the network because the engine was delayed: not counted as lost")
    }))
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
    measure: impl Fn(&Subject<'_>) -> Result<T, AuditError> + Sync,
) -> Result<Vec<(usize, T)>, AuditError> {
    let measure = &measure;
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
