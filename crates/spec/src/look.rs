//! What pictures show of a node that changes nothing else: its position, and its kind in a file of
//! another program.
//!
//! ```toml
//! [router.core]
//! position = [120, 40]              # pixels from the left and from the top of a picture
//! ```

use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::schema_parts;
use serde_json::{Map, Value, json};

/// Positions are between this and its negative.
const POSITION_MAX: f64 = 1e6;

/// How pictures show a node.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Look {
    /// Its position in pixels, rightward and downward.
    pub position: Option<[f64; 2]>,
    /// Its kind in a file of another program, if a lab has no such kind.
    pub foreign_kind: Option<String>,
}

/// Reads the keys of a node that pictures show.
pub(crate) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Look {
    let position = fields.get("position").and_then(|field| {
        const EXAMPLE: &str = "[120, 40]";
        let Some(elements) = field.elements().filter(|elements| elements.len() == 2) else {
            field.wrong_kind("two numbers", EXAMPLE, remarks);
            return None;
        };
        let mut numbers = [0.0; 2];
        for (number, element) in numbers.iter_mut().zip(&elements) {
            *number = element.number("120", remarks)?;
            if number.abs() > POSITION_MAX {
                let what = format!("{number} is too far for a position");
                remarks.mistake(element.at, what, format!("write up to {POSITION_MAX} pixels"));
                return None;
            }
        }
        Some(numbers)
    });
    Look { position, foreign_kind: None }
}

/// Writes them in the canonical form.
pub(crate) fn write(look: &Look, table: &mut Map<String, Value>) {
    if let Some(position) = look.position {
        // A whole number is written as one.
        let number = |x: f64| if x.fract() == 0.0 { json!(x as i64) } else { json!(x) };
        table.insert("position".to_owned(), json!(position.map(number)));
    }
}

/// Their schema.
pub(crate) fn properties() -> Map<String, Value> {
    schema_parts::properties([(
        "position",
        "Its position in pictures: pixels from the left and from the top.",
        json!({ "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2 }),
    )])
}
