//! Cross traffic of links in virtual time: a run with it ends, and its flows are those beside the
//! same traffic of a host.

use fastpath::spec::{Topology, parse};
use fastpath::units::Duration;
use fastpath::{Replay, ReplaySummary};

/// Hosts behind a router and a bottleneck to `b`, and a flow from `a` to `b` of two seconds.
fn network(bottleneck: &str, more: &str) -> Topology {
    let text = format!(
        "[host.a]\n[host.x]\n[router.r]\n[host.b]\n[[link]]\nbetween = ['a', 'r']\ndelay = '3ms'\n\
         [[link]]\nbetween = ['x', 'r']\n[[link]]\nbetween = ['r', 'b']\nrate = '5Mbit'\ndelay = '9ms'\n\
         {bottleneck}\n[[traffic]]\nname = 'own'\nfrom = 'a'\nto = 'b'\nkind = 'poisson'\nrate = '2Mbit'\n\
         stop = '2s'\n{more}"
    );
    parse(&text).unwrap_or_else(|mistakes| panic!("{text}\n{}", mistakes[0])).0
}

fn run(bottleneck: &str, more: &str) -> ReplaySummary {
    let replay = Replay::through(network(bottleneck, more)).seed(3).until(Duration::from_secs(9));
    replay.run().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_flow_beside_cross_traffic_is_the_flow_beside_the_same_traffic_of_a_host() {
    // Frames of 1042 bytes each 2 ms, 83 % of the rate.
    let twin = "[[traffic]]\nname = 'twin'\nfrom = 'x'\nto = 'b'\nrate = '4Mbit'\nsize = 1000\nstop = '8s'";
    let cross = "r_to_b = { cross = { rate = '4168kbit', law = 'constant', packet = 1042 } }";
    for queue in ["queue = '20p'", "queue = { kind = 'codel', target = '2ms', interval = '20ms' }"] {
        let (alone, fluid) = (run(queue, ""), run(&format!("{queue}\n{cross}"), ""));
        let twin = run(queue, twin);
        let own = |summary: &ReplaySummary| {
            let flow = summary.traffic.iter().find(|flow| flow.name == "own").expect("the flow");
            assert!(flow.received > 300);
            format!("{flow:?}")
        };
        assert_eq!(own(&fluid), own(&twin), "{queue}");
        assert_ne!(own(&fluid), own(&alone), "{queue}");
        // No packet of it is counted, and the run does not wait for it.
        assert_eq!(fluid.accounting.entered, alone.accounting.entered);
        assert!(fluid.accounting.balances() && fluid.accounting.held == 0, "{:?}", fluid.accounting);
    }
}
