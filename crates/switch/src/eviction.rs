//! The order in which a full table gives up flows: those of the lowest importance first, of these
//! the one that expires first (OpenFlow 1.4 §5.3, §7.3.4.1: OFPTMPEF_IMPORTANCE and _LIFETIME).

use crate::flow::{Flow, Rank};
use fastpath_units::Time;
use std::collections::BTreeSet;

/// Importance, then the time at which the flow is checked for expiry, then rank.
type EvictionPlace = (u16, Time, Rank);

/// The flows of a table in the order of eviction. Empty while the table evicts none.
#[derive(Clone, Debug, Default)]
pub(crate) struct EvictionOrder {
    flows: Option<BTreeSet<EvictionPlace>>,
}

fn place(rank: &Rank, flow: &Flow, listed: Option<Time>) -> EvictionPlace {
    (flow.importance, listed.unwrap_or(Time::MAX), rank.clone())
}

impl EvictionOrder {
    /// Returns whether the table evicts flows.
    pub(crate) fn is_on(&self) -> bool {
        self.flows.is_some()
    }

    /// Begins with these flows.
    pub(crate) fn begin<'a>(&mut self, flows: impl Iterator<Item = (&'a Rank, &'a Flow, Option<Time>)>) {
        self.flows = Some(flows.map(|(rank, flow, listed)| place(rank, flow, listed)).collect());
    }

    /// Ends: the table evicts no flows.
    pub(crate) fn end(&mut self) {
        self.flows = None;
    }

    pub(crate) fn add(&mut self, rank: &Rank, flow: &Flow, listed: Option<Time>) {
        if let Some(flows) = &mut self.flows {
            flows.insert(place(rank, flow, listed));
        }
    }

    pub(crate) fn remove(&mut self, rank: &Rank, flow: &Flow, listed: Option<Time>) {
        if let Some(flows) = &mut self.flows {
            flows.remove(&place(rank, flow, listed));
        }
    }

    /// Removes all flows.
    pub(crate) fn clear(&mut self) {
        if let Some(flows) = &mut self.flows {
            flows.clear();
        }
    }

    /// Returns the flow that goes first, unless all are more important than this.
    pub(crate) fn first(&self, importance: u16) -> Option<&Rank> {
        let (least, _, rank) = self.flows.as_ref()?.first()?;
        (*least <= importance).then_some(rank)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Field, Refusal, flow::flags};
    use crate::{FieldMatch, FlowMod, Instructions, Limits, Match, RemovedReason, Switch};
    use fastpath_units::{Duration, Time};

    /// An addition of the flow for one port.
    fn add(port: u32, importance: u16, hard_timeout: u16) -> FlowMod {
        let matching = Match::new(&[FieldMatch::exact(Field::InPort, port.into())]).unwrap();
        let request = FlowMod::add(1, 5, matching, Instructions::default());
        FlowMod { importance, hard_timeout, ..request }
    }

    fn ports(switch: &Switch) -> Vec<u128> {
        let field = |matching: &Match| matching.field(Field::InPort).unwrap().value;
        switch.tables()[1].flows().map(|(rank, _)| field(rank.matching())).collect()
    }

    #[test]
    fn a_full_table_evicts_the_least_important_flow_then_the_one_that_expires_first() {
        let mut switch = Switch::new(Limits { tables: 2, flows: 4, ..Limits::default() });
        let at = |second| Time::ZERO + Duration::from_secs(second);
        for (port, importance, timeout) in [(1, 5, 0), (2, 3, 20), (3, 3, 10)] {
            switch.flow_mod(at(0), &add(port, importance, timeout)).unwrap();
        }
        switch.set_evicts(1, true);
        switch.flow_mod(at(0), &add(4, 3, 0)).unwrap();
        assert_eq!(switch.flow_mod(at(1), &add(9, 2, 0)), Err(Refusal::FlowTableFull(1)), "less important");
        let evicted = |switch: &mut Switch, request: &FlowMod| {
            let removed = switch.flow_mod(at(1), request).unwrap();
            assert!(removed.iter().all(|one| one.reason == RemovedReason::Eviction && one.table_id == 1));
            removed.iter().map(|one| one.flow.importance).collect::<Vec<_>>()
        };
        assert_eq!(evicted(&mut switch, &add(5, 4, 0)), [3]);
        assert_eq!(ports(&switch), [1, 2, 4, 5]);
        assert_eq!(evicted(&mut switch, &add(6, 9, 0)), [3]);
        assert_eq!(ports(&switch), [1, 4, 5, 6]);
        assert_eq!(evicted(&mut switch, &add(6, 0, 0)), [0; 0], "replaced");
        let checked = FlowMod { flags: flags::CHECK_OVERLAP, ..add(7, 9, 0) };
        assert_eq!(evicted(&mut switch, &checked), [0]);
        assert_eq!(evicted(&mut switch, &add(8, 9, 0)), [3]);
        assert_eq!(ports(&switch), [1, 5, 7, 8]);
        switch.set_evicts(1, false);
        assert_eq!(switch.flow_mod(at(1), &add(9, 9, 0)), Err(Refusal::FlowTableFull(1)));
    }

    #[test]
    fn a_hidden_flow_takes_no_room_is_never_evicted_and_gives_way_to_a_flow_of_its_rank() {
        let mut switch = Switch::new(Limits { tables: 2, flows: 2, room: 3, ..Limits::default() });
        let hidden = FlowMod::add(1, 0, Match::any(), Instructions::apply([crate::Action::output(1)]));
        let at = |second| Time::ZERO + Duration::from_secs(second);
        switch.flow_mod(at(0), &add(1, 5, 0)).unwrap();
        switch.set_evicts(1, true);
        switch.flow_mod(at(0), &add(2, 5, 0)).unwrap();
        // Into a full table.
        switch.add_hidden(at(0), &hidden);
        assert_eq!((switch.tables()[1].len(), switch.tables()[1].flows().len()), (2, 3));
        for evicts in [false, true] {
            switch.set_evicts(1, evicts);
        }
        for port in 3..9 {
            let removed = switch.flow_mod(at(0), &add(port, 5, 0)).unwrap();
            assert!(removed.len() == 1 && !removed[0].flow.is_hidden());
        }
        switch.set_evicts(1, false);
        assert_eq!(switch.flow_mod(at(0), &add(9, 5, 0)), Err(Refusal::FlowTableFull(1)));
        // In its place there is no room for another flow either.
        assert_eq!(switch.flow_mod(at(0), &hidden), Err(Refusal::FlowTableFull(1)));
        switch.flow_mod(at(0), &FlowMod { command: crate::FlowCommand::Delete, ..add(8, 0, 0) }).unwrap();
        switch.flow_mod(at(0), &hidden).unwrap();
        assert_eq!((switch.tables()[1].len(), switch.tables()[1].flows().len()), (2, 2));
        let as_hidden = FlowMod { flags: flags::HIDDEN, ..add(9, 9, 0) };
        assert_eq!(switch.flow_mod(at(0), &as_hidden), Err(Refusal::FlowBadFlags(flags::HIDDEN)));
        // A table with it alone is empty.
        switch.flow_mod(at(0), &FlowMod::delete_all()).unwrap();
        switch.add_hidden(at(0), &hidden);
        assert!(switch.tables()[1].is_empty() && switch.tables()[1].cookies().of(0) == 0);
        switch.delete(at(0), &[(1, crate::Rank::new(0, Match::any()))]);
        assert_eq!(switch.tables()[1].flows().len(), 0);
    }

    #[test]
    fn the_order_follows_deadlines_and_every_removal() {
        let mut switch = Switch::new(Limits { tables: 2, flows: 3, ..Limits::default() });
        let at = |second| Time::ZERO + Duration::from_secs(second);
        switch.set_evicts(1, true);
        switch.set_port(1, crate::Port::up());
        let idle = |port, idle_timeout| FlowMod { idle_timeout, ..add(port, 0, 0) };
        let to_table_1 = Instructions { goto: Some(1), ..Instructions::default() };
        switch.flow_mod(at(0), &FlowMod::add(0, 0, Match::any(), to_table_1)).unwrap();
        for (port, seconds) in [(1, 10), (2, 14), (3, 30)] {
            switch.flow_mod(at(0), &idle(port, seconds)).unwrap();
        }
        crate::interp(&mut switch, at(7), 1, &[0; 60]);
        assert!(switch.expire(at(11)).is_empty());
        // Flow 1 goes at 17 now, flow 2 at 14.
        switch.flow_mod(at(11), &idle(4, 60)).unwrap();
        assert_eq!(ports(&switch), [1, 3, 4]);
        switch.flow_mod(at(12), &FlowMod::delete_all()).unwrap();
        for port in 5..=8 {
            switch.flow_mod(at(12), &idle(port, 10)).unwrap();
        }
        assert_eq!(ports(&switch), [6, 7, 8]);
        drop(switch.clear(&FlowMod::delete_all()));
        for port in 1..=4 {
            switch.flow_mod(at(12), &idle(port, 10)).unwrap();
        }
        assert_eq!(ports(&switch), [2, 3, 4]);
    }
}
