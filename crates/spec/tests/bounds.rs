//! Bounds and filters of losses and corruption, as a spec has them.

use fastpath_link::{Bounded, CorruptSpec, LossSpec, PacketFilter, PipeSpec};
use fastpath_spec::parse;
use fastpath_units::Probability;
use std::num::NonZeroU32;

/// The first pipe of a link with `values` in its table.
fn pipe_with(values: &str) -> PipeSpec {
    let text = format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n{values}");
    let (topology, _) = parse(&text).unwrap_or_else(|mistakes| panic!("{values}: {mistakes:?}"));
    topology.links[0].pipes[0].clone()
}

fn p(percent: f64) -> Probability {
    Probability::new(percent / 100.0).unwrap()
}

#[test]
fn losses_and_corruption_have_bounds_and_filters() {
    let law = |burst_max, of| Bounded { probability: p(10.0), burst_max: NonZeroU32::new(burst_max), of };
    let loss = |words: &str| pipe_with(&format!("loss = {{ probability = '10%', {words} }}")).loss;
    assert_eq!(loss("burst_max = 3"), LossSpec::Bounded(law(3, PacketFilter::All)));
    assert_eq!(loss("of = 'udp'"), LossSpec::Bounded(law(0, PacketFilter::Udp)));
    assert_eq!(loss("of = 'all'"), LossSpec::Uniform(p(10.0)));
    let corrupt = |words: &str| pipe_with(&format!("corrupt = {{ probability = '10%', {words} }}")).corrupt;
    let payload = CorruptSpec::UdpPayload(law(2, PacketFilter::Udp));
    assert_eq!(corrupt("burst_max = 2, of = 'udp-payload'"), Some(payload));
    assert_eq!(corrupt("of = 'udp'"), Some(CorruptSpec::Bounded(law(0, PacketFilter::Udp))));
    assert_eq!(corrupt("burst_max = 1"), Some(CorruptSpec::Bounded(law(1, PacketFilter::All))));
    let two_hosts = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']";
    let mistake = |words: &str| parse(&format!("{two_hosts}\n{words}\n")).expect_err("a mistake").to_string();
    for (words, expected) in [
        (
            "loss = { probability = '1%', correlation = '5%', burst_max = 2 }",
            "loss has a correlation and burst_max; keep one of them: both keys are those of independent packets",
        ),
        ("loss = { probability = '1%', of = 'tcp' }", "'tcp' is not a value of of"),
        ("loss = { probability = '1%', of = 'udp-payload' }", "'udp-payload' is not a value of of"),
        ("corrupt = { probability = '1%', burst_max = 0 }", "burst_max = 0"),
        ("loss = { kind = 'gilbert-elliott', to_bad = '1%', to_good = '9%', burst_max = 2 }", "burst_max"),
    ] {
        let said = mistake(words);
        assert!(said.contains(expected), "{words}: {said}");
    }
}
