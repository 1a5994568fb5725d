//! What tables do when they are full or nearly so: they evict flows, and tell controllers
//! (OpenFlow 1.4 §7.3.4.1, §7.4.5).
//!
//! Controllers are told when less room is free than one threshold, then when more is free than the
//! other, and so on.

use super::event::Event;
use super::switch_state::SwitchState;
use crate::message::{Fault, TableConfig, TableMod, TableStatus, Vacancy, table_config};
use fastpath_switch::flow::ALL_TABLES;
use fastpath_switch::{Switch, Version};
use std::collections::BTreeMap;

/// The bits of a table's configuration that a controller may set.
pub(super) const CAPABILITIES: u32 = table_config::EVICTION | table_config::VACANCY_EVENTS;
/// Flows are evicted by their importance and what is left of their life (OFPTMPEF_).
const EVICTION_FLAGS: u32 = 0b110;
/// OFPTR_VACANCY_DOWN.
const DOWN: u8 = 3;
/// OFPTR_VACANCY_UP.
const UP: u8 = 4;

/// The tables of which controllers want vacancy events.
#[derive(Debug, Default)]
pub(super) struct Fullness {
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
    pub(super) fn config(&self, switch: &Switch, table_id: u8) -> TableConfig {
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

    /// Returns the events that the tables as they are now have caused.
    fn events(&mut self, switch: &Switch) -> Vec<(u8, u8)> {
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

/// Notes the events of vacancy that a change has caused.
pub(super) fn note(state: &mut SwitchState) {
    let SwitchState { control, fullness, .. } = state;
    if fullness.watched.is_empty() {
        return;
    }
    let events = control.peek(|switch| {
        let events = fullness.events(switch);
        let config = |(table_id, reason)| TableStatus { reason, table: fullness.config(switch, table_id) };
        events.into_iter().map(config).collect::<Vec<_>>()
    });
    events.into_iter().for_each(|event| state.async_messages.push(Event::TableStatus(Box::new(event))));
}

/// Changes the configuration of a table, or of all.
pub(super) fn table_mod(state: &mut SwitchState, version: Version, request: &TableMod) -> Result<(), Fault> {
    let TableMod { table_id, config, eviction, vacancy } = *request;
    let tables = state.control.peek(|switch| switch.limits().tables);
    if table_id >= tables && table_id != ALL_TABLES {
        return Err(Fault::TableModBadTable(table_id));
    }
    let known = if version < Version::V14 { table_config::DEPRECATED } else { CAPABILITIES };
    if config & !(table_config::DEPRECATED | known) != 0 {
        return Err(Fault::TableModBadConfig(config));
    }
    if version < Version::V14 {
        return Ok(());
    }
    // The flags say what the switch does; it does nothing else.
    if eviction.is_some_and(|flags| flags & !EVICTION_FLAGS != 0) {
        return Err(Fault::PropertyBadValue);
    }
    if vacancy.is_some_and(|vacancy| vacancy.down > vacancy.up || vacancy.up > 100 || vacancy.now != 0) {
        return Err(Fault::PropertyBadValue);
    }
    let chosen = if table_id == ALL_TABLES { 0..tables } else { table_id..table_id + 1 };
    let evicts = config & table_config::EVICTION != 0;
    state.control.change_flows(&[], |switch, _| {
        chosen.clone().for_each(|table_id| switch.set_evicts(table_id, evicts));
    });
    for table_id in chosen {
        if config & table_config::VACANCY_EVENTS == 0 {
            state.fullness.watched.remove(&table_id);
            continue;
        }
        let before = state.fullness.watched.get(&table_id).copied();
        let (down, up) = match (vacancy, before) {
            (Some(vacancy), _) => (vacancy.down, vacancy.up),
            (None, Some(before)) => (before.down, before.up),
            (None, None) => (0, 0),
        };
        let free = state.control.peek(|switch| self::vacancy(switch, table_id));
        state.fullness.watched.insert(table_id, Watch { down, up, is_low: free < down });
    }
    Ok(())
}
