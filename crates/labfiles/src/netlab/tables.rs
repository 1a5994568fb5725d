//! Maps as netlab reads them: a key with dots is a path (`prefix.ipv4: 10.0.0.0/24`), and maps of
//! one key are joined.

use crate::yaml::Yaml;
use fastpath_text::mistake::Remarks;
use fastpath_text::tree::{Placed, Tree, TreeEntry, TreeTable};

/// The most parts of a key. A longer one stays as it is.
const PARTS_MAX: usize = 16;

/// Returns a value in which no key is a path.
pub(super) fn expanded<'y>(yaml: &Yaml<'y>, remarks: &mut Remarks) -> Yaml<'y> {
    let value = match &yaml.value {
        Tree::Array(list) => Tree::Array(list.iter().map(|yaml| expanded(yaml, remarks)).collect()),
        Tree::Table(table) => {
            let mut whole = TreeTable::default();
            for TreeEntry { key, key_at, placed } in &table.entries {
                let mut placed = expanded(placed, remarks);
                let parts: Vec<&str> = if is_path(key) { key.split('.').collect() } else { vec![&**key] };
                let starts: Vec<usize> = parts
                    .iter()
                    .scan(*key_at, |at, part| Some(std::mem::replace(at, *at + part.len() + 1)))
                    .collect();
                for (part, &at) in parts.iter().zip(&starts).skip(1).rev() {
                    let entry = TreeEntry { key: (*part).to_owned().into(), key_at: at, placed };
                    let end = entry.placed.end;
                    placed = Placed { at, end, value: Tree::Table(TreeTable { entries: vec![entry] }) };
                }
                let first = TreeEntry { key: parts[0].to_owned().into(), key_at: *key_at, placed };
                add(&mut whole, first, remarks);
            }
            Tree::Table(whole)
        }
        other => other.clone(),
    };
    Placed { at: yaml.at, end: yaml.end, value }
}

/// Whether a key is a path of names. A prefix or an address is not.
fn is_path(key: &str) -> bool {
    let is_name = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    let starts = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let parts = key.split('.').take(PARTS_MAX + 1).count();
    starts && (2..=PARTS_MAX).contains(&parts) && key.split('.').all(is_name)
}

/// Adds an entry to a table, which may have a map under its key.
fn add<'y>(table: &mut TreeTable<'y>, entry: TreeEntry<'y>, remarks: &mut Remarks) {
    let Some(known) = table.entries.iter_mut().find(|known| known.key == entry.key) else {
        return table.entries.push(entry);
    };
    match (&mut known.placed.value, entry.placed.value) {
        (Tree::Table(known), Tree::Table(more)) => {
            more.entries.into_iter().for_each(|entry| add(known, entry, remarks));
        }
        (value @ Tree::Null, more) => *value = more,
        (_, Tree::Null) => {}
        _ => {
            let what = format!("there is already a value of '{}'", entry.key.escape_debug());
            remarks.mistake(entry.key_at, what, "write it once");
        }
    }
}

/// Returns the entries of two tables. Those of `over` win; maps under one key are joined.
pub(super) fn merged<'y>(base: &TreeTable<'y>, over: &TreeTable<'y>) -> TreeTable<'y> {
    let mut whole = base.clone();
    for entry in &over.entries {
        match whole.entries.iter_mut().find(|known| known.key == entry.key) {
            None => whole.entries.push(entry.clone()),
            Some(known) => match (&known.placed.value, &entry.placed.value) {
                (Tree::Table(base), Tree::Table(over)) => {
                    let both = merged(base, over);
                    *known = TreeEntry {
                        placed: Placed { value: Tree::Table(both), ..entry.placed },
                        ..entry.clone()
                    };
                }
                _ => *known = entry.clone(),
            },
        }
    }
    whole
}

/// Returns the table of a value; an empty one of what is not a map.
pub(super) fn table_of<'y>(yaml: Option<&Yaml<'y>>) -> TreeTable<'y> {
    match yaml.map(|yaml| &yaml.value) {
        Some(Tree::Table(table)) => table.clone(),
        _ => TreeTable::default(),
    }
}
