//! What a spec implies for a pair of hosts, in closed form from the parameters of the pipes on the
//! path. The emulator computes the same packet by packet. Where no closed form holds, `model.rs`
//! takes its place ([`ByModel`]).

use super::path::{Path, PathHop};
use fastpath_link::{JitterCorrelation, JitterSpec, LinkState, LossSpec, PipeSpec, QueueSpec};
use fastpath_spec::Topology;
use fastpath_units::{Bytes, Duration, Fraction};
use std::net::IpAddr;

/// Ethernet header, bytes.
const ETHERNET: u32 = 14;
/// Payload of the echo requests: what ping(8) sends.
pub(crate) const ECHO_PAYLOAD: usize = 56;
/// ICMP and UDP headers, bytes.
const ICMP_OR_UDP: u32 = 8;
/// TCP header with the timestamps option (RFC 7323 §3.2) and its padding, bytes.
const TCP: u32 = 32;
/// Offered load of a saturation, as a multiple of what the path carries.
const OVERLOAD: f64 = 1.2;
/// The same where a queue drops early. At low rates RED's average lags its queue by seconds. With
/// more overload RED alternates between dropping everything and nothing, which leaves the link idle
/// (4 % of the time at 1.2 × 1.5 Mbit/s with ns-2's thresholds, never at 1.1).
const OVERLOAD_EARLY: f64 = 1.05;

/// What the spec implies for packets from one host to another.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Implied {
    /// Round-trip time of an echo of [`ECHO_PAYLOAD`] bytes: propagation, with the mean of jitter,
    /// and serialisation, there and back.
    pub(crate) rtt: Duration,
    /// Its standard deviation by the distributions of jitter. `None` if a mean has no such
    /// deviation: it is infinite, delays are correlated, or a distribution is truncated at zero
    /// delay.
    pub(crate) rtt_sd: Option<Duration>,
    /// Payload bytes of a datagram that fills the path's MTU.
    pub(crate) datagram: usize,
    /// Saturation of the path with such datagrams; `None` where no pipe has a rate.
    pub(crate) saturation: Option<Saturation>,
    /// Datagrams per second that saturate the path where the model implies what arrives of them;
    /// `None` where nothing limits them.
    pub(crate) offered: Option<f64>,
    /// Payload of one TCP connection that keeps the path full, Mbit/s.
    pub(crate) tcp_mbit: Option<f64>,
    /// Probability of random loss on the path.
    pub(crate) loss: f64,
    /// Variance of the number of losses relative to independent losses, of the burstiest link.
    /// `None` if the losses of a link have no distribution.
    pub(crate) loss_inflation: Option<f64>,
    /// Whether a queue on the path drops before it is full.
    pub(crate) drops_early: bool,
    /// Whether early drops or random loss keep one TCP connection from filling the path.
    pub(crate) tcp_held_back: bool,
    /// Whether `loss` holds: nothing but random loss takes packets of a flow below the rate.
    pub(crate) is_share_exact: bool,
    /// The figures that have no closed form.
    pub(crate) by_model: ByModel,
    /// Why the model does not give them either.
    pub(crate) unmodelled: Option<String>,
}

/// The figures of a pair that the model implies instead of a closed form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ByModel {
    /// Round-trip time.
    pub(crate) rtt: bool,
    /// Loss, and with it the rate of a saturation.
    pub(crate) loss: bool,
}

impl ByModel {
    /// Returns whether the model is needed.
    pub(crate) fn any(self) -> bool {
        self.rtt || self.loss
    }
}

/// The saturation of a path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Saturation {
    /// Datagrams per second to offer.
    pub(crate) offered: f64,
    /// Datagrams per second that arrive.
    pub(crate) carried: f64,
    /// Random loss behind the bottleneck, which makes `carried` a mean.
    pub(crate) loss_after: f64,
}

impl Implied {
    /// Computes it for packets to the address `to` over `there`, with replies over `back`.
    pub(crate) fn new(topology: &Topology, to: IpAddr, there: &Path, back: &Path) -> Implied {
        let ip = if to.is_ipv4() { 20 } else { 40 };
        let pipes: Vec<&PipeSpec> = there.pipes(topology).collect();
        let echo = ETHERNET + ip + ICMP_OR_UDP + ECHO_PAYLOAD as u32;
        let full = ETHERNET + there.mtu;
        let saturation = saturation(&pipes, full);
        let by_model = ByModel {
            rtt: changes(topology, &there.hops)
                || changes(topology, &back.hops)
                || there.pipes(topology).chain(back.pipes(topology)).any(|pipe| !has_plain_delay(pipe)),
            loss: changes(topology, &there.hops) || pipes.iter().any(|pipe| !has_plain_loss(pipe)),
        };
        let limits = there.hops.iter().filter_map(|hop| frames_per_second_at_most(topology, hop, full));
        let most = limits.reduce(f64::min);
        let segment = f64::from(there.mtu.saturating_sub(ip + TCP));
        let lossless = pipes.iter().filter_map(|pipe| frames_per_second(pipe, full)).reduce(f64::min);
        let round: Vec<&PipeSpec> = there.pipes(topology).chain(back.pipes(topology)).collect();
        let variance: Option<f64> = round.iter().map(|pipe| jitter_variance(pipe)).sum();
        Implied {
            rtt: round.iter().fold(Duration::ZERO, |sum, pipe| sum + crossing(pipe, echo)),
            rtt_sd: variance.map(|variance| Duration::from_secs_f64(variance.sqrt())),
            datagram: there.mtu.saturating_sub(ip + ICMP_OR_UDP) as usize,
            saturation,
            offered: most.map(|most| OVERLOAD * most),
            tcp_mbit: lossless.map(|frames| frames * segment * 8.0 / 1e6),
            // Rounded, so that 2 % is 0.02 and not 0.020000000000000018.
            loss: ((1.0 - pipes.iter().map(|pipe| survival(pipe)).product::<f64>()) * 1e12).round() / 1e12,
            loss_inflation: losses(&pipes)
                .map(LossSpec::variance_inflation)
                .try_fold(1.0, |most, inflation| Some(f64::max(most, inflation?))),
            drops_early: pipes.iter().any(|pipe| drops_early(pipe)),
            tcp_held_back: round.iter().any(|pipe| survival(pipe) < 1.0 || drops_early(pipe)),
            is_share_exact: !changes(topology, &there.hops) && pipes.iter().all(|pipe| has_plain_share(pipe)),
            unmodelled: unmodelled(topology, there.hops.iter().chain(&back.hops)).filter(|_| by_model.any()),
            by_model,
        }
    }

    /// Returns the payload rate of a saturation at the receiver, Mbit/s.
    pub(crate) fn udp_mbit(&self) -> Option<f64> {
        self.saturation.map(|saturation| saturation.carried * self.datagram as f64 * 8.0 / 1e6)
    }
}

/// Whether parameters of a pipe on the way change by themselves.
fn changes(topology: &Topology, hops: &[PathHop]) -> bool {
    let has_event = |hop: &PathHop| topology.events.iter().any(|event| event.link == hop.link);
    hops.iter().any(|hop| has_event(hop) || !topology.tracks_of(hop.link, hop.pipe).is_empty())
}

/// Returns why the model does not know the state of a pipe on the way.
fn unmodelled<'h>(topology: &Topology, mut hops: impl Iterator<Item = &'h PathHop>) -> Option<String> {
    hops.find_map(|hop| {
        let mut tracks = topology.tracks_of(hop.link, hop.pipe).iter();
        tracks.any(|track| topology.start_of(track).is_none()).then(|| {
            let name = &topology.link(hop.link).name;
            format!("the trace of link {name} starts with a packet or a command, at a time that is not known")
        })
    })
}

/// Whether the mean delay and its scatter have a closed form.
fn has_plain_delay(pipe: &PipeSpec) -> bool {
    !is_shaped(pipe) && is_plain(pipe) && pipe.reorder.is_none() && jitter_variance(pipe).is_some()
}

/// Whether the share of losses has a closed form, for a flow below the rate and for one above it.
fn has_plain_share(pipe: &PipeSpec) -> bool {
    let limits = matches!(
        pipe.queue,
        QueueSpec::Policer(_) | QueueSpec::Prio(_) | QueueSpec::Drr(_) | QueueSpec::Sojourn(_)
    );
    !limits && !is_shaped(pipe) && is_plain(pipe) && pipe.corrupt.is_none() && pipe.duplicate.is_never()
}

/// Whether the scatter of losses has a closed form too.
fn has_plain_loss(pipe: &PipeSpec) -> bool {
    let has_variance = |loss: &LossSpec| loss.variance_inflation().is_some();
    has_plain_share(pipe) && has_variance(&pipe.loss) && has_variance(&pipe.egress_loss)
}

/// Whether packets wait for more than the rate of the pipe.
fn is_shaped(pipe: &PipeSpec) -> bool {
    matches!(pipe.queue, QueueSpec::TokenBucket(_) | QueueSpec::Mahimahi(_))
}

/// Whether the pipe sends whenever it has a frame, at one rate.
fn is_plain(pipe: &PipeSpec) -> bool {
    let sends = pipe.state == LinkState::Up && !pipe.paused;
    sends && pipe.opportunities.is_none() && pipe.slots.is_none() && pipe.cross.is_none()
}

/// Returns the bytes that a frame of `len` bytes occupies on the wire.
fn on_wire(pipe: &PipeSpec, len: u32) -> Bytes {
    pipe.framing.map_or(Bytes(u64::from(len + pipe.overhead)), |framing| framing.on_wire(len))
}

/// Returns the frames of `len` bytes per second at the pipe's rate; `None` without a rate.
pub(crate) fn frames_per_second(pipe: &PipeSpec, len: u32) -> Option<f64> {
    let bits = on_wire(pipe, len).0 as f64 * 8.0;
    pipe.rate.map(|rate| rate.as_bps() as f64 / bits.max(1.0))
}

/// Returns the most frames of `len` bytes per second that the pipe lets pass in the long run, by
/// its rate, its queue, its opportunities, or the highest rate of a trace.
pub(crate) fn frames_per_second_at_most(topology: &Topology, hop: &PathHop, len: u32) -> Option<f64> {
    let pipe = &topology.link(hop.link).pipes[hop.pipe];
    let queue = match &pipe.queue {
        QueueSpec::TokenBucket(bucket) => Some(bucket.rate.as_bps() as f64),
        QueueSpec::Policer(policer) => Some(policer.rate.as_bps() as f64),
        _ => None,
    };
    let bits = on_wire(pipe, len).0 as f64 * 8.0;
    let opportunities = pipe.opportunities.as_ref().map(|all| all.mean_bps());
    let fixed = [queue, opportunities].into_iter().flatten().map(|bps| bps / bits.max(1.0));
    let tracks = topology.tracks_of(hop.link, hop.pipe).iter();
    let traced =
        tracks.filter_map(|track| track.timeline.extremes().0).map(|rate| rate.as_bps() as f64 / bits);
    // A trace takes the place of the rate.
    let own = traced.reduce(f64::max).or(frames_per_second(pipe, len));
    fixed.chain(own).reduce(f64::min)
}

/// Returns the mean time from a frame's first bit in to its last bit out, on an empty pipe.
fn crossing(pipe: &PipeSpec, len: u32) -> Duration {
    let size = on_wire(pipe, len);
    let sending = pipe.rate.map_or(Duration::ZERO, |rate| rate.transmission(size, Fraction::ZERO).0);
    let Some(jitter) = &pipe.jitter else { return sending + pipe.delay };
    sending + Duration::from_ps((jitter.law.moments(pipe.delay).0 * 1e12).round() as u64)
}

/// Returns the variance of a delay, s². `None` where the mean of several packets does not converge
/// to that of the distribution.
fn jitter_variance(pipe: &PipeSpec) -> Option<f64> {
    let Some(JitterSpec { law, correlation, .. }) = pipe.jitter.as_deref() else { return Some(0.0) };
    let is_cut = law.quantile(pipe.delay, 0.001).is_none_or(|least| least.is_zero());
    let sd = law.sd().filter(|_| *correlation == JitterCorrelation::None && !is_cut)?;
    Some(sd.as_secs_f64() * sd.as_secs_f64())
}

/// Whether the queue drops before it is full.
fn drops_early(pipe: &PipeSpec) -> bool {
    !matches!(pipe.queue, QueueSpec::DropTail(_) | QueueSpec::DropTailTime(_))
}

/// Returns all loss models of the path.
fn losses<'p>(pipes: &[&'p PipeSpec]) -> impl Iterator<Item = &'p LossSpec> {
    pipes.iter().flat_map(|pipe| [&pipe.loss, &pipe.egress_loss])
}

/// Returns the share of packets that survive random loss, before and behind the queue.
fn survival(pipe: &PipeSpec) -> f64 {
    (1.0 - pipe.loss.share()) * (1.0 - pipe.egress_loss.share())
}

/// Follows a flow of frames of `len` bytes over the pipes: loss reduces it, the rate limits it.
fn saturation(pipes: &[&PipeSpec], len: u32) -> Option<Saturation> {
    let mut surviving = 1.0;
    let mut fill = f64::INFINITY;
    for pipe in pipes {
        surviving *= 1.0 - pipe.loss.share();
        if let Some(cap) = frames_per_second(pipe, len) {
            fill = f64::min(fill, cap / surviving);
        }
        surviving *= 1.0 - pipe.egress_loss.share();
    }
    if !fill.is_finite() {
        return None;
    }
    let early = pipes.iter().any(|pipe| drops_early(pipe));
    let offered = fill * if early { OVERLOAD_EARLY } else { OVERLOAD };
    let (mut carried, mut after) = (offered, 1.0);
    for pipe in pipes {
        let [before, behind] = [&pipe.loss, &pipe.egress_loss].map(|loss| 1.0 - loss.share());
        (carried, after) = (carried * before, after * before);
        if let Some(cap) = frames_per_second(pipe, len).filter(|&cap| cap < carried) {
            (carried, after) = (cap, 1.0);
        }
        (carried, after) = (carried * behind, after * behind);
    }
    Some(Saturation { offered, carried, loss_after: 1.0 - after })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{between, dumbbell, pipe};
    use fastpath_link::{JitterLaw, Reorder};
    use fastpath_net::Routes;

    fn implied(topology: &Topology, from: &str, to: &str) -> Implied {
        let routes = Routes::compute(topology);
        let [a, b] = [from, to].map(|name| topology.node_named(name).unwrap());
        let [to_a, to_b] = [a, b].map(|id| topology.node(id).interfaces[0].addresses[0].addr());
        let there = Path::find(topology, &routes, a, to_b).unwrap();
        let back = Path::find(topology, &routes, b, to_a).unwrap();
        Implied::new(topology, to_b, &there, &back)
    }

    fn close(value: Option<f64>, expected: f64) {
        assert!((value.unwrap() / expected - 1.0).abs() < 1e-9, "{value:?}, expected {expected}");
    }

    #[test]
    fn the_dumbbell_gives_what_is_computed_by_hand() {
        let topology = dumbbell();
        // 98 B at 100 Mbit/s 7.84 µs, at 10 Mbit/s 78.4 µs, at 1.5 Mbit/s 522.666… µs: each way.
        let near = implied(&topology, "n0", "n1");
        assert_eq!(near.rtt, Duration::from_ms(70) + Duration::from_ns(2 * (7_840 + 78_400)));
        close(near.udp_mbit(), 10.0 * 1472.0 / 1514.0);
        close(near.tcp_mbit, 10.0 * 1448.0 / 1514.0);
        assert!(!near.tcp_held_back);
        let far = implied(&topology, "n0", "n2");
        assert_eq!(far.rtt, Duration::from_ms(240) + Duration::from_ps(2 * (2 * 7_840_000 + 522_666_666)));
        close(far.udp_mbit(), 1.5 * 1472.0 / 1514.0);
        assert!(far.tcp_held_back, "the middle link has RED");
    }

    #[test]
    fn loss_before_the_bottleneck_does_not_reduce_its_rate_and_loss_behind_it_does() {
        let lossy = |rate, percent| pipe(rate, "0ms", percent);
        let before = saturation(&[&lossy("100Mbit", "10%"), &lossy("10Mbit", "0%")], 1250).unwrap();
        assert!((before.carried - 1000.0).abs() < 1e-6 && before.loss_after == 0.0, "{before:?}");
        assert!((before.offered - 1.2 * 1000.0 / 0.9).abs() < 1e-6, "{before:?}");
        let behind = saturation(&[&lossy("10Mbit", "0%"), &lossy("100Mbit", "10%")], 1250).unwrap();
        assert!(
            (behind.carried - 900.0).abs() < 1e-6 && (behind.loss_after - 0.1).abs() < 1e-9,
            "{behind:?}"
        );
    }

    #[test]
    fn loss_at_the_egress_reduces_the_rate() {
        let egress = LossSpec::Uniform("10%".parse().unwrap());
        let pipe = PipeSpec { egress_loss: egress, ..pipe("10Mbit", "0ms", "0%") };
        let found = saturation(&[&pipe], 1250).unwrap();
        assert!((found.carried - 900.0).abs() < 1e-6 && (found.loss_after - 0.1).abs() < 1e-9, "{found:?}");
        assert!((found.offered - 1.2 * 1000.0).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn the_burstiest_link_sets_the_variance_of_losses() {
        let bursts = LossSpec::GilbertElliott(fastpath_link::GilbertElliott {
            to_bad: "1%".parse().unwrap(),
            to_good: "19%".parse().unwrap(),
            loss_in_bad: "100%".parse().unwrap(),
            loss_in_good: "0%".parse().unwrap(),
        });
        let inflation = |loss: LossSpec| {
            implied(&between(PipeSpec { loss, ..pipe("1Mbit", "5ms", "0%") }), "a", "b").loss_inflation
        };
        // Of a two-state chain with eigenvalue 0.8: (1 + 0.8)/(1 − 0.8).
        assert!((inflation(bursts).unwrap() - 9.0).abs() < 1e-9);
        assert_eq!(inflation("1%".parse::<fastpath_units::Probability>().unwrap().into()), Some(1.0));
        let correlated =
            fastpath_link::Chance { probability: "1%".parse().unwrap(), correlation: "25%".parse().unwrap() };
        assert_eq!(inflation(LossSpec::Correlated(correlated)), None);
    }

    #[test]
    fn jitter_adds_its_mean_and_scatters_it() {
        let jittery = |law, correlation| {
            let jitter = Some(Box::new(JitterSpec { law, correlation, order: Reorder::Allow }));
            let implied =
                implied(&between(PipeSpec { rate: None, jitter, ..pipe("1Mbit", "5ms", "0%") }), "a", "b");
            (implied.rtt, implied.rtt_sd)
        };
        let ms = Duration::from_ms;
        let exponential = || JitterLaw::Exponential { mean: ms(3) };
        // Both ways: 2·(5 + 3) ms, and √(2·3²) ms.
        let (rtt, sd) = jittery(exponential(), JitterCorrelation::None);
        assert_eq!((rtt, sd.unwrap().as_ps() / 1_000_000), (ms(16), 4242));
        assert_eq!(jittery(exponential(), JitterCorrelation::HalfLife(ms(50))), (ms(16), None));
        // Five deviations above zero next to nothing is cut.
        let (rtt, _) = jittery(JitterLaw::Normal { sd: ms(1) }, JitterCorrelation::None);
        assert!(rtt.saturating_sub(ms(10)) < Duration::from_ns(1), "{rtt}");
        // Cut at zero: of N(5, 4) the mean is 5·Φ(2.5) + 2·φ(2.5) = 5.00401 ms.
        let (rtt, sd) = jittery(JitterLaw::Normal { sd: ms(2) }, JitterCorrelation::None);
        assert!((rtt.as_ms_f64() - 10.008).abs() < 1e-3 && sd.is_none(), "{rtt}");
        assert_eq!(
            jittery(JitterLaw::Pareto { mean: ms(3), shape: 1.5 }, JitterCorrelation::None),
            (ms(16), None)
        );
        assert_eq!(implied(&between(pipe("1Mbit", "5ms", "0%")), "a", "b").rtt_sd, Some(Duration::ZERO));
    }

    #[test]
    fn losses_multiply_and_no_rate_means_no_expectation() {
        let topology = between(PipeSpec { rate: None, ..pipe("1Mbit", "5ms", "1%") });
        let implied = implied(&topology, "a", "b");
        assert_eq!(implied.loss, 0.01);
        assert_eq!((implied.saturation, implied.tcp_mbit), (None, None));
        assert_eq!(implied.rtt, Duration::from_ms(10));
    }
}
