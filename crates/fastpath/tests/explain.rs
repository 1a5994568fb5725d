//! The path of a packet, as `fastpath switch explain` shows it: a golden text.

use fastpath::switching::explain;
use fastpath_ofctl as ofctl;
use fastpath_switch::{Limits, Switch};
use fastpath_units::Time;
use std::collections::BTreeMap;

const RULES: &str = "
group_id=1,type=all,bucket=output:3,bucket=output:4
table=0,priority=50,tcp,nw_dst=10.9.0.0/16,actions=drop
table=0,priority=40,in_port=7,actions=drop
table=0,priority=30,ip,nw_dst=10.0.0.0/8,actions=load:0x5->NXM_NX_REG0[],resubmit(,1),goto_table:2
table=1,priority=9,reg0=0x5,udp,tp_dst=53,actions=dec_ttl,ct(table=3,zone=7),output:2
table=1,priority=1,actions=drop
table=2,priority=7,udp,actions=group:1,write_actions(output:2)
table=2,priority=0,actions=drop
table=3,priority=4,ct_state=+trk+new,actions=NORMAL";

const STEPS: &str = "\
table 0: priority=30,ip,nw_dst=10.0.0.0/8
    load:0x5->NXM_NX_REG0[]
    resubmit(,1)
    table 1: priority=9,udp,tp_dst=53,reg0=0x5  (with reg0=0x5)
        dec_ttl
        ct(table=3,zone=7)
        tracked: ct_state=+new+trk,ct_zone=7
        table 3: priority=4,ct_state=+new+trk  (with reg0=0x5,ct_state=+new+trk,ct_zone=7)
            NORMAL
            the destination is not known: to all other ports
        output:2
    goto_table:2
table 2: priority=7,udp  (with reg0=0x5)
    group:1
        bucket 0 of group 1
        output:3
        bucket 1 of group 1
        output:4
    write_actions(output:2)
action set
    output:2
";

#[test]
fn resubmits_groups_ct_and_registers_are_shown_with_the_bits_that_decided() {
    let mut switch = Switch::new(Limits { tables: 4, ..Limits::default() });
    let lines = ofctl::parse(RULES, &BTreeMap::new()).unwrap();
    ofctl::load(&mut switch, Time::ZERO, &lines).unwrap();
    let packet = "in_port=1,udp,nw_src=10.1.0.1,nw_dst=10.2.0.9,nw_ttl=9,tp_src=99,tp_dst=53";
    let explained = explain(&mut switch, &BTreeMap::new(), Some(packet), 1).unwrap();
    let text = explained.to_string();
    let (_, path) = text.split_once("\npacket of ").unwrap();
    let (steps, rest) = path[path.find('\n').unwrap() + 1..].split_once("final flow: ").unwrap();
    assert_eq!(steps, STEPS);
    let (ended, rest) = rest.split_once("\ndepends on: ").unwrap();
    assert!(ended.contains("reg0=0x5") && ended.contains("nw_ttl=8"), "{ended}");
    // Rules above say: not TCP, not from port 7. `ct` compares addresses and ports.
    let depends = rest.lines().next().unwrap();
    let words =
        ["udp", "in_port=1", "nw_src=10.1.0.1", "nw_dst=10.2.0.9", "nw_ttl=9", "tp_src=99", "tp_dst=53"];
    assert!(words.iter().all(|word| depends.split(',').any(|one| one == *word)), "{depends}");
    assert!(!depends.contains("reg0") && !depends.contains("ct_"), "{depends}");
    let json = explained.json();
    assert_eq!(json["trace"]["steps"][3]["depth"], 1);
    assert_eq!(json["trace"]["looked_at"].as_str(), Some(depends));
}
