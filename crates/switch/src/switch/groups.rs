//! Requests that change groups, and the order of groups that lead to others.
//!
//! Read first: OpenFlow 1.3.5 §6.5.

use super::{Switch, buckets};
use crate::check::{self, ActionsOf};
use crate::flow::{ANY_GROUP, Flow, Removed, RemovedReason};
use crate::group::{self, Bucket, Group, GroupCommand, GroupKind, GroupMod};
use crate::{Port, Refusal, port};
use fastpath_units::Time;
use std::collections::{BTreeMap, BTreeSet};

impl Switch {
    /// Changes groups (OFPT_GROUP_MOD). Returns the flows that were removed with their group.
    ///
    /// The request is refused, and nothing has changed.
    pub fn group_mod(&mut self, now: Time, request: &GroupMod) -> Result<Vec<Removed>, Refusal> {
        let id = request.id;
        match request.command {
            GroupCommand::Delete => return self.delete_groups(now, id),
            GroupCommand::Add if self.groups.contains_key(&id) => return Err(Refusal::GroupExists(id)),
            GroupCommand::Add if self.groups.len() >= self.limits.groups => {
                return Err(Refusal::GroupsFull(self.limits.groups));
            }
            GroupCommand::Add => {}
            _ if !self.groups.contains_key(&id) => return Err(Refusal::GroupUnknown(id)),
            GroupCommand::Modify | GroupCommand::InsertBuckets(_) | GroupCommand::RemoveBuckets(_) => {}
        }
        let whole = self.whole(request)?;
        self.check_group(&whole)?;
        let mut group = Group::new(whole.kind, whole.buckets, now);
        group.depth = self.depth_of(&group, &BTreeMap::new());
        let above = self.depths_above(id, group.depth);
        if above.values().chain([&group.depth]).any(|depth| *depth > self.limits.chain) {
            return Err(Refusal::GroupTooDeep(id, self.limits.chain));
        }
        let old = self.groups.get(&id);
        let gone = old.map_or(0, Group::room);
        if self.room() - gone + group.room() > self.limits.room {
            return Err(Refusal::GroupTooManyBuckets(self.limits.room));
        }
        buckets::identify(&mut group, request.command, old, &mut self.serial);
        for (id, depth) in above {
            self.groups.entry(id).and_modify(|group| group.depth = depth);
        }
        self.group_room = self.group_room - gone + group.room();
        self.room_bound += group.room();
        self.groups.insert(id, group);
        self.generation += 1;
        Ok(Vec::new())
    }

    /// Returns the request with all buckets that the group is to have, all with numbers. A request
    /// that changes some of the buckets leaves the type as it is.
    fn whole(&self, request: &GroupMod) -> Result<GroupMod, Refusal> {
        let old = self.groups.get(&request.id);
        let changes_some =
            matches!(request.command, GroupCommand::InsertBuckets(_) | GroupCommand::RemoveBuckets(_));
        let kind = old.filter(|_| changes_some).map_or(request.kind, |group| group.kind);
        Ok(GroupMod { kind, buckets: buckets::after(request, old)?, ..request.clone() })
    }

    fn check_group(&self, request: &GroupMod) -> Result<(), Refusal> {
        let GroupMod { id, kind, buckets, .. } = request;
        if *id > group::MAX || (*kind == GroupKind::Indirect && buckets.len() != 1) {
            return Err(Refusal::GroupInvalid(*id));
        }
        if buckets.len() > self.limits.buckets {
            return Err(Refusal::GroupTooManyBuckets(self.limits.buckets));
        }
        // A bucket of weight 0 is out of use for now; a group of such buckets sends nothing, ever.
        let is_without_weight = !buckets.is_empty() && buckets.iter().all(|bucket| bucket.weight == 0);
        if *kind == GroupKind::Select && is_without_weight {
            return Err(Refusal::GroupWithoutWeight(*id));
        }
        for bucket in buckets {
            // §7.3.4.3: weights are defined for select groups only. Fast-failover buckets with a
            // weight, which rule files often have, are accepted.
            let uses_all = matches!(kind, GroupKind::All | GroupKind::Indirect);
            if uses_all && bucket.weight != 0 {
                return Err(Refusal::GroupInvalid(*id));
            }
            let watches = (bucket.watch_port != port::ANY, bucket.watch_group != ANY_GROUP);
            // Every bucket of these groups is always used: liveness selects nothing.
            if uses_all && watches != (false, false) {
                return Err(Refusal::GroupWatchUnsupported(*id));
            }
            let is_unknown =
                watches.1 && bucket.watch_group != *id && !self.groups.contains_key(&bucket.watch_group);
            if is_unknown || (*kind == GroupKind::FastFailover && watches == (false, false)) {
                return Err(Refusal::GroupBadWatch(*id));
            }
            // A group that names itself is a loop, even before it exists.
            if bucket.chained().any(|other| other == *id) || bucket.watch_group == *id {
                return Err(Refusal::GroupLoop(*id));
            }
            check::actions(&self.targets(), ActionsOf::Bucket, &bucket.actions)?;
        }
        if self.reaches(buckets, *id) { Err(Refusal::GroupLoop(*id)) } else { Ok(()) }
    }

    /// Returns whether packets or liveness of these buckets lead to the group `id`.
    fn reaches(&self, buckets: &[Bucket], id: u32) -> bool {
        // Nothing leads to a group that does not exist, and only deeper groups lead to one that
        // does.
        let Some(depth) = self.groups.get(&id).map(|group| group.depth) else { return false };
        let mut seen = BTreeSet::new();
        let mut open: Vec<u32> = buckets.iter().flat_map(Bucket::next).collect();
        while let Some(at) = open.pop() {
            if at == id {
                return true;
            }
            let deeper = self.groups.get(&at).filter(|group| group.depth > depth && seen.insert(at));
            open.extend(deeper.into_iter().flat_map(|group| group.buckets.iter()).flat_map(Bucket::next));
        }
        false
    }

    /// Returns the depth of a group above those below it. `changed` overrides depths that differ.
    fn depth_of(&self, group: &Group, changed: &BTreeMap<u32, usize>) -> usize {
        let below = group.buckets.iter().flat_map(Bucket::next);
        let depth = |id| changed.get(&id).copied().or_else(|| Some(self.groups.get(&id)?.depth));
        1 + below.filter_map(depth).max().unwrap_or(0)
    }

    /// Returns the depths that change above a group when its own depth changes. A group that leads
    /// to it is deeper than it was, and groups are visited by increasing depth, so one pass is
    /// enough.
    fn depths_above(&self, id: u32, depth: usize) -> BTreeMap<u32, usize> {
        let old = self.groups.get(&id).map_or(depth, |group| group.depth);
        if old == depth {
            return BTreeMap::new();
        }
        let mut changed = BTreeMap::from([(id, depth)]);
        let mut above: Vec<_> = self.groups.iter().filter(|(_, group)| group.depth > old).collect();
        above.sort_by_key(|(_, group)| group.depth);
        for (other, group) in above {
            let depth = self.depth_of(group, &changed);
            if depth != group.depth {
                changed.insert(*other, depth);
            }
        }
        changed.remove(&id);
        changed
    }

    fn delete_groups(&mut self, now: Time, id: u32) -> Result<Vec<Removed>, Refusal> {
        if id == group::ALL {
            self.groups.clear();
            self.group_room = 0;
            self.generation += 1;
            let uses_a_group =
                |flow: &Flow| flow.instructions.actions().any(|action| !action.groups().is_empty());
            return Ok(self.remove_flows(now, RemovedReason::GroupDelete, uses_a_group));
        }
        if id > group::MAX {
            return Err(Refusal::GroupInvalid(id));
        }
        let is_chained = |(other, group): (&u32, &Group)| {
            let leads = |bucket: &Bucket| bucket.watch_group == id || bucket.chained().any(|next| next == id);
            *other != id && group.buckets.iter().any(leads)
        };
        if self.groups.iter().any(is_chained) {
            return Err(Refusal::GroupChained(id));
        }
        // §6.5: deleting a group that does not exist is not an error.
        let Some(gone) = self.groups.remove(&id) else { return Ok(Vec::new()) };
        self.group_room -= gone.room();
        self.generation += 1;
        Ok(self.remove_flows(now, RemovedReason::GroupDelete, |flow| flow.uses_group(id)))
    }

    /// Returns whether a bucket is live: the port or the group that it watches is live (§6.7). A
    /// bucket that watches nothing is always live.
    pub fn is_live(&self, bucket: &Bucket) -> bool {
        self.is_live_but_for(bucket, &mut BTreeSet::new())
    }

    /// Collects dead groups, so that each is visited once however groups watch each other (never in
    /// a loop).
    fn is_live_but_for(&self, bucket: &Bucket, dead: &mut BTreeSet<u32>) -> bool {
        let (port, group) = (bucket.watch_port, bucket.watch_group);
        if port != port::ANY && self.port(port).is_some_and(Port::is_live) {
            return true;
        }
        if group == ANY_GROUP {
            return port == port::ANY;
        }
        let mut buckets = self.group(group).into_iter().flat_map(|group| group.buckets.iter());
        let is_live = !dead.contains(&group) && buckets.any(|bucket| self.is_live_but_for(bucket, dead));
        if !is_live {
            dead.insert(group);
        }
        is_live
    }
}
