//! Transfers between two hosts over a way with a delay and losses.

use fastpath_traffic::{
    AmountLaw, CongestionControl, FrameWay, TcpTransfer, TransferEnds, TransferModel, TransferProtocol,
    TransferReport, TransferSide, Workload,
};
use fastpath_units::{Bytes, Duration, Rng, Time};
use fastpath_wire::MacAddr;
use fastpath_wire::build::Ip;
use std::collections::BTreeMap;
use std::net::IpAddr;

const DELAY: Duration = Duration::from_ms(10);

fn way(side: TransferSide) -> FrameWay {
    let ends: [(MacAddr, IpAddr); 2] = [
        (MacAddr([2, 0, 0, 0, 0, 1]), [10, 0, 0, 1].into()),
        (MacAddr([2, 0, 0, 0, 0, 2]), [10, 0, 0, 2].into()),
    ];
    match side {
        TransferSide::From => FrameWay { ip: Ip::between(ends[0], ends[1]), door: 0 },
        TransferSide::To => FrameWay { ip: Ip::between(ends[1], ends[0]), door: 1 },
    }
}

fn model(workload: Workload, flows: u32) -> TransferModel {
    let (protocol, congestion) = (TransferProtocol::Tcp, CongestionControl::Cubic);
    TransferModel { protocol, flows, workload, congestion, ecn: false }
}

/// Runs a transfer to its end, or to `stop`.
fn run(model: &TransferModel, stop: Time, loss: f64, seed: u64) -> TransferReport {
    let mut rng = Rng::new(seed);
    let mut transfer = TcpTransfer::new(
        model,
        (way(TransferSide::From), 5001, 1500),
        (Time::ZERO, stop),
        &mut Rng::new(seed),
    );
    let mut flying: BTreeMap<(Time, u64), (TransferSide, Vec<u8>)> = BTreeMap::new();
    let (mut now, mut count) = (Time::ZERO, 0);
    loop {
        while let Some(entry) = flying.first_entry().filter(|entry| entry.key().0 <= now) {
            let (side, frame) = entry.remove();
            assert!(transfer.deliver(now, side, &frame, &mut |_, _| Some(way(TransferSide::To))));
        }
        transfer.advance(now);
        while let Some((door, len)) = transfer.transmit(now) {
            count += 1;
            if rng.unit_f64() >= loss {
                let side = if door == 0 { TransferSide::To } else { TransferSide::From };
                flying.insert((now + DELAY, count), (side, transfer.written(len).to_vec()));
            }
        }
        let next = flying.keys().next().map(|(at, _)| *at).into_iter().chain(transfer.next_at()).min();
        let Some(next) = next else { break };
        now = next.max(now);
    }
    transfer.report(model, TransferEnds { name: "t", from: "a", to: "b" }, now)
}

#[test]
fn every_flow_gets_what_was_written_whatever_is_lost() {
    for seed in 0..20 {
        let model = model(Workload::Bulk(Some(Bytes(50_000))), 1 + (seed % 7) as u32);
        let report = run(&model, Time::MAX, 0.05, seed);
        assert!(report.complete, "seed {seed}: {report}");
        assert_eq!(report.flow_bytes, vec![50_000; model.flows as usize], "seed {seed}");
    }
}

#[test]
fn requests_are_answered_by_the_connection_that_asked() {
    for seed in 0..20 {
        let workload = Workload::Requests {
            request: 200,
            answer: AmountLaw::Pareto { mean: 20_000, shape: 1.5 },
            think: AmountLaw::Exponential(Duration::from_ms(50).as_ps()),
            count: Some(20),
        };
        let report = run(&model(workload, 5), Time::MAX, 0.02, seed);
        assert!(report.complete, "seed {seed}: {report}");
        assert_eq!((report.requests, report.answers), (100, 100), "seed {seed}");
        assert!(report.answer.unwrap().min_ms >= 20.0);
    }
}

#[test]
fn nothing_is_sent_from_the_stop_on() {
    let stop = Time::ZERO + Duration::from_secs(1);
    let report = run(&model(Workload::Bulk(None), 3), stop, 0.01, 1);
    assert!(!report.complete && report.received_bytes > 1_000_000, "{report}");
    assert!(report.received_s <= 1.010_001, "{report}");
    let sum: u64 = report.flow_bytes.iter().sum();
    assert_eq!(sum, report.received_bytes);
    assert!((report.goodput_bps - sum as f64 * 8.0 / report.received_s).abs() < 1.0);
}

#[test]
fn a_seed_decides_everything() {
    let workload = || Workload::Requests {
        request: 1,
        answer: AmountLaw::Values([1, 5_000, 100_000].into()),
        think: AmountLaw::Constant(0),
        count: Some(30),
    };
    let reports = [3, 3, 4].map(|seed| run(&model(workload(), 2), Time::MAX, 0.05, seed));
    assert_eq!(reports[0], reports[1]);
    assert_ne!(reports[0], reports[2]);
}
