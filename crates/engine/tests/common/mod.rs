//! Helpers of the integration tests and benchmarks.
#![allow(dead_code)] // each program uses a part

pub(crate) mod lab;

use fastpath_engine::{Idle, Notice, Options, Report, Running};
use fastpath_link::PipeSpec;
use fastpath_spec::{NodeKind, Topology};

/// Two hosts and a link with the same parameters in both directions, attached to interfaces if
/// named.
pub(crate) fn two_hosts(pipe: PipeSpec, ports: [Option<&str>; 2]) -> Topology {
    let mut topology = Topology::default();
    let mut host = |name, port: Option<&str>| {
        let kind = port.map_or_else(NodeKind::host, |port| NodeKind::port(port.parse().unwrap()));
        topology.add_node(name, kind)
    };
    let ends = [host("a", ports[0]), host("b", ports[1])];
    topology.connect("a-b", ends[0], ends[1], [pipe.clone(), pipe]);
    topology
}

/// Options of a quiet run.
pub(crate) fn options(idle: Idle) -> Options {
    let network = fastpath_net::Options::default();
    Options { idle: Some(idle), notice: Notice::none(), ..Options::new(network) }
}

/// Ends a run and checks its frame accounting.
pub(crate) fn finish(running: Running) -> Report {
    let report = running.stop().expect("the worker lives");
    assert!(report.accounting.balances(), "{:?}", report.accounting);
    report
}
