//! The bits that a path depends on: packets that are equal in them take the same path.

use fastpath_ofctl as ofctl;
use fastpath_switch::interp::trace;
use fastpath_switch::trace::{Trace, TraceEvent};
use fastpath_switch::{Limits, Match, Port, Switch};
use fastpath_units::{Rng, Time};
use std::collections::BTreeMap;

const PORTS: u32 = 3;

/// A random number below `count`.
fn any(rng: &mut Rng, count: u64) -> u64 {
    rng.below(count)
}

/// Returns rules of three tables. They match few values, so that packets are often alike.
fn rules(rng: &mut Rng) -> String {
    let mut rules = String::from("group_id=1,type=select,bucket=output:1,bucket=output:2\n");
    for _ in 0..4 + any(rng, 12) {
        let (table, priority) = (any(rng, 3), any(rng, 5));
        let mut fields = vec![format!("table={table}"), format!("priority={priority}")];
        let protocol = ["ip", "tcp", "udp"][any(rng, 3) as usize];
        fields.push(protocol.to_owned());
        if any(rng, 3) == 0 {
            fields.push(format!("in_port={}", 1 + any(rng, 2)));
        }
        if any(rng, 2) == 0 {
            fields.push(format!("nw_dst=10.0.{}.0/{}", any(rng, 2), 16 + any(rng, 9)));
        }
        if any(rng, 3) == 0 {
            fields.push(format!("dl_dst=02:00:00:00:00:0{}", any(rng, 2)));
        }
        if protocol != "ip" && any(rng, 2) == 0 {
            fields.push(format!("tp_dst={}", any(rng, 2)));
        }
        if any(rng, 4) == 0 {
            fields.push(format!("reg0={}", any(rng, 2)));
        }
        let mut actions = Vec::new();
        for _ in 0..any(rng, 3) {
            actions.push(match any(rng, 9) {
                0 => format!("load:{}->NXM_NX_REG0[]", any(rng, 2)),
                1 => "move:NXM_OF_ETH_DST[0..3]->NXM_NX_REG0[0..3]".to_owned(),
                2 => format!("mod_dl_dst:02:00:00:00:00:0{}", any(rng, 2)),
                3 => "mod_nw_dst:10.0.1.1".to_owned(),
                4 => format!("resubmit({},{})", 1 + any(rng, 2), 1 + any(rng, 2)),
                5 => "group:1".to_owned(),
                6 => "dec_ttl".to_owned(),
                7 => "multipath(nw_dst,7,modulo_n,2,0,NXM_NX_REG0[])".to_owned(),
                _ => format!("output:{}", 1 + any(rng, PORTS.into())),
            });
        }
        if table == 0 && any(rng, 2) == 0 {
            actions.push(format!("goto_table:{}", 1 + any(rng, 2)));
        }
        let actions = if actions.is_empty() { "drop".to_owned() } else { actions.join(",") };
        rules += &format!("{},actions={actions}\n", fields.join(","));
    }
    rules
}

fn packet(rng: &mut Rng) -> ofctl::Described {
    let text = format!(
        "in_port={},{},dl_dst=02:00:00:00:00:0{},nw_src=10.1.0.1,nw_dst=10.0.{}.{},nw_ttl={},tp_src=7,tp_dst={}",
        1 + any(rng, 2),
        ["tcp", "udp"][any(rng, 2) as usize],
        any(rng, 2),
        any(rng, 2),
        any(rng, 2),
        1 + any(rng, 2),
        any(rng, 2),
    );
    ofctl::parse_packet(&text, &BTreeMap::new()).unwrap()
}

/// The flows that were found, and the buckets.
fn path(trace: &Trace) -> Vec<String> {
    let decided = |event: &TraceEvent| match event {
        TraceEvent::Lookup(lookup) => Some(format!("{} {:?}", lookup.table_id, lookup.rank)),
        TraceEvent::Bucket { bucket, .. } => Some(format!("bucket {bucket}")),
        _ => None,
    };
    trace.steps.iter().filter_map(|step| decided(&step.event)).collect()
}

#[test]
fn packets_that_are_equal_in_the_bits_that_were_looked_at_take_the_same_path() {
    let mut rng = Rng::new(1);
    let (mut alike, mut different, mut narrow) = (0, 0, 0);
    for _ in 0..300 {
        let text = rules(&mut rng);
        let mut switch = Switch::new(Limits { tables: 3, ..Limits::default() });
        (1..=PORTS).for_each(|number| switch.set_port(number, Port::up()));
        let lines =
            ofctl::parse(&text, &BTreeMap::new()).unwrap_or_else(|wrong| panic!("{wrong:?} in\n{text}"));
        if ofctl::load(&mut switch, Time::ZERO, &lines).is_err() {
            // Rules that overlap others without an order are replaced, never refused.
            panic!("refused:\n{text}");
        }
        let packets: Vec<_> = (0..20).map(|_| packet(&mut rng)).collect();
        let traces: Vec<Trace> = packets
            .iter()
            .map(|packet| trace(&mut switch.clone(), Time::ZERO, packet.in_port, &packet.frame))
            .collect();
        for one in &traces {
            let looked_at = Match::new(&one.looked_at)
                .unwrap_or_else(|wrong| panic!("{wrong:?}: {:?} in\n{text}", one.looked_at));
            narrow += usize::from(one.looked_at.len() < 4);
            for other in &traces {
                if looked_at.matches(&other.arrived) {
                    alike += usize::from(one.arrived != other.arrived);
                    let shown = ofctl::print_match(&looked_at);
                    assert_eq!(path(one), path(other), "alike in {shown}, with\n{text}");
                } else {
                    different += 1;
                }
            }
        }
    }
    assert!(alike > 5_000 && different > 20_000 && narrow > 1000, "{alike}, {different}, {narrow}");
}
