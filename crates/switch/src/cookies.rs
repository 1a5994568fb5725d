//! How many flows of a table have each cookie, so that the limit of `learn` takes the same time
//! whatever the number of flows.

use crate::flow::Rank;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// See the head of this file. Executors share it with the table.
#[derive(Debug, Default)]
pub struct CookieCounts(Arc<RwLock<BTreeMap<u64, usize>>>);

/// The flows of a table, as the limit of `learn` needs to know them.
pub trait FlowsOfCookies {
    /// Returns how many flows have a cookie, without those that are hidden.
    fn count(&self, cookie: u64) -> usize;

    /// Returns whether there is a flow of this rank with this cookie that is no clause of a
    /// conjunction.
    fn has(&self, rank: &Rank, cookie: u64) -> bool;
}

impl Clone for CookieCounts {
    /// Returns a copy that counts independently.
    fn clone(&self) -> CookieCounts {
        CookieCounts(Arc::new(RwLock::new(self.read().clone())))
    }
}

impl CookieCounts {
    /// Returns another handle to the same counts.
    pub fn share(&self) -> CookieCounts {
        CookieCounts(Arc::clone(&self.0))
    }

    /// Returns how many flows have a cookie.
    pub fn of(&self, cookie: u64) -> usize {
        self.read().get(&cookie).copied().unwrap_or_default()
    }

    pub(crate) fn add(&self, cookie: u64) {
        *self.write().entry(cookie).or_default() += 1;
    }

    pub(crate) fn remove(&self, cookie: u64) {
        let mut counts = self.write();
        let Some(count) = counts.get_mut(&cookie) else {
            unreachable!("a flow of cookie {cookie:#x} goes that was not counted")
        };
        *count -= 1;
        if *count == 0 {
            counts.remove(&cookie);
        }
    }

    pub(crate) fn clear(&self) {
        self.write().clear();
    }

    // Counts are consistent between calls, also after a panic of another thread.
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<u64, usize>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<u64, usize>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use crate::outcome::{Learned, has_room_for};
    use crate::{Field, FieldMatch, FlowCommand, FlowMod, Instructions, Limits, Match, Rank, Switch};
    use fastpath_units::{Duration, Rng, Time};
    use std::collections::BTreeSet;

    fn random_flow(random: &mut Rng, command: FlowCommand) -> FlowMod {
        let port = FieldMatch::exact(Field::InPort, (1 + random.below(12)).into());
        let matching = if random.below(20) == 0 { Match::any() } else { Match::new(&[port]).unwrap() };
        let mut flow =
            FlowMod::add(random.below(2) as u8, random.below(2) as u16, matching, Instructions::default());
        flow.command = command;
        flow.cookie = random.below(4);
        flow.hard_timeout = random.below(4) as u16;
        if !matches!(command, FlowCommand::Add) {
            flow.cookie_mask = if random.below(2) == 0 { 0 } else { u64::MAX };
            flow.new_cookie = (random.below(2) == 0).then(|| random.below(4));
        }
        flow
    }

    /// Counts all flows, as [`has_room_for`] need not.
    fn has_room_slowly(flow: &FlowMod, limit: u32, switch: &Switch, before: &[Learned]) -> bool {
        let rank = |flow: &FlowMod| Rank::new(flow.priority, flow.matching.clone());
        let flows = switch.tables()[usize::from(flow.table_id)].flows();
        let of_cookie = flows.filter(|(_, other)| other.cookie == flow.cookie && !other.is_hidden());
        let mut all: BTreeSet<Rank> = of_cookie.map(|(rank, _)| rank.clone()).collect();
        for one in before {
            let Learned::Flow { flow: other, .. } = one else { continue };
            if (other.table_id, other.cookie) == (flow.table_id, flow.cookie) {
                all.insert(rank(other));
            }
        }
        limit == 0 || all.contains(&rank(flow)) || all.len() < limit as usize
    }

    #[test]
    fn the_limit_of_learn_counts_as_one_who_looks_at_every_flow() {
        let mut random = Rng::new(77);
        let mut switch = Switch::new(Limits { tables: 2, ..Limits::default() });
        let (mut allowed, mut refused) = (0, 0);
        for step in 0..20_000u64 {
            let now = Time::ZERO + Duration::from_ms(step * 10);
            let command = match random.below(8) {
                0..4 => FlowCommand::Add,
                4 => FlowCommand::Modify,
                5 => FlowCommand::ModifyStrict,
                6 => FlowCommand::DeleteStrict,
                _ if random.below(20) == 0 => FlowCommand::Delete,
                _ => FlowCommand::Add,
            };
            let request = random_flow(&mut random, command);
            match random.below(40) {
                0 => drop(switch.expire(now)),
                1 => drop(switch.clear(&FlowMod::delete_all())),
                2 => switch.add_hidden(now, &request),
                // A copy counts for itself.
                3 => drop(switch.clone().flow_mod(now, &request)),
                _ => drop(switch.flow_mod(now, &request)),
            }
            let before: Vec<Learned> = (0..random.below(4))
                .map(|_| Learned::Flow { flow: random_flow(&mut random, FlowCommand::Add), limit: 0 })
                .collect();
            let flow = random_flow(&mut random, FlowCommand::Add);
            let limit = random.below(9) as u32;
            let table = &switch.tables()[usize::from(flow.table_id)];
            let found = has_room_for((&flow, limit), table, &before);
            assert_eq!(found, has_room_slowly(&flow, limit, &switch, &before), "step {step}");
            *if found { &mut allowed } else { &mut refused } += 1;
        }
        assert!(allowed > 1000 && refused > 1000, "{allowed} {refused}");
    }
}
