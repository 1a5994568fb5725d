//! The connections in memory: a line for each, and a rest for some.

use crate::connection::{ConnectionInfo, ConnectionRest, TrackedConnection};
use crate::slab::Slab;
use crate::tuple::FlowTuple;
use std::borrow::Cow;

/// The connections by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionStore {
    lines: Slab<TrackedConnection>,
    rests: Slab<ConnectionRest>,
}

impl ConnectionStore {
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns the line of a connection. The number has been given; it may have gone.
    #[inline]
    pub(crate) fn line(&self, id: u32) -> &TrackedConnection {
        self.lines.get(id)
    }

    #[inline]
    pub(crate) fn line_mut(&mut self, id: u32) -> &mut TrackedConnection {
        self.lines.get_mut(id)
    }

    /// Returns the rest of a connection that has one.
    pub(crate) fn rest(&self, id: u32) -> Option<&ConnectionRest> {
        self.line(id).rest().map(|rest| self.rests.get(rest))
    }

    pub(crate) fn rest_mut(&mut self, id: u32) -> Option<&mut ConnectionRest> {
        self.line(id).rest().map(|rest| self.rests.get_mut(rest))
    }

    /// Returns the rest of a connection, which gets one if it has none.
    pub(crate) fn make_rest(&mut self, id: u32) -> &mut ConnectionRest {
        let number = match self.line(id).rest() {
            Some(number) => number,
            None => {
                let rest = self.rest_of(id).into_owned();
                let number = self.rests.insert(rest);
                self.line_mut(id).set_rest(number);
                number
            }
        };
        self.rests.get_mut(number)
    }

    /// Returns the rest of a connection, also if it has none.
    fn rest_of(&self, id: u32) -> Cow<'_, ConnectionRest> {
        let line = self.line(id);
        if let Some(number) = line.rest() {
            return Cow::Borrowed(self.rests.get(number));
        }
        let original = line.plain_tuple();
        let tuples = [original, original.reversed()];
        Cow::Owned(ConnectionRest { tuples, mark: line.plain_mark(), ..ConnectionRest::default() })
    }

    /// Returns whether a connection has a tuple in a zone, and whether as that of replies.
    #[inline]
    pub(crate) fn direction(&self, id: u32, tuple: &FlowTuple, zone: u16) -> Option<bool> {
        let line = self.line(id);
        if line.zone != zone {
            return None;
        }
        match line.rest() {
            None => line.plain_direction(tuple),
            Some(number) => {
                let [original, reply] = &self.rests.get(number).tuples;
                if original == tuple { Some(false) } else { (reply == tuple).then_some(true) }
            }
        }
    }

    /// Fetches a connection into the cache.
    pub(crate) fn prefetch(&self, id: u32) {
        self.lines.prefetch(id);
    }

    pub(crate) fn insert(&mut self, mut line: TrackedConnection, rest: ConnectionRest) -> u32 {
        match rest.is_plain() {
            true => line.set_plain_mark(rest.mark),
            false => line.set_rest(self.rests.insert(rest)),
        }
        self.lines.insert(line)
    }

    /// Removes a connection, and returns its rest.
    pub(crate) fn remove(&mut self, id: u32) -> ConnectionRest {
        let rest = self.rest_of(id).into_owned();
        if let Some(number) = self.line(id).rest() {
            *self.rests.get_mut(number) = ConnectionRest::default();
            self.rests.remove(number);
        }
        self.line_mut(id).end();
        self.lines.remove(id);
        rest
    }

    /// Returns all by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &TrackedConnection)> {
        self.lines.iter().filter(|(_, one)| one.is_live())
    }

    /// Returns what lists show of a connection.
    pub(crate) fn info(&self, id: u32) -> ConnectionInfo {
        let line = self.line(id);
        let rest = self.rest_of(id);
        let [original, reply] = rest.tuples;
        ConnectionInfo {
            zone: line.zone,
            original,
            reply,
            tcp: line.phases(),
            has_reply: line.has_reply(),
            mark: rest.mark,
            label: rest.label,
            alg: rest.alg,
            parent: rest.parent,
            deadline: line.deadline,
        }
    }
}
