//! Plans compared with the tables they are built from.

use super::*;
use fastpath_switch::Limits;
use fastpath_switch::field::Field;
use fastpath_switch::flow::{FlowCommand, FlowMod, Instructions};
use fastpath_switch::workload;
use fastpath_switch::{FieldMatch, Match};
use fastpath_units::{Rng, Time};
use proptest::prelude::*;
use std::mem;

fn switch_of(filters: &[workload::Filter]) -> Switch {
    let mut switch = Switch::new(Limits { tables: 1, ..Limits::default() });
    for (priority, matching) in filters {
        let add = FlowMod::add(0, *priority, matching.clone(), Instructions::default());
        switch.flow_mod(Time::ZERO, &add).unwrap();
    }
    switch
}

/// Returns the first flow that matches, by comparing each in turn.
fn naive(switch: &Switch, key: &Key) -> Option<u64> {
    let mut flows = switch.tables()[0].flows();
    flows.find(|(rank, _)| rank.matching().matches(key)).map(|(_, flow)| flow.serial)
}

fn assert_same(switch: &Switch, plan: &TablePlan, keys: &[Key]) {
    let mut cache = Cache::new(64);
    for key in keys {
        let expected = naive(switch, key);
        assert_eq!(plan.lookup(key).map(|rule| rule.serial), expected, "{key:?}\n{}", plan.explain());
        assert_eq!(cache.lookup(plan, key).map(|rule| rule.serial), expected, "cached {key:?}");
    }
}

fn shapes(plan: &TablePlan) -> Vec<&'static str> {
    plan.base().subtables().iter().map(Subtable::shape).collect()
}

#[test]
fn tables_get_the_shapes_that_fit_them() {
    let plan = |filters: &[workload::Filter]| TablePlan::new(&switch_of(filters).tables()[0]);
    assert_eq!(shapes(&plan(&[])), [""; 0]);
    assert_eq!(shapes(&plan(&workload::routes(4, 1))), ["chain"]);
    assert_eq!(shapes(&plan(&workload::routes(5, 1))), ["trie"]);
    assert_eq!(shapes(&plan(&workload::routes(500, 1))), ["trie"]);
    assert_eq!(shapes(&plan(&workload::macs(500, 1))), ["hash"]);
    assert!(shapes(&plan(&workload::filters(500, 1))).contains(&"tree"));
    let mut mixed = workload::routes(100, 1);
    mixed.extend(workload::macs(100, 1));
    mixed.push((0, Match::any()));
    let plan = plan(&mixed);
    assert_eq!(shapes(&plan), ["trie", "hash"]);
    assert_eq!(plan.base().default_rule(), Some(200));
    let text = plan.explain();
    assert!(
        text.contains("100 rules: trie of 16 bits") && text.contains("prefix of ipv4_dst only"),
        "{text}"
    );
    assert!(text.contains("100 rules: hash over 1 lanes") && text.contains("the rest"), "{text}");
}

#[test]
fn routes_filters_and_macs_are_found_as_the_table_finds_them() {
    for filters in [workload::routes(700, 2), workload::filters(700, 2), workload::macs(300, 2)] {
        let switch = switch_of(&filters);
        let plan = TablePlan::new(&switch.tables()[0]);
        assert_same(&switch, &plan, &workload::random_keys(300, 3));
        assert_same(&switch, &plan, &workload::matching_keys(&filters, 600, 4));
    }
}

#[test]
fn a_plan_follows_its_table_through_additions_changes_and_deletions() {
    let filters = workload::filters(600, 5);
    let routes = workload::routes(200, 6);
    let mut switch = switch_of(&filters[..300]);
    let mut plan = Plan::new(&mut switch);
    let mut rng = Rng::new(7);
    let all: Vec<_> = filters.iter().chain(&routes).cloned().collect();
    let keys = workload::matching_keys(&all, 200, 8);
    let mut rebuilt = 0;
    for _ in 0..60 {
        for _ in 0..1 + rng.below(20) {
            let (priority, matching) = all[rng.below(all.len() as u64) as usize].clone();
            let command = [FlowCommand::Add, FlowCommand::DeleteStrict, FlowCommand::ModifyStrict];
            let command = command[rng.below(3) as usize];
            let add = FlowMod::add(0, priority, matching, Instructions::default());
            switch.flow_mod(Time::ZERO, &FlowMod { command, ..add }).unwrap();
        }
        for table in plan.update(&mut switch) {
            rebuilt += 1;
            assert_same(&switch, plan.table(0), &keys[..50]);
            plan.replace(table, TablePlan::new(&switch.tables()[usize::from(table)]));
            assert_eq!(plan.table(0).changes(), (0, 0));
        }
        assert_same(&switch, plan.table(0), &keys);
    }
    assert!(rebuilt > 0);
}

#[test]
fn a_plan_of_many_changes_is_the_plan_of_its_table() {
    let filters = workload::filters(1500, 5);
    let mut switch = switch_of(&filters[..200]);
    let mut plan = Plan::new(&mut switch);
    let keys = workload::matching_keys(&filters, 300, 8);
    let change = |switch: &mut Switch, (priority, matching): &workload::Filter, command| {
        let add = FlowMod::add(0, *priority, matching.clone(), Instructions::default());
        switch.flow_mod(Time::ZERO, &FlowMod { command, ..add }).unwrap();
    };
    for batch in filters[200..].chunks(60) {
        batch.iter().for_each(|filter| change(&mut switch, filter, FlowCommand::Add));
        plan.update(&mut switch);
    }
    assert_same(&switch, plan.table(0), &keys);
    let before = plan.table(0).clone();
    let unchanged = switch.clone();
    let mut rng = Rng::new(7);
    for _ in 0..60 {
        for _ in 0..10 {
            let command = [FlowCommand::Add, FlowCommand::DeleteStrict, FlowCommand::ModifyStrict];
            let command = command[rng.below(3) as usize];
            change(&mut switch, &filters[rng.below(1500) as usize], command);
        }
        plan.update(&mut switch);
    }
    assert_same(&switch, plan.table(0), &keys);
    assert_same(&unchanged, &before, &keys);
    assert_same(&switch, &plan.table(0).rebuilt(), &keys);
    let fresh = TablePlan::new(&switch.tables()[0]);
    assert_eq!(plan.table(0).rebuilt().rules(), fresh.rules());
    assert_eq!(plan.table(0).rebuilt().base(), fresh.base());
    let (added, gone) = plan.table(0).changes();
    assert_eq!(plan.table(0).rules().len() - gone + added, switch.tables()[0].len());
    filters.iter().for_each(|filter| change(&mut switch, filter, FlowCommand::DeleteStrict));
    plan.update(&mut switch);
    assert_eq!(plan.table(0).changes(), (0, 200));
    assert_same(&switch, plan.table(0), &keys);
}

#[test]
fn rules_behind_removed_ones_are_found_in_every_shape() {
    let mut rng = Rng::new(9);
    // Prefixes nest; some precede longer ones, so that those are hidden.
    let mut routes = workload::routes(400, 3);
    for _ in 0..400 {
        let (_, matching) = routes[rng.below(400) as usize].clone();
        let field = matching.field(Field::Ipv4Dst).unwrap();
        let mask = field.mask & field.mask << (1 + rng.below(8));
        let fields = [
            FieldMatch::exact(Field::EthType, 0x0800),
            FieldMatch::masked(Field::Ipv4Dst, field.value & mask, mask),
        ];
        routes.push((rng.below(40) as u16, Match::new(&fields).unwrap()));
    }
    let mut macs = workload::macs(100, 1);
    macs.extend(workload::macs(50, 1).into_iter().map(|(_, matching)| (9, matching)));
    let mut any = workload::filters(300, 4);
    any.push((40_000, Match::any()));
    any.push((65_400, Match::any()));
    for filters in [routes, macs, any] {
        let mut switch = switch_of(&filters);
        let mut plan = Plan::new(&mut switch);
        let keys = workload::matching_keys(&filters, 300, 5);
        let last = filters.len() - 1;
        for place in (0..120).map(|_| rng.below(filters.len() as u64) as usize).chain([last]) {
            let (priority, matching) = filters[place].clone();
            let add = FlowMod::add(0, priority, matching, Instructions::default());
            let delete = FlowMod { command: FlowCommand::DeleteStrict, ..add };
            switch.flow_mod(Time::ZERO, &delete).unwrap();
            plan.update(&mut switch);
        }
        assert!(plan.table(0).changes().1 > 60, "{:?}", plan.table(0).changes());
        assert_same(&switch, plan.table(0), &keys);
    }
}

/// A rule over a few fields with few values, so that rules nest, overlap and repeat.
fn any_filter() -> impl Strategy<Value = workload::Filter> {
    let small = 0u128..4;
    (0u16..6, 0u8..8, small.clone(), small.clone(), small, 0u32..33, 0u32..33, any::<bool>()).prop_map(
        |(priority, kind, a, b, c, m, n, tcp)| {
            let prefix = |field: Field, value: u128, len: u32| {
                let (bits, len) = (field.bits(), len * field.bits() / 32);
                let mask = if len == 0 { 0 } else { field.ones() >> (bits - len) << (bits - len) };
                FieldMatch::masked(field, value << (bits - 3) & mask, mask)
            };
            let v4 = FieldMatch::exact(Field::EthType, 0x0800);
            let v6 = FieldMatch::exact(Field::EthType, 0x86dd);
            let protocol = FieldMatch::exact(Field::IpProto, if tcp { 6 } else { 17 });
            let port = if tcp { Field::TcpDst } else { Field::UdpDst };
            let fields = match kind {
                0 => vec![],
                1 => vec![FieldMatch::exact(Field::InPort, a)],
                2 => vec![FieldMatch::exact(Field::EthDst, a), FieldMatch::exact(Field::EthSrc, b)],
                3 => vec![v4, prefix(Field::Ipv4Dst, a, m)],
                4 => vec![v4, prefix(Field::Ipv4Src, a, m), prefix(Field::Ipv4Dst, b, n)],
                5 => vec![v4, protocol, prefix(Field::Ipv4Dst, a, m), prefix(port, b, n)],
                6 => vec![v6, prefix(Field::Ipv6Dst, a, m)],
                _ => vec![v6, protocol, prefix(Field::Ipv6Src, a, m), FieldMatch::exact(port, c)],
            };
            (priority, Match::new(&fields).unwrap())
        },
    )
}

proptest! {
    #[test]
    fn any_plan_finds_what_its_table_finds(
        filters in prop::collection::vec(any_filter(), 0..150),
        changes in prop::collection::vec((any_filter(), 0u8..4, any::<bool>()), 0..60),
        seed: u64,
    ) {
        let mut switch = switch_of(&filters);
        let mut plan = Plan::new(&mut switch);
        let mut all = filters;
        all.extend(changes.iter().map(|(filter, ..)| filter.clone()));
        let mut keys = workload::matching_keys(&all, 100, seed);
        keys.extend(workload::random_keys(5, seed));
        assert_same(&switch, plan.table(0), &keys);
        // A base that is built while changes go on, and the changes since.
        let (mut base, mut delta) = (plan.table(0).clone(), Delta::default());
        for ((priority, matching), kind, restart) in changes {
            let command = match kind {
                0 => FlowCommand::Add,
                1 => FlowCommand::ModifyStrict,
                2 => FlowCommand::DeleteStrict,
                _ => FlowCommand::Delete,
            };
            let add = FlowMod::add(0, priority, matching, Instructions::default());
            switch.flow_mod(Time::ZERO, &FlowMod { command, ..add }).unwrap();
            let changed = switch.table_mut(0).take_changes();
            plan.tables[0].update(&switch.tables()[0], &changed);
            let Changes::Few(changed) = changed else { unreachable!("few changes") };
            changed.into_iter().for_each(|change| delta.note(change.rank, change.rule));
            if restart {
                plan.replace(0, base.rebuilt().with_delta(mem::take(&mut delta)));
                base = plan.table(0).clone();
            }
        }
        assert_same(&switch, plan.table(0), &keys);
        assert_same(&switch, &base.rebuilt().with_delta(delta), &keys);
        let (fresh, rebuilt) = (TablePlan::new(&switch.tables()[0]), plan.table(0).rebuilt());
        prop_assert_eq!(rebuilt.rules(), fresh.rules());
        prop_assert_eq!(rebuilt.base(), fresh.base());
    }
}
