//! Merges the records of all parts in the order of the whole network, and feeds them to what
//! follows frames and to the per-packet log, as if one network had been observed.

use super::records::{Batch, Event, OrderKey, Record};
use crate::error::Result;
use crate::log_file::LogFile;
use crate::replay::follow::Follower;
use crate::replay::rows::{FrameEnd, Rows};
use crate::replay::run::Observers;
use fastpath_net::packet_log::{LoggedExit, PacketLog};
use fastpath_units::Time;
use std::collections::VecDeque;
use std::vec;

/// See the head of this file.
pub(super) struct Merger {
    parts: Vec<PartRecords>,
    pub(super) follower: Follower,
    pub(super) log: Option<PacketLog<LogFile>>,
    pub(super) rows: Rows,
}

/// What a part has recorded and was not merged yet.
#[derive(Default)]
struct PartRecords {
    batches: VecDeque<OpenBatch>,
}

struct OpenBatch {
    records: vec::IntoIter<Record>,
    bytes: Vec<u8>,
    offset: usize,
}

impl PartRecords {
    fn head(&self) -> Option<OrderKey> {
        self.batches.front()?.records.as_slice().first().map(|record| record.key)
    }
}

impl Merger {
    /// Merges the records of `count` parts.
    pub(super) fn new(count: usize, (follower, log): Observers, rows: Rows) -> Merger {
        let parts = (0..count).map(|_| PartRecords::default()).collect();
        Merger { parts, follower, log, rows }
    }

    /// Takes the next records of a part.
    pub(super) fn add(&mut self, part: usize, batch: &mut Batch) {
        if !batch.records.is_empty() {
            let Batch { records, bytes } = std::mem::take(batch);
            self.parts[part].batches.push_back(OpenBatch { records: records.into_iter(), bytes, offset: 0 });
        }
    }

    /// Merges everything before `end`: all records before it have been added.
    pub(super) fn merge(&mut self, end: Time) -> Result<()> {
        loop {
            let heads =
                self.parts.iter().enumerate().filter_map(|(part, records)| Some((records.head()?, part)));
            let Some((_, part)) = heads.min().filter(|(key, _)| key.at < end) else { break };
            let batches = &mut self.parts[part].batches;
            let batch = batches.front_mut().expect("it has the head");
            let record = batch.records.next().expect("it is the head");
            let bytes = &batch.bytes[batch.offset..batch.offset + usize::from(record.bytes)];
            batch.offset += bytes.len();
            note(&record, bytes, &mut self.follower, self.log.as_mut(), &mut self.rows);
            if batch.records.as_slice().is_empty() {
                batches.pop_front();
            }
        }
        self.follower.store_closed(&mut self.rows)
    }
}

/// Notes one record.
fn note(
    record: &Record,
    bytes: &[u8],
    follower: &mut Follower,
    mut log: Option<&mut PacketLog<LogFile>>,
    rows: &mut Rows,
) {
    let Record { key: OrderKey { at, .. }, frame, event, .. } = *record;
    match event {
        Event::Entered { edge, note } => {
            rows.entering(note.input, note.len);
            follower.capture_frame = note.capture_frame;
            follower.open(at, edge, frame);
            if let Some(log) = &mut log {
                log.note_entry(at, frame);
            }
        }
        Event::NotEntered { edge, note, reason } => {
            rows.entering(note.input, note.len);
            follower.capture_frame = note.capture_frame;
            follower.refused(at, edge, reason);
            if let Some(log) = &mut log {
                log.skip_number();
            }
        }
        Event::Arrived => log.iter_mut().for_each(|log| log.note_arrival(at, frame)),
        Event::Left { departed, pipe, fate, len } => {
            let exit = LoggedExit { at, departed, pipe, fate };
            log.iter_mut().for_each(|log| log.note_exit(frame, exit, len, bytes));
        }
        Event::Refused { location, reason, len } => {
            log.iter_mut().for_each(|log| log.note_refusal(frame, (at, location, reason), len, bytes));
        }
        Event::Delivered(edge) => {
            follower.close(frame, FrameEnd::Delivered(at, edge));
            log.iter_mut().for_each(|log| log.note_end(frame));
        }
        Event::Ended(reason) => {
            follower.close(frame, reason.map_or(FrameEnd::Absorbed, FrameEnd::Dropped));
            log.iter_mut().for_each(|log| log.note_end(frame));
        }
    }
}
