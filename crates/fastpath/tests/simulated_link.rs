//! A link of a simulated machine and a link of a replayed network: the same values, frames and seed
//! give the same departures, to the picosecond. The replay reads a capture and goes through the
//! whole network.

use fastpath::{Replay, sim};
use fastpath_units::{Duration, Time};
use proptest::prelude::*;
use sim::workload::{Arrivals, Workload};
use sim::{Machine, Program, Visit};
use std::fs::{self, File};
use std::path::Path;

/// When each frame departs, by its number; `None` for a frame that is dropped.
type Departures = Vec<Option<Time>>;

fn simulated(values: &str, frames: &[(Time, u32)], seed: u64) -> Departures {
    let machine = format!(
        "name = 'm'\nsource = 's'\nports = {{ count = 1, rate = '10Gbit' }}\n[[link]]\nname = 'link'\n{values}"
    );
    let program = "name = 'p'\nsource = 's'\n[[stage]]\nname = 'cross'\non = 'link'";
    let (machine, program) =
        (Machine::parse("m.toml", &machine).unwrap(), Program::parse("p.toml", program).unwrap());
    let arrivals = Arrivals::List(frames.to_vec());
    let workload =
        Workload { arrivals, duration: Duration::from_secs(1000), flows: 1, ..Workload::default() };
    let mut departures = vec![None; frames.len()];
    let mut observer = |visit: Visit| departures[visit.packet as usize] = Some(visit.end);
    sim::observe(&machine, &program, &workload, seed, &mut observer).unwrap();
    departures
}

fn replayed(values: &str, frames: &[(Time, u32)], seed: u64, directory: &Path) -> Departures {
    let [spec, capture, times] = ["spec.toml", "in.pcap", "times.csv"].map(|name| directory.join(name));
    fs::write(&spec, format!("host = {{ a = {{}}, b = {{}} }}\n[[link]]\nbetween = ['a', 'b']\n{values}"))
        .unwrap();
    let mut writer = fastpath_wire::pcap::Writer::new(File::create(&capture).unwrap(), 1).unwrap();
    for &(at, size) in frames {
        // From one address to another, of an EtherType for experiments; without the FCS.
        let mut frame = vec![0; size as usize - 4];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
        writer.write_packet(at.as_ps() / 1000, size - 4, &frame).unwrap();
    }
    writer.finish().unwrap();
    let network = fastpath::load(&spec).unwrap();
    let replay = Replay::new(&network).input(&format!("a={}", capture.display())).unwrap();
    replay.seed(seed).times(&times).run().unwrap();
    let text = fs::read_to_string(times).unwrap();
    let row = |line: &str| line.rsplit(',').next().unwrap().parse().ok().map(Time::from_ps);
    text.lines().skip(1).map(row).collect()
}

fn one_of(values: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::sample::select(values)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn a_link_of_a_machine_departs_as_in_a_replay(
        rate in one_of(&["1Mbit", "7Mbit", "100Mbit"]),
        delay in one_of(&["0s", "3ms", "20ms"]),
        queue in one_of(&[
            "'10p'", "{ kind = 'red', limit = '20p' }", "{ kind = 'codel', limit = '30p' }",
            "{ kind = 'fq-codel' }", "{ kind = 'pie', limit = '30p' }", "{ kind = 'dualpi2' }",
            "{ kind = 'prio', bands = [{ dscp = 'EF', limit = '9p' }, { limit = '20p' }] }",
            "{ kind = 'drr', classes = [{ dscp = 'EF', limit = '9p' }, { limit = '20p' }] }",
            "{ kind = 'token-bucket', rate = '500kbit', burst = '3KiB', limit = '20p' }",
        ]),
        rest in one_of(&[
            "", "loss = '5%'", "jitter = { law = 'normal', sd = '2ms' }", "reorder = '25%'",
            "corrupt = '10%'", "overhead = 'ethernet'", "slots = { min = '1ms', max = '2ms', packets = 4 }",
        ]),
        gaps in proptest::collection::vec((prop_oneof![Just(0), 1..3_000_000_u64], 64..=1518_u32), 1..200),
        seed: u64,
    ) {
        let values = format!("rate = '{rate}'\ndelay = '{delay}'\nqueue = {queue}\n{rest}\n");
        let mut now = Time::ZERO;
        // Captures have nanoseconds, and the first frame enters at zero.
        let mut frames: Vec<(Time, u32)> = Vec::new();
        for (ns, size) in gaps {
            now += if frames.is_empty() { Duration::ZERO } else { Duration::from_ns(ns) };
            frames.push((now, size));
        }
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("simulated-link");
        fs::create_dir_all(&directory).unwrap();
        let replayed = replayed(&values, &frames, seed, &directory);
        prop_assert_eq!(simulated(&values, &frames, seed), replayed, "{}", values);
    }
}
