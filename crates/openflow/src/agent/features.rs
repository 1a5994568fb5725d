//! The features of the tables of this switch. All tables have the same features.

use super::fullness;
use crate::message::{Fault, For, Property, TableFeatures, table_config};
use fastpath_switch::action::ACTIONS;
use fastpath_switch::field::{FIELDS, Info, STANDARD};
use fastpath_switch::{Limits, Version};

/// Types of instructions: goto, metadata, write, apply, clear, meter. OpenFlow 1.5 has no meter.
const INSTRUCTIONS: [u16; 6] = [1, 2, 3, 4, 5, 6];
/// Types of actions that OpenFlow 1.5 has beside those of 1.3: copy-field and meter.
const ACTIONS_15: [u16; 2] = [28, 29];

/// Returns the actions as bits (OFPAT_).
pub(super) fn action_bits(version: Version) -> u32 {
    action_types(version).iter().fold(0, |bits, number| bits | 1 << number)
}

/// The types of actions, in the order of their numbers (OFPAT_).
fn action_types(version: Version) -> Vec<u16> {
    let of_13 = ACTIONS.iter().filter(|info| info.is_of_13());
    let mut types: Vec<u16> = of_13.map(|info| info.number).collect();
    types.extend(ACTIONS_15.into_iter().filter(|_| version >= Version::V15));
    types.sort_unstable();
    types
}

/// Returns the name of a table that no controller has named.
pub(super) fn table_name(table_id: u8) -> String {
    format!("table{table_id}")
}

/// The fields of OpenFlow 1.3.
fn standard() -> impl Iterator<Item = &'static Info> + Clone {
    FIELDS[..STANDARD].iter()
}

/// Returns the features of a table.
pub(super) fn of_table(version: Version, limits: &Limits, table_id: u8) -> TableFeatures {
    let is_last = table_id + 1 == limits.tables;
    // Goto leads to later tables only.
    let has = |kind: &u16| !(is_last && *kind == 1 || version >= Version::V15 && *kind == 6);
    let instructions = || INSTRUCTIONS.into_iter().filter(has).collect::<Vec<_>>();
    let matched = || standard().map(|info| (info.field, info.field.is_maskable())).collect::<Vec<_>>();
    let settable = standard().filter(|info| info.field.is_settable());
    let set = || settable.clone().map(|info| (info.field, false)).collect::<Vec<_>>();
    let next = || (table_id + 1..limits.tables).collect::<Vec<_>>();
    let for_both = |property: &dyn Fn(For) -> Property| [For::Flows, For::Miss].map(property);
    let mut properties = Vec::new();
    properties.extend(for_both(&|whom| Property::Instructions(whom, instructions())));
    properties.extend(for_both(&|whom| Property::NextTables(whom, next())));
    properties.extend(for_both(&|whom| Property::WriteActions(whom, action_types(version))));
    properties.extend(for_both(&|whom| Property::ApplyActions(whom, action_types(version))));
    properties.push(Property::Match(matched()));
    // Without the bit for "with a mask", which Open vSwitch rejects here.
    let wildcards = standard().map(|info| (info.field, false)).collect();
    properties.push(Property::Wildcards(wildcards));
    properties.extend(for_both(&|whom| Property::WriteSetField(whom, set())));
    properties.extend(for_both(&|whom| Property::ApplySetField(whom, set())));
    TableFeatures {
        table_id,
        name: table_name(table_id),
        metadata_match: u64::MAX,
        metadata_write: u64::MAX,
        config: if version < Version::V14 { 0 } else { fullness::CAPABILITIES },
        entries: limits.flows as u32,
        properties,
    }
}

/// Checks that the table has all requested features. A table may have more features than requested
/// (§7.3.5.5.1), so nothing has to change then.
pub(super) fn check(ours: &TableFeatures, wanted: &TableFeatures) -> Result<(), Fault> {
    let metadata =
        wanted.metadata_match & !ours.metadata_match | wanted.metadata_write & !ours.metadata_write;
    if metadata != 0 {
        return Err(Fault::TableFeaturesBadMetadata);
    }
    let is_available = |property: &Property| ours.properties.iter().any(|had| has_all(had, property));
    let fits =
        wanted.entries <= ours.entries && wanted.config & !(table_config::DEPRECATED | ours.config) == 0;
    if fits && wanted.properties.iter().all(is_available) {
        Ok(())
    } else {
        Err(Fault::TableFeaturesBadArgument)
    }
}

/// Returns whether the first property is of the kind of the second and contains all that it
/// contains.
fn has_all(had: &Property, wanted: &Property) -> bool {
    use Property::{
        ApplyActions, ApplySetField, Instructions, Match, NextTables, Wildcards, WriteActions, WriteSetField,
    };
    match (had, wanted) {
        (Instructions(a, had), Instructions(b, wanted))
        | (WriteActions(a, had), WriteActions(b, wanted))
        | (ApplyActions(a, had), ApplyActions(b, wanted)) => {
            a == b && wanted.iter().all(|kind| had.contains(kind))
        }
        (NextTables(a, had), NextTables(b, wanted)) => a == b && wanted.iter().all(|id| had.contains(id)),
        // A field that supports a mask can be matched without one.
        (Match(had), Match(wanted)) => wanted
            .iter()
            .all(|(field, mask)| had.iter().any(|(other, takes)| field == other && mask <= takes)),
        (Wildcards(had), Wildcards(wanted)) => {
            wanted.iter().all(|(field, _)| had.iter().any(|(other, _)| field == other))
        }
        (WriteSetField(a, had), WriteSetField(b, wanted))
        | (ApplySetField(a, had), ApplySetField(b, wanted)) => {
            a == b && wanted.iter().all(|(field, _)| had.iter().any(|(other, _)| field == other))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
