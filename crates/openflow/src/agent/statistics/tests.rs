//! Tests of statistics.rs.

use super::*;
use fastpath_switch::{Field, FieldMatch, FlowMod, Instructions, Limits, Match};
use fastpath_units::{Rng, Time};

fn prefix(random: &mut Rng, shortest: u64) -> Match {
    let len = shortest + random.below(33 - shortest);
    let mask = u128::from(u32::MAX) & !(u128::from(u32::MAX) >> len);
    // Few values in few bits.
    let value = u128::from(random.below(16) << 28 | random.below(64) << 10 | random.below(4)) & mask;
    let field = [Field::Ipv4Dst, Field::Ipv4Src][usize::from(random.below(4) == 0)];
    Match::new(&[FieldMatch::exact(Field::EthType, 0x800), FieldMatch::masked(field, value, mask)]).unwrap()
}

#[test]
fn pages_show_what_a_filter_selects_wherever_flows_are_skipped() {
    let mut random = Rng::new(5);
    let mut switch = Switch::new(Limits { tables: 3, ..Limits::default() });
    for number in 0..6000 {
        let matching = prefix(&mut random, 8);
        let (table, priority) = (random.below(3) as u8, random.below(3) as u16);
        let add = FlowMod::add(table, priority, matching, Instructions::default());
        switch.flow_mod(Time::ZERO, &FlowMod { cookie: number % 2, ..add }).unwrap();
    }
    let (mut shown, mut examined) = (0, 0);
    for _ in 0..200 {
        let table_id = if random.below(4) == 0 { ALL_TABLES } else { random.below(3) as u8 };
        let cookie_mask = u64::from(random.below(4) == 0);
        let matching = prefix(&mut random, 0);
        let all = FlowFilter::of(&FlowMod::delete_all());
        let filter = FlowFilter { table_id, matching, cookie_mask, ..all };
        let wanted: Vec<_> = switch.flows(&filter).unwrap().map(|(id, rank, _)| (id, rank.clone())).collect();
        let (mut found, mut next) = (Vec::new(), None);
        loop {
            let (seen, last) = scan(&switch, &filter, next.as_ref(), |id, rank, _| {
                found.push((id, rank.clone()));
                !found.len().is_multiple_of(100)
            });
            examined += seen;
            next = last;
            if next.is_none() {
                break;
            }
        }
        shown += found.len();
        assert_eq!(found, wanted);
    }
    assert!(shown > 5000 && examined < 200 * 3000, "{shown} of {examined}");
}
