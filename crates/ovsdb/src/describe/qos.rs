//! Quality of service of a port: rates of its queues.

use super::{references, text};
use crate::replica::{DbRow, Replica};
use crate::value::{Atom, Uuid};
use std::collections::BTreeMap;

/// The queues of a port, as in the queue disciplines htb and hfsc of Linux. Rates are in bit/s.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QosSpec {
    /// Its row.
    pub uuid: Uuid,
    /// Why it cannot be had.
    pub error: Option<String>,
    /// The rate of the port.
    pub max_rate: Option<u64>,
    /// The queues, by number.
    pub queues: BTreeMap<u32, QueueRate>,
    /// What is written and not done.
    pub notes: Vec<String>,
}

/// The rates of a queue, bit/s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueRate {
    /// What it gets in any case.
    pub min_rate: Option<u64>,
    /// What it gets at most.
    pub max_rate: Option<u64>,
    /// What it may send at once above `max_rate`, bits.
    pub burst: Option<u64>,
}

/// Most queues of a port, queue 0 aside.
const QUEUES_MAX: usize = 63;

/// Describes the quality of service of a port; `None` for that of no kind.
pub(super) fn describe(replica: &Replica, port: &DbRow) -> Option<QosSpec> {
    let (uuid, row) = references(replica, port, "qos", "QoS").next()?;
    let kind = text(row, "type");
    let mut notes = Vec::new();
    let [max_rate] = rates(row, ["max-rate"], "", &mut notes);
    let mut queues = BTreeMap::new();
    let count = row.column("queues").pairs().count();
    if count > QUEUES_MAX {
        notes.push(format!("queues: {count} of them: only the first {QUEUES_MAX} are made"));
    }
    for (number, queue) in row.column("queues").pairs().take(QUEUES_MAX) {
        let (Atom::Integer(number), Atom::Uuid(queue)) = (number, queue) else { continue };
        let (Ok(number), Some(queue)) = (u32::try_from(*number), replica.row("Queue", *queue)) else {
            notes.push(format!("queues: there is no queue {number}"));
            continue;
        };
        let place = format!("queue {number}: ");
        let keys = ["min-rate", "max-rate", "burst"];
        let [min_rate, max_rate, burst] = rates(queue, keys, &place, &mut notes);
        if burst.is_some() && max_rate.is_none() {
            notes.push(format!("{place}burst has no effect without max-rate"));
        }
        if !queue.column("dscp").is_empty() {
            notes.push(format!("{place}dscp is not supported"));
        }
        queues.insert(number, QueueRate { min_rate, max_rate, burst });
    }
    let error = match kind {
        "linux-htb" | "linux-hfsc" => None,
        "linux-noop" | "" => return None,
        _ => Some(format!("type {kind} is not supported: write linux-htb, linux-hfsc or linux-noop")),
    };
    Some(QosSpec { uuid, error, max_rate, queues, notes })
}

/// Reads rates of `other_config`. Everything else in it is noted.
fn rates<const N: usize>(
    row: &DbRow,
    keys: [&str; N],
    place: &str,
    notes: &mut Vec<String>,
) -> [Option<u64>; N] {
    let config = row.column("other_config");
    for (key, value) in config.texts() {
        if !keys.contains(&key) {
            notes.push(format!("{place}other_config:{key} is not supported"));
        } else if rate(value).is_none() {
            notes.push(format!(
                "{place}other_config:{key} {value}: write a number above 0, of bits or bits per second"
            ));
        }
    }
    keys.map(|key| config.get(key).and_then(rate))
}

fn rate(text: &str) -> Option<u64> {
    text.parse().ok().filter(|rate| *rate > 0)
}
