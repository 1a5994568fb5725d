//! The example values of keys, from the descriptions of blocks: what to write in place of a value
//! that is missing or of another kind.
//!
//! The rows of `blocks.toml` are found by their form. `describe.rs` reads them whole, by
//! readers that use this file.

const BLOCKS: &str = include_str!("../blocks.toml");

/// Returns the example of a key, as a file writes it. `what` is a table as mistakes name it: the
/// block, and the name that it has (`cache memory`).
pub(crate) fn example(what: &str, key: &str) -> Option<&'static str> {
    let block = what.split(' ').next()?;
    let begins = format!("\n[[block]]\nname = '{block}'\n");
    let (_, text) = BLOCKS.split_once(&begins)?;
    let (text, _) = text.split_once("\n[[block]]\n").unwrap_or((text, ""));
    let row = text.lines().find_map(|line| line.strip_prefix(&format!("  ['{key}', '")))?;
    row.split_once("', ").map(|(example, _)| example)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::blocks;

    #[test]
    fn every_key_has_the_example_of_its_description() {
        for block in blocks() {
            for key in &block.key {
                // Rows with an apostrophe are written in other quotes.
                let found = example(&block.name, &key.name).map(str::to_owned);
                assert_eq!(found, Some(key.example.clone()), "{} {}", block.name, key.name);
            }
        }
        assert_eq!(example("cache memory", "line"), Some("64"));
        assert_eq!((example("cache", "lines"), example("nothing", "line")), (None, None));
    }

    #[test]
    fn a_mistake_shows_what_to_write_for_its_key() {
        let text = "name = 'm'\nsource = 's'\n[ports]\ncount = 2\nrate = '25Gbit'\n\
            [[pcie]]\nname = 'p'\nrate = '63Gbit'\n\
            ddio = { cache = 'c', ways = 11, share = 2, buffers = '4MiB', memory = 'dram' }\n\
            [[cores]]\nname = 'cpu'\ncores = 8\nclock = 2.1\nqueue = { limit = '2MB' }\n\
            [[cache]]\nname = 'c'\nlevel = [{ name = 'L1', size = '32KiB', latency = '2ns' }]\n\
            [[line]]\nname = 'wire'\n";
        let Err(found) = crate::machine::Machine::parse("m.toml", text) else { panic!("it has mistakes") };
        let found = found.to_string();
        for part in [
            "cache c has no line; write line = 64",
            "clock is a number, not text; write clock = \"3GHz\"",
            "limit is text, not a whole number; write limit = 64",
        ] {
            assert!(found.contains(part), "{part}: {found}");
        }
        let text = text
            .replace("2.1", "'2.1GHz'")
            .replace("'2MB'", "64")
            .replace("'c'\nlevel", "'c'\nline = 64\nlevel");
        let Err(found) = crate::machine::Machine::parse("m.toml", &text) else {
            panic!("there is no memory")
        };
        let found = found.to_string();
        assert!(
            found.contains("there is no memory 'dram'; add it: [[memory]] with name = \"dram\" (see fastpath sim --describe memory)"),
            "{found}"
        );
    }
}
