//! Commands of hosts: `exec`, and events that start one.

use fastpath_spec::parse;
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
