//! The queue of a pipe in a spec: `"50p"`, `"64KiB"`, `"20ms"`, `"unlimited"`, or a table with a
//! `kind`.
//!
//! Each kind is one file and one line in the list below. The file has the name of the kind, and
//! reads, writes and describes its keys. A key that is left out has the value of the RFC of the
//! discipline or, where the RFC has none, of Linux.

mod classes;
mod keys;
mod quantity;

use crate::fields::{Field, Fields};
use crate::mistake::{Remarks, nearest};
use crate::tree::{Tree, TreeTable};
use fastpath_link::{Limit, QueueSpec, SojournSpec};
use serde_json::{Value, json};

use quantity::limit;
pub(crate) use quantity::positive;

macro_rules! kinds {
    ($($module:ident($($Variant:ident => $write:ident),+);)*) => {
        $(mod $module;)*

        /// The names of all kinds.
        const KINDS: &[&str] = &[$($module::KIND),*];

        /// Reads the keys of a kind. The outer `None` is an unknown kind, the inner one a mistake.
        fn read_kind(kind: &str, fields: &mut Fields, remarks: &mut Remarks) -> Option<Option<QueueSpec>> {
            match kind {
                $($module::KIND => Some($module::read(fields, remarks)),)*
                _ => None,
            }
        }

        /// Writes a queue under the keys of a spec.
        pub fn write(queue: &QueueSpec) -> Value {
            match queue {
                $($(QueueSpec::$Variant(spec) => $module::$write(spec),)+)*
            }
        }

        /// The JSON Schema of each kind.
        fn kind_schemas() -> Vec<Value> {
            vec![$(keys::of_kind($module::KIND, $module::schema())),*]
        }
    };
}

kinds! {
    drop_tail(DropTail => write, DropTailTime => write_time);
    drop_head(DropHead => write);
    sojourn(Sojourn => write);
    red(Red => write);
    ared(Ared => write);
    codel(Codel => write);
    fq_codel(FqCodel => write);
    pie(Pie => write);
    dualpi2(DualPi2 => write);
    token_bucket(TokenBucket => write);
    policer(Policer => write);
    mahimahi(Mahimahi => write);
    prio(Prio => write);
    drr(Drr => write);
}

/// Reads a queue: a limit, the longest sojourn time, a kind with its defaults, or a table.
pub(crate) fn read(field: &Field, remarks: &mut Remarks) -> Option<QueueSpec> {
    match field.value {
        Tree::Text(text) if text == "unlimited" => return Some(QueueSpec::default()),
        Tree::Text(text) if KINDS.contains(&&**text) => {
            let table = TreeTable::default();
            return read_kind(text, &mut Fields::new(format!("queue {text}"), field.at, &table), remarks)?;
        }
        Tree::Text(text) if text.ends_with('s') => {
            let longest = positive(field, "20ms", remarks)?;
            return Some(QueueSpec::Sojourn(SojournSpec { longest, limit: Limit::Packets(u32::MAX) }));
        }
        Tree::Table(_) => {}
        _ => return limit(field, "50p", remarks).map(QueueSpec::DropTail),
    }
    let mut fields = field.table("queue", "\"50p\"", remarks)?;
    let Some(kind) = fields.get("kind") else {
        remarks.mistake(field.at, "queue has no kind", format!("write kind = {}", one_of()));
        return None;
    };
    let name = kind.text("red", remarks)?;
    let Some(queue) = read_kind(name, &mut fields, remarks) else {
        let meant = nearest(name, KINDS.iter().copied());
        let instead = meant.map_or_else(one_of, |meant| format!("\"{meant}\""));
        remarks.mistake(kind.at, format!("queue kind '{name}' is not known"), format!("write {instead}"));
        return None;
    };
    // After a mistake not every key was read, so the remaining keys may be valid.
    if queue.is_some() {
        fields.finish(remarks);
    }
    queue
}

fn one_of() -> String {
    let quoted: Vec<String> = KINDS.iter().map(|kind| format!("\"{kind}\"")).collect();
    format!("one of {}", quoted.join(", "))
}

/// Returns the JSON Schema of a queue: a limit, the longest sojourn time, or a table with a kind.
/// References are to the definitions `duration`, `rate`, `bytes`, `limit` and `probability`.
pub fn schema() -> Value {
    let text = json!({
        "type": "string",
        "description": "A limit in packets or bytes, the longest sojourn time, a kind, or \"unlimited\".",
        "pattern": format!(r"^(unlimited|{}|\s*[0-9].*)$", KINDS.join("|")),
        "examples": ["50p", "64KiB", "20ms", "codel"],
    });
    let all: Vec<Value> = std::iter::once(text).chain(kind_schemas()).collect();
    json!({ "anyOf": all })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_of_mm_link_policers_and_limits_in_time_are_read_and_written() {
        for (text, expected) in [
            ("{ kind = 'mahimahi', packets = 14 }", r#"{"kind":"mahimahi","packets":14}"#),
            (
                "{ kind = 'mahimahi', bytes = 60000, drop = 'head' }",
                r#"{"bytes":"60000B","drop":"head","kind":"mahimahi"}"#,
            ),
            (
                "{ kind = 'policer', rate = '1Mbit', burst = '2KiB' }",
                r#"{"burst":"2KiB","kind":"policer","limit":"50p","rate":"1Mbit"}"#,
            ),
            // 1 Mbit/s sends 6250 bytes in 50 ms: less than the peak rate in that time.
            (
                "{ kind = 'token-bucket', rate = '1Mbit', burst = '2000B', peak = '2Mbit', limit = '50ms' }",
                r#"{"burst":"2000B","kind":"token-bucket","limit":"8250B","peak":"2Mbit","peak_burst":"1514B","rate":"1Mbit"}"#,
            ),
        ] {
            let read = |text: &str| crate::parse_change(&format!("queue = {text}")).unwrap().queue.unwrap();
            let written = write(&read(text));
            assert_eq!(written.to_string(), expected, "{text}");
        }
        for (text, said) in [
            ("{ kind = 'mahimahi' }", "the queue has no limit"),
            ("{ kind = 'mahimahi', bytes = '14p' }", "bytes is a number of packets"),
            ("{ kind = 'mahimahi', packets = 0 }", "packets = 0 is out of range"),
            ("{ kind = 'policer', rate = '1Mbit' }", "a policer needs a rate and a burst"),
            ("{ kind = 'policer', rate = '1Mbit', burst = '0B' }", "a bucket of 0 bytes passes nothing"),
        ] {
            let mistakes = crate::parse_change(&format!("queue = {text}")).unwrap_err();
            assert!(mistakes[0].what.contains(said), "{text}: {mistakes:?}");
        }
    }

    #[test]
    fn the_word_of_a_kind_is_that_kind_with_its_defaults() {
        let read = |text: &str| crate::parse_change(&format!("queue = {text}")).map(|change| change.queue);
        for kind in KINDS {
            assert_eq!(
                read(&format!("'{kind}'")).ok(),
                read(&format!("{{ kind = '{kind}' }}")).ok(),
                "{kind}"
            );
        }
        assert!(read("'codel'").is_ok());
        let mistakes = read("'policer'").unwrap_err();
        assert_eq!((mistakes[0].line, mistakes[0].column), (1, 9), "{mistakes:?}");
    }

    #[test]
    fn the_schema_has_every_kind_and_every_key_that_is_written() {
        let schema = schema();
        let kinds = schema["anyOf"].as_array().expect("a list");
        assert_eq!(kinds.len(), KINDS.len() + 1);
        for (kind, schema) in KINDS.iter().zip(&kinds[1..]) {
            assert_eq!(schema["properties"]["kind"]["const"], *kind);
        }
        let codel = fastpath_link::CodelSpec::default();
        for queue in [QueueSpec::Codel(codel), QueueSpec::Pie(Default::default())] {
            let written = write(&queue);
            let kind = KINDS.iter().position(|kind| written["kind"] == *kind).expect("a kind");
            for key in written.as_object().expect("a table").keys() {
                assert!(kinds[kind + 1]["properties"].get(key).is_some(), "{queue}: {key}");
            }
        }
    }
}
