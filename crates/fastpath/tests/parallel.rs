//! A replay has the same results with every number of workers and however the network is cut:
//! captures, times, per-packet log, and all numbers. Random networks, captures and traffic.
//!
//! `FASTPATH_PARALLEL_CASES=2000` tries more networks.

#[path = "../../net/tests/cut/random.rs"]
mod random;

use fastpath::replay::WorkerCount;
use fastpath::spec::{Topology, parse};
use fastpath::units::{Duration, Rng, Time};
use fastpath::wire::pcap::{LINKTYPE_ETHERNET, Writer};
use fastpath::{Replay, ReplaySummary};
use std::fs::{self, File};
use std::io::BufWriter;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

/// A directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("fastpath-parallel-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn cases() -> u64 {
    std::env::var("FASTPATH_PARALLEL_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(12)
}

fn workers(count: usize) -> WorkerCount {
    WorkerCount::AtMost(NonZeroUsize::new(count).expect("above 0"))
}

/// Writes the frames of each host to a capture, some of them cut or out of order. Returns the
/// arguments of the inputs.
fn write_captures(topology: &Topology, seed: u64, directory: &Path) -> Vec<String> {
    let mut rng = Rng::stream(seed, 5);
    let frames = random::frames(topology, seed);
    let mut edge = 0;
    let mut inputs = Vec::new();
    for (_, host) in topology.hosts() {
        let file = directory.join(format!("in-{}.pcap", host.name));
        let mut writer = Writer::new(BufWriter::new(File::create(&file).expect("a file")), LINKTYPE_ETHERNET)
            .expect("a capture");
        let own = frames.iter().filter(|frame| frame.1.0 == edge);
        for (at, _, bytes) in own {
            let early = if rng.below(15) == 0 { rng.below(700_000) } else { 0 };
            let ns = EPOCH_NS + at.as_ns().saturating_sub(early);
            let kept = if rng.below(10) == 0 { bytes.len().min(60) } else { bytes.len() };
            writer.write_packet(ns, bytes.len() as u32, &bytes[..kept]).expect("written");
        }
        writer.finish().expect("written");
        edge += host.interfaces.len() as u32;
        if host.interfaces.len() == 1 && frames.iter().any(|frame| frame.1.0 + 1 == edge) {
            inputs.push(format!("{}={}", host.name, file.display()));
        }
    }
    inputs
}

/// Runs a replay that writes everything to a directory. Returns all numbers, and the files.
fn outcome(replay: Replay, topology: &Topology, directory: &Path, follows: bool) -> (String, Vec<Vec<u8>>) {
    let mut replay = replay;
    let mut files = Vec::new();
    for (_, host) in topology.hosts() {
        let file = directory.join(format!("out-{}.pcap", host.name));
        replay = replay.output(&format!("{}={}", host.name, file.display())).expect("a host");
        files.push(file);
    }
    if follows {
        files.extend([directory.join("times.csv"), directory.join("log.pcapng")]);
        replay = replay.times(directory.join("times.csv")).packet_log(directory.join("log.pcapng"));
    }
    let summary = replay.run().unwrap_or_else(|error| panic!("{error}"));
    (numbers(&summary), files.iter().map(|file| fs::read(file).expect("it was written")).collect())
}

fn numbers(summary: &ReplaySummary) -> String {
    let ReplaySummary {
        accounting, jitter, pairs, traffic, links, out_of_order, above_mtu, left_out, ..
    } = summary;
    format!("{:#?}", (accounting, jitter, pairs, traffic, links, out_of_order, above_mtu, left_out))
}

#[test]
fn results_do_not_depend_on_the_workers() {
    let scratch = Scratch::new("random");
    let (mut runs, mut delivered, mut alone) = (0, 0, 0);
    for seed in 0..cases() {
        let text = random::network(seed);
        let Ok((topology, _)) = parse(&text) else { continue };
        let inputs = write_captures(&topology, seed, &scratch.0);
        // Some runs have captures, some traffic, some both; some follow every frame.
        let (captured, follows) = (seed % 4 > 0, seed % 3 > 0);
        let base = || {
            let base = Replay::through(topology.clone()).seed(seed).until(Duration::from_ms(60));
            let inputs = inputs.iter().filter(|_| captured);
            inputs.fold(base, |replay, input| replay.input(input).expect("a host"))
        };
        if inputs.is_empty() || (!captured && topology.traffic.is_empty()) {
            continue;
        }
        let expected = outcome(base(), &topology, &scratch.0, follows);
        delivered += expected.1.iter().map(Vec::len).sum::<usize>();
        let mut compare = |replay: Replay, what: &str| {
            let got = outcome(replay, &topology, &scratch.0, follows);
            assert_eq!(got.0, expected.0, "seed {seed}, {what}\n{text}");
            for (file, (got, expected)) in got.1.iter().zip(&expected.1).enumerate() {
                assert!(got == expected, "seed {seed}, {what}, file {file}\n{text}");
            }
            runs += 1;
        };
        // More workers than cores take their time; few networks must do.
        for count in if seed % 4 == 1 { vec![2, 3, 8] } else { vec![2, 3] } {
            compare(base().workers(workers(count)), &format!("{count} workers"));
            let cut = base().workers(workers(count)).partition_seed(seed + count as u64);
            compare(cut, &format!("{count} workers, cut at random"));
        }
        let summary = base().workers(workers(3)).partition_seed(seed).run().expect("it runs");
        alone += usize::from(summary.workers.is_none());
    }
    assert!(runs > 2 * cases() && delivered > 1000 * cases() as usize, "{runs} runs, {delivered} bytes");
    assert!(alone * 5 < runs as usize, "{alone} networks were not cut");
}

/// Frames that meet at the same instants everywhere, a repeating trace, and a frame that waits for
/// ever.
#[test]
fn a_trace_that_repeats_for_ever_ends_with_the_frames() {
    let scratch = Scratch::new("repeat");
    for (name, rows) in
        [("moves", "0,8Mbit,1ms\n3ms,1Mbit,2ms\n5ms,0,1ms\n"), ("stops", "0,1Mbit,1ms\n3ms,0,1ms\n")]
    {
        fs::write(scratch.0.join("link.csv"), format!("time,rate,delay\n{rows}")).expect("written");
        let end = if name == "moves" { "repeat" } else { "hold" };
        let text = format!(
            "[host.a]\n[router.r]\n[router.q]\n[host.b]\n[[link]]\nbetween = ['a', 'r']\ndelay = '1ms'\n\
             [[link]]\nbetween = ['r', 'q']\ntrace = {{ file = 'link.csv', end = '{end}' }}\n\
             [[link]]\nbetween = ['q', 'b']\ndelay = '2ms'\njitter = {{ law = 'uniform', half_width = '1ms' }}\n\
             trace = {{ poisson = '9Mbit', length = '7ms', seed = 1, end = 'repeat' }}\n\
             [[traffic]]\nfrom = 'a'\nto = 'b'\nsize = 500\nrate = '2Mbit'\nstop = '20ms'\n"
        );
        fs::write(scratch.0.join("net.toml"), text).expect("written");
        let loaded = fastpath::load(scratch.0.join("net.toml")).unwrap_or_else(|error| panic!("{error}"));
        let topology = &loaded.spec.topology;
        for follows in [false, true] {
            let expected = outcome(Replay::new(&loaded), topology, &scratch.0, follows);
            for count in [2, 4] {
                let replay = Replay::new(&loaded).workers(workers(count));
                assert!(
                    outcome(replay, topology, &scratch.0, follows) == expected,
                    "{name}, {count} workers"
                );
            }
        }
    }
}

#[test]
fn frames_in_memory_and_their_columns_are_the_same() {
    use fastpath::replay::{FrameLengths, FramesAt};
    let (topology, _) = parse(&random::network(3)).expect("a valid spec");
    let frames = random::frames(&topology, 3);
    let edges: Vec<String> = topology
        .hosts()
        .flat_map(|(_, host)| host.interfaces.iter().map(|at| format!("{}:{}", host.name, at.name)))
        .collect();
    let own = |edge: usize| frames.iter().filter(move |frame| frame.1.0 as usize == edge);
    let columns: Vec<(Vec<u64>, Vec<u8>, Vec<u32>)> = (0..edges.len())
        .map(|edge| {
            let times = own(edge).map(|(at, ..): &(Time, _, _)| at.as_ps()).collect();
            let bytes = own(edge).flat_map(|frame| frame.2.clone()).collect();
            (times, bytes, own(edge).map(|frame| frame.2.len() as u32).collect())
        })
        .collect();
    let arrays: Vec<FramesAt> = columns
        .iter()
        .zip(&edges)
        .map(|((times_ps, bytes, lengths), at)| FramesAt {
            at: at.parse().expect("a host"),
            times_ps,
            bytes,
            lengths: FrameLengths::Each(lengths),
        })
        .collect();
    let run = |workers| {
        let replay = Replay::through(topology.clone()).workers(workers).until(Duration::from_ms(60));
        let (summary, columns) = replay
            .run_columns(&arrays, &mut |_| std::ops::ControlFlow::Continue(()))
            .unwrap_or_else(|error| panic!("{error}"));
        (numbers(&summary), columns)
    };
    let expected = run(WorkerCount::ONE);
    for count in [2, 3, 8] {
        assert!(run(workers(count)) == expected, "{count} workers");
    }
}

#[test]
fn a_run_can_be_interrupted_and_errors_end_all_workers() {
    let text = "[host.a]\n[router.r]\n[host.b]\n[[link]]\nbetween = ['a', 'r']\ndelay = '1us'\n\
        [[link]]\nbetween = ['r', 'b']\ndelay = '1us'\n\
        [[traffic]]\nfrom = 'a'\nto = 'b'\nsize = 500\nrate = '2Mbit'\nstop = '10000s'\n";
    let replay = || Replay::through(parse(text).expect("a valid spec").0).workers(workers(3));
    let mut calls = 0;
    let ended = replay().run_columns(&[], &mut |_| {
        calls += 1;
        if calls < 3 { std::ops::ControlFlow::Continue(()) } else { std::ops::ControlFlow::Break(()) }
    });
    assert!(matches!(ended, Err(fastpath::Error::Interrupted)));
    let full = replay().until(Duration::from_secs(2)).output("b=/dev/full").expect("a host").run();
    assert!(matches!(full, Err(fastpath::Error::File { .. })), "{full:?}");
}
