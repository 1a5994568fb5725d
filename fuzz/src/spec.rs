//! Descriptions of networks: spec files and Emulab scripts.

use fastpath_net::{EdgeId, Network, Options};
use fastpath_spec::{Mistakes, Topology, Warning};
use fastpath_units::Time;
use std::num::NonZeroUsize;

/// A spec file from anywhere: a network that runs, or mistakes that stand in the file.
pub fn spec(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    description(&text, fastpath_spec::parse(&text));
}

/// An Emulab script from anywhere, likewise.
pub fn ns(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    description(&text, fastpath_emulab::parse(&text));
}

pub(super) fn description(text: &str, parsed: Result<(Topology, Vec<Warning>), Mistakes>) {
    let lines = text.lines().count().max(1) + 1;
    match parsed {
        Err(mistakes) => {
            assert!(!mistakes.is_empty(), "refused without a reason");
            assert!(mistakes.iter().all(|mistake| (1..=lines).contains(&mistake.line)), "{mistakes:?}");
        }
        Ok((topology, warnings)) => {
            assert!(warnings.iter().all(|warning| (1..=lines).contains(&warning.line)), "{warnings:?}");
            run(topology);
        }
    }
}

/// A frame from every edge, and a thousand things that happen after: nothing is lost from the
/// books.
fn run(topology: Topology) {
    let pool_limit = NonZeroUsize::new(1 << 20).expect("not zero");
    let mut network = Network::new(topology, Options::new(1, pool_limit));
    let edges = network.edges().len().min(16);
    for edge in 0..edges {
        if let Some(frame) = network.pool_mut().insert(&[0xff; 60]) {
            network.push(Time::ZERO, EdgeId(edge as u32), frame);
        }
    }
    for _ in 0..1000 {
        let Some(at) = network.next_at() else { break };
        while let Some(delivery) = network.pop(at) {
            network.pool_mut().free(delivery.frame);
        }
    }
    assert!(network.accounting().balances(), "{:?}", network.accounting());
}
