//! A run that is cut in two has the results of the whole run: outcome and trace hash, at every
//! possible cut, with ties at equal instants, full queues and random seeds.

use fastpath_sim::cut::{Batch, CutRun};
use fastpath_sim::{Machine, Outcome, Program, Workload, run, shipped};
use fastpath_units::Rng;
use std::fmt::Write;

/// Runs both parts in turns.
fn in_two_parts(cut: &CutRun) -> Outcome {
    let (mut upstream, mut downstream) = (cut.upstream(), cut.downstream());
    let mut batch = Batch::default();
    let mut goes_on = true;
    while goes_on {
        goes_on = upstream.fill(&mut batch);
        downstream.take(&batch);
    }
    downstream.finish();
    cut.outcome(upstream.end(), downstream).expect("few events have an order")
}

/// Compares all cuts of a run with the whole run; returns the number of cuts.
fn compare(machine: &Machine, program: &Program, workload: &str, seed: u64) -> usize {
    let workload: Workload = workload.parse().unwrap();
    let whole = run(machine, program, &workload, seed).unwrap();
    let cuts = CutRun::all(machine, program, &workload, seed).unwrap();
    for cut in &cuts {
        let place = || format!("{} before {:?}, seed {seed}", machine.name, cut.downstream_units());
        assert_eq!(in_two_parts(cut), whole, "{}", place());
    }
    cuts.len()
}

#[test]
fn every_cut_of_every_shipped_machine_has_the_results_of_the_whole_run() {
    let workloads = [
        "constant,rate=10Mpps,duration=300us,flows=7",
        "poisson,rate=3Mpps,size=imix,duration=500us",
        "line-rate,size=64,duration=200us",
        "on-off,size=200,duration=2ms",
    ];
    let mut rng = Rng::new(1);
    let mut cut = Vec::new();
    for (machine_name, _) in shipped::MACHINES {
        for (name, _) in shipped::PROGRAMS {
            let (machine, program) =
                (shipped::machine(machine_name).unwrap(), shipped::program(name).unwrap());
            if run(&machine, &program, &"constant,duration=1ns".parse().unwrap(), 1).is_err() {
                continue;
            }
            let compare = |text: &&str| compare(&machine, &program, text, rng.next_u64());
            if workloads.iter().map(compare).sum::<usize>() > 0 {
                cut.push(format!("{machine_name} {name}"));
            }
        }
    }
    assert!(cut.contains(&"cn6880 cn-forward".to_owned()), "{cut:?}");
    assert!(cut.len() >= 4, "{cut:?}");
}

/// A chain of two to six units, whose times have few values: many events are at equal instants.
fn random_machine(rng: &mut Rng) -> (Machine, Program) {
    let mut machine =
        "name = 'random'\nsource = 'a test'\nports = { count = 3, rate = '10Gbit' }\n".to_owned();
    let mut program = "name = 'random'\nsource = 'a test'\n".to_owned();
    let units = 2 + rng.below(5);
    for unit in 0..units {
        let (servers, time) = (1 + rng.below(4), 50 * rng.below(4));
        let full = if rng.below(4) == 0 { "block" } else { "drop" };
        let limit = 1 + rng.below(6);
        let mut steps = String::new();
        match rng.below(4) {
            0 => {
                let kind = ["fifo", "poll", "sso"][rng.below(3) as usize];
                write!(
                    machine,
                    "[[cores]]\nname = 'u{unit}'\ncores = {servers}\nclock = '1GHz'\nscheduler = {{ kind = '{kind}' }}\n"
                )
                .unwrap();
                let tag = ["", "tag = 'ordered'\n", "tag = 'atomic'\n"][rng.below(3) as usize];
                let tag = if kind == "sso" { tag } else { "" };
                steps = format!("{tag}steps = [{{ compute = {time} }}]\n");
            }
            1 => write!(machine, "[[line]]\nname = 'u{unit}'\n").unwrap(),
            2 if rng.below(3) == 0 => {
                let outliers = "{ probability = '10%', mean = '300ns' }";
                write!(machine, "[[station]]\nname = 'u{unit}'\nfixed = '{time}ns'\noutliers = {outliers}\n")
                    .unwrap();
            }
            _ => write!(machine, "[[station]]\nname = 'u{unit}'\nservers = {servers}\nfixed = '{time}ns'\n")
                .unwrap(),
        }
        writeln!(machine, "queue = {{ limit = {limit}, full = '{full}' }}").unwrap();
        let per = ["flow", "packet"][usize::from(rng.below(4) == 0)];
        let last = units - 1;
        let skip = if unit + 2 < units && rng.below(4) == 0 {
            format!("skip = {{ share = '40%', to = 's{last}', per = '{per}' }}\n")
        } else {
            String::new()
        };
        write!(program, "[[stage]]\nname = 's{unit}'\non = 'u{unit}'\n{steps}{skip}").unwrap();
    }
    let machine = Machine::parse("random.toml", &machine).unwrap_or_else(|e| panic!("{e}\n{machine}"));
    (machine, Program::parse("random.toml", &program).unwrap_or_else(|e| panic!("{e}\n{program}")))
}

#[test]
fn every_cut_of_random_machines_has_the_results_of_the_whole_run() {
    let mut rng = Rng::new(7);
    let mut cuts = 0;
    for _ in 0..400 {
        let (machine, program) = random_machine(&mut rng);
        let workload = [
            "line-rate,size=64,flows=5,duration=60us",
            "constant,rate=20Mpps,flows=2,duration=100us",
            "poisson,rate=10Mpps,size=imix,duration=60us",
        ];
        cuts += compare(&machine, &program, workload[rng.below(3) as usize], rng.next_u64());
    }
    assert!(cuts > 300, "{cuts}");
}

#[test]
fn a_part_upstream_that_can_be_held_up_is_not_cut() {
    let (machine, program) = (shipped::machine("cn6880").unwrap(), shipped::program("cn-forward").unwrap());
    let workload: Workload = "constant,rate=10Mpps,duration=1us".parse().unwrap();
    let cut = CutRun::new(&machine, &program, &workload, 1).unwrap().unwrap();
    assert_eq!(cut.downstream_units(), ["pko", "wire"]);
    // Latencies stop a run with a precision.
    let precise: Workload = "constant,rate=10Mpps,duration=1us,precision=1%".parse().unwrap();
    assert!(CutRun::new(&machine, &program, &precise, 1).unwrap().is_none());
    let text = shipped::MACHINES.iter().find(|(name, _)| *name == "cn6880").unwrap().1;
    let holds = text.replace("queue = { limit = 4096 }", "queue = { limit = 4096, full = \"block\" }");
    let holds = Machine::parse("cn6880.toml", &holds).unwrap();
    let cut = CutRun::new(&holds, &program, &workload, 1).unwrap();
    assert!(cut.is_none_or(|cut| cut.downstream_units() == ["wire"]));
}
