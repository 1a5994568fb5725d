//! Scripts of two hosts and a router, and what is read of them.

use fastpath_emulab::parse;
use fastpath_spec::Topology;
use fastpath_units::{Duration, Time};

/// Two hosts and a router between them, with `body` before the run.
pub(crate) fn script(body: &str) -> String {
    format!(
        "set ns [new Simulator]\nset n0 [$ns node]\nset n1 [$ns node]\nset r [$ns node]\n\
         $ns duplex-link $n0 $r 2Mb 10ms DropTail\n$ns duplex-link $r $n1 1.7Mb 20ms DropTail\n{body}\n$ns run\n"
    )
}

/// What the script describes, and the warnings but for those of every network.
pub(crate) fn read(body: &str) -> (Topology, Vec<String>) {
    let text = script(body);
    let (topology, warnings) = parse(&text).unwrap_or_else(|mistakes| panic!("{text}{mistakes:?}"));
    let warnings = warnings.iter().map(ToString::to_string).filter(|text| !text.contains("routers, because"));
    (topology, warnings.collect())
}

pub(crate) fn mistakes(body: &str) -> Vec<String> {
    parse(&script(body)).expect_err("a mistake").iter().map(ToString::to_string).collect()
}

pub(crate) fn at(seconds: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(seconds)
}
