//! Switches in the kernel, compiled and interpreted give the same outcomes, frames and counters.
//! For more pairs: `cargo run --release -p fastpath-jit --example differential -- --pairs 300000000
//! --seed 1`.

mod random;

use fastpath_jit::Live;
use fastpath_switch::{Action, FlowMod, Instructions, Limits, Match, Port, Switch, interp, port};
use fastpath_units::{Rng, Time};

#[test]
fn compiled_and_interpreted_switches_execute_packets_alike() {
    let mut seen = random::Seen::default();
    for seed in 0..150 {
        random::compare(seed, 100, &mut seen);
    }
    let random::Seen { pairs, outputs, packet_ins, connections, .. } = seen;
    assert!(connections > 20, "too few connections: {connections}");
    assert!(
        outputs > pairs / 5 && packet_ins > pairs / 100,
        "too few outcomes:  {outputs} and {packet_ins} of {pairs}"
    );
}

#[test]
fn the_kernel_machine_code_and_the_interpreter_execute_packets_alike() {
    let mut seen = random::Seen::default();
    for seed in 0..20 {
        random::compare_kernel(seed, 40, random::any_switch, &mut seen);
    }
    for seed in 0..60 {
        random::compare_kernel(seed, 40, random::kernel_switch, &mut seen);
    }
    if seen.no_kernel {
        return println!("SKIPPED tables in the kernel: bpf(2) is not permitted");
    }
    let random::Seen { pairs, in_kernel, kernel_outputs, in_user, .. } = seen;
    println!(
        "{in_kernel} of {pairs} pairs in the kernel, {kernel_outputs} outputs; in user space: {in_user:#?}"
    );
    // Most packets of rules that the kernel has, but for those whose headers it does not read, and
    // those of switches with mirrors.
    let unread = [
        "its headers are not read in the kernel",
        "a test run takes no such frame",
        "in user space because it has mirrors",
    ];
    let unread: u64 = unread.iter().filter_map(|why| in_user.get(*why)).sum();
    assert!(in_kernel > (pairs - unread) * 3 / 4 && kernel_outputs > pairs / 5, "{in_kernel} of {pairs}");
}

#[test]
fn outcomes_beyond_the_limit_end_alike() {
    let mut rng = Rng::new(5);
    let mut cut = 0;
    for ends in [Vec::new(), vec![Action::output(2)], vec![Action::output(1)], vec![Action::output(999)]] {
        let mut switch = Switch::new(Limits { tables: 3, ..Limits::default() });
        (1..=100).for_each(|number| switch.set_port(number, Port::up()));
        for (table, goto) in [(0, Some(1)), (1, Some(2)), (2, None)] {
            // Up to 24 actions of a table become code; longer lists are executed in Rust.
            let mut apply = vec![Action::output(port::FLOOD); 10 + rng.below(20) as usize];
            apply.extend(ends.clone());
            let what = Instructions { goto, ..Instructions::apply(apply) };
            switch.flow_mod(Time::ZERO, &FlowMod::add(table, 1, Match::any(), what)).unwrap();
        }
        let mut compiled = switch.clone();
        let mut live = Live::new(&mut compiled, 1).unwrap();
        let mut worker = live.worker(0);
        let frame = random::any_frame(&mut rng);
        let expected = interp(&mut switch, Time::ZERO, 1, &frame);
        worker.begin(Time::ZERO);
        assert_eq!(random::run(&mut worker, 1, &frame), expected);
        live.settle(&mut compiled);
        assert_eq!(random::counters(&compiled), random::counters(&switch));
        cut += usize::from(expected.len() == fastpath_switch::outcome::OUTCOMES_MAX + 1);
    }
    assert!(cut > 1, "{cut}");
}
