//! What the tables of this switch can do: all of them the same.

use crate::message::{For, Property, TableFeatures};
use fastpath_switch::Limits;
use fastpath_switch::field::FIELDS;

/// Types of instructions: goto, metadata, write, apply, clear, meter.
const INSTRUCTIONS: [u16; 6] = [1, 2, 3, 4, 5, 6];
/// Types of actions.
const ACTIONS: [u16; 16] = [0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27];

/// The actions as bits (OFPAT_).
pub(super) fn action_bits() -> u32 {
    ACTIONS.iter().fold(0, |bits, kind| bits | 1 << kind)
}

/// What a table can do.
pub(super) fn of_table(limits: &Limits, table_id: u8) -> TableFeatures {
    let is_last = table_id + 1 == limits.tables;
    // Goto leads to later tables only.
    let instructions =
        || INSTRUCTIONS.into_iter().filter(|kind| !(is_last && *kind == 1)).collect::<Vec<_>>();
    let matched = || FIELDS.iter().map(|info| (info.field, info.field.is_maskable())).collect::<Vec<_>>();
    let settable = FIELDS.iter().filter(|info| info.field.is_settable());
    let set = || settable.clone().map(|info| (info.field, false)).collect::<Vec<_>>();
    let next = || (table_id + 1..limits.tables).collect::<Vec<_>>();
    let for_both = |property: &dyn Fn(For) -> Property| [For::Flows, For::Miss].map(property);
    let mut properties = Vec::new();
    properties.extend(for_both(&|whom| Property::Instructions(whom, instructions())));
    properties.extend(for_both(&|whom| Property::NextTables(whom, next())));
    properties.extend(for_both(&|whom| Property::WriteActions(whom, ACTIONS.to_vec())));
    properties.extend(for_both(&|whom| Property::ApplyActions(whom, ACTIONS.to_vec())));
    properties.push(Property::Match(matched()));
    // Without the bit that says "under a mask", which Open vSwitch does not take here.
    let wildcards = FIELDS.iter().map(|info| (info.field, false)).collect();
    properties.push(Property::Wildcards(wildcards));
    properties.extend(for_both(&|whom| Property::WriteSetField(whom, set())));
    properties.extend(for_both(&|whom| Property::ApplySetField(whom, set())));
    TableFeatures {
        table_id,
        name: format!("table{table_id}"),
        metadata_match: u64::MAX,
        metadata_write: u64::MAX,
        config: 0,
        entries: limits.flows as u32,
        properties,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_table_leads_nowhere_and_every_action_has_its_bit() {
        let limits = Limits { tables: 3, ..Limits::default() };
        let goes_on = |id| {
            of_table(&limits, id)
                .properties
                .iter()
                .any(|p| matches!(p, Property::Instructions(_, list) if list.contains(&1)))
        };
        assert_eq!([0, 1, 2].map(goes_on), [true, true, false]);
        assert_eq!(action_bits(), 0x0fff_9801);
    }
}
