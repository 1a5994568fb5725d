//! The blocks of machines against closed forms: queues with laws and priorities, closed networks,
//! buses, receive queues, ports and cells.
//!
//! Seeds are fixed. An interval of 99.9 % fails a correct simulator for one seed in a thousand.

use fastpath_sim::{Machine, Outcome, Program, SpecError, Workload, run};

const SEED: u64 = 1;

fn machine(text: &str) -> Result<Machine, SpecError> {
    let ports = if text.contains("[ports]") { "" } else { "[ports]\ncount = 1\nrate = '100Gbit'\n" };
    Machine::parse("machine.toml", &format!("name = 'm'\nsource = 'a test'\n{ports}{text}"))
}

fn program(stages: &str) -> Result<Program, SpecError> {
    Program::parse("program.toml", &format!("name = 'p'\nsource = 'a test'\n{stages}"))
}

fn simulate(machine_text: &str, stages: &str, workload: &str) -> Outcome {
    let machine = machine(machine_text).unwrap_or_else(|error| panic!("{error}"));
    let program = program(stages).unwrap_or_else(|error| panic!("{error}"));
    let workload: Workload = workload.parse().unwrap_or_else(|error| panic!("{error}"));
    run(&machine, &program, &workload, SEED).unwrap_or_else(|error| panic!("{error}"))
}

/// A station with an endless queue, behind which packets leave.
fn queue(keys: &str, workload: &str) -> Outcome {
    let station = format!("[[station]]\nname = 's'\nqueue.limit = 1000000\n{keys}");
    simulate(&station, "stage = [{ name = 'a', on = 's' }]", workload)
}

/// Holds the mean latency to `expected_us` by its 99.9 % interval, which may be 6 % wide.
#[track_caller]
fn assert_mean(outcome: &Outcome, expected_us: f64) {
    let interval = outcome.latency_interval_us.expect("a long run");
    // From the quantile of 95 % to that of 99.9 %.
    let half = (interval.high - interval.low) / 2.0 * 3.291 / 1.960;
    assert!(interval.is_long_enough && half < 0.06 * expected_us, "{interval:?}");
    assert!((interval.mean - expected_us).abs() < half, "theory {expected_us}, simulated {interval:?}");
}

#[track_caller]
fn assert_near(simulated: f64, expected: f64, share: f64) {
    assert!((simulated / expected - 1.0).abs() < share, "theory {expected}, simulated {simulated}");
}

#[test]
fn independent_servers_of_exponential_times_are_m_m_c() {
    for (servers, load) in [(2u32, 0.7), (8, 0.8)] {
        let a = load * f64::from(servers);
        let b = (1..=servers).fold(1.0, |b, n| a * b / (f64::from(n) + a * b));
        let waits = b / (1.0 - load + load * b);
        let keys = format!(
            "servers = {servers}\nfixed = '1us'\nlaw = {{ kind = 'exponential' }}\nleave = 'service'"
        );
        let outcome = queue(&keys, &format!("poisson,rate={}kpps,duration=400ms", 1000.0 * a));
        assert_mean(&outcome, 1.0 + waits / (f64::from(servers) - a));
    }
}

#[test]
fn a_server_of_any_law_waits_by_pollaczek_and_khinchine() {
    for (law, cv) in [("'constant'", 0.0f64), ("'exponential'", 1.0), ("'lognormal', cv = 1.4", 1.4)] {
        let keys = format!("fixed = '1us'\nlaw = {{ kind = {law} }}");
        let outcome = queue(&keys, "poisson,rate=600kpps,duration=900ms");
        assert_mean(&outcome, 1.0 + 0.6 * (1.0 + cv * cv) / (2.0 * 0.4));
    }
}

/// Cobham 1954. The half-width is that of 300 000 correlated waits at load 0.8, doubled.
#[test]
fn classes_wait_by_cobham_and_their_latency_is_reported() {
    let keys = "fixed = '1us'\nlaw = { kind = 'exponential' }\nqueue.order = 'priority'";
    let outcome = queue(keys, "poisson,rate=800kpps,priorities=2,duration=1500ms");
    let [first, second] = outcome.latency_by_class_us[..] else { panic!("{outcome:?}") };
    assert_near(first.unwrap().mean, 1.0 + 0.8 / (1.0 - 0.4), 0.04);
    assert_near(second.unwrap().mean, 1.0 + 0.8 / ((1.0 - 0.4) * (1.0 - 0.8)), 0.10);
    let one = queue(keys, "poisson,rate=800kpps,duration=1ms");
    assert!(one.latency_by_class_us.is_empty());
}

#[test]
fn a_delay_holds_any_number_and_lets_them_pass() {
    let delay = "[[delay]]\nname = 'd'\nfixed = '50us'\nlaw = { kind = 'exponential' }";
    let outcome = simulate(delay, "stage = [{ name = 'a', on = 'd' }]", "poisson,rate=20Mpps,duration=10ms");
    // M/G/∞ by Little's law. 200 000 times have a mean within 0.3 %.
    let inside = outcome.units["d"].queue_mean * outcome.seconds;
    assert_near(inside, outcome.forwarded as f64 * 50e-6, 0.01);
    assert!(outcome.order_violations > 0 && outcome.forwarded == outcome.offered);
    let constant = delay.replace("\nlaw = { kind = 'exponential' }", "");
    let outcome =
        simulate(&constant, "stage = [{ name = 'a', on = 'd' }]", "poisson,rate=20Mpps,duration=1ms");
    assert_eq!((outcome.latency_us.unwrap().max, outcome.order_violations), (50.0, 0));
}

/// Exact mean value analysis (Reiser and Lavenberg 1980): laps per µs.
fn mva(services_us: &[f64], think_us: f64, population: u32) -> f64 {
    let mut lengths = vec![0.0; services_us.len()];
    let mut rate = 0.0;
    for n in 1..=population {
        let stays: Vec<f64> = services_us.iter().zip(&lengths).map(|(s, q)| s * (1.0 + q)).collect();
        rate = f64::from(n) / (think_us + stays.iter().sum::<f64>());
        lengths = stays.iter().map(|stay| rate * stay).collect();
    }
    rate
}

/// 200 000 laps: the standard error of the rate is below 0.3 %.
#[test]
fn a_closed_network_has_the_throughput_of_mean_value_analysis() {
    let station = |name: &str, ns: u32| {
        format!("[[station]]\nname = '{name}'\nfixed = '{ns}ns'\nlaw = {{ kind = 'exponential' }}\n")
    };
    let machine = [station("a", 1000), station("b", 700), station("c", 1300)].concat();
    let stages = "stage = [{ name = '1', on = 'a' }, { name = '2', on = 'b' }, { name = '3', on = 'c' }]";
    for (population, think) in [(1u32, 0.0), (4, 0.0), (12, 5.0)] {
        let workload = format!("closed,population={population},think={think}us,duration=300ms");
        let outcome = simulate(&machine, stages, &workload);
        assert_near(outcome.forwarded_pps / 1e6, mva(&[1.0, 0.7, 1.3], think, population), 0.01);
        assert_eq!((outcome.held, outcome.deadlock), (0, None));
    }
    // A lost frame is not a lost customer.
    let full = machine.replace("name = 'a'\n", "name = 'a'\nqueue.limit = 1\n");
    let outcome = simulate(&full, stages, "closed,population=6,duration=10ms");
    assert!(outcome.dropped_at("a queue full") > 1000 && outcome.forwarded_pps > 0.6e6, "{outcome:?}");
}

#[test]
fn a_flow_has_one_queue_and_a_queue_its_cap() {
    let nic = "[[nic]]\nname = 'n'\nqueues = 4\ncap = '2Mpps'\nqueue.limit = 64\n";
    let stages = "stage = [{ name = 'a', on = 'n' }]";
    for (flows, pps) in [(1, 2e6), (10_000, 8e6)] {
        let outcome = simulate(nic, stages, &format!("poisson,rate=20Mpps,flows={flows},duration=10ms"));
        assert_near(outcome.forwarded_pps, pps, 0.002);
        assert_eq!(outcome.order_violations, 0);
    }
    // Poll mode: core n takes queue n. One flow keeps one core busy, whatever its number is.
    let cores = "[[cores]]\nname = 'c'\ncores = 4\nclock = '1GHz'\nscheduler = { kind = 'poll' }\n";
    let stages = "stage = [{ name = 'a', on = 'n' }, { name = 'b', on = 'c', steps = [{ compute = 1000 }] }]";
    let outcome = simulate(&(nic.to_owned() + cores), stages, "poisson,rate=9Mpps,flows=1,duration=10ms");
    assert_near(outcome.units["c"].busy, 0.25, 0.01);
    let outcome = simulate(&(nic.to_owned() + cores), stages, "poisson,rate=9Mpps,flows=9999,duration=10ms");
    assert_near(outcome.forwarded_pps, 4e6, 0.01);
}

const HOST: &str = "
[[memory]]
name = 'dram'
clock = '1GHz'
read = { 64 = 90 }
bandwidth = '800Gbit'
[[cache]]
name = 'caches'
line = 64
level = [{ name = 'L1', size = '32KiB', latency = '2ns' },
         { name = 'LLC', size = '30MiB', latency = '20ns', shared = true },
         { name = 'RAM', size = '64GiB', latency = '90ns', shared = true }]
[[cores]]
name = 'c'
cores = 1
clock = '2GHz'
";

#[test]
fn a_bus_carries_its_rate_with_the_headers_of_every_tlp() {
    let bus = "[[pcie]]\nname = 'p'\nrate = '63Gbit'\nper_packet = 40\nlatency = '500ns'\noutstanding = 256";
    for size in [64u32, 256, 257, 1518] {
        let workload = format!("line-rate,size={size},duration=1ms");
        let outcome = simulate(bus, "stage = [{ name = 'a', on = 'p' }]", &workload);
        let bytes = size + size.div_ceil(256) * 24 + 40;
        assert_near(
            outcome.forwarded_pps,
            (63e9 / 8.0 / f64::from(bytes)).min(100e9 / 8.0 / f64::from(size + 20)),
            0.002,
        );
    }
    // Few transactions in flight: one latency and one packet of 128 bytes on the link for each.
    let few = bus.replace("256", "4");
    let outcome = simulate(&few, "stage = [{ name = 'a', on = 'p' }]", "line-rate,size=64,duration=1ms");
    let one = 500.0 + 128.0 * 8.0 / 63.0;
    assert_near(outcome.forwarded_pps, 4e9 / one, 0.01);
}

/// 60 000 packets: the standard error of the mean is 0.14 ns of 196 ns.
#[test]
fn writes_beyond_the_ways_of_ddio_are_read_from_memory() {
    let ddio = |buffers: &str| {
        format!(
            "{HOST}[[pcie]]\nname = 'p'\nrate = '126Gbit'\nqueue.limit = 9\nddio = {{ cache = 'caches', ways = 12, share = 2, buffers = '{buffers}', memory = 'dram' }}\n"
        )
    };
    let stages = "region = [{ name = 'packet', cache = 'caches' }]
        stage = [{ name = 'in', on = 'p' }, { name = 'f', on = 'c', steps = [{ compute = 300 }, { read = 'packet' }] }]";
    // Below the load that fills the queue of the core: packets behind a write that misses come with
    // it, and a full queue would take it and drop them.
    let compare = |machine: &str, ns: f64| {
        let outcome = simulate(machine, stages, "poisson,rate=3Mpps,duration=20ms");
        assert!(outcome.dropped.is_empty(), "{outcome:?}");
        assert_near(outcome.units["c"].busy / outcome.forwarded_pps, ns / 1e9, 0.005);
    };
    // Two of twelve ways of 30 MiB are 5 MiB.
    for (buffers, hit) in [("4MiB", 1.0), ("8MiB", 0.625), ("40MiB", 0.125)] {
        compare(&ddio(buffers), 150.0 + hit * 20.0 + (1.0 - hit) * 90.0);
    }
    compare(&ddio("4MiB").replace("\nddio", "\n# ddio"), 240.0);
    // A slow memory holds up the writes that miss: 64 bytes at 1 Gbit/s for 7 of 8.
    let slow = ddio("40MiB").replace("'800Gbit'", "'1Gbit'").replace("'2GHz'", "'20GHz'");
    let outcome = simulate(&slow, stages, "poisson,rate=9Mpps,duration=10ms");
    assert_near(outcome.forwarded_pps, 1e9 / 512.0 / 0.875, 0.02);
}

#[test]
fn ports_have_rates_and_framings_of_their_own() {
    let ports = |keys: &str| format!("[ports]\ncount = 3\nrate = '10Gbit'\n{keys}\n[[line]]\nname = 'w'\n");
    let offered = |keys: &str, size: u32| {
        let workload = format!("line-rate,size={size},duration=200us");
        simulate(&ports(keys), "stage = [{ name = 'a', on = 'w' }]", &workload)
    };
    let per_gbit = 1e9 / 672.0;
    assert_near(offered("", 64).offered_pps, 30.0 * per_gbit, 1e-3);
    let uneven = offered("other = [{ ports = '1-2', rate = '1.6Tbit' }]", 64);
    assert_near(uneven.offered_pps, 3210.0 * per_gbit, 1e-3);
    // Port 0 sends to port 1, port 1 to port 2, and port 2 to port 0, which has 10 Gbit/s.
    assert_near(uneven.forwarded_pps, 1620.0 * per_gbit, 0.02);
    // AAL5: 64 − 18 + 16 bytes are two cells of 53 bytes, and 1518 bytes are 32.
    let aal5 = "framing = { strip = 18, add = 16, cell = 48, cell_size = 53, preamble = 0, gap = 0 }";
    for (size, cells) in [(64, 2.0), (1518, 32.0)] {
        assert_near(offered(aal5, size).forwarded_pps, 30e9 / 8.0 / 53.0 / cells, 0.01);
    }
}

#[test]
fn a_stage_adds_and_takes_bytes() {
    let machine = "[[cores]]\nname = 'c'\ncores = 1\nclock = '1GHz'\n[[line]]\nname = 'w'\nqueue.limit = 8\n";
    let sent = |stages: &str| {
        let stages = format!("stage = [{stages}, {{ name = 'b', on = 'w' }}]");
        simulate(machine, &stages, "line-rate,size=1000,duration=1ms").forwarded_pps
    };
    assert_near(sent("{ name = 'a', on = 'c', add = 50 }"), 100e9 / 8.0 / 1070.0, 0.002);
    // A tunnel that ends before the wire changes nothing there.
    let both = "{ name = 'a', on = 'c', add = 50 }, { name = 'e', on = 'c', strip = 50 }";
    assert_near(sent(both), 100e9 / 8.0 / 1020.0, 0.002);
}

#[test]
fn a_station_has_more_than_1024_servers_and_rates_above_800_gbit() {
    for (servers, pps) in [(2048u32, 2.048e9), (4096, 3e9)] {
        let text = format!("[[station]]\nname = 's'\nqueue.limit = 0\nservers = {servers}\nfixed = '1us'");
        let outcome =
            simulate(&text, "stage = [{ name = 'a', on = 's' }]", "constant,rate=3Gpps,duration=50us");
        assert_near(outcome.forwarded_pps, pps, 0.03);
    }
    let outcome = queue("rate = '12.8Tbit'", "constant,rate=9Gpps,size=1000,duration=20us");
    assert_near(outcome.forwarded_pps, 1.6e9, 0.01);
}

#[test]
fn what_has_no_effect_is_refused_with_what_to_write() {
    let egress = "[ports]\ncount = 1\nrate = '1Gbit'\nframing.cell = 48\nframing.cell_size = 53\n[[egress]]\nname = 'e'\n\
                  engines = 1\nfill_threads = 1\nclock = '1GHz'\nswap = 1\nslots = 4\nport_chunks = 4\nbus = '4Gbit'";
    let ports = "[ports]\ncount = 2\nrate = '1Gbit'\n";
    for (text, says) in [
        ("[[station]]\nname = 's'\nlaw = { kind = 'exponential' }", "law of s has no effect without a time"),
        ("[[station]]\nname = 's'\nlaw = { kind = 'lognormal' }", "write cv"),
        ("[[station]]\nname = 's'\nfixed = '1us'\nlaw = { kind = 'exponential', cv = 2 }", "has no key 'cv'"),
        (
            "[[station]]\nname = 's'\nfixed = '1us'\nframing.add = 4",
            "framing of s has no effect without a rate",
        ),
        ("[[station]]\nname = 's'\nfixed = '1us'\nleave = 'service'", "write servers = 2"),
        ("[[station]]\nname = 's'\nservers = 70000", "from 1 to 65536"),
        ("[[delay]]\nname = 'd'", "fixed or per_byte of d"),
        ("[[nic]]\nname = 'n'\nspread = 'even'\ntable = 8", "table of n has no effect"),
        ("[[nic]]\nname = 'n'\ncap = '35M'", "write cap = \"35Mpps\""),
        (
            "[[cores]]\nname = 'c'\ncores = 1\nclock = '1GHz'\nqueue = { limit = 4, order = 'priority' }",
            "the scheduler decides",
        ),
        (egress, "strip, add and cell of framing have no effect"),
        (
            &format!("{ports}other = [{{ ports = '0-1', rate = '2Gbit' }}]\n[[line]]\nname = 'w'"),
            "rate of ports has no effect",
        ),
        (
            &format!("{ports}other = [{{ ports = '1-2', rate = '2Gbit' }}]\n[[line]]\nname = 'w'"),
            "there is no port 2",
        ),
        (&format!("{ports}framing.cell = 48\n[[line]]\nname = 'w'"), "no whole cells"),
        (
            &format!(
                "{HOST}[[pcie]]\nname = 'p'\nrate = '1Gbit'\nwrites = false\nddio = {{ cache = 'caches', ways = 2, buffers = '1MiB', memory = 'dram' }}"
            ),
            "packets leave the host",
        ),
        (
            "[[pcie]]\nname = 'p'\nrate = '1Gbit'\nddio = { cache = 'x', ways = 2, buffers = '1MiB', memory = 'dram' }",
            "there is no cache 'x'",
        ),
    ] {
        let error = machine(text).map(|_| ()).expect_err(text).to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
    let machine = machine(HOST).unwrap();
    for (stages, says) in [
        (
            "region = [{ name = 'r', cache = 'caches' }]\nstage = [{ name = 'a', on = 'c', steps = [{ read = 'r' }] }]",
            "a [[pcie]] before",
        ),
        (
            "stage = [{ name = 'a', on = 'c', strip = 4, add = 4, steps = [{ compute = 1 }] }]",
            "and not the same",
        ),
    ] {
        let workload = "poisson".parse().unwrap();
        let error = run(&machine, &program(stages).unwrap(), &workload, 1).map(|_| ()).expect_err(stages);
        assert!(error.to_string().contains(says), "{stages}: {error}");
    }
}
