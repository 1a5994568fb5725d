//! Impairments behind the queue: jitter and order, duplication, corruption, reordering.
//!
//! Statistical tests have fixed seeds. A correct law exceeds their bounds at one seed in a
//! thousand.

use fastpath_link::{
    Alteration, Bounded, Chance, Change, CorruptSpec, DropReason, Duplication, Exit, Fate, FourState,
    GilbertElliott, JitterCorrelation, JitterLaw, JitterSpec, LossPlan, LossSpec, Outage, Packet,
    PacketContent, PacketFilter, Pipe, PipeSpec, Reorder, ReorderSpec, Runs,
};
use fastpath_units::{Duration, Probability, Rng, Time};

fn us(n: u64) -> Duration {
    Duration::from_us(n)
}

/// Sends `n` packets, one every `gap`, and pops them all.
fn send(spec: &PipeSpec, n: u64, gap: Duration, seed: u64) -> (Pipe<u64>, Vec<Exit<u64>>) {
    let mut pipe = Pipe::new(spec, Rng::new(seed));
    let mut exits = Vec::new();
    for i in 0..n {
        let now = Time::from_ps(gap.as_ps() * i);
        while let Some(exit) = pipe.pop(now) {
            exits.push(exit);
        }
        let _ = pipe.push(now, Packet::new(100, i));
    }
    exits.extend(std::iter::from_fn(|| pipe.pop(Time::MAX)));
    assert!(pipe.conserved() && pipe.held().packets == 0);
    (pipe, exits)
}

fn with_jitter(law: JitterLaw, half_life: Option<Duration>, order: Reorder) -> PipeSpec {
    let correlation = half_life.map_or(JitterCorrelation::None, JitterCorrelation::HalfLife);
    let jitter = Some(Box::new(JitterSpec { law, correlation, order }));
    PipeSpec { delay: us(50_000), jitter, ..PipeSpec::default() }
}

/// Returns the largest distance between the distributions of the sample and of the law.
fn kolmogorov_smirnov(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = |(i, x): (usize, &f64)| {
        let at = cdf(*x);
        (at - i as f64 / n).abs().max(((i + 1) as f64 / n - at).abs())
    };
    sample.iter().enumerate().map(distance).fold(0.0, f64::max)
}

/// Returns the milliseconds in excess of the constant delay, for packets one second apart.
fn offsets(law: &JitterLaw, half_life: Option<Duration>, order: Reorder, seed: u64) -> Vec<f64> {
    let gap = Duration::from_secs(1);
    let (_, exits) = send(&with_jitter(law.clone(), half_life, order), 4000, gap, seed);
    let delay = |exit: &Exit<u64>| exit.at.as_ps() as f64 / 1e9 - exit.packet.data as f64 * 1e3 - 50.0;
    exits.iter().map(delay).collect()
}

fn normal_cdf(z: f64) -> f64 {
    // Abramowitz & Stegun 7.1.26: absolute error below 1.5e-7.
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let poly = t
        * (0.254_829_592
            + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let erf = 1.0 - poly * (-x * x).exp();
    if z < 0.0 { (1.0 - erf) / 2.0 } else { (1.0 + erf) / 2.0 }
}

type Cdf = Box<dyn Fn(f64) -> f64>;

#[test]
fn every_law_has_its_distribution() {
    let ms = Duration::from_ms;
    // Lognormal of mean 5 and sd 3: σ² = ln(1 + 0.36), μ = ln 5 − σ²/2.
    let variance = 1.36f64.ln();
    let mu = 5f64.ln() - variance / 2.0;
    let laws: Vec<(JitterLaw, Cdf)> = vec![
        (JitterLaw::Uniform { half_width: ms(8) }, Box::new(|x| (x + 8.0) / 16.0)),
        (JitterLaw::Normal { sd: ms(4) }, Box::new(|x| normal_cdf(x / 4.0))),
        (
            JitterLaw::Lognormal { mean: ms(5), sd: ms(3) },
            Box::new(move |x| normal_cdf((x.ln() - mu) / variance.sqrt())),
        ),
        (JitterLaw::Exponential { mean: ms(5) }, Box::new(|x| 1.0 - (-x / 5.0).exp())),
        (JitterLaw::Pareto { mean: ms(6), shape: 3.0 }, Box::new(|x| 1.0 - (4.0 / x).powi(3))),
    ];
    for (i, (law, cdf)) in laws.iter().enumerate() {
        let sample = offsets(law, None, Reorder::Allow, i as u64 + 1);
        let distance = kolmogorov_smirnov(sample, cdf);
        // √n·D exceeds 1.95 for one sample in a thousand.
        assert!(distance * 4000f64.sqrt() < 1.95, "{law:?}: {distance}");
    }
}

#[test]
fn a_table_is_drawn_evenly_and_a_trace_in_order() {
    let table = JitterLaw::Table([-3_000_000_000, 0, 0, 9_000_000_000].into());
    let sample = offsets(&table, None, Reorder::Allow, 3);
    let share = |value: f64| sample.iter().filter(|x| (**x - value).abs() < 1e-6).count() as f64;
    let counts = [share(-3.0), share(0.0), share(9.0)];
    let chi2: f64 =
        counts.iter().zip([1000.0, 2000.0, 1000.0]).map(|(n, e): (&f64, f64)| (n - e).powi(2) / e).sum();
    // χ² with 2 degrees of freedom: 13.8 is its 99.9 % quantile.
    assert!(chi2 < 13.8, "{counts:?}");
    let trace = JitterLaw::Trace([us(10), us(0), us(30)].into());
    let (_, exits) = send(&with_jitter(trace, None, Reorder::Allow), 5, us(1000), 1);
    let at: Vec<u64> = exits.iter().map(|exit| exit.at.as_ns() / 1000).collect();
    assert_eq!(at, [50_010, 51_000, 52_030, 53_010, 54_000]);
}

#[test]
fn the_correlation_halves_in_a_half_life_and_does_not_change_the_law() {
    let law = JitterLaw::Normal { sd: us(4_000) };
    for (gap, half_life, expected) in [(1, 1, 0.5), (1, 2, 0.5f64.sqrt()), (2, 1, 0.25)] {
        let spec = with_jitter(law.clone(), Some(Duration::from_secs(half_life)), Reorder::Allow);
        let (pipe, exits) = send(&spec, 20_000, Duration::from_secs(gap), 11);
        let x: Vec<f64> =
            exits.iter().map(|exit| exit.at.as_secs_f64() - (exit.packet.data * gap) as f64 - 0.05).collect();
        let lag = x.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
        let rho = lag / x.iter().map(|x| x * x).sum::<f64>();
        // Bartlett: σ of an estimated AR(1) coefficient is √((1 − ρ²)/n).
        assert!((rho - expected).abs() < 3.291 * ((1.0 - expected * expected) / 20_000f64).sqrt(), "{rho}");
        let delays = pipe.delays().expect("jitter is recorded");
        let ratio = delays.sd().as_secs_f64() / 4e-3;
        assert!((ratio - 1.0).abs() < 0.06, "{ratio}");
    }
}

#[test]
fn in_order_jitter_keeps_order_mean_and_spread_at_any_packet_rate() {
    // The law and the largest share of its standard deviation that is lost.
    let laws = [
        (JitterLaw::Normal { sd: us(5_000) }, 0.01),
        (JitterLaw::Uniform { half_width: us(8_000) }, 0.01),
        (JitterLaw::Exponential { mean: us(5_000) }, 0.02),
        (JitterLaw::Lognormal { mean: us(5_000), sd: us(5_000) }, 0.08),
    ];
    for (law, bias) in laws {
        let jitter = JitterSpec::in_order(law.clone());
        let configured_mean = 0.05 + law.mean_secs();
        let spec = |order| PipeSpec {
            delay: us(50_000),
            jitter: Some(Box::new(JitterSpec { order, ..jitter.clone() })),
            ..PipeSpec::default()
        };
        for gap in [us(20), us(200), us(5_000)] {
            // The same draws with overtaking allowed show the effect of sampling alone.
            let (free, _) = send(&spec(Reorder::Allow), 100_000, gap, 5);
            let (kept, exits) = send(&spec(Reorder::Never), 100_000, gap, 5);
            assert!(exits.windows(2).all(|pair| pair[0].packet.data < pair[1].packet.data));
            let [free, kept] = [&free, &kept].map(|pipe| pipe.delays().expect("recorded").clone());
            let inflation = (kept.mean().as_secs_f64() - free.mean().as_secs_f64()) / configured_mean;
            assert!(inflation.abs() < 1e-9, "{law:?} every {gap}: {inflation}");
            let lost = 1.0 - kept.sd().as_secs_f64() / free.sd().as_secs_f64();
            assert!((0.0..bias).contains(&lost), "{law:?} every {gap}: {lost}");
        }
    }
}

#[test]
fn independent_draws_in_order_keep_the_mean_and_report_the_smaller_deviation() {
    let law = JitterLaw::Normal { sd: us(5_000) };
    let (pipe, _) = send(&with_jitter(law, None, Reorder::Never), 20_000, us(100), 5);
    let delays = pipe.delays().expect("recorded");
    assert!((delays.mean().as_secs_f64() - 0.05).abs() < 3.291 * 5e-3 / 20_000f64.sqrt());
    assert!(delays.sd() < us(1_000), "{}", delays.sd());
}

#[test]
fn where_order_is_kept_the_first_packet_takes_the_next_exit() {
    let trace = JitterLaw::Trace([us(500), us(0), us(0), us(150)].into());
    let (pipe, exits) = send(&with_jitter(trace, None, Reorder::Never), 4, us(100), 1);
    let seen: Vec<(u64, u64)> =
        exits.iter().map(|exit| (exit.packet.data, exit.at.as_ns() / 1000 - 50_000)).collect();
    // Sent every 100 µs; the exits drawn are 500, 100, 200 and 450.
    assert_eq!(seen, [(0, 100), (1, 200), (2, 450), (3, 500)]);
    // The mean of the delays is that of 500, 0, 0 and 150.
    assert_eq!(pipe.delays().expect("recorded").mean(), us(50_000) + Duration::from_ns(162_500));
}

#[test]
fn delays_are_measured_since_the_law_or_the_delay_was_set() {
    let trace = |micros| {
        Some(Some(Box::new(JitterSpec {
            law: JitterLaw::Trace([us(micros)].into()),
            correlation: JitterCorrelation::None,
            order: Reorder::Allow,
        })))
    };
    let mut pipe: Pipe<u64> = Pipe::new(&PipeSpec::default(), Rng::new(1));
    assert!(pipe.delays().is_none(), "there is no jitter");
    let at = |micros| Time::ZERO + us(micros);
    let changes = [
        (0, Change { jitter: trace(500), ..Change::default() }, 500),
        (1000, Change { delay: Some(us(2000)), ..Change::default() }, 2500),
        (5000, Change { jitter: trace(100), ..Change::default() }, 2100),
        (9000, Change { jitter: trace(100), ..Change::default() }, 2100),
    ];
    for (number, (micros, change, delay)) in changes.into_iter().enumerate() {
        pipe.change(at(micros), &change);
        let packet = Packet::new(100, number as u64);
        let _ = pipe.push(at(micros), packet);
        while pipe.pop(at(micros) + us(delay)).is_some() {}
        let delays = pipe.delays().expect("there is jitter");
        // The last change has no effect.
        assert_eq!((delays.count(), delays.max()), (if number == 3 { 2 } else { 1 }, Some(us(delay))));
    }
}

#[test]
fn where_late_packets_are_dropped_only_overtaken_packets_are() {
    let trace = JitterLaw::Trace([us(500), us(0), us(0), us(150)].into());
    let (pipe, exits) = send(&with_jitter(trace, None, Reorder::Drop), 8, us(100), 1);
    let seen: Vec<(u64, u64, bool)> = exits
        .iter()
        .map(|exit| {
            (exit.packet.data, exit.at.as_ns() / 1000 - 50_000, exit.fate == Fate::Dropped(DropReason::Late))
        })
        .collect();
    // Sent every 100 µs: 0 and 4 are late. 3 leaves just before 5, which was sent 200 µs later.
    let expected = [
        (1, 100, false),
        (2, 200, false),
        (3, 450, false),
        (0, 500, true),
        (5, 500, false),
        (6, 600, false),
        (7, 850, false),
        (4, 900, true),
    ];
    assert_eq!(seen, expected);
    assert_eq!(pipe.counters().dropped_for(DropReason::Late), 2);
}

#[test]
fn reordered_packets_skip_the_delay_and_the_others_keep_it() {
    let reorder = Some(ReorderSpec { chance: Probability::ALWAYS.into(), gap: 3 });
    let spec = PipeSpec { delay: us(1000), reorder, ..PipeSpec::default() };
    let (_, exits) = send(&spec, 6, us(100), 1);
    let seen: Vec<(u64, u64)> = exits.iter().map(|exit| (exit.packet.data, exit.at.as_ns() / 1000)).collect();
    assert_eq!(seen, [(2, 200), (5, 500), (0, 1000), (1, 1100), (3, 1300), (4, 1400)]);
}

#[test]
fn a_copy_may_leave_later_than_its_packet_with_others_between_them() {
    let duplicate = Duplication { chance: Probability::ALWAYS.into(), later: us(250) };
    let spec = PipeSpec { delay: us(1000), duplicate, ..PipeSpec::default() };
    let mut pipe: Pipe<u64> = Pipe::new(&spec, Rng::new(1));
    let packet = |data| Packet::new(100, data);
    for i in 0..3 {
        let _ = pipe.push(Time::ZERO + us(100 * i), packet(i));
    }
    let mut seen = Vec::new();
    while let Some(Exit { at, packet: Packet { data, .. }, fate }) = pipe.pop(Time::MAX) {
        let copies_at = pipe.copies_at();
        assert_eq!(copies_at, (fate != Fate::Delivered { marked: false }).then(|| at + us(250)));
        if let Some(later) = copies_at {
            pipe.put_copy(later, packet(data + 10));
            assert!(
                pipe.held().packets > 0 && pipe.conserved(),
                "copies are held and are not accounted as pushed"
            );
        }
        seen.push((data, at.as_ns() / 1000));
    }
    assert_eq!(seen, [(0, 1000), (1, 1100), (2, 1200), (10, 1250), (11, 1350), (12, 1450)]);
    let counters = pipe.counters();
    assert_eq!((counters.delivered.packets, counters.duplicated, pipe.held().packets), (3, 3, 0));
}

#[test]
fn duplicates_and_corruption_are_reported_and_counted() {
    let half = Probability::new(0.5).expect("a probability");
    let corrupt = Some(CorruptSpec::Packets(Chance::from(half)));
    let spec = PipeSpec { duplicate: half.into(), corrupt, ..PipeSpec::default() };
    let (pipe, exits) = send(&spec, 40_000, us(1), 9);
    let count = |what: fn(&Alteration) -> bool| {
        exits.iter().filter(|exit| matches!(&exit.fate, Fate::Altered(a) if what(a))).count() as u64
    };
    let (twice, wrong) = (count(|a| a.copies == 1), count(|a| a.corruption.is_some()));
    assert_eq!((pipe.counters().duplicated, pipe.counters().corrupted), (twice, wrong));
    assert_eq!(pipe.counters().delivered.packets, 40_000);
    for hits in [twice, wrong] {
        assert!((hits as f64 - 20_000.0).abs() <= 3.291 * 100.0, "{hits}");
    }
    let both = count(|a| a.copies == 1 && a.corruption.is_some()) as f64;
    assert!((both - 10_000.0).abs() <= 3.291 * (40_000.0f64 * 0.25 * 0.75).sqrt(), "{both}");
}

#[test]
fn loss_at_the_egress_costs_link_time_and_loss_at_the_ingress_does_not() {
    let all = LossSpec::Uniform(Probability::ALWAYS);
    let rate = fastpath_units::Rate::from_bps(800_000);
    // A packet of 100 bytes takes 1 ms on the wire.
    let egress = PipeSpec { rate, delay: us(9_000), egress_loss: all.clone(), ..PipeSpec::default() };
    let (_, exits) = send(&egress, 3, us(0), 1);
    let at: Vec<(u64, Fate)> = exits.iter().map(|exit| (exit.at.as_ns() / 1000, exit.fate)).collect();
    let lost = Fate::Dropped(DropReason::Loss);
    assert_eq!(at, [(1000, lost), (2000, lost), (3000, lost)]);
    let (pipe, exits) = send(&PipeSpec { rate, loss: all, ..PipeSpec::default() }, 3, us(0), 1);
    assert_eq!((exits.len(), pipe.counters().dropped_for(DropReason::Loss)), (0, 3));
}

#[test]
fn the_number_of_losses_varies_as_each_law_says() {
    let p = |p: f64| Probability::new(p).expect("a probability");
    let bursts =
        GilbertElliott { to_bad: p(0.02), to_good: p(0.2), loss_in_bad: p(0.9), loss_in_good: p(0.01) };
    let burst_max = std::num::NonZeroU32::new(2);
    let bounded = Bounded { probability: p(0.4), burst_max, of: PacketFilter::All };
    let four = FourState { p13: p(0.02), p31: p(0.3), p32: p(0.1), p23: p(0.5), p14: p(0.01) };
    let runs = Runs { passed: [10, 20, 90].into(), lost: [1, 1, 2, 8].into() };
    let laws = [
        LossSpec::Uniform(p(0.1)),
        LossSpec::Bounded(bounded),
        LossSpec::GilbertElliott(bursts),
        LossSpec::FourState(four),
        LossSpec::Runs(runs),
    ];
    for loss in laws {
        let (n, times) = (10_000, 400);
        let spec = PipeSpec { loss: loss.clone(), ..PipeSpec::default() };
        let lost = |seed| send(&spec, n, us(1), seed).0.counters().dropped_for(DropReason::Loss) as f64;
        let counts: Vec<f64> = (1..=times).map(lost).collect();
        let mean = counts.iter().sum::<f64>() / times as f64;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (times - 1) as f64;
        let one = n as f64 * loss.share() * (1.0 - loss.share()) * loss.variance_inflation().expect("a law");
        // The mean is within 3.291 σ, the variance of 400 counts within 3.291·√(2/399): a correct
        // law fails at one seed in 500.
        assert!(
            (mean - n as f64 * loss.share()).abs() < 3.291 * (one / times as f64).sqrt(),
            "{loss}: {mean}"
        );
        assert!((variance / one - 1.0).abs() < 0.233, "{loss}: {variance}, expected {one}");
    }
}

#[test]
fn planned_losses_happen_before_the_queue_or_behind_the_bottleneck() {
    let rate = fastpath_units::Rate::from_bps(800_000);
    let outage =
        |at, span| LossSpec::Plan(LossPlan::Outage(Outage { at: us(at), span: us(span), every: None }));
    let numbers = LossSpec::Plan(LossPlan::Numbers { numbers: [2, 3].into(), of: PacketFilter::All });
    let lost = |spec: &PipeSpec| -> Vec<u64> {
        let (pipe, exits) = send(spec, 5, us(100), 1);
        let through = |id: &u64| {
            exits.iter().any(|e| e.packet.data == *id && e.fate == Fate::Delivered { marked: false })
        };
        assert!(pipe.conserved());
        (0..5).filter(|id| !through(id)).collect()
    };
    // Packets arrive at 0, 100, … 400 µs and leave the wire at 1, 2, … 5 ms.
    let base = PipeSpec { rate, ..PipeSpec::default() };
    assert_eq!(lost(&PipeSpec { loss: outage(100, 200), ..base.clone() }), [1, 2]);
    assert_eq!(lost(&PipeSpec { egress_loss: outage(3000, 1001), ..base.clone() }), [2, 3]);
    assert_eq!(lost(&PipeSpec { loss: numbers.clone(), ..base.clone() }), [1, 2]);
    assert_eq!(lost(&PipeSpec { egress_loss: numbers, ..base.clone() }), [1, 2]);
    let bytes = LossSpec::Plan(LossPlan::Bytes([250].into()));
    assert_eq!(lost(&PipeSpec { loss: bytes, ..base }), [2]);
}

#[test]
fn a_filter_reads_headers_and_counts_its_packets_at_both_places() {
    let numbers = LossSpec::Plan(LossPlan::Numbers { numbers: [1, 3].into(), of: PacketFilter::Udp });
    let p = Probability::new(0.2).expect("a probability");
    let law = Bounded { probability: p, burst_max: None, of: PacketFilter::All };
    for (spec, reads) in [
        (PipeSpec { loss: numbers.clone(), ..PipeSpec::default() }, true),
        (PipeSpec { egress_loss: numbers, ..PipeSpec::default() }, true),
        (PipeSpec { loss: LossSpec::Bounded(law), ..PipeSpec::default() }, false),
        (PipeSpec { corrupt: Some(CorruptSpec::Bounded(law)), ..PipeSpec::default() }, false),
        (PipeSpec { corrupt: Some(CorruptSpec::UdpPayload(law)), ..PipeSpec::default() }, true),
    ] {
        let mut pipe = Pipe::new(&spec, Rng::new(1));
        assert_eq!(pipe.reads_headers(), reads, "{spec:?}");
        assert_eq!(pipe.spec(), spec);
        for data in 0..6 {
            let content = if data % 2 == 0 { PacketContent::Udp } else { PacketContent::Other };
            let _ = pipe.push(Time::ZERO, Packet { content, ..Packet::new(100, data) });
        }
        let exits: Vec<Exit<u64>> = std::iter::from_fn(|| pipe.pop(Time::MAX)).collect();
        let through = exits.iter().filter(|exit| !matches!(exit.fate, Fate::Dropped(_)));
        if matches!(spec.loss, LossSpec::Plan(_)) || matches!(spec.egress_loss, LossSpec::Plan(_)) {
            assert_eq!(through.map(|exit| exit.packet.data).collect::<Vec<_>>(), [1, 2, 3, 5]);
            assert_eq!(pipe.counters().dropped_for(DropReason::Loss), 2);
        }
        assert!(pipe.conserved());
    }
}
