//! Groups: one action that stands for several sets of actions.
//!
//! Read first: OpenFlow 1.3.5 §5.6.

use crate::action::Action;
use crate::flow::{ANY_GROUP, Counters};
use crate::port;
use fastpath_units::Time;
use fastpath_wire::{Headers, NetworkLayer};
use std::sync::Arc;

/// Highest number of a group (OFPG_MAX).
pub const MAX: u32 = crate::action::GROUP_MAX;
/// Every group, in deletions (OFPG_ALL).
pub const ALL: u32 = 0xffff_fffc;

/// The highest number of a bucket (OFPG_BUCKET_MAX).
pub const BUCKET_MAX: u32 = 0xffff_ff00;
/// A bucket of a request that gives it no number: it gets the lowest that is free.
pub const BUCKET_UNNUMBERED: u32 = 0xffff_fffc;
/// The first bucket of a group (OFPG_BUCKET_FIRST).
pub const BUCKET_FIRST: u32 = 0xffff_fffd;
/// The last bucket of a group (OFPG_BUCKET_LAST).
pub const BUCKET_LAST: u32 = 0xffff_fffe;
/// All buckets of a group (OFPG_BUCKET_ALL).
pub const BUCKET_ALL: u32 = 0xffff_ffff;

/// How a group selects buckets (OFPGT_; the numbers are the protocol's).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum GroupKind {
    /// Every bucket; each gets a copy.
    All = 0,
    /// One bucket, by the hash of the flow and the weights.
    Select = 1,
    /// The only bucket.
    Indirect = 2,
    /// The first live bucket.
    FastFailover = 3,
}

/// One set of actions of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// Its number, by which OpenFlow 1.5 names it: [`BUCKET_UNNUMBERED`] in requests that give
    /// none. Buckets of a group have different numbers.
    pub id: u32,
    /// The share of the flows in a select group; 0 in other groups.
    pub weight: u16,
    /// The bucket is live while this port is live, or `watch_group` is; [`port::ANY`] for none.
    pub watch_port: u32,
    /// The bucket is live while this group is live, or `watch_port` is; [`ANY_GROUP`] for none.
    pub watch_group: u32,
    /// The action set.
    pub actions: Vec<Action>,
}

/// A group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// The rule by which it selects buckets.
    pub kind: GroupKind,
    /// The buckets.
    pub buckets: Arc<[Bucket]>,
    /// Packets that it processed.
    pub counters: Counters,
    /// Packets that each bucket processed.
    pub bucket_counters: Vec<Counters>,
    /// The time at which it was added.
    pub added: Time,
    /// What counts made elsewhere belong to.
    pub identity: GroupIdentity,
    /// The number of groups on the longest chain down from it, itself included, by packets or by
    /// liveness.
    pub(crate) depth: usize,
}

/// Serial numbers of a group and its buckets: those that a request replaces get others, and those
/// that stay keep theirs, with their counters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GroupIdentity {
    /// That of the group.
    pub group: u64,
    /// Those of the buckets.
    pub buckets: Arc<[u64]>,
}

/// A request to change groups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupMod {
    /// The command.
    pub command: GroupCommand,
    /// The group; [`ALL`] in deletions.
    pub id: u32,
    /// The rule by which it selects buckets.
    pub kind: GroupKind,
    /// The buckets.
    pub buckets: Vec<Bucket>,
}

/// The command of a group request (OFPGC_).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupCommand {
    /// Adds the group.
    Add,
    /// Replaces the group.
    Modify,
    /// Deletes the group and the flows that use it.
    Delete,
    /// Adds buckets behind this one, or at one end ([`BUCKET_FIRST`], [`BUCKET_LAST`]).
    InsertBuckets(u32),
    /// Removes this bucket, that at one end, or all ([`BUCKET_ALL`]).
    RemoveBuckets(u32),
}

impl Bucket {
    /// Returns a bucket of weight 0 that is always live. A select group sends nothing to a bucket
    /// of weight 0; other groups ignore or refuse weights.
    pub fn new(actions: impl Into<Vec<Action>>) -> Bucket {
        let (id, actions) = (BUCKET_UNNUMBERED, actions.into());
        Bucket { id, weight: 0, watch_port: port::ANY, watch_group: ANY_GROUP, actions }
    }

    /// Returns the groups that it leads to: those that it sends packets to and the one that it
    /// watches.
    pub(crate) fn next(&self) -> impl Iterator<Item = u32> + '_ {
        self.chained().chain((self.watch_group != ANY_GROUP).then_some(self.watch_group))
    }

    /// Returns the groups that it sends packets to.
    pub(crate) fn chained(&self) -> impl Iterator<Item = u32> + '_ {
        self.actions.iter().filter_map(|action| match action {
            Action::Group(id) => Some(*id),
            _ => None,
        })
    }
}

impl Group {
    /// Returns a new group.
    pub fn new(kind: GroupKind, buckets: Vec<Bucket>, added: Time) -> Group {
        let bucket_counters = vec![Counters::default(); buckets.len()];
        let (counters, identity) = (Counters::default(), GroupIdentity::default());
        Group { kind, buckets: buckets.into(), counters, bucket_counters, added, identity, depth: 1 }
    }

    /// Returns what it uses of [`Limits::room`](crate::Limits::room).
    pub(crate) fn room(&self) -> usize {
        self.buckets.iter().map(|bucket| 1 + bucket.actions.len()).sum()
    }
}

/// Returns the bucket of a select group for a hash. Each live bucket has a share in proportion to
/// its weight. The same hash and the same live buckets give the same bucket on every machine.
pub fn select(buckets: &[Bucket], is_live: impl Fn(&Bucket) -> bool, hash: u32) -> Option<usize> {
    let weight = |bucket: &Bucket| if is_live(bucket) { u64::from(bucket.weight) } else { 0 };
    let total: u64 = buckets.iter().map(weight).sum();
    let mut point = (u64::from(hash) * total) >> 32;
    for (index, bucket) in buckets.iter().enumerate() {
        match point.checked_sub(weight(bucket)) {
            Some(rest) => point = rest,
            None => return Some(index),
        }
    }
    None
}

/// Returns the hash that select groups use. It covers the flow (addresses, protocol, ports; the
/// IPv4 addresses of ARP), MACs and EtherType.
pub fn select_hash(headers: &Headers, frame: &[u8]) -> u32 {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    let flow = match headers.network {
        // The addresses of sender and target (RFC 826).
        NetworkLayer::Arp => {
            let address =
                |at: usize| frame.get(headers.l2_len + at..headers.l2_len + at + 4).map_or(0, number);
            address(14) << 32 | address(24)
        }
        _ => headers.flow_hash().into(),
    };
    let words = [number(&headers.dst.0), number(&headers.src.0), u64::from(headers.ethertype), flow];
    let mixed = words.iter().fold(0u64, |h, word| {
        let h = (h ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        h ^ h >> 32
    });
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_divide_the_hashes_in_proportion_among_live_buckets() {
        let buckets: Vec<_> = [1, 0, 3].map(|weight| Bucket { weight, ..Bucket::new([]) }).into();
        let mut counts = [0; 3];
        for i in 0..4096 {
            counts[select(&buckets, |_| true, i << 20).unwrap()] += 1;
        }
        assert_eq!(counts, [1024, 0, 3072]);
        assert_eq!(select(&buckets, |bucket| bucket.weight == 1, u32::MAX), Some(0));
        assert_eq!(select(&buckets, |_| false, 7), None);
        assert_eq!(select(&[], |_| true, 7), None);
    }

    #[test]
    fn flows_spread_by_what_tells_them_apart_arp_by_its_addresses() {
        let arp = |n: u8| {
            let mut frame = vec![0xff; 60];
            frame[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
            (frame[31], frame[41]) = (n, !n);
            select_hash(&Headers::parse(&frame), &frame)
        };
        let buckets = [1, 1].map(|weight| Bucket { weight, ..Bucket::new([]) });
        let first = (0..=255).filter(|n| select(&buckets, |_| true, arp(*n)) == Some(0)).count();
        // Of 256 fair draws 128 are expected; the standard deviation is 8.
        assert!((88..168).contains(&first), "{first}");
    }
}
