//! The numbers of buckets, and requests that change some buckets of a group (OpenFlow 1.5.1
//! §7.3.4.3).

use crate::Refusal;
use crate::group::{
    BUCKET_ALL, BUCKET_FIRST, BUCKET_LAST, BUCKET_MAX, BUCKET_UNNUMBERED, Bucket, Group, GroupCommand,
    GroupMod,
};
use std::collections::BTreeSet;

/// Returns the buckets that a group has after a request; `old` is the group before.
pub(super) fn after(request: &GroupMod, old: Option<&Group>) -> Result<Vec<Bucket>, Refusal> {
    let id = request.id;
    let mut buckets = old.map_or(Vec::new(), |group| group.buckets.to_vec());
    match request.command {
        GroupCommand::Add | GroupCommand::Modify | GroupCommand::Delete => {
            buckets.clone_from(&request.buckets);
        }
        GroupCommand::InsertBuckets(place) => {
            let at = match place {
                BUCKET_FIRST => 0,
                BUCKET_LAST => buckets.len(),
                place => position(id, &buckets, place)? + 1,
            };
            buckets.splice(at..at, request.buckets.iter().cloned());
        }
        GroupCommand::RemoveBuckets(place) => {
            let gone = match place {
                BUCKET_ALL => 0..buckets.len(),
                BUCKET_FIRST => 0..buckets.len().min(1),
                BUCKET_LAST => buckets.len().saturating_sub(1)..buckets.len(),
                place => {
                    let at = position(id, &buckets, place)?;
                    at..at + 1
                }
            };
            buckets.drain(gone);
        }
    }
    number(id, &mut buckets)?;
    Ok(buckets)
}

fn position(id: u32, buckets: &[Bucket], wanted: u32) -> Result<usize, Refusal> {
    buckets.iter().position(|one| one.id == wanted).ok_or(Refusal::GroupUnknownBucket(id, wanted))
}

/// Gives numbers to the buckets that have none.
fn number(id: u32, buckets: &mut [Bucket]) -> Result<(), Refusal> {
    let mut taken = BTreeSet::new();
    for bucket in buckets.iter().filter(|bucket| bucket.id != BUCKET_UNNUMBERED) {
        if bucket.id > BUCKET_MAX {
            return Err(Refusal::GroupBadBucket(id));
        }
        if !taken.insert(bucket.id) {
            return Err(Refusal::GroupBucketExists(id, bucket.id));
        }
    }
    // A group has far fewer buckets than there are numbers.
    let mut free = (0..BUCKET_MAX).filter(|number| !taken.contains(number));
    for bucket in buckets.iter_mut().filter(|bucket| bucket.id == BUCKET_UNNUMBERED) {
        bucket.id = free.next().unwrap_or(BUCKET_MAX);
    }
    Ok(())
}

/// Gives a group, which a request makes of `old`, counters and serial numbers: the group and the
/// buckets that stay keep theirs, and others get numbers from `serial` on.
pub(super) fn identify(group: &mut Group, command: GroupCommand, old: Option<&Group>, serial: &mut u64) {
    let mut next = || {
        *serial += 1;
        *serial
    };
    group.identity.group = old.map_or_else(&mut next, |old| old.identity.group);
    if let Some(old) = old {
        (group.added, group.counters) = (old.added, old.counters);
    }
    // §6.5: the counters of a group that is modified are kept, those of its buckets start at zero.
    let old = old.filter(|_| command != GroupCommand::Modify);
    let mut numbers = Vec::with_capacity(group.buckets.len());
    for (bucket, counters) in group.buckets.iter().zip(&mut group.bucket_counters) {
        let kept = old.and_then(|old| Some((old, old.buckets.iter().position(|one| one.id == bucket.id)?)));
        numbers.push(match kept {
            Some((old, place)) => {
                *counters = old.bucket_counters[place];
                old.identity.buckets[place]
            }
            None => next(),
        });
    }
    group.identity.buckets = numbers.into();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counters;
    use crate::{Action, Extension, GroupKind, Limits, MeterCommand, MeterMod, Port, Switch};
    use fastpath_units::Time;
    use std::sync::Arc;

    fn switch() -> Switch {
        let mut switch = Switch::new(Limits::default());
        (1..=2).for_each(|number| switch.set_port(number, Port::up()));
        switch
    }

    fn send(switch: &mut Switch, command: GroupCommand, ids: &[u32]) -> Result<Vec<u32>, (u16, u16)> {
        let bucket = |id: &u32| Bucket { id: *id, weight: 1, ..Bucket::new([Action::output(1)]) };
        let buckets = ids.iter().map(bucket).collect();
        let request = GroupMod { command, id: 1, kind: GroupKind::Select, buckets };
        switch.group_mod(Time::ZERO, &request).map_err(|refusal| refusal.numbers())?;
        Ok(switch.group(1).unwrap().buckets.iter().map(|bucket| bucket.id).collect())
    }

    #[test]
    fn buckets_are_inserted_and_removed_by_their_numbers() {
        use GroupCommand::{Add, InsertBuckets, RemoveBuckets};
        let mut switch = switch();
        let none = BUCKET_UNNUMBERED;
        assert_eq!(send(&mut switch, InsertBuckets(BUCKET_LAST), &[1]), Err((6, 8)), "no group");
        assert_eq!(send(&mut switch, Add, &[7, none, none, 0]), Ok(vec![7, 1, 2, 0]));
        let first = switch.group(1).unwrap().identity.clone();
        let counted = |n: u64| [1, 2, 3, 4].map(|at| Counters { packets: n * at, bytes: at });
        switch.credit_group(1, &first, Counters::default(), &counted(1));
        assert_eq!(send(&mut switch, InsertBuckets(BUCKET_FIRST), &[8]), Ok(vec![8, 7, 1, 2, 0]));
        assert_eq!(send(&mut switch, InsertBuckets(1), &[10, none]), Ok(vec![8, 7, 1, 10, 3, 2, 0]));
        assert_eq!(send(&mut switch, InsertBuckets(99), &[11]), Err((6, 15)));
        assert_eq!(send(&mut switch, InsertBuckets(BUCKET_LAST), &[7]), Err((6, 16)));
        assert_eq!(send(&mut switch, InsertBuckets(BUCKET_LAST), &[BUCKET_MAX + 1]), Err((6, 12)));
        let packets = |switch: &Switch| -> Vec<u64> {
            switch.group(1).unwrap().bucket_counters.iter().map(|counters| counters.packets).collect()
        };
        assert_eq!(packets(&switch), [0, 1, 2, 0, 0, 3, 4]);
        // What was counted before the buckets came and is credited now.
        let total = Counters { packets: 100, bytes: 1 };
        switch.credit_group(1, &first, total, &counted(10));
        assert_eq!(packets(&switch), [0, 11, 22, 0, 0, 33, 44]);
        assert_eq!(switch.group(1).unwrap().counters, total);
        assert_eq!(send(&mut switch, RemoveBuckets(7), &[]), Ok(vec![8, 1, 10, 3, 2, 0]));
        assert_eq!(send(&mut switch, RemoveBuckets(BUCKET_FIRST), &[]), Ok(vec![1, 10, 3, 2, 0]));
        assert_eq!(send(&mut switch, RemoveBuckets(BUCKET_LAST), &[]), Ok(vec![1, 10, 3, 2]));
        assert_eq!(packets(&switch), [22, 0, 0, 33]);
        switch.credit_group(1, &first, total, &counted(10));
        assert_eq!(packets(&switch), [42, 0, 0, 63], "those of buckets that have gone are lost");
        assert_eq!(send(&mut switch, InsertBuckets(BUCKET_LAST), &[7]), Ok(vec![1, 10, 3, 2, 7]));
        switch.credit_group(1, &first, total, &counted(10));
        assert_eq!(packets(&switch), [62, 0, 0, 93, 0], "bucket 7 is another one now");
        assert_eq!(send(&mut switch, RemoveBuckets(BUCKET_LAST), &[]), Ok(vec![1, 10, 3, 2]));
        assert_eq!(send(&mut switch, RemoveBuckets(0), &[]), Err((6, 15)));
        assert_eq!(send(&mut switch, RemoveBuckets(BUCKET_ALL), &[]), Ok(vec![]));
        assert_eq!(send(&mut switch, RemoveBuckets(BUCKET_LAST), &[]), Ok(vec![]));
        assert_eq!(send(&mut switch, GroupCommand::Modify, &[2]), Ok(vec![2]));
        let modified = switch.group(1).unwrap().identity.clone();
        assert_eq!((modified.group, modified.buckets.len()), (first.group, 1));
        switch.credit_group(1, &first, total, &counted(10));
        assert_eq!((packets(&switch), switch.group(1).unwrap().counters.packets), (vec![0], 400));
        let delete = GroupMod { command: GroupCommand::Delete, id: 1, kind: GroupKind::All, buckets: vec![] };
        switch.group_mod(Time::ZERO, &delete).unwrap();
        assert_eq!(send(&mut switch, Add, &[2]), Ok(vec![2]));
        switch.credit_group(1, &modified, total, &counted(10));
        assert_eq!((packets(&switch), switch.group(1).unwrap().counters.packets), (vec![0], 0));
    }

    /// So the deletion of a meter leaves no bucket behind that names it.
    #[test]
    fn no_bucket_names_a_meter_not_even_inside_of_another_action() {
        let mut switch = switch();
        let meter = MeterMod { command: MeterCommand::Add, id: 1, flags: 2, bands: Vec::new() };
        switch.meter_mod(Time::ZERO, &meter).unwrap();
        let action = |extension| Action::Extension(Arc::new(extension));
        let police = action(Extension::Meter(1));
        for action in [police.clone(), action(Extension::Clone(vec![police]))] {
            let buckets = vec![Bucket::new([action, Action::output(1)])];
            let request = GroupMod { command: GroupCommand::Add, id: 1, kind: GroupKind::All, buckets };
            assert_eq!(switch.group_mod(Time::ZERO, &request), Err(Refusal::NotInSet));
        }
        assert_eq!(Refusal::NotInSet.numbers(), (2, 5));
    }
}
