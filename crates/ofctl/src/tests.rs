//! Rule files parsed, printed, and parsed again.

use super::*;
use fastpath_switch::FieldMatch;
use fastpath_switch::Limits;
use fastpath_switch::action::Action;
use fastpath_switch::field::Field;
use fastpath_switch::flow::{Flow, FlowFilter, Rank};
use fastpath_switch::group::{Bucket, GroupKind};
use fastpath_switch::meter::{self, Band, BandKind, Meter};
use fastpath_switch::port::{self, Port};
use proptest::prelude::*;

fn flow(line: &str) -> FlowMod {
    match &parse(line, &PortNames::new()).unwrap_or_else(|m| panic!("{m:?}"))[..] {
        [RuleLine { rule: FileRule::Flow(flow), .. }] => flow.clone(),
        other => panic!("{other:?}"),
    }
}

fn fields(line: &str) -> Vec<(Field, u128, u128)> {
    flow(line).matching.fields().map(|f| (f.field, f.value, f.mask)).collect()
}

fn mistakes(text: &str) -> Vec<String> {
    parse(text, &PortNames::from([("p1".to_owned(), 1)]))
        .unwrap_err()
        .iter()
        .map(Mistake::to_string)
        .collect()
}

#[test]
fn a_flow_is_read_with_its_settings() {
    let line = "cookie=0x1f,table=3, priority=7,idle_timeout=10,hard_timeout=20,send_flow_rem,in_port=2 actions=output:3";
    let read = flow(line);
    assert_eq!((read.cookie, read.table_id, read.priority), (0x1f, 3, 7));
    assert_eq!((read.idle_timeout, read.hard_timeout, read.flags), (10, 20, 1));
    assert_eq!(read.instructions.apply, [Action::output(3)]);
    assert_eq!(flow("actions=drop").priority, 32_768);
}

#[test]
fn names_stand_for_the_fields_of_their_protocol() {
    let exact = |field: Field, value| (field, value, field.ones());
    assert_eq!(
        fields("tcp,nw_dst=10.0.0.0/8,tp_dst=80,actions=drop"),
        [
            exact(Field::EthType, 0x0800),
            exact(Field::IpProto, 6),
            (Field::Ipv4Dst, 0x0a00_0000, 0xff00_0000),
            exact(Field::TcpDst, 80)
        ]
    );
    assert_eq!(
        fields("arp,nw_src=10.0.0.1,nw_proto=1 actions=drop")[1..],
        [exact(Field::ArpOp, 1), exact(Field::ArpSpa, 0x0a00_0001)]
    );
    assert_eq!(
        fields("icmp6,icmp_type=135,nd_target=::1 actions=drop")[2..],
        [exact(Field::Icmpv6Type, 135), exact(Field::Ipv6NdTarget, 1)]
    );
    assert_eq!(fields("tp_src=0x10/0xfff0,udp6 actions=drop")[2..], [(Field::UdpSrc, 0x10, 0xfff0)]);
    assert_eq!(
        fields("dl_vlan=100,dl_vlan_pcp=3 actions=drop"),
        [exact(Field::VlanVid, 0x1064), exact(Field::VlanPcp, 3)]
    );
    assert_eq!(fields("dl_vlan=0xffff actions=drop"), [exact(Field::VlanVid, 0)]);
    assert_eq!(
        fields("dl_type=0x0800,nw_proto=17,nw_tos=0xb8 actions=drop")[1..],
        [exact(Field::IpDscp, 46), exact(Field::IpProto, 17)]
    );
    assert_eq!(
        fields("dl_dst=01:00:00:00:00:00/01:00:00:00:00:00 actions=drop"),
        [(Field::EthDst, 1 << 40, 1 << 40)]
    );
}

/// The lines are those that ovs-ofctl 3.1 prints for dl_vlan=0xffff, for any tag, for a masked id,
/// and for vlan_tci=0.
#[test]
fn what_ovs_ofctl_dumps_loads_again() {
    let exact = |field: Field, value| (field, value, field.ones());
    let dump = "OFPST_FLOW reply (OF1.3) (xid=0x2):
 cookie=0x0, duration=4.518s, table=0, n_packets=0, n_bytes=0, priority=4,vlan_tci=0x0000/0x1fff actions=output:2
 cookie=0x0, duration=4.518s, table=0, n_packets=0, n_bytes=0, priority=3,vlan_tci=0x1000/0x1000 actions=output:2
 cookie=0x0, duration=4.518s, table=0, n_packets=0, n_bytes=0, priority=2,vlan_tci=0x1100/0x1f00 actions=output:2
 cookie=0x0, duration=4.518s, table=0, n_packets=0, n_bytes=0, priority=1,vlan_tci=0x0000 actions=output:2";
    let lines = parse(dump, &PortNames::new()).unwrap();
    let printed: Vec<String> = lines
        .iter()
        .map(|line| match &line.rule {
            FileRule::Flow(request) => print_match(&request.matching),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        printed,
        ["dl_vlan=0xffff", "vlan_vid=0x1000/0x1000", "vlan_vid=0x1100/0x1f00", "dl_vlan=0xffff"]
    );
    assert_eq!(
        fields("vlan_tci=0x7064 actions=drop"),
        [exact(Field::VlanVid, 0x1064), exact(Field::VlanPcp, 3)]
    );
    let refused = mistakes(
        "vlan_tci=0x2000/0x20000,actions=drop
vlan_tci=0x1e000,actions=drop",
    );
    assert!(refused.len() == 2 && refused[0].starts_with("1: a mask of vlan_tci cannot be"), "{refused:?}");
}

#[test]
fn instructions_are_among_the_actions() {
    let read = flow(
        "tcp actions=meter:4,set_field:10.0.0.1->ip_dst,mod_tp_dst:8080,2,CONTROLLER:128,clear_actions,\
        write_actions(push_vlan:0x8100,set_field:100->vlan_vid,output:1),write_metadata:0x5/0xf,goto_table:2",
    )
    .instructions;
    assert_eq!((read.meter, read.goto), (Some(4), Some(2)));
    let to_controller = Action::Output { port: port::CONTROLLER, max_len: 128 };
    let set = Action::SetField;
    assert_eq!(
        read.apply,
        [set(Field::Ipv4Dst, 0x0a00_0001), set(Field::TcpDst, 8080), Action::output(2), to_controller]
    );
    assert_eq!(read.write, [Action::PushVlan(0x8100), set(Field::VlanVid, 0x1064), Action::output(1)]);
    assert_eq!(read.metadata, Some(flow::WriteMetadata { value: 5, mask: 15 }));
}

#[test]
fn every_mistake_is_reported_with_its_line_and_a_remedy() {
    let text = "in_port=p1,actions=output:nowhere\n\n# fine\ntp_dst=80,actions=drop\nip,nw_dst=10.0.0.300,actions=drop\n\
        in_port=1\nfoo=1,actions=drop\nnw_dst=10.0.0.0/8,actions=drop\npriority=70000,actions=drop\nactions=mod_vlan_vid:4096\n\
        group_id=1,type=any,bucket=output:1\nmeter=1,kbps,bands=type=drp,rate=1\nactions=frobnicate:1\n\
        ip,nw_dst=10.0.0.0/33,actions=drop";
    assert_eq!(
        mistakes(text),
        [
            "1: unknown port 'nowhere'; write a number or one of p1, in_port, table, normal, flood, all, controller, local",
            "4: tp_dst is a field of TCP, UDP, SCTP or ICMP; write for example tcp,tp_dst=…",
            "5: nw_dst cannot be '10.0.0.300'; write for example nw_dst=192.0.2.1 or 192.0.2.0/24",
            "6: a flow needs actions; end the line with actions=ACTION,… or actions=drop",
            "7: unknown field 'foo'; write an OpenFlow field such as in_port, eth_dst, vlan_vid, nw_src or tp_dst",
            "8: field ipv4_dst is matched without its prerequisite; match the prerequisite too, for example tcp before tp_dst",
            "9: priority cannot be '70000'; write priority=N with N from 0 to 65535",
            "10: mod_vlan_vid cannot be '4096'; write mod_vlan_vid=N with N from 0 to 4095",
            "11: unknown group type 'any'; write type=all, select, indirect or ff",
            "12: unknown band type 'drp'; write type=drop or type=dscp_remark",
            "13: unknown action 'frobnicate'; write output:PORT, group:N, set_field:VALUE->FIELD, …",
            "14: nw_dst cannot have a prefix of '33' bits; write nw_dst=ADDRESS/N with N from 0 to 32",
        ]
    );
}

#[test]
fn every_word_of_a_rule_has_an_effect_or_is_a_mistake() {
    for (line, said) in [
        ("actions=output:2,drop", "drop stands beside output:2; write drop alone, or only the other actions"),
        ("actions=drop,goto_table:1", "drop stands beside goto_table:1"),
        ("actions=write_actions(output:1),write_actions(output:2)", "write_actions is given twice"),
        ("actions=goto_table:1,output:3", "output stands after goto_table; write it before goto_table"),
        ("actions=goto_table:1,goto_table:2", "goto_table is given twice"),
        ("actions=output:1,meter:1", "meter stands after output"),
        ("actions=clear_actions,output:1", "output stands after clear_actions"),
        ("actions=clear_actions:7", "clear_actions has no argument, and '7' is one"),
        ("actions=pop_vlan:7", "pop_vlan has no argument"),
        ("actions=drop:7", "drop has no argument"),
        ("actions=write_actions(output:3", "'write_actions(output:3' has no closing parenthesis"),
        ("ip,actions=mod_nw_tos:185", "mod_nw_tos cannot be '185'"),
        ("ip,nw_tos=1,actions=drop", "write nw_tos=0; nw_ecn is a field of its own"),
        ("priority=1,priority=2,actions=drop", "priority is given twice"),
        ("send_flow_rem=1,actions=drop", "send_flow_rem has no value"),
        ("meter=1,kbps=1,bands=type=drop,rate=1", "kbps has no value"),
        ("meter=1,kbps,bands=type=drop,rate=1,burst_size=3", "burst_size has no effect without burst"),
        ("meter=1,kbps,bands=type=drop,rate=1,rate=2", "rate is given twice"),
        ("group_id=1,group_id=2,type=all,bucket=output:1", "group_id is given twice"),
        ("group_id=1,type=select,bucket=weight:1,weight:2,output:1", "weight is given twice"),
        ("group_id=1,type=all,bucket=bucket_id:5,output:1", "bucket_id:5 is of OpenFlow 1.5"),
    ] {
        let found = mistakes(line);
        assert!(found.len() == 1 && found[0].contains(said), "{line}: {found:?}");
    }
    let dumped =
        "group_id=1,type=all,bucket=bucket_id:0,actions=output:1,bucket=bucket_id:1,actions=output:2";
    assert!(parse(dumped, &PortNames::new()).is_ok());
}

#[test]
fn a_match_decides_whether_an_action_pushes_a_tag_or_changes_it() {
    let set = |field: Field, value| Action::SetField(field, value);
    let (push, vid) = (Action::PushVlan(0x8100), set(Field::VlanVid, 0x1064));
    for (line, actions) in [
        ("dl_vlan=5,actions=mod_vlan_vid:100", vec![vid.clone()]),
        ("vlan_vid=0x1000/0x1000,actions=mod_vlan_vid:100", vec![vid.clone()]),
        (
            "dl_vlan=0xffff,actions=mod_vlan_vid:100,mod_vlan_pcp:3",
            vec![push.clone(), vid.clone(), set(Field::VlanPcp, 3)],
        ),
        ("actions=push_vlan:0x8100,mod_vlan_vid:100", vec![push.clone(), vid.clone()]),
    ] {
        assert_eq!(flow(line).instructions.apply, actions, "{line}");
    }
    // Where the match does not say it, the packet decides.
    for (line, actions) in [
        ("ip,actions=mod_vlan_pcp:3", vec![Action::ModVlanPcp(3)]),
        ("dl_vlan=5,actions=pop_vlan,mod_vlan_vid:100", vec![Action::PopVlan, Action::ModVlanVid(100)]),
        ("actions=mod_vlan_vid:100,mod_vlan_pcp:3", vec![Action::ModVlanVid(100), set(Field::VlanPcp, 3)]),
    ] {
        assert_eq!(flow(line).instructions.apply, actions, "{line}");
    }
}

const FILE: &str = "\
group_id=1,type=ff,bucket=weight:1,watch_port:2,actions=output:2,bucket=weight:1,watch_port:3,actions=output:3
group_id=2,type=select,bucket=weight:10,actions=output:2,bucket=weight:30,actions=group:1
meter=1,kbps,burst,bands=type=drop,rate=1000,burst_size=100
meter=2,pktps,bands=type=dscp_remark,rate=10,prec_level=2
cookie=0x7, table=0, n_packets=0, n_bytes=0, idle_timeout=5, send_flow_rem, priority=9,tcp,in_port=1,nw_dst=10.0.0.0/8,tp_dst=80 actions=meter:1,dec_ttl,group:2
cookie=0x0, table=0, n_packets=0, n_bytes=0, priority=8,dl_dst=02:00:00:00:00:00/ff:00:00:00:00:00,dl_vlan=100 actions=pop_vlan,goto_table:1
cookie=0x0, table=0, n_packets=0, n_bytes=0, priority=0 actions=CONTROLLER:65535
cookie=0x0, table=1, n_packets=0, n_bytes=0, priority=5,icmp6,icmp_type=135,nd_target=2001:db8::/32 actions=drop
";

#[test]
fn loaded_rules_are_what_the_file_says() {
    let mut switch = Switch::new(Limits { tables: 4, ..Limits::default() });
    (1..=3).for_each(|port| switch.set_port(port, Port::up()));
    load(&mut switch, Time::ZERO, &parse(FILE, &PortNames::new()).unwrap()).unwrap();
    let bucket = |id, weight, watch_port, action| Bucket { id, weight, watch_port, ..Bucket::new([action]) };
    // Without numbers buckets are counted.
    let [two, three] = [2, 3].map(|port| bucket(port - 2, 1, port, Action::output(port)));
    let shared =
        vec![bucket(0, 10, port::ANY, Action::output(2)), bucket(1, 30, port::ANY, Action::Group(1))];
    let groups: Vec<_> =
        switch.groups().map(|(id, group)| (id, group.kind, group.buckets.to_vec())).collect();
    assert_eq!(groups, [(1, GroupKind::FastFailover, vec![two, three]), (2, GroupKind::Select, shared)]);
    let bands = |meter: &Meter| meter.bands().map(|(band, _)| *band).collect::<Vec<_>>();
    let meters: Vec<_> = switch.meters().map(|(id, meter)| (id, meter.flags, bands(meter))).collect();
    let kbps = Band { kind: BandKind::Drop, rate: 1000, burst: 100 };
    let pktps = Band { kind: BandKind::DscpRemark(2), rate: 10, burst: 0 };
    use meter::flags::{BURST, KBPS, PKTPS};
    assert_eq!(meters, [(1, KBPS | BURST, vec![kbps]), (2, PKTPS, vec![pktps])]);
    let filter = FlowFilter::all();
    let print = |(table, rank, flow): (u8, &Rank, &Flow)| {
        let (matching, what) = (print_match(rank.matching()), print_instructions(&flow.instructions));
        let Flow { cookie, idle_timeout, flags, .. } = flow;
        format!("{cookie} {table} {idle_timeout} {flags} {}: {matching} actions={what}", rank.priority())
    };
    assert_eq!(
        switch.flows(&filter).unwrap().map(print).collect::<Vec<_>>(),
        [
            "7 0 5 1 9: tcp,in_port=1,nw_dst=10.0.0.0/8,tp_dst=80 actions=meter:1,dec_ttl,group:2",
            "0 0 0 0 8: dl_dst=02:00:00:00:00:00/ff:00:00:00:00:00,dl_vlan=100 actions=pop_vlan,goto_table:1",
            "0 0 0 0 0:  actions=CONTROLLER:65535",
            "0 1 0 0 5: icmp6,icmp_type=135,nd_target=2001:db8::/32 actions=drop",
        ]
    );
}

#[test]
fn rules_that_the_switch_refuses_are_reported_with_their_line() {
    let mut switch = Switch::new(Limits { tables: 4, ..Limits::default() });
    let lines =
        parse("actions=TABLE\nactions=group:9\ntable=2 actions=goto_table:1", &PortNames::new()).unwrap();
    let found: Vec<String> =
        load(&mut switch, Time::ZERO, &lines).unwrap_err().iter().map(Mistake::to_string).collect();
    assert_eq!(
        found,
        [
            "1: cannot output to port 0xfffffff9; use an existing port or a supported reserved port",
            "2: group 9 does not exist; add it first",
            "3: goto-table 1 does not lead to a later table; change or remove this rule",
        ]
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z0-9_=,:/.()> -]{0,80}|\\PC{0,40}") {
        let _ = parse(&text, &PortNames::new());
        let _ = parse(&format!("tcp,{text},actions={text}"), &PortNames::new());
        let _ = parse(&format!("group_id=1,type=all,bucket={text}"), &PortNames::new());
        let _ = parse(&format!("meter=1,{text}"), &PortNames::new());
    }

    #[test]
    fn a_printed_match_reads_back_the_same(which in prop::collection::vec(0usize..86, 0..8), values in prop::collection::vec(any::<u128>(), 86), masks in prop::collection::vec(any::<u128>(), 86)) {
        let mut fields: Vec<FieldMatch> = Vec::new();
        for index in which {
            let field = fastpath_switch::field::FIELDS[index].field;
            // The tag as a whole is read as its parts.
            if field == fastpath_switch::Field::VlanTci {
                continue;
            }
            let mask = if field.is_maskable() && masks[index] & 1 == 0 { masks[index] & field.ones() } else { field.ones() };
            let candidate = FieldMatch::masked(field, values[index] & mask, mask);
            let more: Vec<FieldMatch> = fields.iter().copied().chain([candidate]).collect();
            // Fields whose prerequisites are missing are omitted.
            if Match::new(&more).is_ok() {
                fields = more;
            }
        }
        for base in [vec![], vec![FieldMatch::exact(Field::EthType, 0x0800), FieldMatch::exact(Field::IpProto, 6)]] {
            let all: Vec<FieldMatch> = base.into_iter().chain(fields.iter().copied()).collect();
            let Ok(matching) = Match::new(&all) else { continue };
            let line = format!("{},actions=drop", print_match(&matching));
            let read = parse(&line, &PortNames::new());
            prop_assert!(read.is_ok(), "{line}: {read:?}");
            prop_assert_eq!(&flow(&line).matching, &matching, "{}", line);
        }
    }
}

/// Actions of Open vSwitch and what it prints for them (ovs-actions(7), tests/ofp-actions.at).
#[test]
fn actions_of_open_vswitch_are_printed_as_they_are_written() {
    for text in [
        "load:0x1234->NXM_NX_REG0[0..15]",
        "load:0x1->OXM_OF_PKT_REG3[31..32]",
        "set_field:0x5/0xf->reg3",
        "set_field:0x5->reg3",
        "set_field:0x1/0x3->metadata",
        "move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[]",
        "move:NXM_OF_VLAN_TCI[0..11]->NXM_NX_REG1[20..31]",
        "push:NXM_NX_REG0[],pop:NXM_NX_XXREG1[0..64]",
        "output:NXM_NX_REG0[16..31]",
        "output(port=2,max_len=100)",
        "resubmit:3,resubmit(,4),resubmit(3,4),resubmit:IN_PORT",
        "learn(table=1,hard_timeout=60,NXM_OF_VLAN_TCI[0..11],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],\
         output:NXM_OF_IN_PORT[])",
        "learn(table=10,idle_timeout=5,priority=10,send_flow_rem,cookie=0x1f,NXM_OF_ETH_TYPE[]=0x800,\
         NXM_OF_IP_SRC[]=NXM_OF_IP_DST[],load:0x7->NXM_NX_REG0[0..15],\
         load:NXM_OF_IN_PORT[]->NXM_NX_REG0[16..31])",
        "ct,ct(commit),ct(table=1),ct(commit,force,zone=5),ct_clear",
        "ct(commit,table=3,zone=NXM_NX_REG0[0..15],exec(load:0x1->NXM_NX_CT_MARK[]))",
        "ct(commit,exec(set_field:0x5->ct_mark,set_field:0x1/0x3->ct_label,\
         move:NXM_NX_REG1[]->NXM_NX_CT_LABEL[32..63]))",
        "ct(table=1,zone=1,nat),ct(commit,nat(src)),ct(commit,nat(dst,random))",
        "ct(commit,nat(src=10.0.0.240)),ct(commit,nat(src=10.0.0.240-10.0.0.255:34567-65535,persistent,random))",
        "ct(commit,nat(dst=10.1.1.1:80)),ct(commit,nat(dst=10.1.1.1-10.1.1.2,hash))",
        "multipath(symmetric_l4,1024,hrw,16,0,NXM_NX_REG0[0..15])",
        "bundle(eth_src,50,active_backup,ofport,members:1,2)",
        "bundle_load(symmetric_l4,60,hrw,ofport,NXM_NX_REG0[0..15],members:1,2)",
        "note:01.02.ff,exit",
        "clone(push_vlan:0x8100,output:2),output:1",
        "conjunction(5,1/2),conjunction(6,2/3)",
        "sample(probability=9,collector_set_id=1,obs_domain_id=2,obs_point_id=3,sampling_port=4,egress)",
        "controller(reason=no_match,max_len=123)",
        "enqueue:3:7,pop_queue",
        "check_pkt_larger(1500)->NXM_NX_REG0[5]",
        "mod_vlan_vid:5",
        "mod_vlan_pcp:3",
    ] {
        let read = flow(&format!("actions={text}")).instructions;
        assert_eq!(print_instructions(&read), text);
    }
}

#[test]
fn other_spellings_of_open_vswitch_mean_the_same() {
    for (text, printed) in [
        ("load:5->reg2[]", "load:0x5->NXM_NX_REG2[]"),
        ("move:reg0[0..3]->eth_src[4..7]", "move:NXM_NX_REG0[0..3]->NXM_OF_ETH_SRC[4..7]"),
        ("load:192.0.2.1->NXM_OF_IP_SRC[]", "load:0xc0000201->NXM_OF_IP_SRC[]"),
        ("load:0x10->NXM_OF_IP_TOS[2..7]", "load:0x10->NXM_OF_IP_TOS[2..7]"),
        ("bundle(eth_src,0,hrw,ofport,slaves:1)", "bundle(eth_src,0,hrw,ofport,members:1)"),
        ("resubmit(2)", "resubmit:2"),
        ("output:reg3", "output:NXM_NX_REG3[]"),
        ("note:0102", "note:01.02"),
        ("set_tunnel:5", "set_field:0x5->tunnel_id"),
        ("set_field:7->tun_id", "set_field:0x7->tunnel_id"),
    ] {
        let line = format!("ip,actions={text}");
        assert_eq!(print_instructions(&flow(&line).instructions), printed, "{text}");
    }
}

#[test]
fn fields_of_open_vswitch_are_printed_as_they_are_written() {
    for text in [
        "reg0=0x5,reg1=0x1/0xff,reg15=0xffffffff",
        "tcp,tcp_flags=+syn-ack",
        "ip,nw_frag=later",
        "ip,nw_frag=not_later,nw_ttl=64",
        "mpls,mpls_ttl=7",
        "conj_id=3,pkt_mark=0x1/0x3",
        "tun_src=192.0.2.0/24",
        "vlan_tci=0x2000/0x2000",
    ] {
        assert_eq!(print_match(&flow(&format!("{text},actions=drop")).matching), text);
    }
    let xreg = flow("xreg1=0x0000000500000006,actions=drop").matching;
    assert_eq!(print_match(&xreg), "reg2=0x5,reg3=0x6");
}

#[test]
fn mistakes_in_actions_of_open_vswitch_have_a_remedy() {
    for (text, what) in [
        ("load:5->reg99", "unknown field 'reg99'"),
        ("load:5->NXM_NX_REG0[30..33]", "has no bits 30 to 33"),
        ("load:0x10000->NXM_NX_REG0[0..15]", "load cannot be '0x10000'"),
        ("resubmit(1,2,3)", "resubmit has no '3'"),
        ("conjunction(1,0/2)", "conjunction cannot be"),
        ("conjunction(1,1/1)", "conjunction cannot be"),
        ("ct(commit,alg=sip)", "ct has no helper 'sip'"),
        ("ct(force)", "force stands without commit"),
        ("ct(nat(src=10.0.0.9-10.0.0.1))", "nat cannot be to '10.0.0.9-10.0.0.1'"),
        ("nat(src=10.0.0.1)", "nat is not supported"),
        ("learn(table=1,result_dst=reg0[0..1])", "result_dst is one bit, not 2"),
        ("fin_timeout(idle=5)", "fin_timeout has no 'idle=5'"),
        ("multipath(eth_src,0,modulo,2,0,reg0)", "unknown algorithm 'modulo'"),
        ("bundle(eth_src,0,hrw,ofport)", "bundle has no members"),
        ("note:0", "note cannot be '0'"),
        ("learn(NXM_OF_ETH_DST[]=NXM_OF_IN_PORT[])", "do not fit"),
        ("controller(id=7,pauses)", "controller has no 'pauses'"),
        ("controller(userdata=1)", "userdata cannot be '1'"),
    ] {
        let found = mistakes(&format!("actions={text}"));
        assert!(found[0].contains(what), "{text}: {found:?}");
    }
}
