//! Queues of several classes in a spec: strict priority and deficit round robin, and the DSCPs of
//! each class.
//!
//! ```toml
//! queue = { kind = "prio", bands = [ { dscp = "EF", limit = "20p" }, { limit = "50p" } ] }         # first things first
//! queue = { kind = "drr", classes = [ { dscp = ["AF41", "AF42", 34], quantum = "3028B", limit = "50p" },
//!                                     { quantum = "1514B", limit = "50p" } ] }
//! ```
//!
//! The class without `dscp` takes every packet that no other takes.

use super::{limit, size};
use crate::fields::{Field, Fields};
use crate::mistake::Remarks;
use crate::tree::Tree;
use fastpath_link::{Classes, DrrShare, DrrSpec, Limit, PrioSpec};
use fastpath_units::Bytes;

/// There are no more DSCPs.
const CLASSES_MAX: usize = 64;

/// Reads strict priority.
pub(crate) fn prio(fields: &mut Fields, remarks: &mut Remarks) -> Option<PrioSpec> {
    let example = "bands = [{ dscp = \"EF\", limit = \"20p\" }, { limit = \"50p\" }]";
    let (bands, classes) = read(fields, "bands", example, remarks, class_limit)?;
    Some(PrioSpec { bands, classes })
}

/// Reads deficit round robin.
pub(crate) fn drr(fields: &mut Fields, remarks: &mut Remarks) -> Option<DrrSpec> {
    let example = "classes = [{ dscp = \"EF\", quantum = \"3028B\", limit = \"20p\" }, { limit = \"50p\" }]";
    let (shares, classes) = read(fields, "classes", example, remarks, |fields, remarks| {
        let quantum = size(fields, "quantum", Bytes(1514), remarks);
        let limit = class_limit(fields, remarks);
        Some(DrrShare { quantum: quantum?, limit: limit? })
    })?;
    Some(DrrSpec { shares, classes })
}

fn class_limit(fields: &mut Fields, remarks: &mut Remarks) -> Option<Limit> {
    match fields.get("limit") {
        Some(field) => limit(&field, "50p", remarks),
        None => {
            remarks.mistake(fields.at, format!("{} has no limit", fields.what), "write limit = \"50p\"");
            None
        }
    }
}

/// A list of classes: what `one` reads of each, and the class of each DSCP.
fn read<T>(
    fields: &mut Fields,
    key: &str,
    example: &str,
    remarks: &mut Remarks,
    one: impl Fn(&mut Fields, &mut Remarks) -> Option<T>,
) -> Option<(Vec<T>, Classes)> {
    let instead = format!("write {example}");
    let elements = fields.get(key).map(|field| (field.at, field.elements()));
    let Some((at, Some(elements))) = elements else {
        remarks.mistake(fields.at, format!("queue has no list of {key}"), instead);
        return None;
    };
    if elements.is_empty() || elements.len() > CLASSES_MAX {
        remarks.mistake(
            at,
            format!("{key} has {} entries", elements.len()),
            format!("write 1 to {CLASSES_MAX}"),
        );
        return None;
    }
    let mut all = Vec::new();
    let mut owner: [Option<usize>; 64] = [None; 64];
    let mut rest = None;
    for (class, element) in elements.iter().enumerate() {
        let mut table =
            element.table(format!("entry {} of {key}", class + 1), "{ limit = \"50p\" }", remarks)?;
        match table.get("dscp") {
            None => {
                if rest.replace(class).is_some() {
                    let what = format!("two entries of {key} have no dscp");
                    remarks.mistake(element.at, what, "write dscp in all but one: that takes the rest");
                }
            }
            Some(field) => dscps(&field, remarks).into_iter().for_each(|(at, dscp)| {
                if owner[usize::from(dscp)].replace(class).is_some_and(|before| before != class) {
                    remarks.mistake(at, format!("DSCP {dscp} is in two entries of {key}"), "write it in one");
                }
            }),
        }
        all.extend(one(&mut table, remarks));
        table.finish(remarks);
    }
    let Some(rest) = rest else {
        let what = format!("every entry of {key} has a dscp, and some packets are in none");
        remarks.mistake(at, what, "leave dscp out of the one that takes the rest");
        return None;
    };
    let mut classes = Classes::all_in(rest as u8);
    for (dscp, owner) in owner.iter().enumerate() {
        if let Some(class) = owner {
            classes = classes.with(*class as u8, [dscp as u8]);
        }
    }
    (all.len() == elements.len()).then_some((all, classes))
}

/// One DSCP or a list of them, each with its place.
fn dscps(field: &Field, remarks: &mut Remarks) -> Vec<(usize, u8)> {
    let elements = field.elements().unwrap_or_else(|| vec![field.clone()]);
    let read = |element: &Field| {
        let dscp = match element.value {
            Tree::Text(name) => {
                let known = by_name(name);
                if known.is_none() {
                    let what = format!("'{name}' is not a DSCP");
                    remarks.mistake(
                        element.at,
                        what,
                        "write EF, AF11 … AF43, CS0 … CS7, LE, VA, DF, or 0 … 63",
                    );
                }
                known
            }
            _ => element.whole(0..=63, remarks).map(|dscp| dscp as u8),
        };
        dscp.map(|dscp| (element.at, dscp))
    };
    elements.iter().filter_map(read).collect()
}

/// The names of RFC 2474, 2597, 3246, 5865 and 8622.
fn by_name(name: &str) -> Option<u8> {
    match name {
        "DF" | "BE" => Some(0),
        "LE" => Some(1),
        "VA" => Some(44),
        "EF" => Some(46),
        _ => match name.as_bytes() {
            [b'C', b'S', class @ b'0'..=b'7'] => Some((class - b'0') * 8),
            [b'A', b'F', class @ b'1'..=b'4', drop @ b'1'..=b'3'] => {
                Some((class - b'0') * 8 + (drop - b'0') * 2)
            }
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_have_their_names() {
        for (name, dscp) in [
            ("DF", Some(0)),
            ("EF", Some(46)),
            ("AF11", Some(10)),
            ("AF43", Some(38)),
            ("CS7", Some(56)),
            ("LE", Some(1)),
            ("AF44", None),
            ("AF51", None),
            ("CS8", None),
            ("CS07", None),
            ("AFé", None),
            ("", None),
        ] {
            assert_eq!(by_name(name), dscp, "{name}");
        }
    }
}
