//! Keys of a discipline as a table, from which they are read, written, and described in the schema.

use super::quantity::{limit, positive, size};
use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::schema_parts::{described, reference, table};
use crate::write::{of_probability, text};
use fastpath_link::{Ecn, Limit};
use fastpath_units::{Bytes, Duration, Probability};
use serde_json::{Map, Value, json};

/// A key that sets one parameter of a spec `S`.
pub(super) struct Key<S> {
    name: &'static str,
    /// What the parameter is, for the schema.
    what: &'static str,
    parameter: Parameter<S>,
}

/// The kind of a parameter, and where it is in the spec.
pub(super) enum Parameter<S> {
    /// A time above 0.
    Time(fn(&mut S) -> &mut Duration),
    /// A time, 0 included.
    TimeOrZero(fn(&mut S) -> &mut Duration),
    /// A number from 0 to 1000.
    Factor(fn(&mut S) -> &mut f64),
    /// A number above 0, to 1000.
    PositiveFactor(fn(&mut S) -> &mut f64),
    /// A number of bytes above 0.
    Size(fn(&mut S) -> &mut Bytes),
    /// A probability.
    Share(fn(&mut S) -> &mut Probability),
    /// True or false.
    Flag(fn(&mut S) -> &mut bool),
    /// True to mark ECN-capable packets.
    Ecn(fn(&mut S) -> &mut Ecn),
    /// A number of packets.
    Packets(fn(&mut S) -> &mut u32),
    /// A number of queues above 0.
    Queues(fn(&mut S) -> &mut u16),
    /// A limit in packets or bytes, with an example.
    Limit(fn(&mut S) -> &mut Limit, &'static str),
}

use Parameter as P;

impl<S> Key<S> {
    pub(super) const fn new(name: &'static str, what: &'static str, parameter: Parameter<S>) -> Key<S> {
        Key { name, what, parameter }
    }

    fn read(&self, spec: &mut S, fields: &mut Fields, remarks: &mut Remarks) -> Option<()> {
        let key = self.name;
        if let P::Size(of) = self.parameter {
            let bytes = of(spec);
            *bytes = size(fields, key, *bytes, remarks)?;
            return Some(());
        }
        let field = fields.get(key);
        if let Some(field) = field {
            match self.parameter {
                P::Time(of) => {
                    let time = of(spec);
                    *time = positive(&field, &time.to_string(), remarks)?;
                }
                P::TimeOrZero(of) => {
                    let time = of(spec);
                    *time = field.quantity(&time.to_string(), remarks)?;
                }
                P::Factor(of) | P::PositiveFactor(of) => {
                    let factor = of(spec);
                    let number = field.number(&factor.to_string(), remarks)?;
                    if !(0.0..=1000.0).contains(&number) {
                        let what = format!("{key} = {number} is out of range");
                        remarks.mistake(field.at, what, "write a number from 0 to 1000");
                        return None;
                    }
                    if number == 0.0 && matches!(self.parameter, P::PositiveFactor(_)) {
                        let instead = format!("write {key} = {factor:?}");
                        remarks.mistake(fields.at, format!("{key} is 0"), instead);
                    }
                    *factor = number;
                }
                P::Size(_) => {}
                P::Share(of) => *of(spec) = field.probability(remarks)?,
                P::Flag(of) => *of(spec) = field.switch(remarks)?,
                P::Ecn(of) => *of(spec) = if field.switch(remarks)? { Ecn::Mark } else { Ecn::Off },
                P::Packets(of) => *of(spec) = field.whole(0..=u64::from(u32::MAX), remarks)? as u32,
                P::Queues(of) => *of(spec) = field.whole(1..=u64::from(u16::MAX), remarks)? as u16,
                P::Limit(of, example) => *of(spec) = limit(&field, example, remarks)?,
            }
        }
        Some(())
    }

    fn value(&self, spec: &mut S) -> Value {
        match self.parameter {
            P::Time(of) | P::TimeOrZero(of) => text(of(spec)),
            P::Factor(of) | P::PositiveFactor(of) => json!(of(spec)),
            P::Size(of) => text(of(spec)),
            P::Share(of) => of_probability(*of(spec)),
            P::Flag(of) => json!(of(spec)),
            P::Ecn(of) => json!(*of(spec) == Ecn::Mark),
            P::Packets(of) => json!(of(spec)),
            P::Queues(of) => json!(of(spec)),
            P::Limit(of, _) => text(of(spec)),
        }
    }

    fn schema(&self) -> Value {
        match self.parameter {
            P::Time(_) | P::TimeOrZero(_) => reference("duration"),
            P::Factor(_) => json!({ "type": "number", "minimum": 0, "maximum": 1000 }),
            P::PositiveFactor(_) => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1000 }),
            P::Size(_) => reference("bytes"),
            P::Share(_) => reference("probability"),
            P::Flag(_) | P::Ecn(_) => json!({ "type": "boolean" }),
            P::Packets(_) => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
            P::Queues(_) => json!({ "type": "integer", "minimum": 1, "maximum": u16::MAX }),
            P::Limit(..) => reference("limit"),
        }
    }
}

/// Reads `keys` into `spec`, which has the defaults. Stops at the first mistake.
pub(super) fn read<S>(keys: &[Key<S>], mut spec: S, fields: &mut Fields, remarks: &mut Remarks) -> Option<S> {
    for key in keys {
        key.read(&mut spec, fields, remarks)?;
    }
    Some(spec)
}

/// Writes the values of `keys`.
pub(super) fn write<S: Clone>(keys: &[Key<S>], spec: &S) -> Vec<(&'static str, Value)> {
    let mut spec = spec.clone();
    keys.iter().map(|key| (key.name, key.value(&mut spec))).collect()
}

/// The schemas of keys, by key.
pub(super) type Schemas = Map<String, Value>;

/// Returns the schemas of `keys`.
pub(super) fn schema<S>(keys: &[Key<S>]) -> Schemas {
    keys.iter().map(|key| (key.name.to_owned(), described(key.what, key.schema()))).collect()
}

/// Returns the schema of a table with this kind, these keys and no others.
pub(super) fn of_kind(kind: &str, mut keys: Schemas) -> Value {
    keys.insert("kind".to_owned(), json!({ "const": kind }));
    table(keys, &["kind"])
}
