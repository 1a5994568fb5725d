//! Every word of a rule has an effect, or is named: one word of a rule is changed, misspelled or
//! removed, and the switch has other rules, or there is a mistake.
//!
//! `FASTPATH_MUTATIONS=100000 cargo test -p fastpath-switch every_word` makes more changes than the
//! tests do.

use super::{PortNames, RuleLine, parse};
use fastpath_units::Rng;
use std::ops::Range;

const RULES: [&str; 12] = [
    "cookie=0x1f,table=3,priority=7,idle_timeout=10,hard_timeout=20,send_flow_rem,in_port=2,actions=output:3",
    "table=1,priority=9,tcp,nw_src=10.0.0.0/8,nw_dst=10.1.2.3,tp_dst=80,actions=dec_ttl,group:2",
    "udp6,ipv6_src=2001:db8::/32,tp_src=0x10/0xfff0,actions=set_field:02:00:00:00:00:09->eth_dst,output:lan",
    "arp,nw_src=10.0.0.1,arp_op=1,dl_src=02:00:00:00:00:01,actions=CONTROLLER:128,NORMAL",
    "dl_vlan=100,dl_vlan_pcp=3,actions=mod_vlan_vid:7,mod_vlan_pcp:5,pop_vlan,output:4",
    "icmp6,icmp_type=135,nd_target=::1,metadata=0x5/0xf,actions=write_metadata:0x6/0xf,goto_table:4",
    "ip,nw_tos=184,actions=meter:4,mod_nw_tos:32,clear_actions,write_actions(push_vlan:0x8100,output:1),goto_table:7",
    "check_overlap,reset_counts,no_packet_counts,no_byte_counts,sctp,tp_dst=9,actions=FLOOD",
    "group_id=1,type=ff,bucket=weight:3,watch_port:2,actions=output:2,bucket=watch_group:3,actions=output:3",
    "group_id=2,type=select,bucket=weight:10,actions=output:2,bucket=weight:30,actions=group:1",
    "meter=1,kbps,burst,stats,bands=type=drop,rate=1000,burst_size=100",
    "meter=2,pktps,bands=type=dscp_remark,rate=10,prec_level=2",
];

/// Returns why a change of a line may make no difference.
fn why_equivalent(line: &str, new: &str) -> Option<&'static str> {
    let items = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let (old, new) = (items(line), items(new));
    let (old, new) = old.into_iter().zip(new).find(|(old, new)| old != new)?;
    let number = |item: &str| item.split('=').nth(1)?.parse::<u64>().ok();
    if number(&old).is_some() && number(&old) == number(&new) {
        return Some("the same number");
    }
    let masked = |item: &str| item.split_once('/').map(|(_, mask)| mask.to_owned());
    if masked(&old).is_some() && masked(&old) == masked(&new) {
        return Some("as in ovs-ofctl, bits outside the mask count as zero");
    }
    None
}

fn ports() -> PortNames {
    PortNames::from([("lan".to_owned(), 9)])
}

/// The words of a line: names and numbers, without what stands between them.
fn words(line: &str) -> Vec<Range<usize>> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in line.char_indices().chain([(line.len(), ' ')]) {
        match (is_inner(c), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                words.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    words
}

fn mutated(line: &str, rng: &mut Rng) -> String {
    let words = words(line);
    let word = words[rng.below(words.len() as u64) as usize].clone();
    let mut new = line.to_owned();
    match rng.below(4) {
        // A letter too many.
        0 => new.insert(
            word.start + rng.below(word.len() as u64) as usize,
            char::from(b'a' + rng.below(26) as u8),
        ),
        // Another word of the line.
        1 => {
            let other = words[rng.below(words.len() as u64) as usize].clone();
            new.replace_range(word, &line[other]);
        }
        // Another number.
        2 => {
            let number = line[word.clone()].parse::<u64>().map_or(1, |number| number + 1 + rng.below(3));
            new.replace_range(word, &number.to_string());
        }
        // The whole item is gone.
        _ => {
            let from = line[..word.start].rfind(',').map_or(0, |at| at + 1);
            let to = line[word.end..].find(',').map_or(line.len(), |at| word.end + at + 1);
            new.replace_range(from..to, "");
        }
    }
    new
}

/// What the switch would have; `None`: there is a mistake.
fn what_runs(line: &str) -> Option<Vec<RuleLine>> {
    parse(line, &ports()).ok()
}

#[test]
fn every_word_of_a_rule_has_an_effect_or_is_a_mistake() {
    let count = option_env!("FASTPATH_MUTATIONS").and_then(|text| text.parse().ok()).unwrap_or(20_000_u64);
    let mut rng = Rng::new(33);
    let mut silent = std::collections::BTreeSet::new();
    for line in (0..count).map(|number| RULES[(number % RULES.len() as u64) as usize]) {
        let unchanged = what_runs(line).unwrap_or_else(|| panic!("{line}: {:?}", parse(line, &ports())));
        let new = mutated(line, &mut rng);
        let is_listed = why_equivalent(line, &new).is_some();
        if new != line && !is_listed && what_runs(&new).as_ref() == Some(&unchanged) {
            silent.insert(new);
        }
    }
    assert!(silent.is_empty(), "{} of {count}: {silent:#?}", silent.len());
}
