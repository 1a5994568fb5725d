//! An axis of the matrix: one thing that varies, and its values.

use super::braces::{OWN_WORDS, is_word};
use fastpath_text::fields::Field;
use fastpath_text::mistake::Remarks;
use serde_json::Value;

/// The axis whose values are files of descriptions.
pub(super) const SPEC: &str = "spec";

/// One thing that varies, and its values.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Factor {
    pub(super) name: String,
    /// Byte offset of the name.
    pub(super) at: usize,
    pub(super) values: Vec<Value>,
    /// The byte offset of each value.
    pub(super) places: Vec<usize>,
}

impl Factor {
    /// Reads the entry of an axis, whose key is at the byte offset `at`.
    pub(super) fn read(at: usize, field: &Field, remarks: &mut Remarks) -> Factor {
        let name = field.key.clone();
        let mut axis = Factor { name, at, values: Vec::new(), places: Vec::new() };
        let name = &axis.name;
        if !name.contains('.') && (!is_word(name) || OWN_WORDS.contains(&name.as_str())) {
            let what = format!("{name} is not the name of an axis");
            let instead = "write a value of the description, such as \"link.a-b.rate\", or a word that commands \
                           contain in braces";
            remarks.mistake(at, what, instead);
        }
        let example = if axis.is_spec() { "[\"a.toml\", \"b.toml\"]" } else { "[\"codel\"]" };
        let Some(elements) = field.elements() else {
            match field.value {
                fastpath_text::tree::Tree::Table(_) => {
                    let what = format!("{name} is a table, not a list");
                    remarks.mistake(
                        at,
                        what,
                        "write the name of a value in quotes: \"link.a-b.rate\" = [\"8Mbit\"]",
                    );
                }
                _ => field.wrong_kind("a list of values", example, remarks),
            }
            return axis;
        };
        if elements.is_empty() {
            remarks.mistake(
                field.at,
                format!("{name} has no value"),
                format!("write a list, such as {name} = {example}"),
            );
        }
        for element in elements {
            let value = match axis.is_spec() {
                true => element.text("a.toml", remarks).map(Value::from),
                false => element.json("\"codel\"", remarks),
            };
            let Some(value) = value else { continue };
            if axis.values.contains(&value) {
                let what = format!("{} has {} twice", axis.name, label(&value));
                remarks.mistake(element.at, what, "write each value once");
            }
            axis.values.push(value);
            axis.places.push(element.at);
        }
        axis
    }

    /// Whether the values are files of descriptions.
    pub(super) fn is_spec(&self) -> bool {
        self.name == SPEC
    }

    /// Whether the values are words of commands.
    pub(super) fn is_word(&self) -> bool {
        !self.name.contains('.') && !self.is_spec()
    }
}

/// A value as tables and names show it.
pub(super) fn label(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
