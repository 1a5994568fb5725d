//! Tests of records and answers, with costs known exactly.

use super::*;
use fastpath_model::capacity::{LabCosts, LatenessCosts, MemoryCosts, StartCosts};
use fastpath_model::model::Model;
use fastpath_model::scaling::ScalingCosts;
use fastpath_units::Rng;

const NET: &str = "[host.a]\n[host.b]\n[router.r]\n\
    [[link]]\nbetween = ['a', 'r']\nrate = '10Gbit'\ndelay = '1ms'\n\
    [[link]]\nbetween = ['r', 'b']\nrate = '10Gbit'\ndelay = '1ms'\n";

/// A packet takes 1000 ns in memory and 1000 more between TAP ports.
fn record() -> CapacityRecord {
    let around = |value: f64| Estimate::around(value, 0.1 * value);
    let costs = EngineCosts {
        packet: Model::from_constants("const".parse().unwrap(), &[1000.0], 1e-9).unwrap(),
        queues: Vec::new(),
        scaling: ScalingCosts::UNMEASURED,
        lateness: LatenessCosts {
            idle_p50_us: around(10.0),
            idle_p99_us: around(40.0),
            waiting_p50_us: around(5.0),
            waiting_p99_us: around(30.0),
        },
        memory: MemoryCosts {
            program_bytes: around(1e7),
            engine_bytes: Estimate::exact(0.0),
            link_bytes: around(2000.0),
            port_bytes: around(20_000.0),
            per_held_byte: around(2.0),
        },
        start: StartCosts {
            engine_s: around(0.01),
            link_s: around(1e-5),
            pair_s: Estimate::exact(0.0),
            lab_s: Some(around(0.01)),
            host_s: Some(around(0.02)),
        },
        lab: Some(LabCosts {
            packet: Model::from_constants("const,engine_ns".parse().unwrap(), &[1000.0, 1.0], 1e-9).unwrap(),
            lateness: LatenessCosts {
                idle_p50_us: around(10.0),
                idle_p99_us: around(40.0),
                waiting_p50_us: around(5.0),
                waiting_p99_us: around(30.0),
            },
            tcp_bit: Model::from_constants("const".parse().unwrap(), &[0.5], 1e-9).unwrap(),
            tcp_fill: around(0.9),
        }),
    };
    let provenance = Watch::start().provenance(&Tool::new("1.2.3", Some("abc")), 0, 1);
    CapacityRecord { costs, missing: Vec::new(), provenance, path: None }
}

fn answer(traffic: &[&str]) -> CapacityAnswer {
    let spec = spec(traffic).unwrap();
    let options =
        CapacityOptions { workers: EngineWorkers::AtMost(NonZeroUsize::MIN), ..CapacityOptions::default() };
    CapacityAnswer::of(&record(), &spec.topology, &options).unwrap()
}

fn spec(traffic: &[&str]) -> Result<NetworkSpec> {
    let (spec, _) = fastpath_spec::read(NET, fastpath_spec::NO_FILES).unwrap();
    let texts: Vec<String> = traffic.iter().map(|text| (*text).to_owned()).collect();
    with_traffic(&spec, &texts, Path::new(""))
}

#[test]
fn the_answer_says_what_is_carried_and_with_what_more_would_be() {
    // 125,000 packets/s of 500,000.
    let carried = answer(&["from=a,to=b,rate=1Gbit,size=1000"]);
    assert_eq!(carried.verdict, CapacityVerdict::Carries, "{}", carried.sentence());
    assert!(
        carried.sentence().starts_with("this machine carries it: 125 k of 500 k packets/s"),
        "{}",
        carried.sentence()
    );
    let over = answer(&["from=a,to=b,rate=4Gbit,size=1000", "from=b,to=a,rate=4Gbit,size=1000"]);
    assert_eq!(over.verdict, CapacityVerdict::Not);
    assert!(
        over.sentence().contains("because of worker 0 with the hosts: 200 % of what they carry"),
        "{}",
        over.sentence()
    );
    let open = answer(&[]);
    assert_eq!(open.verdict, CapacityVerdict::UpTo);
    assert!(open.sentence().contains("carries up to 500 k packets/s"), "{}", open.sentence());
}

#[test]
fn the_json_has_the_values_of_the_contract() {
    let json = answer(&["from=a,to=b,rate=1Gbit,size=1000"]).to_json();
    assert_eq!(json["verdict"], "carries");
    for key in ["packets_per_second", "tcp_bits_per_second", "lateness_p99_us", "memory_bytes", "start_s"] {
        for end in ["value", "low", "high"] {
            assert!(json["predicted"][key][end].is_number(), "{key}.{end}: {json}");
        }
    }
    assert!(json["limits"].as_array().is_some_and(|limits| !limits.is_empty()));
    // An overloaded network is late without bound.
    let json = answer(&["from=a,to=b,rate=8Gbit,size=1000"]).to_json();
    assert!(json["predicted"]["lateness_p99_us"]["value"].is_null(), "{json}");
}

#[test]
fn traffic_on_the_command_line_is_that_of_a_description() {
    let topology = spec(&["from=a,to=b,rate=2Mbit,size=500,kind=poisson,name=x"]).unwrap().topology;
    let by_file =
        format!("{NET}[[traffic]]\nfrom='a'\nto='b'\nrate='2Mbit'\nsize=500\nkind='poisson'\nname='x'\n");
    assert_eq!(topology.traffic, fastpath_spec::parse(&by_file).unwrap().0.traffic);
    let wrong = |text: &str| spec(&[text]).unwrap_err().to_string();
    assert!(wrong("a to b").contains("write from=a,to=b,rate=2Mbit"));
    assert!(wrong("from=a,to=c,rate=2Mbit").contains("--traffic: "), "{}", wrong("from=a,to=c,rate=2Mbit"));
    assert!(wrong("from=a,to=b,speed=2Mbit").contains("speed"));
}

#[test]
fn a_record_of_another_machine_or_build_is_not_used() {
    let number = Rng::new(u64::from(std::process::id())).below(1 << 40);
    let path = std::env::temp_dir().join(format!("fastpath-record-{number}")).join("capacity.json");
    let CapacityRecord { costs, provenance, .. } = record();
    let results = Map::from_iter([("costs".to_owned(), serde_json::to_value(&costs).unwrap())]);
    let parameters = Map::from_iter([("missing".to_owned(), json!(["the log"]))]);
    let record = Measurement { kind: KIND.to_owned(), provenance, parameters, results, platform: None };
    save(&path, &record).unwrap();
    let tool = Tool::new("1.2.3", Some("abc"));
    let found = CapacityRecord::read(&path, &tool).unwrap();
    // The last digit of a number may differ after it was text.
    let read = serde_json::from_str(&serde_json::to_string(&costs).unwrap()).unwrap();
    assert_eq!((found.costs, found.missing), (read, vec!["the log".to_owned()]));
    assert!(CapacityRecord::read(&path, &Tool::new("1.2.4", Some("abc"))).is_none());
    let mut other = record;
    other.provenance.machine.kernel = "1.0".to_owned();
    save(&path, &other).unwrap();
    assert!(CapacityRecord::read(&path, &tool).is_none());
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}
