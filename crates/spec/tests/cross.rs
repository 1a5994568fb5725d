//! Cross traffic in descriptions.

use fastpath_link::{CrossLaw, CrossSpec};
use fastpath_spec::{Topology, parse, parse_change, read};
use fastpath_units::Rate;
use std::num::NonZeroU32;

fn cross(kbit: u64, law: CrossLaw, packet: u32) -> Option<CrossSpec> {
    let rate = Rate::from_bps(kbit * 1000).expect("not 0");
    Some(CrossSpec { rate, law, packet: NonZeroU32::new(packet).expect("not 0") })
}

fn spec(rest: &str) -> String {
    format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nqueue = '50p'\n{rest}\n")
}

fn files(name: &str) -> Result<String, String> {
    match name {
        "rate.csv" => Ok("time_s,rate_mbps\n0,3\n1,3\n".to_owned()),
        "delay.csv" => Ok("time_s,delay_ms\n0,3\n1,4\n".to_owned()),
        "moments.trace" => Ok("1\n2\n".to_owned()),
        _ => Err("no such file".to_owned()),
    }
}

fn topology(rest: &str) -> (Topology, Vec<String>) {
    let (spec, warnings) =
        read(&spec(rest), &files).unwrap_or_else(|mistakes| panic!("{rest}: {mistakes:?}"));
    (spec.topology, warnings.iter().map(ToString::to_string).collect())
}

/// The first mistake.
fn mistake(rest: &str) -> String {
    let mistakes = read(&spec(rest), &files).expect_err(rest);
    mistakes.to_string().lines().next().unwrap_or_default().to_owned()
}

#[test]
fn cross_traffic_is_a_rate_or_a_table() {
    for (text, read) in [
        ("'4Mbit'", cross(4000, CrossLaw::Poisson, 1500)),
        ("{ rate = '4Mbit' }", cross(4000, CrossLaw::Poisson, 1500)),
        ("{ rate = '4Mbit', law = 'poisson' }", cross(4000, CrossLaw::Poisson, 1500)),
        ("{ rate = '64kbit', law = 'constant', packet = 200 }", cross(64, CrossLaw::Constant, 200)),
        ("{ rate = '4Mbit', packet = '1KiB' }", cross(4000, CrossLaw::Poisson, 1024)),
        ("'none'", None),
    ] {
        let change = parse_change(&format!("cross = {text}")).expect(text);
        assert_eq!(change.cross, Some(read), "{text}");
    }
    for (text, said) in [
        ("{ law = 'constant' }", "cross has no rate; write rate = \"4Mbit\""),
        (
            "{ rate = '4Mbit', law = 'on-off' }",
            "'on-off' is not a law of cross traffic; write one of poisson, constant",
        ),
        ("{ rate = '4Mbit', packet = 0 }", "packet"),
        ("{ rate = '4Mbit', packet = '0B' }", "packet is not within 1 … 65535 bytes"),
        ("{ rate = '4Mbit', packet = '1MB' }", "packet is not within 1 … 65535 bytes"),
        ("{ rate = '4Mbit', size = 200 }", "size"),
        ("true", "cross"),
    ] {
        let mistakes = parse_change(&format!("cross = {text}")).expect_err(text).to_string();
        assert!(mistakes.contains(said), "{text}: {mistakes}");
    }
}

#[test]
fn each_direction_may_have_its_own() {
    let (topology, _) = topology("rate = '10Mbit'\ncross = '4Mbit'\na_to_b = { cross = 'none' }");
    let pipes = &topology.links[0].pipes;
    assert_eq!([pipes[0].cross, pipes[1].cross], [None, cross(4000, CrossLaw::Poisson, 1500)]);
}

#[test]
fn a_link_without_a_rate_has_nothing_to_share() {
    let said = "link a-b has cross traffic and no rate; write rate = \"10Mbit\" too, or remove cross";
    let event = "[[event]]\nat = '1s'\nlink = 'a-b'\ncross = '1Mbit'";
    for (rest, at) in [
        ("cross = '4Mbit'", "6:9"),
        ("delay = '1ms'\nb_to_a = { cross = '4Mbit' }", "7:20"),
        ("cross = '4Mbit'\na_to_b = { rate = '5Mbit' }", "6:9"),
        ("cross = '4Mbit'\ntrace = 'delay.csv'", "6:9"),
        (event, "9:9"),
    ] {
        let found = mistake(rest);
        assert!(found.contains(&format!("{at}: {said}")), "{rest}: {found}");
    }
    for rest in [
        "cross = '1Mbit'\nrate = '4Mbit'",
        "cross = '1Mbit'\ntrace = 'rate.csv'",
        "cross = '1Mbit'\ntrace = 'moments.trace'",
        "cross = '1Mbit'\n[[event]]\nat = '1s'\nlink = 'a-b'\nrate = '4Mbit'",
        &format!("rate = '4Mbit'\n{event}"),
    ] {
        topology(rest);
    }
}

#[test]
fn a_load_that_is_not_below_the_rate_is_said() {
    let warnings = |rest: &str| topology(rest).1;
    assert_eq!(warnings("rate = '10Mbit'\ncross = '9999kbit'"), [""; 0]);
    for rest in [
        "rate = '10Mbit'\ncross = '10Mbit'",
        "rate = '10Mbit'\n[[event]]\nat = '1s'\nlink = 'a-b'\ncross = '10Mbit'",
        "rate = '20Mbit'\ncross = '10Mbit'\n[[event]]\nat = '1s'\nlink = 'a-b'\nrate = '10Mbit'",
    ] {
        let said = warnings(rest);
        let what = "link a-b: its cross traffic of 10Mbit is not below its rate of 10Mbit";
        assert!(said.len() == 1 && said[0].contains(what), "{rest}: {said:?}");
    }
    // Either may end before the other begins.
    let ends = "rate = '20Mbit'\ncross = '10Mbit'\n[[event]]\nat = '1s'\nlink = 'a-b'\ncross = 'none'\nrate = '5Mbit'";
    assert_eq!(warnings(ends), [""; 0]);
    assert!(parse(&spec("rate = '1Mbit'\ncross = '1kbit'")).is_ok());
}
