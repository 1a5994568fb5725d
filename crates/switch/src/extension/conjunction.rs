//! Conjunctions: several flows, each a clause, that together stand for one
//! (ovs-actions(7), `conjunction`).

use std::collections::BTreeMap;

/// A clause of a conjunction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Clause {
    /// The number of the conjunction.
    pub id: u32,
    /// Which clause it is, from 0.
    pub clause: u8,
    /// How many clauses the conjunction has.
    pub clauses: u8,
}

/// Decides what a packet finds where clauses match it. `matching` are the clauses that do, with the
/// priorities of their flows, highest first. `found` is the priority of the flow that is found
/// without them: only clauses of higher priorities count. `find` looks a conjunction up.
pub fn decide<R>(
    matching: impl Iterator<Item = (u16, Clause)>,
    found: Option<u16>,
    mut find: impl FnMut(u32) -> Option<R>,
) -> Option<R> {
    let mut seen: BTreeMap<u32, u64> = BTreeMap::new();
    let mut at = None;
    let mut complete = Vec::new();
    let mut all = Vec::new();
    for (priority, clause) in matching.filter(|(priority, _)| found.is_none_or(|found| *priority > found)) {
        // Clauses of different priorities do not join.
        if at != Some(priority) {
            at = Some(priority);
            seen.clear();
            all.append(&mut complete);
        }
        let clauses = seen.entry(clause.id).or_default();
        *clauses |= 1 << (clause.clause & 63);
        if clauses.count_ones() == u32::from(clause.clauses) && !complete.contains(&clause.id) {
            complete.push(clause.id);
        }
    }
    all.append(&mut complete);
    all.into_iter().find_map(&mut find)
}
