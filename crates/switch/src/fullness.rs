//! What tables do when they are full or nearly so: they evict flows, and tell controllers
//! (OpenFlow 1.4 §7.3.4.1, §7.4.5).
//!
//! Controllers are told when less room is free than one threshold, then when more is free than the
//! other, and so on.

use crate::switch::Switch;
use crate::table_config::{self, TableConfig, Vacancy};
use std::collections::BTreeMap;

/// The bits of a table's configuration that a controller may set.
pub const CAPABILITIES: u32 = table_config::EVICTION | table_config::VACANCY_EVENTS;
/// Flows are evicted by their importance and what is left of their life (OFPTMPEF_).
pub const EVICTION_FLAGS: u32 = 0b110;
/// OFPTR_VACANCY_DOWN.
const DOWN: u8 = 3;
/// OFPTR_VACANCY_UP.
const UP: u8 = 4;

/// The tables of which controllers want vacancy events.
#[derive(Debug, Default)]
pub struct Fullness {
    watched: BTreeMap<u8, Watch>,
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    down: u8,
    up: u8,
    /// Which event comes next.
    is_low: bool,
}

impl Fullness {
    /// Returns the configuration of a table.
    pub fn config(&self, switch: &Switch, table_id: u8) -> TableConfig {
        let evicts = switch.tables()[usize::from(table_id)].evicts();
        let watch = self.watched.get(&table_id);
        let vacancy =
            watch.map(|watch| Vacancy { down: watch.down, up: watch.up, now: vacancy(switch, table_id) });
        let bit = |is_set, bit| if is_set { bit } else { 0 };
        TableConfig {
            table_id,
            config: bit(evicts, table_config::EVICTION) | bit(watch.is_some(), table_config::VACANCY_EVENTS),
            eviction: Some(EVICTION_FLAGS),
            vacancy,
        }
    }

    /// Returns whether controllers want the events of no table.
    pub fn watches_none(&self) -> bool {
        self.watched.is_empty()
    }

    /// Begins to watch a table, with thresholds that stay as they were unless they are given.
    pub fn watch(&mut self, switch: &Switch, table_id: u8, thresholds: Option<Vacancy>) {
        let before = self.watched.get(&table_id).map_or((0, 0), |watch| (watch.down, watch.up));
        let (down, up) = thresholds.map_or(before, |vacancy| (vacancy.down, vacancy.up));
        let is_low = vacancy(switch, table_id) < down;
        self.watched.insert(table_id, Watch { down, up, is_low });
    }

    /// Ends to watch a table.
    pub fn ignore(&mut self, table_id: u8) {
        self.watched.remove(&table_id);
    }

    /// Returns the events that the tables as they are now have caused.
    pub fn events(&mut self, switch: &Switch) -> Vec<(u8, u8)> {
        let mut events = Vec::new();
        for (table_id, watch) in &mut self.watched {
            let free = vacancy(switch, *table_id);
            let event = if free < watch.down { DOWN } else { UP };
            let is_reached = if watch.is_low { free > watch.up } else { free < watch.down };
            if is_reached {
                watch.is_low = !watch.is_low;
                events.push((*table_id, event));
            }
        }
        events
    }
}

/// Returns the free room of a table in percent.
fn vacancy(switch: &Switch, table_id: u8) -> u8 {
    let (most, used) = (switch.limits().flows, switch.tables()[usize::from(table_id)].len());
    (most.saturating_sub(used) * 100 / most.max(1)) as u8
}
