//! Requests that change what tables do when they are full or nearly so, and the events that follow
//! (OpenFlow 1.4 §7.3.4.1, §7.4.5).

use super::event::Event;
use super::switch_state::SwitchState;
use crate::message::{Fault, TableMod, TableStatus, table_config};
use fastpath_switch::Version;
use fastpath_switch::flow::ALL_TABLES;
use fastpath_switch::fullness::{CAPABILITIES, EVICTION_FLAGS};

/// Notes the events of vacancy that a change has caused.
pub(super) fn note(state: &mut SwitchState) {
    let SwitchState { control, fullness, .. } = state;
    if fullness.watches_none() {
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
    // Thresholds without the events that they are for (1.4 §7.3.4.1).
    if vacancy.is_some() && config & table_config::VACANCY_EVENTS == 0 {
        return Err(Fault::PropertyBadValue);
    }
    let chosen = if table_id == ALL_TABLES { 0..tables } else { table_id..table_id + 1 };
    let evicts = config & table_config::EVICTION != 0;
    state.control.change_flows(&[], |switch, _| {
        chosen.clone().for_each(|table_id| switch.set_evicts(table_id, evicts));
    });
    let SwitchState { control, fullness, .. } = state;
    control.peek(|switch| {
        for table_id in chosen {
            match config & table_config::VACANCY_EVENTS {
                0 => fullness.ignore(table_id),
                _ => fullness.watch(switch, table_id, vacancy),
            }
        }
    });
    Ok(())
}
