//! The groups of a running switch, and the counts of those that were replaced.

use crate::program::{Choice, GroupView};
use fastpath_switch::Switch;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct LiveGroups {
    newest: BTreeMap<u32, Arc<GroupView>>,
    /// Replaced groups, by number, in which workers may still count.
    old: Vec<(u32, Arc<GroupView>)>,
}

impl LiveGroups {
    /// Takes over the groups of the switch.
    pub(crate) fn renew(&mut self, switch: &mut Switch, workers: usize) {
        let is_same = |view: &GroupView, switch: &Switch, id: u32| {
            switch.group(id).is_some_and(|group| Arc::ptr_eq(&group.buckets, &view.buckets))
        };
        let replaced = self.newest.extract_if(.., |id, view| !is_same(view, switch, *id));
        self.old.extend(replaced);
        self.settle_old(switch);
        for (id, group) in switch.groups() {
            self.newest.entry(id).or_insert_with(|| Arc::new(GroupView::new(group, workers)));
        }
    }

    /// Returns the groups, with the buckets that process packets as ports and groups are now.
    pub(crate) fn with_choices(&self, switch: &Switch) -> BTreeMap<u32, (Arc<GroupView>, Choice)> {
        let of = |(id, view): (&u32, &Arc<GroupView>)| {
            Some((*id, (Arc::clone(view), Choice::new(switch.group(*id)?, switch))))
        };
        self.newest.iter().filter_map(of).collect()
    }

    /// Adds the counts since the last call to the switch.
    pub(crate) fn settle(&mut self, switch: &mut Switch) {
        self.newest.iter().for_each(|(id, group)| group.settle(*id, switch));
        self.settle_old(switch);
    }

    /// Adds the counts of replaced groups to what has stayed of them, and releases those that no
    /// worker runs any more.
    fn settle_old(&mut self, switch: &mut Switch) {
        self.old.retain(|(id, group)| {
            // A worker that lets go of it does so after its last count.
            let is_running = Arc::strong_count(group) > 1;
            fence(Ordering::Acquire);
            group.settle(*id, switch);
            is_running
        });
    }
}
