//! The path of a packet, as `fastpath switch explain` shows it: a golden text.

use fastpath::switching::explain;
use fastpath_ofctl as ofctl;
use fastpath_switch::{Limits, Switch};
use fastpath_units::Time;
use std::collections::BTreeMap;

const RULES: &str = "
group_id=1,type=all,bucket=output:3,bucket=set_field:02:00:00:00:00:09->eth_dst,output:4
table=0,priority=50,tcp,nw_dst=10.9.0.0/16,actions=drop
table=0,priority=40,in_port=7,actions=drop
table=0,priority=30,ip,nw_dst=10.0.0.0/8,actions=load:0x5->NXM_NX_REG0[],resubmit(,1),goto_table:2
table=1,priority=9,reg0=0x5,udp,tp_dst=53,actions=dec_ttl,output:2
table=1,priority=1,actions=drop
table=2,priority=7,udp,actions=group:1,write_actions(output:2)
table=2,priority=0,actions=drop";

fn path(rules: &str, packet: &str) -> String {
    let mut switch = Switch::new(Limits { tables: 4, ..Limits::default() });
    let lines = ofctl::parse(rules, &BTreeMap::new()).unwrap();
    ofctl::load(&mut switch, Time::ZERO, &lines).unwrap();
    let explained = explain(&mut switch, &BTreeMap::new(), Some(packet), 1).unwrap().to_string();
    let at = explained.find("table 0: priority").or(explained.find("table 0: no flow")).unwrap();
    let text = &explained[at..];
    text[..text.find("output to").or(text.find("dropped")).unwrap_or(text.len())].to_owned()
}

#[test]
fn resubmits_groups_and_registers_are_shown_with_the_bits_that_decided() {
    let text = path(RULES, "in_port=1,udp,nw_src=10.1.0.1,nw_dst=10.2.0.9,nw_ttl=9,tp_src=99,tp_dst=53");
    let (steps, rest) = text.split_once("final flow: ").unwrap();
    assert_eq!(
        steps,
        "table 0: priority=30,ip,nw_dst=10.0.0.0/8
    actions=load:0x5->NXM_NX_REG0[]
    actions=resubmit(,1)
    table 1: priority=9,udp,reg0=0x5,tp_dst=53  (with reg0=0x5)
"
    );
    let (ended, depends) = rest.split_once("\ndepends on: ").unwrap();
    assert!(ended.contains("reg0=0x5") && ended.contains("nw_ttl=8"), "{ended}");
    assert_eq!(depends, "");
}
