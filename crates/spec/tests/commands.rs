//! Commands of hosts: `exec`, and events that start one.

use fastpath_spec::{Rebinding, parse};
use fastpath_units::{Duration, Time};

#[test]
fn commands_are_in_the_order_of_the_text_and_events_in_that_of_time() {
    let (topology, warnings) = parse(
        "[host.a]\nexec = ['x', 'y']\n[host.b]\nexec = 'z'\n[[link]]\nbetween = ['a', 'b']\n\
         [[event]]\nat = '2s'\nhost = 'b'\nexec = 'late'\n[[event]]\nat = '1s'\nhost = 'a'\nexec = 'early'\n",
    )
    .unwrap();
    assert!(warnings.is_empty() && topology.events.is_empty());
    assert_eq!(
        topology.nodes.iter().map(|node| node.kind.exec().join(" ")).collect::<Vec<_>>(),
        ["x y", "z"]
    );
    let timed: Vec<_> = topology.commands.iter().map(|c| (c.at, c.host.0, c.command.as_str())).collect();
    let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
    assert_eq!(timed, [(at(1), 0, "early"), (at(2), 1, "late")]);
    assert_eq!(topology.hosts_with_commands(), ["a", "b"]);
}

#[test]
fn commands_that_cannot_start_are_refused() {
    let cases = [
        ("[router.r]\nexec = 'x'", "6:1: router r has no key 'exec'"),
        ("[[event]]\nat = '1s'\nhost = 'a'", "7:8: event has a host and no exec; write exec = "),
        ("[[event]]\nat = '1s'\nexec = 'x'", "7:8: event has exec and no host; write host = \"a\""),
        ("[[event]]\nat = '1s'\nhost = 'c'\nexec = 'x'", "7:8: there is no host 'c'; write \"a\""),
        ("[switch.s]\n[[event]]\nat = '1s'\nhost = 's'\nexec = 'x'", "8:8: s is a switch, and programs"),
        (
            "[[event]]\nat = '1s'\nhost = 'a'\nexec = 'x'\ndelay = '1ms'",
            "8:8: event has a command and a change of links; write an event for each",
        ),
        ("[[event]]\nat = '1s'\nhost = 1\nexec = 'x'", "7:8: host is a whole number, not text"),
    ];
    for (text, expected) in cases {
        let text = format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n{text}\n");
        let mistakes = parse(&text).unwrap_err();
        let said: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|said| said.starts_with(expected)), "{text}: {said:?}");
    }
}

#[test]
fn events_rebind_nats_that_are_there() {
    let net = |event: &str| {
        format!(
            "[host.a]\n[host.b]\n[nat.x]\ninside = ['a-x']\n[[link]]\nbetween = ['a', 'x']\n\
             [[link]]\nbetween = ['x', 'b']\n[[event]]\nat = '1s'\n{event}\n"
        )
    };
    let (topology, warnings) = parse(&net("nat = 'x'\nrebind = 'port'\nevery = '3s'")).unwrap();
    let [event] = topology.nat_events[..] else { panic!("{:?}", topology.nat_events) };
    let expected = (Time::ZERO + Duration::from_secs(1), Some(Duration::from_secs(3)), Rebinding::Port);
    assert_eq!((event.at, event.every, event.rebinding), expected);
    assert!(warnings.is_empty() && topology.node(event.nat).name == "x");
    for (event, expected) in [
        ("nat = 'x'", "event has a nat and no rebind; write rebind = \"port\""),
        ("rebind = 'port'", "event has rebind and no nat; write nat = \"home\""),
        ("nat = 'y'\nrebind = 'port'", "there is no NAT 'y'; write \"x\""),
        ("nat = 'b'\nrebind = 'port'", "b is not a NAT; write \"x\""),
        ("nat = 'x'\nrebind = 'ports'", "'ports' is not what a NAT rebinds"),
        (
            "nat = 'x'\nrebind = 'address'",
            "x has no other address to rebind to; write a pool of two addresses",
        ),
        ("nat = 'x'\nrebind = 'port'\nevery = '0s'", "every is 0; write every = \"3s\""),
        (
            "nat = 'x'\nrebind = 'port'\nlink = 'a-x'",
            "event rebinds a NAT and changes links; write an event for each",
        ),
        ("every = '3s'\nlink = 'a-x'\ndelay = '1ms'", "event repeats and rebinds no nat; write nat = "),
    ] {
        let said: Vec<String> = parse(&net(event)).unwrap_err().iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|said| said.contains(expected)), "{event}: {said:?}");
    }
}
