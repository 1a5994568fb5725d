//! Classes of traffic in a spec, and the DSCPs of each class. The class without `dscp` takes every
//! packet that no other class takes.

use super::keys::Schemas;
use super::quantity::limit;
use crate::fields::{Field, Fields};
use crate::mistake::Remarks;
use crate::schema_parts::{properties, reference, table};
use crate::tree::Tree;
use fastpath_link::{Classes, Limit};
use serde_json::{Value, json};

/// The number of DSCPs.
const CLASSES_MAX: usize = 64;

/// Reads the limit of a class, which is required.
pub(super) fn class_limit(fields: &mut Fields, remarks: &mut Remarks) -> Option<Limit> {
    match fields.get("limit") {
        Some(field) => limit(&field, "50p", remarks),
        None => {
            remarks.mistake(fields.at, format!("{} has no limit", fields.what), "write limit = \"50p\"");
            None
        }
    }
}

/// Writes the DSCPs of a class; none for the class that takes the rest.
pub(super) fn write_dscps(classes: &Classes, class: usize) -> Option<(&'static str, Value)> {
    let table = classes.table();
    let mine = (0..64usize).filter(|dscp| usize::from(table[*dscp]) == class);
    (class != rest_of(classes)).then(|| ("dscp", mine.map(|dscp| json!(dscp)).collect()))
}

/// Returns the class that is written without DSCPs: the class with the most.
fn rest_of(classes: &Classes) -> usize {
    let count = |class: &u8| classes.table().iter().filter(|other| *other == class).count();
    classes.table().iter().max_by_key(|class| count(class)).map_or(0, |class| usize::from(*class))
}

/// Returns the schema of a list of classes with these keys.
pub(super) fn schema_of_list(keys: Schemas) -> Value {
    let dscp = json!({ "anyOf": [{ "type": "string" }, { "type": "integer", "minimum": 0, "maximum": 63 }] });
    let dscps = json!({ "anyOf": [dscp, { "type": "array", "items": dscp }] });
    let common = properties([
        (
            "dscp",
            "DSCPs of the class, by name or number; the class without DSCPs takes all other packets.",
            dscps,
        ),
        ("limit", "The hard limit of the class.", reference("limit")),
    ]);
    let class = table(common.into_iter().chain(keys).collect(), &["limit"]);
    json!({ "type": "array", "items": class, "minItems": 1, "maxItems": CLASSES_MAX })
}

/// Reads a list of classes: the result of `one` for each, and the class of each DSCP.
pub(super) fn read<T>(
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
                    remarks.mistake(element.at, what, "write dscp in all entries but one: it takes the rest");
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
        let what = format!("every entry of {key} has a dscp, so some packets have no class");
        remarks.mistake(at, what, "leave dscp out of one entry: it takes the rest");
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

/// Reads one DSCP or a list of them, each with its offset in the text.
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

/// Returns the DSCP with a name of RFC 2474, 2597, 3246, 5865 and 8622.
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
