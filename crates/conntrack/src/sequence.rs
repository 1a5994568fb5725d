//! Sequence numbers of TCP behind payload whose length was changed.

/// How the payload of one direction was moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct SequenceShift {
    /// The number of the last changed segment, as its sender counts.
    changed_at: u32,
    /// Bytes that were added up to it.
    before: i32,
    /// Bytes that were added with it.
    after: i32,
}

/// How the payload of both directions was moved: of packets of the side that began, and of replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SequenceShifts([SequenceShift; 2]);

/// Bytes by which the numbers of a segment are moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SegmentShift {
    /// What is added to its sequence number.
    pub seq: i32,
    moved: SequenceShift,
}

impl SequenceShift {
    /// Returns what is added to a number of the sender.
    fn of_sent(&self, seq: u32) -> i32 {
        if is_after(seq, self.changed_at) { self.after } else { self.before }
    }

    /// Returns the number that the sender knows for one that the receiver saw.
    fn sent(&self, seen: u32) -> u32 {
        let late = seen.wrapping_sub_signed(self.after);
        if is_after(late, self.changed_at) { late } else { seen.wrapping_sub_signed(self.before) }
    }
}

fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl SequenceShifts {
    pub(crate) fn is_empty(&self) -> bool {
        *self == SequenceShifts::default()
    }

    /// Notes that a segment of a direction got `more` bytes more. A segment that was changed before
    /// counts once.
    pub(crate) fn add(&mut self, is_reply: bool, seq: u32, more: i32) {
        let shift = &mut self.0[usize::from(is_reply)];
        let is_first = shift.before == shift.after;
        if more != 0 && (is_first || is_after(seq, shift.changed_at)) {
            *shift = SequenceShift { changed_at: seq, before: shift.after, after: shift.after + more };
        }
    }

    /// Returns how a segment of a direction is moved.
    pub(crate) fn of(&self, is_reply: bool, seq: u32) -> SegmentShift {
        let (own, other) = (self.0[usize::from(is_reply)], self.0[usize::from(!is_reply)]);
        SegmentShift { seq: own.of_sent(seq), moved: other }
    }

    /// Returns a number of the receiver's stream as the receiver counts.
    pub(crate) fn acknowledged(&self, is_reply: bool, ack: u32) -> u32 {
        self.0[usize::from(!is_reply)].sent(ack)
    }

    /// Returns a number as its sender counts, of a segment that was moved already.
    pub(crate) fn sent(&self, is_reply: bool, seq: u32) -> u32 {
        self.0[usize::from(is_reply)].sent(seq)
    }
}

impl SegmentShift {
    /// Returns an acknowledgement, or an edge of a block of SACK, as the receiver counts.
    pub fn ack(&self, ack: u32) -> u32 {
        self.moved.sent(ack)
    }

    /// Returns whether it changes nothing.
    pub fn is_none(&self) -> bool {
        self.seq == 0 && self.moved == SequenceShift::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_behind_a_change_move_and_acknowledgements_move_back() {
        let mut shifts = SequenceShifts::default();
        shifts.add(false, 1000, 3);
        shifts.add(false, 1000, 3);
        assert_eq!([999, 1000, 1001, 1020].map(|seq| shifts.of(false, seq).seq), [0, 0, 3, 3]);
        let reply = shifts.of(true, 7);
        assert_eq!((reply.seq, reply.ack(1000), reply.ack(1023)), (0, 1000, 1020));
        shifts.add(false, 1020, -5);
        assert_eq!([1000, 1020, 1021, 1040].map(|seq| shifts.of(false, seq).seq), [3, 3, -2, -2]);
        assert_eq!((shifts.acknowledged(true, 1038), shifts.sent(false, 1038)), (1040, 1040));
        assert!(shifts.of(true, 7).seq == 0 && !shifts.of(true, 7).is_none() && !shifts.is_empty());
    }

    #[test]
    fn numbers_may_wrap() {
        let mut shifts = SequenceShifts::default();
        shifts.add(true, u32::MAX - 2, 10);
        assert_eq!(shifts.of(true, 4).seq, 10);
        assert_eq!(shifts.acknowledged(false, 14), 4);
    }
}
