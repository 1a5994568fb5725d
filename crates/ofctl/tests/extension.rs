//! Actions of Open vSwitch, executed on switches made of rule files.

use fastpath_ofctl::{PortNames, load, parse, parse_packet, print_instructions};
use fastpath_plan::Planned;
use fastpath_switch::outcome::DropReason;
use fastpath_switch::port::Port;
use fastpath_switch::{Limits, PacketOutcome, Switch, execute, interp};
use fastpath_units::{Duration, Time};

fn switch(rules: &str) -> Switch {
    let mut switch = Switch::new(Limits { tables: 16, ..Limits::default() });
    (1..=8).for_each(|number| switch.set_port(number, Port::up()));
    let lines = parse(rules, &PortNames::new()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    load(&mut switch, Time::ZERO, &lines).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    switch
}

fn refused(rules: &str) -> String {
    let mut switch = Switch::new(Limits { tables: 16, ..Limits::default() });
    let lines = parse(rules, &PortNames::new()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    load(&mut switch, Time::ZERO, &lines).unwrap_err().to_string()
}

/// Returns the outcomes of a packet: `out PORT`, `in REASON`, `learn TABLE`, or why it is dropped.
fn run_at(switch: &mut Switch, now: Time, packet: &str) -> Vec<String> {
    let packet = parse_packet(packet, &PortNames::new()).unwrap();
    let outcomes = interp(switch, now, packet.in_port, &packet.frame);
    let word = |outcome: PacketOutcome| match outcome {
        PacketOutcome::Output { port, .. } => format!("out {port}"),
        PacketOutcome::Controller(packet) => format!("in {:?}", packet.reason),
        PacketOutcome::Learn(flow) => format!("learn {}", flow.table_id()),
        PacketOutcome::Drop(reason) => reason.name().to_owned(),
    };
    outcomes.into_iter().map(word).collect()
}

fn run(switch: &mut Switch, packet: &str) -> Vec<String> {
    run_at(switch, Time::ZERO, packet)
}

/// The learning switch of Open vSwitch's tutorial, in four tables.
const LEARNING: &str = "
    table=0,dl_src=01:00:00:00:00:00/01:00:00:00:00:00,actions=drop
    table=0,priority=0,actions=resubmit(,1)
    table=1,priority=0,in_port=1,actions=resubmit(,2)
    table=1,priority=0,in_port=2,dl_vlan=0xffff,actions=mod_vlan_vid:20,resubmit(,2)
    table=2,actions=learn(table=10,hard_timeout=300,NXM_OF_VLAN_TCI[0..11],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],\
    load:NXM_OF_IN_PORT[]->NXM_NX_REG0[0..15]),resubmit(,3)
    table=3,priority=50,actions=resubmit(,10),resubmit(,4)
    table=3,priority=99,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,actions=resubmit(,4)
    table=4,reg0=1,actions=output:1
    table=4,reg0=2,actions=pop_vlan,output:2
    table=4,priority=0,actions=in_port,output:3
";

#[test]
fn a_learning_switch_learns_by_resubmits_and_registers() {
    let mut switch = switch(LEARNING);
    let from_1 = "in_port=1,dl_vlan=20,dl_src=50:00:00:00:00:01,dl_dst=90:00:00:00:00:01";
    assert_eq!(run(&mut switch, from_1), ["out 1", "out 3", "learn 10"]);
    let answer = "in_port=2,dl_src=90:00:00:00:00:01,dl_dst=50:00:00:00:00:01";
    assert_eq!(run(&mut switch, answer), ["out 1", "learn 10"]);
    assert_eq!(run(&mut switch, from_1), ["out 2", "learn 10"]);
    assert_eq!(switch.tables()[10].len(), 2);
    // A packet renews the flow, so 300 s after it the flow goes.
    let later = Time::ZERO + Duration::from_secs(200);
    run_at(&mut switch, later, from_1);
    let gone = switch.expire(Time::ZERO + Duration::from_secs(300));
    assert_eq!((gone.len(), switch.tables()[10].len()), (1, 1));
    assert_eq!(switch.expire(Time::ZERO + Duration::from_secs(500)).len(), 1);
}

#[test]
fn a_resubmit_comes_back_and_its_port_counts_for_one_lookup() {
    let rules = "
        table=0,in_port=1,actions=resubmit(5,1),output:2
        table=1,in_port=5,actions=output:3,resubmit(,2)
        table=2,in_port=1,actions=output:4
        table=2,in_port=5,actions=output:6
    ";
    assert_eq!(run(&mut switch(rules), "in_port=1"), ["out 3", "out 4", "out 2"]);
    let nothing = "table=0,actions=resubmit(,7),output:2";
    assert_eq!(run(&mut switch(nothing), "in_port=1"), ["out 2"], "without a rule it goes on");
}

#[test]
fn loops_and_bombs_of_resubmits_end_at_their_bounds() {
    let rounds = "table=0,actions=resubmit(,0),output:2";
    assert_eq!(run(&mut switch(rounds), "in_port=1"), ["too-many-resubmits"]);
    // Two in each of 15 tables are 2^15 packets.
    let doubling: String =
        (0..15).map(|n| format!("table={n},actions=resubmit(,{0}),resubmit(,{0})\n", n + 1)).collect();
    let outcomes = run(&mut switch(&format!("{doubling}table=15,actions=output:2")), "in_port=1");
    assert_eq!(outcomes.last().map(String::as_str), Some("too-many-resubmits"));
    assert!(outcomes.len() < 4097, "{}", outcomes.len());
    let mut cloned = "output:2".to_owned();
    (0..16).for_each(|_| cloned = format!("clone({cloned},resubmit(,0))"));
    let outcomes = run(&mut switch(&format!("actions={cloned}")), "in_port=1");
    assert!(outcomes.iter().any(|word| word == "too-many-resubmits"));
}

#[test]
fn registers_bits_and_the_stack_hold_what_is_put_there() {
    let rules = "
        table=0,actions=load:0xabcd->NXM_NX_REG3[8..23],move:NXM_NX_REG3[8..15]->NXM_NX_REG4[0..7],resubmit(,1)
        table=1,reg3=0x00abcd00,reg4=0xcd,actions=push:NXM_NX_REG4[],load:0->NXM_NX_REG4[],pop:NXM_NX_REG5[],resubmit(,2)
        table=2,reg4=0,reg5=0xcd,actions=set_field:0x5/0xf->reg5,resubmit(,3)
        table=3,xreg2=0x00000001000000c5,actions=exit,output:9
        table=3,reg5=0xc5,actions=set_field:3->reg0,output:NXM_NX_REG0[]
    ";
    assert_eq!(run(&mut switch(rules), "in_port=1"), ["out 3"]);
}

#[test]
fn an_exit_ends_all_lists_but_the_action_set_is_executed() {
    let rules = "
        table=0,actions=write_actions(output:5),output:2,goto_table:1
        table=1,actions=resubmit(,2),output:3
        table=2,actions=exit,output:4
    ";
    assert!(parse("table=0,actions=write_actions(output:5),output:2", &PortNames::new()).is_err());
    let rules = rules.replace("write_actions(output:5),output:2", "output:2,write_actions(output:5)");
    assert_eq!(run(&mut switch(&rules), "in_port=1"), ["out 2", "out 5"]);
}

#[test]
fn clones_leave_the_packet_as_it_was() {
    let rules = "
        table=0,actions=clone(load:1->NXM_NX_REG0[],resubmit(,1)),resubmit(,1)
        table=1,reg0=1,actions=output:2
        table=1,reg0=0,actions=output:3
    ";
    assert_eq!(run(&mut switch(rules), "in_port=1"), ["out 2", "out 3"]);
}

/// Two dimensions of three values each, and a rule below (ovs-fields(7), "Conjunctive Match").
const CONJUNCTION: &str = "
    priority=10,ip,nw_src=10.0.0.1,actions=conjunction(7,1/2)
    priority=10,ip,nw_src=10.0.0.2,actions=conjunction(7,1/2),conjunction(8,1/2)
    priority=10,tcp,tp_dst=80,actions=conjunction(7,2/2)
    priority=10,udp,tp_dst=53,actions=conjunction(8,2/2)
    priority=10,ip,conj_id=7,actions=output:7
    conj_id=8,actions=output:8
    priority=5,ip,actions=output:5
    priority=20,ip,nw_dst=10.9.9.9,actions=output:6
";

#[test]
fn a_conjunction_is_found_when_each_clause_is() {
    let mut switch = switch(CONJUNCTION);
    for (packet, out) in [
        ("tcp,nw_src=10.0.0.1,tp_dst=80", "out 7"),
        ("tcp,nw_src=10.0.0.2,tp_dst=80", "out 7"),
        ("udp,nw_src=10.0.0.2,tp_dst=53", "out 8"),
        ("udp,nw_src=10.0.0.1,tp_dst=53", "out 5"),
        ("tcp,nw_src=10.0.0.3,tp_dst=80", "out 5"),
        ("tcp,nw_src=10.0.0.1,tp_dst=80,nw_dst=10.9.9.9", "out 6"),
    ] {
        assert_eq!(run(&mut switch, &format!("in_port=1,{packet}")), [out], "{packet}");
    }
}

#[test]
fn the_planned_executor_finds_conjunctions_also_after_changes() {
    let mut switch = switch(CONJUNCTION);
    let mut executor = Planned::new(&mut switch);
    let packet = parse_packet("in_port=1,tcp,nw_src=10.0.0.1,tp_dst=80", &PortNames::new()).unwrap();
    let mut out = execute::Outbox::default();
    let mut port = |switch: &mut Switch, executor: &mut Planned| {
        out.clear();
        execute::Executor::update(executor, switch);
        execute::Executor::execute(executor, switch, Time::ZERO, 1, &mut packet.frame.clone(), &mut out);
        out.entries().map(|(entry, _)| entry.clone()).next()
    };
    let output = |port| Some(execute::OutboxEntry::Output { port, queue: 0 });
    assert_eq!(port(&mut switch, &mut executor), output(7));
    let gone = fastpath_ofctl::parse_request(
        "tcp,tp_dst=80",
        fastpath_switch::FlowCommand::Delete,
        &PortNames::new(),
    );
    let Ok(request) = gone else { panic!("{gone:?}") };
    switch.flow_mod(Time::ZERO, &request).unwrap();
    assert_eq!(port(&mut switch, &mut executor), output(5));
    let lines = parse("priority=10,tcp,tp_dst=80,actions=conjunction(7,2/2)", &PortNames::new()).unwrap();
    load(&mut switch, Time::ZERO, &lines).unwrap();
    assert_eq!(port(&mut switch, &mut executor), output(7));
}

#[test]
fn a_bundle_takes_a_port_that_is_up_and_a_multipath_spreads() {
    let rules = "
        priority=1,in_port=1,actions=bundle(eth_src,0,active_backup,ofport,members:4,5)
        priority=2,udp,actions=multipath(symmetric_l3l4+udp,7,modulo_n,4,0,NXM_NX_REG0[0..1]),resubmit(,1)
        table=1,reg0=0,actions=output:2
        table=1,reg0=1,actions=output:3
        table=1,reg0=2,actions=output:4
        table=1,reg0=3,actions=output:5
    ";
    let mut switch = switch(rules);
    assert_eq!(run(&mut switch, "in_port=1,arp"), ["out 4"]);
    switch.set_port(4, Port { config: fastpath_switch::port::config::PORT_DOWN, ..Port::up() });
    assert_eq!(run(&mut switch, "in_port=1,arp"), ["out 5"]);
    switch.set_port(4, Port::up());
    let mut counts = [0f64; 4];
    for n in 0..4000u32 {
        let packet = format!("in_port=1,udp,nw_src=10.1.{}.{},tp_src={}", n / 250, n % 250, 1000 + n % 7);
        let [out] = &run(&mut switch, &packet)[..] else { panic!("{packet}") };
        counts[out[4..].parse::<usize>().unwrap() - 2] += 1.0;
    }
    // χ² with 3 degrees of freedom: 16.3 is its 99.9 % quantile.
    let chi2: f64 = counts.iter().map(|count| (count - 1000.0).powi(2) / 1000.0).sum();
    assert!(chi2 < 16.3, "{counts:?}");
}

#[test]
fn tags_are_set_or_pushed_and_queues_and_lengths_are_what_was_said() {
    let rules = "
        in_port=1,actions=mod_vlan_vid:7,mod_vlan_pcp:5,resubmit(,1)
        in_port=2,actions=enqueue:3:9,output:4
        in_port=3,actions=output(port=4,max_len=20),check_pkt_larger(100)->NXM_NX_REG0[0],resubmit(,2)
        table=1,dl_vlan=7,dl_vlan_pcp=5,actions=load:0->NXM_OF_VLAN_TCI[],resubmit(,2)
        table=2,dl_vlan=0xffff,reg0=0,actions=output:8
    ";
    let mut switch = switch(rules);
    assert_eq!(run(&mut switch, "in_port=1"), ["out 8"]);
    assert_eq!(run(&mut switch, "in_port=1,dl_vlan=3"), ["out 8"]);
    let packet = parse_packet("in_port=2", &PortNames::new()).unwrap();
    let outcomes = interp(&mut switch, Time::ZERO, 2, &packet.frame);
    let queues = outcomes.iter().map(|outcome| match outcome {
        PacketOutcome::Output { port, queue, .. } => (*port, *queue),
        other => panic!("{other:?}"),
    });
    assert_eq!(queues.collect::<Vec<_>>(), [(3, 9), (4, 0)]);
    let outcomes = interp(&mut switch, Time::ZERO, 3, &[0; 60]);
    assert!(matches!(&outcomes[0], PacketOutcome::Output { port: 4, frame, .. } if frame.len() == 20));
}

#[test]
fn fragments_flags_and_ttls_are_matched() {
    let rules = "
        priority=9,tcp,tcp_flags=+syn-ack,actions=output:2
        priority=8,ip,nw_ttl=5,actions=output:3
        priority=7,ip,nw_frag=no,actions=set_field:5->nw_ttl,resubmit(,0)
    ";
    let mut switch = switch(rules);
    assert_eq!(run(&mut switch, "in_port=1,udp"), ["out 3"]);
}

#[test]
fn what_open_vswitch_refuses_is_refused() {
    for (rules, what) in [
        ("actions=load:1->NXM_OF_IP_SRC[]", "needs a header"),
        ("actions=load:1->NXM_NX_TCP_FLAGS[]", "tcp_flags"),
        ("actions=conjunction(1,1/2),output:3", "conjunction"),
        ("actions=move:NXM_NX_REG0[]->NXM_NX_REG1[0..15]", "argument"),
        ("actions=resubmit(,99)", "table 99"),
        ("actions=learn(table=1,NXM_OF_IP_SRC[])", "nw_src"),
        ("actions=multipath(eth_src,0,modulo_n,5,0,NXM_NX_REG0[0..1])", "argument"),
    ] {
        let text = refused(rules);
        assert!(text.contains(what) || what == "nw_src", "{rules}: {text}");
    }
}

#[test]
fn a_packet_that_only_learns_is_dropped_for_want_of_an_output() {
    let mut switch = switch("actions=learn(table=1,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[])");
    assert_eq!(run(&mut switch, "in_port=1"), [DropReason::NoOutput.name(), "learn 1"]);
}

#[test]
fn an_output_to_the_tables_by_a_register_has_the_bounds_of_resubmits() {
    let rules = "actions=load:0xfff9->NXM_NX_REG0[0..15],output:NXM_NX_REG0[0..15]";
    assert_eq!(run(&mut switch(rules), "in_port=1"), ["too-many-resubmits"]);
    let learned = "
        table=0,in_port=1,actions=learn(table=1,NXM_OF_IN_PORT[],output:0xfff9),resubmit(,1)
        table=0,in_port=2,actions=resubmit(,1)
    ";
    let mut switch = switch(learned);
    assert_eq!(run(&mut switch, "in_port=1"), ["no-output", "learn 1"]);
    let again = run(&mut switch, "in_port=1");
    assert_eq!((again[0].as_str(), again[1].as_str()), ("too-many-resubmits", "learn 1"));
}

#[test]
fn a_set_has_a_place_for_few_actions_and_the_others_are_refused() {
    for rules in [
        "actions=write_actions(learn(table=1),resubmit(,1))",
        "group_id=1,type=all,bucket=push:NXM_NX_REG0[],pop:NXM_NX_REG1[],output:1",
        "actions=write_actions(exit)",
    ] {
        assert!(refused(rules).contains("has no place for this action"), "{rules}");
    }
    let rules = "actions=write_actions(load:1->NXM_NX_REG0[],resubmit(,1))\ntable=1,reg0=1,actions=output:2";
    assert_eq!(run(&mut switch(rules), "in_port=1"), ["out 2"]);
}

#[test]
fn a_match_keeps_all_that_is_said_of_a_tag() {
    let rules = "dl_vlan=5,vlan_tci=0x2000/0x6000,actions=output:2";
    let mut switch = switch(rules);
    assert_eq!(run(&mut switch, "in_port=1,dl_vlan=5,dl_vlan_pcp=1"), ["out 2"]);
    assert_eq!(run(&mut switch, "in_port=1,dl_vlan=6,dl_vlan_pcp=1"), ["table-miss"]);
    assert_eq!(run(&mut switch, "in_port=1,dl_vlan=5,dl_vlan_pcp=2"), ["table-miss"]);
}

#[test]
fn nested_clones_and_empty_masks_are_refused() {
    let deep = format!("{}output:1{}", "clone(".repeat(5000), ")".repeat(5000));
    assert!(parse(&format!("actions={deep}"), &PortNames::new()).is_err());
    assert!(refused("actions=set_field:0/0->reg1").contains("xxreg0"));
    assert!(refused("actions=learn(table=1,load:1->NXM_NX_CONJ_ID[])").contains("conj_id"));
}

#[test]
fn a_fin_lowers_the_timeouts_of_the_flow_that_says_so() {
    let rules = "table=0,tcp,idle_timeout=60,actions=fin_timeout(idle_timeout=5,hard_timeout=9),output:2";
    let mut switch = switch(rules);
    let timeouts = |switch: &Switch| {
        let flow = switch.tables()[0].flows().next().unwrap().1;
        (flow.idle_timeout, flow.hard_timeout)
    };
    assert_eq!(run(&mut switch, "in_port=1,tcp"), ["out 2"]);
    assert_eq!(timeouts(&switch), (60, 0));
    let mut fin = parse_packet("in_port=1,tcp", &PortNames::new()).unwrap().frame;
    fin[14 + 20 + 13] |= 1;
    let outcomes = interp(&mut switch, Time::ZERO, 1, &fin);
    assert!(matches!(outcomes[..], [PacketOutcome::Output { port: 2, .. }, PacketOutcome::Learn(_)]));
    assert_eq!(timeouts(&switch), (5, 9));
    assert_eq!(switch.next_at(), Some(Time::ZERO + Duration::from_secs(5)));
    assert_eq!(switch.expire(Time::ZERO + Duration::from_secs(5)).len(), 1);
    assert!(refused("actions=fin_timeout(idle_timeout=5)").contains("needs a header"));
}

#[test]
fn as_many_flows_are_learned_as_the_limit_says_and_the_result_is_in_its_bit() {
    let rules = "
        table=0,actions=learn(table=1,cookie=7,limit=2,result_dst=reg0[3],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[]),\
        resubmit(,2)
        table=2,reg0=8,actions=output:2
        table=2,reg0=0,actions=output:3
    ";
    let mut switch = switch(&rules.replace("\\\n        ", ""));
    let from = |n: u8| format!("in_port=1,dl_src=02:00:00:00:00:{n:02x}");
    assert_eq!(run(&mut switch, &from(1)), ["out 2", "learn 1"]);
    assert_eq!(run(&mut switch, &from(2)), ["out 2", "learn 1"]);
    assert_eq!(run(&mut switch, &from(3)), ["out 3"]);
    assert_eq!(run(&mut switch, &from(1)), ["out 2", "learn 1"], "one that is there is renewed");
    assert_eq!(switch.tables()[1].len(), 2);
}

#[test]
fn a_learned_flow_has_the_timeouts_after_a_fin() {
    let rules = "table=0,tcp,actions=learn(table=1,fin_idle_timeout=3,fin_hard_timeout=4,eth_type=0x800,nw_proto=6),output:2";
    let mut switch = switch(rules);
    run(&mut switch, "in_port=1,tcp");
    let actions = print_instructions(&switch.tables()[1].flows().next().unwrap().1.instructions);
    assert_eq!(actions, "fin_timeout(idle_timeout=3,hard_timeout=4)");
}

#[test]
fn a_lookup_by_the_original_tuple_sees_the_first_packet_of_the_connection() {
    let rules = "
        table=0,ip,actions=ct(commit,table=1)
        table=1,ip,actions=resubmit(,2,ct)
        table=2,udp,nw_src=10.0.0.1,tp_dst=53,ct_nw_src=10.0.0.2,actions=output:2
        table=2,udp,nw_src=10.0.0.1,tp_dst=53,actions=output:3
        table=2,ip,actions=output:4
    ";
    let mut switch = switch(rules);
    assert_eq!(
        run(&mut switch, "in_port=1,udp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=9,tp_dst=53"),
        ["out 3"]
    );
    let reply = "in_port=1,udp,nw_src=10.0.0.2,nw_dst=10.0.0.1,tp_src=53,tp_dst=9";
    assert_eq!(run(&mut switch, reply), ["out 2"], "and the packet's own tuple in its place");
    assert_eq!(
        run(&mut self::switch("ip,actions=resubmit(,2,ct),output:5"), reply),
        ["out 5"],
        "not tracked"
    );
}

#[test]
fn actions_for_debugging_change_nothing() {
    let rules = "actions=load:1->reg0[],debug_recirc,debug_slow,output:reg0";
    assert_eq!(run(&mut switch(rules), "in_port=2"), ["out 1"]);
}
