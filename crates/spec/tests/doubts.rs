//! Values that are valid and do not have the effect that they seem to have are said.

use fastpath_spec::parse;

/// The warnings about a description, except about default queues.
fn said(text: &str) -> Vec<String> {
    let (_, warnings) = parse(text).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    let said = warnings.iter().map(ToString::to_string);
    said.filter(|warning| !warning.contains("no queue given")).collect()
}

fn link(values: &str) -> Vec<String> {
    said(&format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n{values}\n"))
}

#[test]
fn a_probability_with_correlation_is_not_the_share() {
    let loss = link("loss = { probability = '10%', correlation = '25%' }");
    assert_eq!(loss.len(), 1, "once for both directions: {loss:?}");
    assert!(
        loss[0].contains("link a-b: loss of 10% with a correlation of 25% loses 1.75% of packets"),
        "{loss:?}"
    );
    for (values, does) in [
        ("loss = { probability = '20%', correlation = '50%', at = 'egress' }", "loses"),
        ("duplicate = { probability = '10%', correlation = '25%' }", "duplicates 1.75%"),
        ("corrupt = { probability = '10%', correlation = '25%' }", "corrupts 1.75%"),
    ] {
        assert!(link(values).len() == 1 && link(values)[0].contains(does), "{values}: {:?}", link(values));
    }
    // At one half the share is the probability, and without correlation everywhere.
    for values in ["loss = { probability = '50%', correlation = '25%' }", "loss = '10%'"] {
        assert_eq!(link(values), [""; 0], "{values}");
    }
}

#[test]
fn a_bucket_below_a_frame_is_said() {
    let of = |kind: &str, burst: &str, more: &str| {
        link(&format!("queue = {{ kind = '{kind}', rate = '1Mbit', burst = '{burst}'{more} }}"))
    };
    for (kind, more) in [("token-bucket", ", limit = '50p'"), ("policer", "")] {
        let small = of(kind, "1000B", more);
        assert!(small.len() == 1 && small[0].contains("larger frames are dropped"), "{small:?}");
        assert!(of(kind, "50B", more)[0].contains("every frame is dropped"));
        assert_eq!(of(kind, "1514B", more), [""; 0]);
    }
    let peak = ", limit = '50p', peak = '4Mbit', peak_burst = '1000B'";
    assert!(of("token-bucket", "15kB", peak)[0].contains("the peak_burst of its token bucket"));
    // With the overhead a frame no longer fits; a small MTU makes frames small.
    let fits = "queue = { kind = 'policer', rate = '1Mbit', burst = '1514B' }";
    assert_eq!(link(&format!("{fits}\noverhead = 24")).len(), 1);
    let small = "queue = { kind = 'policer', rate = '1Mbit', burst = '1414B' }\nmtu = 1400";
    assert_eq!(link(small), [""; 0]);
}

#[test]
fn jitter_cut_at_zero_is_said_with_its_mean() {
    let cut = link("delay = '1ms'\njitter = { law = 'normal', sd = '2ms' }");
    assert!(
        cut.len() == 1
            && cut[0].contains("30.9 % of its delays")
            && cut[0].contains("1.396 ms, not 1.000 ms"),
        "{cut:?}"
    );
    assert_eq!(link("delay = '10ms'\njitter = { law = 'normal', sd = '2ms' }"), [""; 0]);
    assert_eq!(link("delay = '1ms'\njitter = { law = 'exponential', mean = '5ms' }"), [""; 0]);
}

#[test]
fn a_ring_of_switches_is_cut_and_said() {
    let ring = |last: &str| {
        let pair = |a: &str, b: &str| format!("[[link]]\nbetween = ['{a}', '{b}']\n");
        let links =
            [pair("a", "s"), pair("b", "t"), pair("s", "t"), pair("t", "u"), pair("u", last)].concat();
        said(&format!("[host.a]\n[host.b]\n[switch.s]\n[switch.t]\n[switch.u]\n[host.c]\n{links}"))
    };
    let cut = ring("s");
    assert!(cut.iter().any(|said| said.contains("a spanning tree cuts it: t-u carry no frames")), "{cut:?}");
    assert!(ring("c").iter().all(|said| !said.contains("spanning tree")));
}

#[test]
fn traffic_without_an_address_and_a_rendezvous_point_that_is_nowhere_are_said() {
    let traffic = "[host.a]\nassign = false\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n\
                   [[traffic]]\nfrom = 'b'\nto = 'a'\nrate = '1Mbit'\n";
    assert!(said(traffic).iter().any(|said| said.contains("a has no IP address")), "{:?}", said(traffic));
    let pim = |rp: &str| {
        said(&format!(
            "[host.a]\naddress = '10.1.0.2/24'\n[router.r]\nkind = 'kernel'\ndaemon = 'frr'\npim = {{ rp = '{rp}' }}\n\
             address = '10.1.0.1/24'\n[[link]]\nbetween = ['a', 'r']\n"
        ))
    };
    assert!(pim("10.9.9.9").iter().any(|said| said.contains("no node has the address 10.9.9.9")));
    assert!(pim("10.1.0.1").iter().all(|said| !said.contains("rendezvous")), "{:?}", pim("10.1.0.1"));
}
