//! Values of columns and their form in JSON (RFC 7047 §5.1).
//!
//! A column holds a set of atoms or a map of atoms. A scalar is a set of one atom: the protocol
//! writes both alike. Real numbers are missing: no column that is read here holds one.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// The identity of a row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(u128);

/// A text is not a UUID.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is not a UUID: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12")]
pub struct ParseUuidError(String);

/// One value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Atom {
    /// An integer.
    Integer(i64),
    /// True or false.
    Boolean(bool),
    /// A string.
    Text(String),
    /// A reference to a row.
    Uuid(Uuid),
}

/// The content of a column of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Datum {
    /// A set, or a scalar.
    Set(BTreeSet<Atom>),
    /// A map.
    Map(BTreeMap<Atom, Atom>),
}

/// JSON that is not a value of a column.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is not a value of a column")]
pub struct ValueError(String);

impl Uuid {
    /// Makes a UUID of a number.
    pub const fn from_u128(number: u128) -> Uuid {
        Uuid(number)
    }

    /// The UUID as a number.
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

impl FromStr for Uuid {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Uuid, ParseUuidError> {
        let lengths = text.split('-').map(str::len);
        let is_hex = text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
        let digits = text.replace('-', "");
        match u128::from_str_radix(&digits, 16) {
            Ok(number) if is_hex && lengths.eq([8, 4, 4, 4, 12]) => Ok(Uuid(number)),
            _ => Err(ParseUuidError(shortened(text))),
        }
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032x}", self.0);
        let groups = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
        f.write_str(&groups.join("-"))
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Atom {
    /// Reads an atom (RFC 7047 §5.1, `<atom>`).
    ///
    /// # Errors
    /// The JSON is not an atom of a kind that is known here.
    pub fn from_json(json: &Value) -> Result<Atom, ValueError> {
        let wrong = || ValueError(shortened(&json.to_string()));
        match json {
            Value::Bool(value) => Ok(Atom::Boolean(*value)),
            Value::String(text) => Ok(Atom::Text(text.clone())),
            Value::Number(number) => number.as_i64().map(Atom::Integer).ok_or_else(wrong),
            Value::Array(parts) => match &parts[..] {
                [Value::String(kind), Value::String(text)] if kind == "uuid" => {
                    text.parse().map(Atom::Uuid).map_err(|_| wrong())
                }
                _ => Err(wrong()),
            },
            Value::Null | Value::Object(_) => Err(wrong()),
        }
    }

    /// Writes the atom.
    pub fn to_json(&self) -> Value {
        match self {
            Atom::Integer(number) => json!(number),
            Atom::Boolean(value) => json!(value),
            Atom::Text(text) => json!(text),
            Atom::Uuid(uuid) => json!(["uuid", uuid.to_string()]),
        }
    }
}

impl From<i64> for Atom {
    fn from(number: i64) -> Atom {
        Atom::Integer(number)
    }
}

impl From<bool> for Atom {
    fn from(value: bool) -> Atom {
        Atom::Boolean(value)
    }
}

impl From<&str> for Atom {
    fn from(text: &str) -> Atom {
        Atom::Text(text.to_owned())
    }
}

impl From<String> for Atom {
    fn from(text: String) -> Atom {
        Atom::Text(text)
    }
}

impl From<Uuid> for Atom {
    fn from(uuid: Uuid) -> Atom {
        Atom::Uuid(uuid)
    }
}

impl Datum {
    /// An empty set: a column that says nothing.
    pub const EMPTY: Datum = Datum::Set(BTreeSet::new());

    /// A set of these atoms.
    pub fn set<A: Into<Atom>>(atoms: impl IntoIterator<Item = A>) -> Datum {
        Datum::Set(atoms.into_iter().map(Into::into).collect())
    }

    /// A scalar.
    pub fn one(atom: impl Into<Atom>) -> Datum {
        Datum::set([atom.into()])
    }

    /// A map of these pairs.
    pub fn map<K: Into<Atom>, V: Into<Atom>>(pairs: impl IntoIterator<Item = (K, V)>) -> Datum {
        Datum::Map(pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }

    /// Reads the content of a column (RFC 7047 §5.1, `<value>`).
    ///
    /// # Errors
    /// The JSON is not such a value.
    pub fn from_json(json: &Value) -> Result<Datum, ValueError> {
        let wrong = || ValueError(shortened(&json.to_string()));
        let Value::Array(parts) = json else { return Atom::from_json(json).map(Datum::one) };
        match &parts[..] {
            [Value::String(kind), Value::Array(members)] if kind == "set" => {
                members.iter().map(Atom::from_json).collect::<Result<_, _>>().map(Datum::Set)
            }
            [Value::String(kind), Value::Array(members)] if kind == "map" => {
                let pair = |member: &Value| match member.as_array().map(Vec::as_slice) {
                    Some([key, value]) => Ok((Atom::from_json(key)?, Atom::from_json(value)?)),
                    _ => Err(wrong()),
                };
                members.iter().map(pair).collect::<Result<_, _>>().map(Datum::Map)
            }
            _ => Atom::from_json(json).map(Datum::one),
        }
    }

    /// Writes the content of a column.
    pub fn to_json(&self) -> Value {
        match self {
            Datum::Set(atoms) => match atoms.first() {
                Some(only) if atoms.len() == 1 => only.to_json(),
                _ => json!(["set", atoms.iter().map(Atom::to_json).collect::<Vec<_>>()]),
            },
            Datum::Map(pairs) => {
                let pairs: Vec<Value> =
                    pairs.iter().map(|(key, value)| json!([key.to_json(), value.to_json()])).collect();
                json!(["map", pairs])
            }
        }
    }

    /// The atoms of a set; none of a map.
    pub fn atoms(&self) -> impl Iterator<Item = &Atom> {
        match self {
            Datum::Set(atoms) => Some(atoms.iter()),
            Datum::Map(_) => None,
        }
        .into_iter()
        .flatten()
    }

    /// The pairs of a map; none of a set.
    pub fn pairs(&self) -> impl Iterator<Item = (&Atom, &Atom)> {
        match self {
            Datum::Map(pairs) => Some(pairs.iter()),
            Datum::Set(_) => None,
        }
        .into_iter()
        .flatten()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        match self {
            Datum::Set(atoms) => atoms.is_empty(),
            Datum::Map(pairs) => pairs.is_empty(),
        }
    }

    /// The only atom, if there is one.
    pub fn only(&self) -> Option<&Atom> {
        let mut atoms = self.atoms();
        atoms.next().filter(|_| atoms.next().is_none())
    }

    /// The only string.
    pub fn text(&self) -> Option<&str> {
        match self.only() {
            Some(Atom::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The only integer.
    pub fn integer(&self) -> Option<i64> {
        match self.only() {
            Some(Atom::Integer(number)) => Some(*number),
            _ => None,
        }
    }

    /// Whether it is `true`.
    pub fn is_true(&self) -> bool {
        self.only() == Some(&Atom::Boolean(true))
    }

    /// The references of a set.
    pub fn uuids(&self) -> impl Iterator<Item = Uuid> {
        self.atoms().filter_map(|atom| match atom {
            Atom::Uuid(uuid) => Some(*uuid),
            _ => None,
        })
    }

    /// The pairs of strings of a map.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs().filter_map(|pair| match pair {
            (Atom::Text(key), Atom::Text(value)) => Some((key.as_str(), value.as_str())),
            _ => None,
        })
    }

    /// The string of a map at this key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.texts().find(|(other, _)| *other == key).map(|(_, value)| value)
    }
}

/// A text for a message: at most 64 characters.
pub(crate) fn shortened(text: &str) -> String {
    const LETTERS: usize = 64;
    match text.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0f6d2c3e-00ab-4c11-9d00-000000000007";

    #[test]
    fn values_are_written_as_they_are_read() {
        let samples = [
            (json!(7), Datum::one(7)),
            (json!("br0"), Datum::one("br0")),
            (json!(false), Datum::one(false)),
            (json!(["uuid", UUID]), Datum::one(UUID.parse::<Uuid>().unwrap())),
            (json!(["set", []]), Datum::EMPTY),
            (json!(["set", [1, 2]]), Datum::set([2, 1])),
            (json!(["map", [["a", "1"], ["b", "2"]]]), Datum::map([("b", "2"), ("a", "1")])),
            (json!(["map", []]), Datum::map::<&str, &str>([])),
        ];
        for (json, datum) in samples {
            assert_eq!(Datum::from_json(&json).as_ref(), Ok(&datum), "{json}");
            assert_eq!(datum.to_json(), json);
        }
        assert_eq!(Datum::from_json(&json!(["set", [5]])), Ok(Datum::one(5)), "a set of one is a scalar");
    }

    #[test]
    fn what_is_not_a_value_is_refused_with_its_beginning() {
        let samples = [
            json!(null),
            json!({"a": 1}),
            json!(1.5),
            json!(u64::MAX),
            json!(["set", [["set", []]]]),
            json!(["set"]),
            json!(["map", [["a"]]]),
            json!(["uuid", "0f6d2c3e"]),
            json!(["uuid", "+f6d2c3e-00ab-4c11-9d00-000000000007"]),
            json!([]),
        ];
        for json in samples {
            assert!(Datum::from_json(&json).is_err(), "{json}");
        }
        let long = json!(["map", ["x".repeat(1000)]]);
        assert!(Datum::from_json(&long).unwrap_err().to_string().chars().count() < 100);
    }

    #[test]
    fn a_column_is_read_as_what_it_holds_and_as_nothing_else() {
        assert_eq!(Datum::one("a").text(), Some("a"));
        assert_eq!(Datum::set(["a", "b"]).text(), None);
        assert_eq!(Datum::one("a").integer(), None);
        assert_eq!(Datum::one(4).integer(), Some(4));
        assert!(Datum::one(true).is_true() && !Datum::one(false).is_true() && !Datum::EMPTY.is_true());
        assert_eq!(Datum::map([("a", "1")]).get("a"), Some("1"));
        assert_eq!(Datum::map([("a", 1)]).get("a"), None);
        assert_eq!(Datum::map([("a", "1")]).only(), None);
        let uuid: Uuid = UUID.parse().unwrap();
        assert_eq!(Datum::one(uuid).uuids().collect::<Vec<_>>(), [uuid]);
        assert_eq!(uuid.to_string(), UUID);
    }
}
