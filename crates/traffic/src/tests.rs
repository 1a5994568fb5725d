//! Times of a constant rate are exact; random models have their mean rate, gaps and periods. Each
//! statistical test has a fixed seed, and its bound is five standard errors.

use super::*;
use proptest::{prop_assert, prop_assert_eq, proptest};

const END: Time = Time::from_ps(u64::MAX);

fn mbit(x: u64) -> Rate {
    Rate::from_bps(x * 1_000_000).unwrap()
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

proptest! {
    /// The k-th packet leaves at k·size·8/rate, rounded down.
    #[test]
    fn a_constant_rate_never_drifts(bps in 1u64..20_000_000_000, size in 1u32..10_000, count in 1usize..300) {
        let model = SourceModel { arrivals: ArrivalModel::Constant(Rate::from_bps(bps).unwrap()), size };
        let exact = |k: usize| k as u128 * u128::from(size) * 8 * 1_000_000_000_000 / u128::from(bps);
        let times = model.packets(Time::ZERO, END, Rng::new(1)).take(count);
        for (k, (at, bytes)) in times.enumerate() {
            prop_assert_eq!(u128::from(at.as_ps()), exact(k));
            prop_assert_eq!(bytes, size);
        }
    }

    /// Whatever the model, times do not run back, lie in the interval, and repeat with the seed.
    #[test]
    fn packets_are_in_order_and_repeat(
        kind in 0..4, seed: u64, bps in 1_000u64..1_000_000_000, size in 1u32..2000,
        on_us in 0u64..100_000, off_us in 0u64..100_000, start_ms in 0u64..50,
    ) {
        let rate = Rate::from_bps(bps).unwrap();
        let (on, off) = (Duration::from_us(on_us), Duration::from_us(off_us));
        let arrivals = match kind {
            0 => ArrivalModel::Constant(rate),
            1 => ArrivalModel::Poisson(rate),
            2 => ArrivalModel::OnOff { rate, on: PeriodLaw::Exponential(on), off: PeriodLaw::Pareto { mean: off, shape: 1.5 } },
            _ => ArrivalModel::OnOff { rate, on: PeriodLaw::Constant(on), off: PeriodLaw::Constant(off) },
        };
        let start = Time::ZERO + Duration::from_ms(start_ms);
        let stop = start + Duration::from_ms(40);
        let model = SourceModel { arrivals, size };
        let packets: Vec<_> = model.packets(start, stop, Rng::new(seed)).take(2000).collect();
        prop_assert!(packets.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        prop_assert!(packets.iter().all(|(at, _)| (start..stop).contains(at)));
        prop_assert_eq!(packets, model.packets(start, stop, Rng::new(seed)).take(2000).collect::<Vec<_>>());
    }
}

#[test]
fn poisson_gaps_have_the_mean_and_the_variance_of_the_exponential_law() {
    let model = SourceModel { arrivals: ArrivalModel::Poisson(mbit(8)), size: 1000 };
    let count = 200_000;
    let times: Vec<f64> = model
        .packets(Time::ZERO, END, Rng::new(3))
        .take(count)
        .map(|(at, _)| at.as_secs_f64() * 1e3)
        .collect();
    let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
    // The mean is 1 ms; the standard errors of mean and variance are 1/√n and √8/√n.
    assert!((mean - 1.0).abs() < 5.0 / n.sqrt(), "{mean}");
    assert!((variance - 1.0).abs() < 5.0 * (8.0 / n).sqrt(), "{variance}");
    // Gaps are independent of their predecessors.
    let correlation = gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / n;
    assert!(correlation.abs() < 5.0 / n.sqrt(), "{correlation}");
}

#[test]
fn on_off_sources_have_their_mean_rate() {
    let ms = Duration::from_ms;
    let laws = [
        (PeriodLaw::Constant(ms(10)), PeriodLaw::Constant(ms(30))),
        (PeriodLaw::Exponential(ms(20)), PeriodLaw::Exponential(ms(5))),
        (PeriodLaw::Pareto { mean: ms(20), shape: 2.5 }, PeriodLaw::Exponential(ms(60))),
        (PeriodLaw::Exponential(Duration::from_us(1)), PeriodLaw::Exponential(ms(2))),
    ];
    for (on, off) in laws {
        let model = SourceModel { arrivals: ArrivalModel::OnOff { rate: mbit(10), on, off }, size: 500 };
        let seconds = 2000;
        let packets = model.packets(Time::ZERO, at(seconds), Rng::new(11)).count() as f64;
        let found = packets * 4000.0 / seconds as f64;
        // Tens of thousands of periods: the standard error is below 1 %, five are 5 %.
        assert!((found / model.mean_bps() - 1.0).abs() < 0.05, "{on:?}: {found} and {}", model.mean_bps());
    }
}

#[test]
fn periods_have_the_tail_of_their_law() {
    let mean = Duration::from_secs(3);
    let share_above = |law: PeriodLaw, seconds: u64| {
        let mut rng = Rng::new(5);
        let above = (0..100_000).filter(|_| law.draw(&mut rng) > Duration::from_secs(seconds)).count();
        above as f64 / 100_000.0
    };
    // P(T > t) is exp(−t/3), and (1/t)^1.5 for a Pareto law with mean 3 and shape 1.5; the
    // standard error is at most 0.0016.
    for t in [2, 4, 9] {
        let x = t as f64;
        assert!((share_above(PeriodLaw::Exponential(mean), t) - (-x / 3.0).exp()).abs() < 0.008, "{t}");
        let pareto = share_above(PeriodLaw::Pareto { mean, shape: 1.5 }, t);
        assert!((pareto - x.powf(-1.5)).abs() < 0.008, "{t}: {pareto}");
    }
    assert_eq!(share_above(PeriodLaw::Constant(mean), 3), 0.0);
}

#[test]
fn a_call_sends_fifty_packets_a_second_while_somebody_talks() {
    let packets: Vec<_> = VOICE.packets(Time::ZERO, at(600), Rng::new(2)).collect();
    assert!(packets.iter().all(|(_, bytes)| *bytes == 172));
    let gaps = packets.windows(2).map(|pair| pair[1].0.since(pair[0].0));
    let even = gaps.filter(|gap| *gap == Duration::from_ms(20)).count();
    assert!(even * 10 > packets.len() * 8, "{even} of {}", packets.len());
    let rate = packets.len() as f64 * 172.0 * 8.0 / 600.0;
    assert!((rate / VOICE.mean_bps() - 1.0).abs() < 0.25, "{rate} and {}", VOICE.mean_bps());
}

/// Receives the sequence numbers, each sent at its number of ms and delayed by `delay_ms`.
fn received(arrivals: &[(u64, u64)]) -> Received {
    let mut received = Received::default();
    for &(sequence, delay_ms) in arrivals {
        let sent = Time::ZERO + Duration::from_ms(sequence);
        received.count(sent + Duration::from_ms(delay_ms), FlowHeader { sequence, sent }, 100);
    }
    received
}

const ENDS: FlowEnds =
    FlowEnds { name: "f", from: "a", to: "b", start: Time::ZERO, end: Time::from_ps(100_000_000_000) };

fn ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_ms(ms)
}

/// All that was asked for was sent, `packets` of 100 bytes.
fn sent(packets: u64) -> Sent {
    let bytes = 100 * packets;
    Sent { asked: packets, asked_bytes: bytes, packets, bytes, ..Sent::default() }
}

#[test]
fn a_receiver_counts_losses_duplicates_and_delays() {
    let received = received(&[(0, 10), (1, 10), (3, 18), (2, 20), (3, 30), (5, 12)]);
    let report = received.report(ENDS, sent(7));
    assert_eq!((report.sent, report.received, report.lost), (7, 5, 2));
    assert_eq!((report.duplicates, report.reordered), (1, 1));
    assert_eq!((report.sent_bps, report.received_bps), (56_000.0, 40_000.0));
    let delay = report.delay.unwrap();
    assert!((delay.mean_ms - 14.0).abs() < 1e-9, "{delay:?}");
    for (found, exact) in
        [(delay.min_ms, 10.0), (delay.p50_ms, 12.0), (delay.p99_ms, 20.0), (delay.max_ms, 20.0)]
    {
        assert!((found / exact - 1.0).abs() < 1e-3, "{delay:?}");
    }
    // Differences of 0, 8, 2 and 8 ms.
    let jitter =
        [0.0, 8.0, 2.0, 8.0].iter().fold(0.0, |jitter, difference| jitter + (difference - jitter) / 16.0);
    assert!((delay.jitter_ms - jitter).abs() < 1e-9, "{delay:?}");
    assert_eq!(Received::default().report(ENDS, Sent::default()).delay, None);
}

#[test]
fn rates_are_over_the_time_in_which_bytes_moved() {
    // The queue of a slow link empties for 400 ms; the flow stops after 100 ms.
    let arrivals: Vec<(u64, u64)> = (0..100).map(|sequence| (sequence, 10 + 4 * sequence)).collect();
    let report = received(&arrivals).report(ENDS, sent(100));
    // A packet of 100 bytes arrives every 5 ms: 160 kbit/s, of the first as of the others.
    assert_eq!((report.sent_s, report.received_s), (0.1, 0.5));
    assert_eq!((report.sent_bps, report.received_bps), (800_000.0, 160_000.0));
    // One packet has no interval of its own.
    assert_eq!(received(&[(0, 10)]).report(ENDS, sent(1)).received_s, 0.1);
    // A packet that left after the stop makes the time longer, not the rate higher.
    let late = Sent { last: Some(ms(400)), ..sent(100) };
    assert_eq!(received(&[]).report(ENDS, late).sent_bps, 200_000.0);
    let nothing = FlowEnds { end: Time::ZERO, ..ENDS };
    assert_eq!(received(&[]).report(nothing, Sent::default()).sent_bps, 0.0);
}

#[test]
fn what_was_asked_stands_beside_what_was_sent() {
    let report = |asked: u64, packets: u64, overrun: u64| {
        let mut received = received(&[(0, 10)]);
        received.set_overrun(overrun);
        received.report(ENDS, Sent { asked, asked_bytes: 100 * asked, ..sent(packets) })
    };
    let short = report(1000, 20, 0);
    assert_eq!((short.asked, short.sent, short.asked_bps, short.sent_bps), (1000, 20, 8e6, 160e3));
    let text = short.to_string();
    assert!(
        text.starts_with("f: 0.008 of 0.160 Mbit/s (asked 8.000), lost 19 of 20 (of 1000 due)"),
        "{text}"
    );
    let why = short.shortfall().expect("most of it was not sent");
    assert!(why.starts_with("traffic f: 20 of 1000 packets that were due were sent"), "{why}");
    // One packet can be due less than a sleep before the stop.
    for (asked, packets, is_short) in [(10, 10, false), (10, 9, false), (1000, 990, false), (1000, 989, true)]
    {
        assert_eq!(report(asked, packets, 0).shortfall().is_some(), is_short, "{packets} of {asked}");
    }
    assert!(report(100, 100, 50).shortfall().unwrap().contains("50 packets were lost in the receiving host"));
}

/// A sender that looks at its packets at these times, and not in between: when each left.
fn leave(pacer: &mut Pacer, looks: impl IntoIterator<Item = Time>) -> Vec<Time> {
    let mut left = Vec::new();
    for now in looks {
        while pacer.take(now).is_some() {
            left.push(now);
        }
    }
    left
}

/// The largest number of packets in the queue of a link of this rate, with the one on the wire.
fn queue_max(left: &[Time], size: u32, rate: Rate) -> usize {
    let (mut free, mut queue, mut longest) = (Time::ZERO, std::collections::VecDeque::new(), 0);
    for &at in left {
        while queue.front().is_some_and(|end| *end <= at) {
            queue.pop_front();
        }
        let (time, _) = rate.transmission(Bytes(u64::from(size)), Fraction::default());
        free = free.max(at) + time;
        queue.push_back(free);
        longest = longest.max(queue.len());
    }
    longest
}

/// Looks at times 10 µs apart, but for a stall.
fn looks(end: Time, stall: (Time, Time)) -> impl Iterator<Item = Time> {
    let steps = (0..).map(|step| Time::ZERO + Duration::from_us(10 * step)).take_while(move |at| *at <= end);
    steps.filter(move |at| *at < stall.0 || *at >= stall.1)
}

#[test]
fn after_a_stall_packets_leave_paced_and_a_short_queue_drops_none() {
    // 5 Mbit/s on a link of 10, and a stall of 300 ms: 188 packets are due at its end.
    for arrivals in [ArrivalModel::Constant(mbit(5)), ArrivalModel::Constant(mbit(50))] {
        let model = SourceModel { arrivals, size: 1000 };
        let packets = model.packets(Time::ZERO, at(2), Rng::new(1));
        let due = packets.clone().count();
        let mut pacer = Pacer::new(packets);
        let left = leave(&mut pacer, looks(at(2), (ms(500), ms(800))));
        assert_eq!((left.len(), pacer.next_at()), (due, None));
        let double = Rate::from_bps(2 * model.mean_bps() as u64).unwrap();
        assert!(queue_max(&left, 1000, double) <= 3, "{}", queue_max(&left, 1000, double));
    }
}

#[test]
fn a_sender_in_time_sends_each_packet_when_it_is_due() {
    let model = SourceModel { arrivals: ArrivalModel::Poisson(mbit(8)), size: 1000 };
    let packets = model.packets(Time::ZERO, at(1), Rng::new(7));
    let mut pacer = Pacer::new(packets.clone());
    let mut times = Vec::new();
    while let Some(next) = pacer.next_at() {
        assert!(!pacer.is_behind(next));
        assert_eq!(pacer.take(next), Some(1000));
        times.push(next);
    }
    assert_eq!(times, packets.map(|(at, _)| at).collect::<Vec<_>>());
}

proptest! {
    /// Whenever the sender looks: nothing leaves before it is due, at the stop or later, and a
    /// sender that runs for long enough has sent all.
    #[test]
    fn nothing_leaves_early_or_after_the_stop_and_all_leaves_in_the_end(
        steps in proptest::collection::vec(0u64..30_000, 1..60), kbit in 100u64..20_000, is_poisson: bool, seed: u64,
    ) {
        let rate = Rate::from_bps(kbit * 1000).unwrap();
        let arrivals = if is_poisson { ArrivalModel::Poisson(rate) } else { ArrivalModel::Constant(rate) };
        let model = SourceModel { arrivals, size: 500 };
        let stop = ms(400);
        let packets = model.packets(Time::ZERO, stop, Rng::new(seed));
        let due: Vec<Time> = packets.clone().map(|(at, _)| at).collect();
        let mut now = Time::ZERO;
        let rare: Vec<Time> = steps.iter().map(|us| { now += Duration::from_us(*us); now }).chain([stop]).collect();
        let left = leave(&mut Pacer::new(packets.clone()), rare.clone());
        prop_assert!(left.iter().zip(&due).all(|(left, due)| due <= left && *left < stop));
        prop_assert!(left.len() <= due.len());
        // It catches up in twice the time that it was behind, and is in time from then on.
        let behind = rare.into_iter().filter(|at| *at < ms(100));
        let often = (0..30_000).map(|step| ms(100) + Duration::from_us(10 * step)).chain([stop]);
        let left = leave(&mut Pacer::new(packets), behind.chain(often));
        prop_assert!(left.iter().zip(&due).all(|(left, due)| due <= left && *left < stop));
        let last = stop.saturating_sub(Duration::from_us(10));
        prop_assert!(left.len() >= due.iter().filter(|due| **due <= last).count(), "{} of {}", left.len(), due.len());
        let is_late = |(left, due): (&Time, &Time)| left.since(*due) > Duration::from_us(10);
        prop_assert_eq!(left.iter().zip(&due).filter(|(_, due)| **due >= ms(310)).find(|&pair| is_late(pair)), None);
    }
}

proptest! {
    #[test]
    fn a_header_survives_the_wire(sequence: u64, ps: u64, rest in proptest::collection::vec(0u8..255, 0..40)) {
        let header = FlowHeader { sequence, sent: Time::from_ps(ps) };
        let mut payload = header.to_bytes().to_vec();
        payload.extend(&rest);
        prop_assert_eq!(FlowHeader::parse(&payload), Some(header));
        prop_assert_eq!(FlowHeader::parse(&payload[..HEADER_LEN - 1]), None);
    }

    /// The window against a set of all numbers.
    #[test]
    fn each_packet_is_counted_once(steps in proptest::collection::vec((0u8..4, 0u64..70_000), 1..200)) {
        let (mut counted, mut highest) = (Received::default(), 0);
        let (mut known, mut duplicates) = (std::collections::BTreeSet::new(), 0);
        for (kind, step) in steps {
            let sequence: u64 = match kind {
                0 => highest + 1,
                1 => highest + step,
                2 => highest.saturating_sub(step % 100),
                // Within the window, whose words are whole.
                _ => highest.saturating_sub(step % 65_000),
            };
            counted.count(Time::ZERO, FlowHeader { sequence, sent: Time::ZERO }, 1);
            duplicates += u64::from(!known.insert(sequence));
            highest = highest.max(sequence);
        }
        let report = counted.report(ENDS, Sent::default());
        prop_assert_eq!(report.duplicates, duplicates);
        prop_assert_eq!(report.received, known.len() as u64);
    }
}
