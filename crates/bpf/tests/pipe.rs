//! The program in the kernel against `fastpath_link::Pipe`: the same draws, fates, bytes and
//! counts, for random laws and frames.
#![cfg(target_os = "linux")]

use fastpath_bpf::helpers::{DROP, REDIRECTED};
use fastpath_bpf::{KernelPath, PathError, PathFate, PathPort, PathSpec, Towards};
use fastpath_link::instant::InstantSpec;
use fastpath_link::{
    Chance, CorruptSpec, Duplication, Ecn, Fate, GilbertElliott, LinkState, LossSpec, Packet, Pipe, PipeSpec,
    Verdict,
};
use fastpath_sys::bpf::TestPacket;
use fastpath_units::{Probability, Rng, Time};
use fastpath_wire::{Headers, checksum, ecn};
use std::collections::BTreeMap;

/// The loopback interface, from which test packets seem to come.
const LOOPBACK: u32 = 1;
/// The station that frames are for.
const STATION: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn probability(rng: &mut Rng) -> Probability {
    let p = match rng.below(6) {
        0 => 0.0,
        1 => 1.0,
        2 => 0.01,
        _ => rng.unit_f64(),
    };
    Probability::new(p).unwrap()
}

fn chance(rng: &mut Rng) -> Chance {
    let correlation = if rng.below(2) == 0 { Probability::NEVER } else { probability(rng) };
    Chance { probability: probability(rng), correlation }
}

fn loss(rng: &mut Rng) -> LossSpec {
    match rng.below(4) {
        0 => LossSpec::Never,
        1 => LossSpec::Uniform(probability(rng)),
        2 => LossSpec::Correlated(chance(rng)),
        _ => LossSpec::GilbertElliott(GilbertElliott {
            to_bad: probability(rng),
            to_good: probability(rng),
            loss_in_bad: probability(rng),
            loss_in_good: probability(rng),
        }),
    }
}

fn pipe_spec(rng: &mut Rng) -> PipeSpec {
    PipeSpec {
        loss: loss(rng),
        egress_loss: if rng.below(3) == 0 { loss(rng) } else { LossSpec::Never },
        duplicate: Duplication::from(if rng.below(2) == 0 { chance(rng) } else { Chance::default() }),
        corrupt: (rng.below(2) == 0).then(|| CorruptSpec::Packets(chance(rng))),
        loss_ecn: if rng.below(2) == 0 { Ecn::Mark } else { Ecn::Off },
        state: if rng.below(12) == 0 { LinkState::Down } else { LinkState::Up },
        ..PipeSpec::default()
    }
}

/// A frame: IPv4, IPv6 or neither, with tags or without, right or with a wrong byte.
fn frame(rng: &mut Rng) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    for _ in 0..rng.below(4).saturating_sub(1) {
        let kind = [0x8100u16, 0x88a8, 0x9100][rng.below(3) as usize];
        frame.extend(kind.to_be_bytes());
        frame.extend([0, rng.below(250) as u8]);
    }
    let payload = 20 + rng.below(1000) as usize;
    let class = rng.below(256) as u8;
    match rng.below(5) {
        0 | 1 => {
            frame.extend([0x08, 0x00, 0x45, class]);
            frame.extend((20 + payload as u16).to_be_bytes());
            frame.extend([rng.below(256) as u8, rng.below(256) as u8, 0, 0, 64, 17, 0, 0]);
            frame.extend([10, 0, 0, 1, 10, 0, 0, rng.below(256) as u8]);
            let from = frame.len() - 20;
            let sum = checksum::of(&frame[from..]);
            frame[from + 10..from + 12].copy_from_slice(&sum.to_be_bytes());
        }
        2 | 3 => {
            frame.extend([0x86, 0xdd, 0x60 | class >> 4, class << 4, 0, 0]);
            frame.extend((payload as u16).to_be_bytes());
            frame.extend([17, 64]);
            frame.extend([0xfd; 32]);
        }
        _ => frame.extend([0x08, 0x06]),
    }
    if rng.below(4) == 0 {
        let at = 12 + rng.below(frame.len() as u64 - 12) as usize;
        frame[at] ^= 1 << rng.below(8);
    }
    frame.extend((0..payload).map(|i| i as u8));
    frame
}

fn wire(spec: &PipeSpec, rng: &Rng, has_log: bool) -> Option<KernelPath> {
    let law = InstantSpec::of(spec).unwrap();
    let port = PathPort {
        interface: LOOPBACK,
        towards: Towards::Wire(7),
        pipe_in: Some(0),
        pipe_out: 1,
        is_far: true,
        address: Some(STATION),
        is_blocked: false,
        tap: None,
    };
    let back =
        PathPort { interface: 7, towards: Towards::Wire(LOOPBACK), pipe_in: Some(1), pipe_out: 0, ..port };
    let pipes = BTreeMap::from([(0, (law.clone(), rng.clone())), (1, (law, rng.clone()))]);
    let path = PathSpec { ports: vec![port, back], pipes, switches: 0, has_log, has_laws: true };
    match KernelPath::load(&path) {
        Ok(path) => Some(path),
        Err(PathError::System { source, .. }) if source.raw_os_error() == Some(1) => {
            println!("SKIPPED: bpf(2) is not permitted");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_program_does_what_a_pipe_does() {
    let cases = std::env::var("FASTPATH_BPF_CASES").map_or(60, |text| text.parse().unwrap());
    let mut rng = Rng::new(36);
    let (mut lost, mut marked, mut flipped, mut copied) = (0u64, 0, 0, 0);
    for case in 0..cases {
        let spec = pipe_spec(&mut rng);
        let seed = Rng::stream(5, case);
        let mut pipe = Pipe::new(&spec, seed.clone());
        let Some(path) = wire(&spec, &seed, false) else { return };
        let mut refused = 0;
        for number in 0..100 {
            let mut bytes = frame(&mut rng);
            let found = path.test_run(TestPacket { bytes: &bytes, interface: LOOPBACK }, 1).unwrap();
            let headers = Headers::parse(&bytes);
            let packet =
                Packet { traffic_class: headers.traffic_class(), ..Packet::new(bytes.len() as u32, ()) };
            let what = format!("case {case}, frame {number}: {spec:?}");
            let fate = match pipe.push(Time::ZERO, packet) {
                Verdict::Dropped(..) => None,
                Verdict::Queued => match pipe.pop(Time::ZERO).expect("it holds nothing").fate {
                    Fate::Dropped(_) => None,
                    Fate::Delivered { marked } => Some((marked, None)),
                    Fate::Altered(alteration) => Some((alteration.marked, alteration.corruption)),
                },
            };
            let Some((is_marked, corruption)) = fate else {
                assert_eq!(found.verdict, DROP as u32, "{what}");
                continue;
            };
            if is_marked {
                ecn::set_ce(&mut bytes, &headers);
            }
            if let Some(corruption) = corruption {
                corruption.apply(&mut bytes);
            }
            assert_eq!(found.bytes, bytes, "{what}");
            // A frame that is for another station now goes as a copy, to no interface.
            let is_other = bytes[..6] != STATION;
            assert_eq!(found.verdict, if is_other { DROP as u32 } else { REDIRECTED }, "{what}");
            refused += u64::from(is_other);
        }
        let counts = path.counts(0);
        assert_eq!(counts.counters, pipe.counters(), "case {case}: {spec:?}");
        // No interface is there to which a copy could go.
        assert_eq!(counts.duplicated.packets, counts.counters.duplicated);
        assert_eq!(counts.port_refused.packets, counts.counters.duplicated + refused);
        lost += counts.counters.dropped().packets;
        marked += counts.counters.marked;
        flipped += counts.counters.corrupted;
        copied += counts.counters.duplicated;
    }
    assert!(
        [lost, marked, flipped, copied].iter().all(|count| *count > cases),
        "{lost} {marked} {flipped} {copied}"
    );
}

#[test]
fn a_law_that_changes_keeps_its_generator_and_what_stays() {
    let mut rng = Rng::new(37);
    for case in 0..30 {
        let mut spec = pipe_spec(&mut rng);
        let seed = Rng::stream(6, case);
        let mut pipe = Pipe::new(&spec, seed.clone());
        let Some(path) = wire(&spec, &seed, false) else { return };
        for number in 0..60 {
            if number % 20 == 19 {
                let other = pipe_spec(&mut rng);
                match rng.below(3) {
                    0 => spec.loss = other.loss,
                    1 => spec.duplicate = other.duplicate,
                    _ => spec = other,
                }
                pipe.change(Time::ZERO, &fastpath_link::Change::to(&spec));
                path.change(0, &InstantSpec::of(&spec).unwrap()).unwrap();
            }
            let bytes = frame(&mut rng);
            path.test_run(TestPacket { bytes: &bytes, interface: LOOPBACK }, 1).unwrap();
            let traffic_class = Headers::parse(&bytes).traffic_class();
            let packet = Packet { traffic_class, ..Packet::new(bytes.len() as u32, ()) };
            if matches!(pipe.push(Time::ZERO, packet), Verdict::Queued) {
                let _ = pipe.pop(Time::ZERO);
            }
        }
        assert_eq!(path.counts(0).counters, pipe.counters(), "case {case}: {spec:?}");
    }
}

#[test]
fn each_frame_has_a_record() {
    let p = |p: f64| Probability::new(p).unwrap();
    let spec = PipeSpec { loss: LossSpec::Uniform(p(0.3)), ..PipeSpec::default() };
    let Some(mut path) = wire(&spec, &Rng::new(1), true) else { return };
    let mut log = path.take_log().unwrap().expect("it has one");
    let mut rng = Rng::new(3);
    let frames: Vec<Vec<u8>> = (0..200).map(|_| frame(&mut rng)).collect();
    for bytes in &frames {
        path.test_run(TestPacket { bytes, interface: LOOPBACK }, 1).unwrap();
    }
    let (mut at, mut lost) = (0, 0);
    let count = log.read(|record| {
        let frame = &frames[record.entered as usize - 1];
        assert_eq!(record.len as usize, frame.len());
        assert_eq!(record.bytes, &frame[..frame.len().min(256)]);
        assert!(record.at_ns >= at);
        at = record.at_ns;
        lost += u64::from(matches!(record.fate, PathFate::Lost { at_exit: false }));
    });
    assert_eq!((count, log.missing()), (200, 0));
    assert_eq!(lost, path.counts(0).counters.dropped().packets);
    // A full ring: what it cannot take is counted.
    let long = vec![0; 1000];
    for _ in 0..80 {
        path.test_run(TestPacket { bytes: &long, interface: LOOPBACK }, 1000).unwrap();
    }
    let mut taken = 0;
    log.read(|_| taken += 1);
    assert_eq!(taken + log.missing(), 80_000);
    assert!(log.missing() > 0);
}
