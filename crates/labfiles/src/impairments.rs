//! Values of links from a second file: an overlay in TOML, with a table for each link or for what
//! leaves an endpoint.

use fastpath_link::Change;
use fastpath_spec::{Description, parse_changes};
use fastpath_text::mistake::{Remarks, several};

/// Gives links the values of an overlay: its name and its text, with a table for each link (`a-b`),
/// or for what leaves an endpoint (`"a:eth1"`). `"*"` is every link.
pub(crate) fn impair(description: &mut Description, overlay: (&str, &str), remarks: &mut Remarks) {
    let (file, text) = overlay;
    let mut tables = match parse_changes(text) {
        Ok(tables) => tables,
        Err(mistakes) => return remarks.mistakes_in(file, 0, mistakes),
    };
    // What is said of fewer directions wins.
    tables.sort_by_key(|(key, ..)| (key != "*", key.contains(':')));
    let mut unknown = Remarks::new(text);
    for (key, at, change) in tables {
        if !merge(description, &key, &change) {
            let what = format!("there is no link or endpoint '{}'", key.escape_debug());
            let names = several(description.links.iter().filter_map(|link| link.name.as_deref()));
            let instead = format!("write \"*\", an endpoint \"NODE:INTERFACE\", or one of {names}");
            unknown.mistake(at, what, instead);
        }
    }
    if let Err(mistakes) = unknown.finish() {
        remarks.mistakes_in(file, 0, mistakes);
    }
}

/// Returns whether there is a link or endpoint of that name.
fn merge(description: &mut Description, key: &str, change: &Change) -> bool {
    let mut found = false;
    for link in &mut description.links {
        let is_whole = key == "*" || link.name.as_deref() == Some(key);
        let directions = [&mut link.forward, &mut link.backward];
        for ((node, interface), direction) in link.between.iter().zip(&link.interfaces).zip(directions) {
            let end = Some((node.as_str(), interface.as_deref().unwrap_or_default()));
            if is_whole || key.split_once(':') == end {
                direction.values.merge(change);
                found = true;
            }
        }
    }
    found
}
