//! An axis of the matrix: one thing that varies, and its values.

use serde_json::Value;

/// The axis whose values are files of descriptions.
pub(super) const SPEC: &str = "spec";
/// The words that commands and files replace beside the names of axes.
const OWN_WORDS: [&str; 2] = ["seed", "run"];

/// One thing that varies, and its values.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Factor {
    pub(super) name: String,
    pub(super) values: Vec<Value>,
}

impl Factor {
    pub(super) fn new(name: String, values: Vec<toml::Value>, mistakes: &mut Vec<String>) -> Factor {
        if values.is_empty() {
            mistakes.push(format!("matrix: {name} has no value; write a list, such as {name} = [\"codel\"]"));
        }
        if !name.contains('.') && (!is_word(&name) || OWN_WORDS.contains(&name.as_str())) {
            mistakes.push(format!(
                "matrix: {name} is no name; write a value of the description, such as \"link.a-b.rate\", or a word \
                 that commands contain in braces"
            ));
        }
        let values: Vec<Value> =
            values.iter().map(|value| serde_json::to_value(value).expect("TOML is plain data")).collect();
        for (index, value) in values.iter().enumerate() {
            if values[..index].contains(value) {
                mistakes.push(format!("matrix: {name} has {} twice; write each value once", label(value)));
            }
        }
        let axis = Factor { name, values };
        if axis.is_spec() && axis.values.iter().any(|value| !value.is_string()) {
            mistakes
                .push("matrix: a value of spec is no file; write spec = [\"a.toml\", \"b.toml\"]".to_owned());
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

fn is_word(name: &str) -> bool {
    let first = name.bytes().next();
    first.is_some_and(|byte| byte.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A value as tables and names show it.
pub(super) fn label(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
