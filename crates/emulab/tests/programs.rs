//! Programs of scripts, namespaces of Tcl, and addresses without subnets.

use fastpath_emulab::parse;
use fastpath_spec::{KernelForwarder, NodeKind, Topology};

fn read(text: &str) -> (Topology, Vec<String>) {
    match parse(text) {
        Ok((topology, warnings)) => (topology, warnings.iter().map(ToString::to_string).collect()),
        Err(mistakes) => panic!("{}", mistakes.iter().map(|m| format!("{m}\n")).collect::<String>()),
    }
}

/// a – r – b.
fn chain(rest: &str) -> String {
    format!(
        "set ns [new Simulator]\nforeach n {{a r b}} {{ set $n [$ns node] }}\n\
         set x [$ns duplex-link $a $r 10Mb 1ms DropTail]\nset y [$ns duplex-link $r $b 10Mb 1ms DropTail]\n\
         {rest}\n$ns run\n"
    )
}

fn commands(topology: &Topology) -> Vec<(u64, &str, &str)> {
    let shown = topology.commands.iter();
    shown
        .map(|command| {
            let host = topology.node(command.host).name.as_str();
            (command.at.as_ns() / 1_000_000_000, host, command.command.as_str())
        })
        .collect()
}

#[test]
fn start_commands_and_program_agents_run_at_their_times() {
    let (topology, _) = read(&chain(
        "tb-set-node-startcmd $a \"sh /share/start.sh\"\n\
         set p [$b program-agent -command \"iperf3 -c a\" -timeout 5 -dir work]\n\
         set q [new Program $ns]\n$q set node $a\n$q set command ls\n\
         $ns at 10.0 \"$p start\"\n$ns at 3.0 \"$q run; $x down\"\n$ns at 4.0 {$q start -command \"id -u\"}",
    ));
    assert_eq!(
        commands(&topology),
        [
            (0, "a", "sh /share/start.sh"),
            (3, "a", "ls"),
            (4, "a", "id -u"),
            (10, "b", "cd 'work' && { timeout 5 sh -c 'iperf3 -c a'\n}"),
        ]
    );
    assert_eq!(topology.events.len(), 1);
}

#[test]
fn a_program_that_is_stopped_ends_with_its_children() {
    let (topology, _) = read(&chain(
        "set p [$a program-agent -command \"sleep 100; echo 'x'\"]\n\
         $ns at 1.0 \"$p start\"\n$ns at 2.0 \"$p stop\"\n$ns at 3.0 \"$p kill SIGINT\"",
    ));
    let file = "$FASTPATH_STATE_DIR/$FASTPATH_LAB/program-0.pid";
    let start = format!("echo $$ > \"{file}\"; exec setsid sh -c 'sleep 100; echo '\\''x'\\'''");
    let [stop, kill] = ["TERM", "INT"].map(|signal| format!("kill -s {signal} -- \"-$(cat \"{file}\")\""));
    assert_eq!(commands(&topology), [(1, "a", &*start), (2, "a", &*stop), (3, "a", &*kill)]);
}

#[test]
fn a_node_with_several_links_on_which_programs_run_is_a_kernel_router() {
    let (topology, warnings) = read(&chain("tb-set-node-startcmd $r id"));
    let r = &topology.nodes[1];
    assert!(matches!(r.kind, NodeKind::KernelRouter { forwarder: KernelForwarder::Engine, .. }));
    assert!(
        warnings[0].ends_with(
            "kernel routers, because they have several neighbours and programs: r; the other nodes are hosts"
        ),
        "{warnings:?}"
    );
    let (topology, _) = read(&chain(""));
    assert!(!matches!(topology.nodes[1].kind, NodeKind::KernelRouter { .. }));
    // In a ring of nodes those with programs forward too.
    let ring = chain("$ns duplex-link $b $a 10Mb 1ms DropTail\ntb-set-node-startcmd $a id");
    let kernel: Vec<bool> =
        read(&ring).0.nodes.iter().map(|node| matches!(node.kind, NodeKind::KernelRouter { .. })).collect();
    assert_eq!(kernel, [true, false, false]);
}

#[test]
fn mistakes_about_programs_are_answered_with_what_to_write() {
    for (rest, expected) in [
        ("set p [$a program-agent -comand ls]", "a program has no 'comand'; write command"),
        (
            "set p [new Program $ns]\n$ns at 1 \"$p start\"",
            "the program has no node; write $program set node",
        ),
        ("set p [$a program-agent]\n$ns at 1 \"$p start\"", "the program has no command; write $program set"),
        (
            "set p [$a program-agent -command ls]\n$ns at 1 \"$p strat\"",
            "'strat' is not an event of a program; write $ns at 10.0 \"$program start\"",
        ),
        ("set p [$a program-agent -command ls]\n$p start", "a program is started by an event; write $ns at"),
        ("set p [$a program-agent -timeout soon]", "'soon' is not a time; write a number of seconds"),
        ("tb-set-node-startcmd $a", "wrong number of arguments; write tb-set-node-startcmd $node"),
        ("namespace x", "wrong number of arguments for namespace; write namespace eval NAME {BODY}"),
    ] {
        let said: Vec<String> = parse(&chain(rest)).unwrap_err().iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|said| said.contains(expected)), "{rest}: {said:?}");
    }
}

#[test]
fn namespaces_have_variables_and_procedures_of_their_own() {
    let (topology, _) = read(
        "set ns [new Simulator]\nset rate 1Mb\n\
         namespace eval lab {\n  variable rate 5Mb\n  variable count\n  set count 2\n\
           proc join {a b} {\n    global ns\n    variable rate\n    return [$ns duplex-link $a $b $rate 1ms DropTail]\n  }\n\
           proc both {a b} { join $a $b }\n}\n\
         set a [$ns node]\nset b [$ns node]\nset l [lab::both $a $b]\n\
         if {$lab::count != 2 || $rate != \"1Mb\" || $::lab::rate != \"5Mb\"} { error wrong }\n\
         namespace eval ::lab { if {[namespace current] != \"::lab\"} { error current } }\n\
         namespace import lab::*\nset m [both $a $b]\n\
         tb-add-node-service-hook $a x\nset proj ${GLOBALS::pid}/$GLOBALS::eid\n$ns run\n",
    );
    let rates: Vec<String> =
        topology.links.iter().map(|link| link.pipes[0].rate.unwrap().to_string()).collect();
    assert_eq!(rates, ["5Mbit", "5Mbit"]);
    assert_eq!(topology.links.iter().map(|link| &*link.name).collect::<Vec<_>>(), ["l", "m"]);
}

#[test]
fn addresses_of_several_subnets_on_a_link_stand_alone() {
    // Two subnets on x; y has the subnet of one of them.
    let (topology, warnings) = read(&chain(
        "tb-set-ip-link $a $x 10.1.1.2\ntb-set-ip-link $r $x 10.1.2.3\n\
         tb-set-ip-link $r $y 10.1.2.4\ntb-set-ip-link $b $y 10.1.2.5",
    ));
    assert!(warnings.iter().any(|said| said.contains("each has a route of its own")), "{warnings:?}");
    let v4 = |node: usize| -> Vec<String> {
        let all = topology.nodes[node].interfaces.iter().flat_map(|interface| &interface.addresses);
        all.filter(|net| net.addr().is_ipv4()).map(ToString::to_string).collect()
    };
    assert_eq!(
        (v4(0), v4(1), v4(2)),
        (
            vec!["10.1.1.2/32".into()],
            vec!["10.1.2.3/32".into(), "10.1.2.4/32".into()],
            vec!["10.1.2.5/32".to_owned()]
        )
    );
    // What agrees keeps its subnet.
    let (topology, _) = read(&chain("tb-set-ip-link $a $x 10.9.1.2\ntb-set-ip-link $r $x 10.9.1.3"));
    assert_eq!(topology.nodes[0].interfaces[0].addresses[0].to_string(), "10.9.1.2/24");
}
