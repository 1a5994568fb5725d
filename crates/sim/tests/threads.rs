//! Microengine threads to the cycle: the share of memory latency that is hidden follows from the
//! interleaving of the threads.

use fastpath_sim::{Machine, Outcome, Program, run};

/// One microengine of `threads` threads at 1 GHz that swaps in `swap` cycles; a packet computes 60
/// + 40 ns around one reference of 300 ns. Frames arrive faster than they can be served.
fn saturated(threads: u32, swap: u32, extra: &str) -> Outcome {
    let machine = format!(
        "name = 't'\nsource = 't'\nports = {{ count = 1, rate = '10Gbit' }}
[[memory]]\nname = 'ram'\nclock = '1GHz'\nread = {{ 4 = 300 }}\n{extra}
[[microengine]]\nname = 'me'\nthreads = {threads}\nclock = '1GHz'\nswap = {swap}\nqueue = {{ limit = 4 }}"
    );
    let program = "name = 'p'\nsource = 'p'
[[stage]]\nname = 's'\non = 'me'\nsteps = [{ compute = 60 }, { read = 'ram' }, { compute = 40 }]";
    let machine = Machine::parse("t.toml", &machine).unwrap();
    let program = Program::parse("p.toml", program).unwrap();
    run(&machine, &program, &"line-rate,duration=2ms".parse().unwrap(), 1).unwrap()
}

/// Checks nanoseconds per packet and u.
#[track_caller]
fn assert_rate(outcome: &Outcome, ns: f64, hidden: f64) {
    let me = outcome.units["me"];
    assert!((1e9 / outcome.forwarded_pps / ns - 1.0).abs() < 0.002, "{} ns", 1e9 / outcome.forwarded_pps);
    assert!((me.hidden.unwrap() - hidden).abs() < 0.003, "u = {:?}", me.hidden);
}

#[test]
fn one_thread_hides_nothing() {
    // 60 + 300 + 40, nothing else to run.
    assert_rate(&saturated(1, 0, ""), 400.0, 0.0);
}

#[test]
fn two_threads_hide_the_computation_of_each_other() {
    // Each thread takes 400 ns per packet and never waits for the engine. The engine takes 200 ns
    // per packet, computes 100 and idles 100: 100 of the 300 ns of latency are exposed.
    assert_rate(&saturated(2, 0, ""), 200.0, 2.0 / 3.0);
}

#[test]
fn with_four_threads_the_engine_is_the_limit_and_all_latency_is_hidden() {
    assert_rate(&saturated(4, 0, ""), 100.0, 1.0);
    assert_rate(&saturated(8, 0, ""), 100.0, 1.0);
}

#[test]
fn each_swap_costs_its_cycles() {
    // Two dispatches per packet: at its start and after its reference.
    assert_rate(&saturated(8, 3, ""), 106.0, 1.0);
    assert_rate(&saturated(1, 3, ""), 406.0, 0.0);
}

#[test]
fn a_memory_with_one_request_in_flight_serialises_the_threads() {
    // A packet every 300 ns from 8 threads: 8 · 300 ns of thread time, 100 ns of it computation, so
    // 2300 ns of memory time, of which the engine idles 200 ns.
    assert_rate(&saturated(8, 0, "outstanding = 1"), 300.0, 1.0 - 200.0 / 2300.0);
}
