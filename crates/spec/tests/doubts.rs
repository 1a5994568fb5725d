//! Values that are valid and do not have the effect that they seem to have are said.

use fastpath_spec::{parse, read};

/// The files that descriptions here name.
fn files(name: &str) -> Result<String, String> {
    match name {
        "all.csv" => Ok("time_s,rate_mbps,delay_ms,loss_percent\n0,3,10,1\n0.5,8,20,2\n".to_owned()),
        "some.csv" => Ok("time_s,rate_mbps,delay_ms\n0,3,\n0.5,8,20\n".to_owned()),
        "moments.trace" => Ok("1\n2\n".to_owned()),
        "bgp.conf" => Ok("router bgp 65001\n".to_owned()),
        "rules.txt" => Ok("# comment\nactions=output:9\n".to_owned()),
        _ => Err("no such file".to_owned()),
    }
}

/// The warnings about a description, except about default queues.
fn said(text: &str) -> Vec<String> {
    let (_, warnings) = read(text, &files).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
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

#[test]
fn a_value_that_a_trace_sets_from_start_to_end_is_said() {
    let set = |values: &str| link(values);
    for (values, expected) in [
        (
            "trace = 'all.csv'\ndelay = '500ms'",
            "sets its delay, so the delay given for the link is never in force",
        ),
        ("trace = 'all.csv'\nrate = '5Mbit'", "sets its rate"),
        ("trace = 'all.csv'\nloss = '5%'", "sets its loss"),
        ("trace = 'all.csv'\na_to_b.delay = '5ms'", "sets its delay"),
        ("trace = { file = 'all.csv', end = 'hold' }\ndelay = '5ms'", "sets its delay"),
        ("trace = { file = 'all.csv', end = 'stop' }\ndelay = '5ms'", "sets its delay"),
        ("trace = { file = 'some.csv', offset = '100ms' }\nrate = '5Mbit'", "sets its rate"),
        ("trace = { file = 'moments.trace', end = 'stop' }\nrate = '5Mbit'", "in place of rate"),
        ("a_to_b.trace = 'all.csv'\nb_to_a.delay = '5ms'\ndelay = '9ms'", "sets its delay"),
    ] {
        let said = set(values);
        assert!(said.len() == 1 && said[0].contains(expected), "{values}: {said:#?}");
        assert!(said[0].starts_with(|c: char| c.is_ascii_digit()) && !said[0].starts_with("1:"), "{said:?}");
    }
    for values in [
        // The link's own values return, or hold until the trace starts or sets them.
        "trace = { file = 'all.csv', end = 'reset' }\ndelay = '5ms'",
        "trace = 'all.csv'\ndelay = '5ms'\ngroup = 'g'\n[group.g]\nstart = 'first-packet'",
        "trace = 'some.csv'\ndelay = '5ms'",
        "a_to_b.trace = 'all.csv'\ndelay = '5ms'",
        "trace = 'all.csv'\nqueue = '9p'\nduplicate = '1%'",
        "trace = 'all.csv'\nloss = { probability = '1%', ecn = true }",
    ] {
        assert_eq!(set(values), [""; 0], "{values}");
    }
}

#[test]
fn the_start_of_a_group_without_traces_is_said() {
    let group = |start: &str, trace: &str| {
        link(&format!(
            "group = 'g'\n{trace}\n[[event]]\nat = '1s'\ngroup = 'g'\nstate = 'down'\n[group.g]\n{start}"
        ))
    };
    let said = group("start = 'first-packet'", "");
    assert!(said.len() == 1 && said[0].contains("no link of group 'g' has a trace"), "{said:?}");
    assert_eq!(group("", ""), [""; 0]);
    assert_eq!(group("start = 'first-packet'", "trace = 'all.csv'"), [""; 0]);
}

#[test]
fn what_a_namespace_has_is_said_at_a_port() {
    let host = |keys: &str| {
        said(&format!(
            "[host.a]\n{keys}\n[host.b]\naddress = '10.1.0.2/24'\n[[link]]\nbetween = ['a', 'b']\n"
        ))
    };
    for (key, value) in [
        ("exec", "'ls'"),
        ("sysctls", "{ 'net.ipv4.ip_forward' = '1' }"),
        ("routes", "{ '10.9.0.0/16' = '10.1.0.2' }"),
    ] {
        let at_port = host(&format!("port = 'eth9'\n{key} = {value}"));
        assert!(
            at_port.len() == 1 && at_port[0].contains(&format!("so its {key} has no effect")),
            "{at_port:?}"
        );
        assert_eq!(host(&format!("{key} = {value}")), [""; 0]);
    }
    let event = "[host.a]\nport = 'eth9'\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n[[event]]\nat = '1s'\nhost = 'a'\nexec = 'ls'\n";
    assert!(said(event)[0].contains("its command never starts"), "{:?}", said(event));
}

#[test]
fn keys_beside_the_configuration_of_a_daemon_are_said() {
    let routers = |keys: &str, other: &str| {
        said(&format!(
            "[host.a]\n[router.r]\ndaemon = 'frr'\n{keys}\n[router.s]\ndaemon = 'frr'\n{other}\n\
             [[link]]\nbetween = ['a', 'r']\n[[link]]\nbetween = ['r', 's']\n"
        ))
    };
    let both = routers("config = 'bgp.conf'\nospf = true\nrouter_id = '10.0.0.9'", "ospf = true");
    assert!(both.len() == 1 && both[0].contains("and ospf, router_id have no effect"), "{both:?}");
    assert_eq!(routers("config = 'bgp.conf'\nbgp = 65001", "ospf = true").len(), 1);
    // The neighbor is told the number.
    assert_eq!(routers("config = 'bgp.conf'\nbgp = 65001", "bgp = 65002"), [""; 0]);
    assert_eq!(routers("config = 'bgp.conf'\nstatic_routes = true", "ospf = true"), [""; 0]);
}

#[test]
fn rules_without_effect_are_said_with_their_line() {
    let switch = |rules: &str| {
        said(&format!(
            "[host.a]\n[host.b]\n[openflow.o]\n{rules}\n[[link]]\nbetween = ['a', 'o']\n[[link]]\nbetween = ['o', 'b']\n"
        ))
    };
    for (rules, expected) in [
        (
            "rules = 'actions=output:77'",
            "4:9: openflow o, rule 1: output:77 sends nothing: the switch has ports 1 to 2",
        ),
        ("rules = 'in_port=9,actions=drop'", "4:9: openflow o, rule 1: in_port=9 matches no frame"),
        ("rules = 'actions=goto_table:9'", "4:9: openflow o, rule 1: goto_table:9 drops the packets"),
        ("file = 'rules.txt'", "4:8: rules.txt:2: output:9 sends nothing"),
    ] {
        let said = switch(rules);
        assert!(said.len() == 1 && said[0].starts_with(expected), "{rules}: {said:#?}");
    }
    let served = "rules = 'actions=goto_table:9'\ncontroller = 'tcp:127.0.0.1:6653'";
    assert_eq!(switch(served), [""; 0]);
}

#[test]
fn a_second_hardware_address_of_an_interface_is_a_mistake() {
    for mac in
        ["['02:00:00:00:00:01', '02:00:00:00:00:02']", "{ a-b = ['02:00:00:00:00:01', '02:00:00:00:00:02'] }"]
    {
        let text = format!("[host.a]\nmac = {mac}\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n");
        let mistakes = parse(&text).expect_err("a mistake");
        assert!(
            mistakes[0].to_string().contains("a already has a hardware address on this link; write one"),
            "{mistakes:?}"
        );
    }
}

#[test]
fn static_routes_over_a_link_that_goes_down_are_said_where_another_way_is() {
    let ring = |top: &str, links: &[(&str, &str)]| {
        let links =
            links.iter().map(|(a, b)| format!("[[link]]\nbetween = ['{a}', '{b}']\n")).collect::<String>();
        let nodes = "[host.a]\n[host.b]\n[router.r]\n[router.s]\n[router.t]\n";
        said(&format!("{top}\n{nodes}{links}[[event]]\nat = '1s'\nlink = 'r-s'\nstate = 'down'\n"))
    };
    let line = [("a", "r"), ("r", "s"), ("s", "b"), ("s", "t")];
    let around = [&line[..], &[("t", "r")]].concat();
    let hint = "link r-s goes down, and routes are static";
    assert!(ring("", &around).iter().any(|said| said.contains(hint)), "{:?}", ring("", &around));
    assert!(ring("routes = 'dynamic'", &around).iter().all(|said| !said.contains(hint)));
    assert!(ring("", &line).iter().all(|said| !said.contains(hint)));
}
