//! The schema of the values of a link in the OpenAPI document: each key of a spec with what it
//! takes.

use serde_json::{Value, json};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, SchemaType};

/// Each key with its description and examples.
fn keys() -> [(&'static str, &'static str, Vec<Value>); 12] {
    [
        ("rate", "Bits per second on the wire, or `unlimited`.", vec![json!("10Mbit"), json!("unlimited")]),
        (
            "overhead",
            "Bytes on the wire beyond each frame, `ethernet` (24), or cells.",
            vec![json!(24), json!({"bytes": 8, "cell": 48, "cell_overhead": 5})],
        ),
        ("delay", "One-way delay.", vec![json!("25ms")]),
        (
            "loss",
            "A probability or a law. In a list: one before the queue and one behind the bottleneck.",
            vec![
                json!("1%"),
                json!({"kind": "gilbert-elliott", "to_bad": "1%", "to_good": "25%"}),
                json!({"probability": "1%", "at": "egress"}),
            ],
        ),
        (
            "queue",
            "A limit in packets, bytes or time, `unlimited`, or a discipline.",
            vec![json!("50p"), json!("64KiB"), json!("20ms"), json!({"kind": "codel"})],
        ),
        (
            "jitter",
            "A law that varies the delay, or `none`.",
            vec![json!({"law": "normal", "sd": "2ms", "half_life": "20ms", "reorder": "never"})],
        ),
        (
            "reorder",
            "The share of packets that skip the delay.",
            vec![json!("25%"), json!({"probability": "25%", "gap": 5})],
        ),
        (
            "duplicate",
            "The share of packets that leave twice, the copy at once or later.",
            vec![json!("1%"), json!({"probability": "1%", "later": "5ms"})],
        ),
        (
            "corrupt",
            "The share of packets with flipped bits, or a bit error rate.",
            vec![json!("0.1%"), json!({"bits": 1e-6})],
        ),
        (
            "slots",
            "Slots in which packets that are ready leave together, or `none`.",
            vec![json!("2ms"), json!({"min": "800us", "max": "1ms", "packets": 32})],
        ),
        (
            "cross",
            "Packets that no host sends and that take part of the queue and the rate, or `none`.",
            vec![json!("4Mbit"), json!({"rate": "4Mbit", "law": "constant", "packet": 200})],
        ),
        ("state", "`up` or `down`. Going down drops what is queued.", vec![json!("down"), json!("up")]),
    ]
}

/// Returns the schema of an object with these keys.
pub(crate) fn schema() -> Schema {
    let object = ObjectBuilder::new().additional_properties(Some(AdditionalProperties::FreeForm(false)));
    let value = |what: &str, examples| {
        let any = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
        any.description(Some(what)).examples(examples)
    };
    keys()
        .into_iter()
        .fold(object, |object, (key, what, examples)| object.property(key, value(what, examples)))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_spec as spec;

    #[test]
    fn every_key_of_a_spec_is_here_and_its_examples_are_read() {
        let keys = keys();
        assert_eq!(keys.each_ref().map(|(key, ..)| *key), spec::keys());
        for (key, _, examples) in keys {
            for example in examples {
                let read = spec::change_of_json(&[(key.to_owned(), example.clone())].into_iter().collect());
                assert!(read.is_ok(), "{key} = {example}: {read:?}");
            }
        }
    }
}
