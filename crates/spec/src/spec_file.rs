//! A description as a spec file (TOML): a table for each node, link, event, traffic and group.
//! Reading it gives the same description.

use crate::description::Description;
use crate::kernel_router::KERNEL;
use crate::keys::{TOP, TopKey, TopPart};
use crate::write::{inline, key};
use serde_json::{Map, Value};
use std::fmt::Write;

impl Description {
    /// Returns the description as the text of a spec file (TOML).
    ///
    /// ```
    /// use fastpath_spec::{Description, LinkDescription, NodeDescription};
    ///
    /// let description = Description {
    ///     nodes: vec![NodeDescription::host("a"), NodeDescription::host("b")],
    ///     links: vec![LinkDescription::new("a", "b")],
    ///     ..Description::default()
    /// };
    /// let text = "[host.a]\n\n[host.b]\n\n[[link]]\nbetween = [\"a\", \"b\"]\n";
    /// assert_eq!(description.to_toml(), text);
    /// ```
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for TopKey { key: name, part, write, .. } in &TOP {
            match (part, write(self)) {
                (_, None) => {}
                (TopPart::Table(_), Some(Value::Object(table))) => {
                    push_table(&mut text, &format!("[{name}]"), &table)
                }
                (TopPart::Value(_) | TopPart::Table(_), Some(value)) => push_entry(&mut text, name, &value),
                (TopPart::Nodes, Some(nodes)) => of_list(nodes).for_each(|node| push_node(&mut text, node)),
                (TopPart::Named(word, _), Some(list)) => of_list(list).for_each(|mut table| {
                    let head = format!("[{word}.{}]", name_of(&mut table));
                    push_table(&mut text, &head, &table);
                }),
                (TopPart::List(word, _), Some(list)) => {
                    of_list(list).for_each(|table| push_table(&mut text, &format!("[[{word}]]"), &table));
                }
            }
        }
        text
    }
}

fn push_node(text: &mut String, mut node: Map<String, Value>) {
    let kind = node.remove("kind");
    let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
    let name = name_of(&mut node);
    // `kind` of a file says what kind of router it is.
    if kind == KERNEL {
        node.insert("kind".to_owned(), Value::from(KERNEL));
        push_table(text, &format!("[router.{name}]"), &node);
    } else {
        push_table(text, &format!("[{kind}.{name}]"), &node);
    }
}

/// The tables of a list.
fn of_list(list: Value) -> impl Iterator<Item = Map<String, Value>> {
    let Value::Array(list) = list else { panic!("{list} is a list of tables") };
    list.into_iter().filter_map(|element| match element {
        Value::Object(table) => Some(table),
        _ => None,
    })
}

/// Takes the name out of a table, as a key.
fn name_of(table: &mut Map<String, Value>) -> String {
    let name = table.remove("name");
    key(name.as_ref().and_then(Value::as_str).unwrap_or_default())
}

fn push_table(text: &mut String, head: &str, table: &Map<String, Value>) {
    let blank = if text.is_empty() { "" } else { "\n" };
    _ = writeln!(text, "{blank}{head}");
    table.iter().for_each(|(name, value)| push_entry(text, name, value));
}

fn push_entry(text: &mut String, name: &str, value: &Value) {
    _ = writeln!(text, "{} = {}", key(name), inline(value));
}
