//! The numbers of buckets, and requests that change some buckets of a group (OpenFlow 1.5.1
//! §7.3.4.3).

use crate::Refusal;
use crate::flow::Counters;
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

/// Returns the counters of the buckets of a new group: those that stay keep theirs.
pub(super) fn kept_counters(old: &Group, buckets: &[Bucket]) -> Vec<Counters> {
    let place = |bucket: &Bucket| old.buckets.iter().position(|one| one.id == bucket.id);
    let counters = |bucket| place(bucket).and_then(|at| old.bucket_counters.get(at).copied());
    buckets.iter().map(|bucket| counters(bucket).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, GroupKind, Limits, Port, Switch};
    use fastpath_units::Time;

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
        switch.credit_group(1, Counters::default(), &[1, 2, 3, 4].map(|n| Counters { packets: n, bytes: n }));
        assert_eq!(send(&mut switch, InsertBuckets(BUCKET_FIRST), &[8]), Ok(vec![8, 7, 1, 2, 0]));
        assert_eq!(send(&mut switch, InsertBuckets(1), &[10, none]), Ok(vec![8, 7, 1, 10, 3, 2, 0]));
        assert_eq!(send(&mut switch, InsertBuckets(99), &[11]), Err((6, 15)));
        assert_eq!(send(&mut switch, InsertBuckets(BUCKET_LAST), &[7]), Err((6, 16)));
        assert_eq!(send(&mut switch, InsertBuckets(BUCKET_LAST), &[BUCKET_MAX + 1]), Err((6, 12)));
        let packets = |switch: &Switch| -> Vec<u64> {
            switch.group(1).unwrap().bucket_counters.iter().map(|counters| counters.packets).collect()
        };
        assert_eq!(packets(&switch), [0, 1, 2, 0, 0, 3, 4]);
        assert_eq!(send(&mut switch, RemoveBuckets(7), &[]), Ok(vec![8, 1, 10, 3, 2, 0]));
        assert_eq!(send(&mut switch, RemoveBuckets(BUCKET_FIRST), &[]), Ok(vec![1, 10, 3, 2, 0]));
        assert_eq!(send(&mut switch, RemoveBuckets(BUCKET_LAST), &[]), Ok(vec![1, 10, 3, 2]));
        assert_eq!(packets(&switch), [2, 0, 0, 3]);
        assert_eq!(send(&mut switch, RemoveBuckets(0), &[]), Err((6, 15)));
        assert_eq!(send(&mut switch, RemoveBuckets(BUCKET_ALL), &[]), Ok(vec![]));
        assert_eq!(send(&mut switch, RemoveBuckets(BUCKET_LAST), &[]), Ok(vec![]));
    }
}
