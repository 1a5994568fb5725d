//! The results of a simulation are the same for every number of workers: outcome, bottleneck and
//! trace hash.

use fastpath::replay::WorkerCount;
use fastpath::simulate::{ExperimentResults, Simulation, SimulationRun, run};
use fastpath::units::{Duration, Rng};
use serde_json::Value;

/// The results of a run as text, without its duration.
fn results(run: &SimulationRun) -> String {
    let mut json = run.json();
    for measured in ["elapsed_s", "events_per_second"] {
        json[measured] = Value::Null;
    }
    json.to_string()
}

#[test]
fn every_number_of_workers_gives_the_same_results() {
    let mut rng = Rng::new(35);
    let cases = [
        ("cn6880", "cn-forward", "constant,rate=10Mpps,duration=5ms"),
        ("cn6880", "cn-forward", "poisson,rate=12Mpps,size=imix,flows=100,duration=3ms"),
        // Overloaded: trials of wider units find the bottleneck.
        ("xeon-e5-2687wv4", "netcope", "line-rate,size=64,duration=1ms"),
        ("xeon-e5-2699v3", "l3-forward", "line-rate,size=64,duration=1ms"),
        ("pc-850mhz-dummynet", "dummynet-link", "line-rate,size=200,duration=20ms"),
        ("ixp1200", "linkem", "line-rate,size=64,duration=2ms"),
        // Stopped by its latencies: not cut.
        ("cn6880", "cn-forward", "poisson,rate=1Mpps,duration=20ms,precision=5%"),
    ];
    for (machine, program, workload) in cases {
        let seed = rng.next_u64();
        let simulation =
            Simulation { workload: workload.to_owned(), seed, ..Simulation::new(machine, program) };
        let input = simulation.case().unwrap().input().unwrap();
        let with = |workers: &str| {
            let workers: WorkerCount = workers.parse().unwrap();
            let mut found = run(&input, None, workers, Some(&mut |_| {})).unwrap();
            found.find_remedy(&input, workers).unwrap();
            results(&found)
        };
        let one = with("1");
        for workers in ["2", "3", "8", "auto"] {
            assert_eq!(with(workers), one, "{machine} {program} {workload}, seed {seed}, {workers} workers");
        }
    }
}

#[test]
fn the_points_of_a_setup_are_in_their_order_with_any_number_of_workers() {
    for name in ["two-units", "sixteen-hosts"] {
        let rows = |workers: &str| {
            let workers = workers.parse().unwrap();
            ExperimentResults::of(name, Some(Duration::from_ms(1)), 3, workers).unwrap().rows()
        };
        let one = rows("1");
        assert!(["2", "3", "8"].iter().all(|workers| rows(workers) == one), "{name}");
    }
}
