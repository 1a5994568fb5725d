//! Reads the tables of machine and program files into structs, by `fastpath-text`: every mistake is
//! reported with its place.
//!
//! ```text
//!  read_table!(QueueSpec as "queue", "{ limit = 64 }": { limit, full = Full::Drop });
//!                                                        │      └ may be left out
//!                                                        └ must be there
//!  read_word!(Full as "an end of a queue": ["drop" => Full::Drop, "block" => Full::Block]);
//! ```

use crate::examples::example;
use crate::spec::{Clock, PacketRate, PerByte};
use fastpath_text::fields::{Field, Fields, Name};
use fastpath_text::mistake::Remarks;
use fastpath_text::tree::Tree;
use fastpath_units::{Bytes, Duration, Probability, Rate};
use std::collections::BTreeMap;

/// A value of a machine or program file.
pub(crate) trait FileValue: Sized {
    /// An example, as a file writes it.
    const EXAMPLE: &'static str;
    /// For tests of descriptions: the keys of a table, each with whether it must be there; empty
    /// for other values.
    #[cfg(test)]
    const KEYS: &'static [(&'static str, bool)] = &[];

    /// Reads the value. `None` after a mistake, which is then in `remarks`.
    fn read(field: &Field, remarks: &mut Remarks) -> Option<Self>;
}

/// Makes a struct readable whose fields are the keys of a table. A key without a default must be
/// there. The text `source` says where the numbers of a table come from, and may be in any.
macro_rules! read_table {
    ($Type:ident as $what:literal, $example:literal: { $($key:ident $(= $default:expr)?),* $(,)? } $(allows $known:ident)? $(with { $($own:ident: $value:expr),* })?) => {
        impl $crate::keys::FileValue for $Type {
            const EXAMPLE: &'static str = $example;
            #[cfg(test)]
            const KEYS: &'static [(&'static str, bool)] =
                &[$((stringify!($key), $crate::keys::read_table!(@required $($default)?))),*];

            fn read(
                field: &fastpath_text::fields::Field,
                remarks: &mut fastpath_text::mistake::Remarks,
            ) -> Option<$Type> {
                let mut fields = $crate::keys::table(field, $what, $example, remarks)?;
                $(let $key = $crate::keys::value(
                    &mut fields,
                    stringify!($key),
                    $crate::keys::read_table!(@default $($default)?),
                    remarks,
                );)*
                $(fields.get(stringify!($known));)?
                $crate::keys::finish(fields, remarks);
                Some($Type { $($key: $key?,)* $($($own: $value,)*)? })
            }
        }
    };
    (@required) => { true };
    (@required $default:expr) => { false };
    (@default) => { None };
    (@default $default:expr) => { Some($default) };
}
pub(crate) use read_table;

/// Makes an enum readable whose variants are words.
macro_rules! read_word {
    ($Type:ident as $what:literal: [$first:literal => $first_value:expr $(, $word:literal => $value:expr)* $(,)?]) => {
        impl $crate::keys::FileValue for $Type {
            const EXAMPLE: &'static str = concat!("\"", $first, "\"");

            fn read(
                field: &fastpath_text::fields::Field,
                remarks: &mut fastpath_text::mistake::Remarks,
            ) -> Option<$Type> {
                let index = field.word($what, &[$first $(, $word)*], remarks)?;
                Some([$first_value $(, $value)*][index])
            }
        }
    };
}
pub(crate) use read_word;

/// Begins to read a table. Its mistakes are those of `what` and the name that it has.
pub(crate) fn table<'d>(
    field: &Field<'d>,
    what: &str,
    example: &str,
    remarks: &mut Remarks,
) -> Option<Fields<'d>> {
    let mut fields = field.table(what, example, remarks)?;
    if let Some(Tree::Text(name)) = fields.peek("name") {
        fields.what = format!("{what} {name}");
    }
    Some(fields)
}

/// Reads the value of a key. `default`: the value if the key is left out; without one the key must
/// be there.
pub(crate) fn value<T: FileValue>(
    fields: &mut Fields,
    key: &str,
    default: Option<T>,
    remarks: &mut Remarks,
) -> Option<T> {
    let general = format!("write {key} = {}", T::EXAMPLE);
    let said = remarks.count();
    let value = match fields.get(key) {
        Some(field) => T::read(&field, remarks),
        None => {
            if default.is_none() {
                remarks.mistake(fields.at, format!("{} has no {key}", fields.what), &*general);
            }
            default
        }
    };
    // The example of this key says more than that of all values of its kind.
    if let Some(example) = example(&fields.what, key) {
        let least = format!("write {key} = 0");
        let is_general = |instead: &str| instead == general || instead == least;
        remarks
            .improve_since(said, |instead| is_general(instead).then(|| format!("write {key} = {example}")));
    }
    value
}

/// Reads the tables of `[[key]]`. Those with mistakes are left out.
pub(crate) fn list<T: FileValue>(fields: &mut Fields, key: &str, remarks: &mut Remarks) -> Vec<T> {
    let Some(field) = fields.get(key) else { return Vec::new() };
    let Some(elements) = field.elements() else {
        remarks.mistake(field.at, format!("{key} is one value, not a list"), format!("write [[{key}]]"));
        return Vec::new();
    };
    elements.iter().filter_map(|element| T::read(element, remarks)).collect()
}

/// Ends the reading of a table: reports the keys that it does not have.
pub(crate) fn finish(mut fields: Fields, remarks: &mut Remarks) {
    if let Some(source) = fields.get("source") {
        source.text("where the numbers come from", remarks);
    }
    fields.finish(remarks);
}

macro_rules! read_quantities {
    ($($Type:ident: $example:literal,)*) => {
        $(impl FileValue for $Type {
            const EXAMPLE: &'static str = concat!("\"", $example, "\"");

            fn read(field: &Field, remarks: &mut Remarks) -> Option<$Type> {
                field.quantity($example, remarks)
            }
        })*
    };
}

read_quantities! {
    Bytes: "64KiB",
    Duration: "5ns",
    Probability: "1%",
    Rate: "1Gbit",
}

macro_rules! read_whole_numbers {
    ($($Type:ident: $most:expr,)*) => {
        $(impl FileValue for $Type {
            const EXAMPLE: &'static str = "1";

            fn read(field: &Field, remarks: &mut Remarks) -> Option<$Type> {
                field.whole(0..=$most, remarks).map(|number| number as $Type)
            }
        })*
    };
}

read_whole_numbers! {
    u32: u64::from(u32::MAX),
    u64: i64::MAX as u64,
    usize: i64::MAX as u64,
}

impl FileValue for Clock {
    const EXAMPLE: &'static str = "\"232MHz\"";

    fn read(field: &Field, remarks: &mut Remarks) -> Option<Clock> {
        let text = field.text("232MHz", remarks)?;
        let clock = text.parse().ok();
        if clock.is_none() {
            let what = format!("'{text}' is not a frequency from 1Hz to 1000GHz");
            remarks.mistake(field.at, what, format!("write {} = \"232MHz\"", field.key));
        }
        clock
    }
}

impl FileValue for PacketRate {
    const EXAMPLE: &'static str = "\"35Mpps\"";

    fn read(field: &Field, remarks: &mut Remarks) -> Option<PacketRate> {
        let text = field.text("35Mpps", remarks)?;
        let rate = PacketRate::parse(text);
        if rate.is_none() {
            let what = format!("'{text}' are not packets per second above 0 and below 10^10");
            remarks.mistake(field.at, what, format!("write {} = \"35Mpps\"", field.key));
        }
        rate
    }
}

impl FileValue for PerByte {
    const EXAMPLE: &'static str = "\"0.9ns\"";

    /// Reads `0.9ns`, `101ps`.
    fn read(field: &Field, remarks: &mut Remarks) -> Option<PerByte> {
        field.quantity("0.9ns", remarks).map(PerByte::of)
    }
}

impl FileValue for f64 {
    const EXAMPLE: &'static str = "1.0";

    fn read(field: &Field, remarks: &mut Remarks) -> Option<f64> {
        field.number("1.0", remarks)
    }
}

impl FileValue for bool {
    const EXAMPLE: &'static str = "true";

    fn read(field: &Field, remarks: &mut Remarks) -> Option<bool> {
        field.switch(remarks)
    }
}

impl FileValue for String {
    const EXAMPLE: &'static str = "\"text\"";

    fn read(field: &Field, remarks: &mut Remarks) -> Option<String> {
        field.text("text", remarks).map(str::to_owned)
    }
}

impl FileValue for Name {
    const EXAMPLE: &'static str = "\"name\"";

    fn read(field: &Field, remarks: &mut Remarks) -> Option<Name> {
        field.name("name", remarks)
    }
}

impl<T: FileValue> FileValue for Option<T> {
    const EXAMPLE: &'static str = T::EXAMPLE;

    fn read(field: &Field, remarks: &mut Remarks) -> Option<Option<T>> {
        T::read(field, remarks).map(Some)
    }
}

impl<T: FileValue> FileValue for Vec<T> {
    const EXAMPLE: &'static str = "[ ]";

    fn read(field: &Field, remarks: &mut Remarks) -> Option<Vec<T>> {
        let Some(elements) = field.elements() else {
            field.wrong_kind("a list", &format!("[{}]", T::EXAMPLE), remarks);
            return None;
        };
        // All are read before one that is wrong ends the list.
        let read: Vec<Option<T>> = elements.iter().map(|element| T::read(element, remarks)).collect();
        read.into_iter().collect()
    }
}

impl<const N: usize> FileValue for [u32; N] {
    const EXAMPLE: &'static str = "[ ]";

    fn read(field: &Field, remarks: &mut Remarks) -> Option<[u32; N]> {
        let numbers: Vec<u32> = FileValue::read(field, remarks)?;
        let numbers = numbers.try_into().ok();
        if numbers.is_none() {
            let what = format!("{} does not have {N} numbers", field.key);
            remarks.mistake(field.at, what, format!("write {N} numbers"));
        }
        numbers
    }
}

impl<T: FileValue> FileValue for BTreeMap<String, T> {
    const EXAMPLE: &'static str = "{ }";

    fn read(field: &Field, remarks: &mut Remarks) -> Option<BTreeMap<String, T>> {
        let mut fields = field.table(field.key.clone(), "{ }", remarks)?;
        let read: Vec<Option<(String, T)>> = fields
            .all()
            .into_iter()
            .map(|(_, field)| T::read(&field, remarks).map(|value| (field.key.clone(), value)))
            .collect();
        read.into_iter().collect()
    }
}

/// Reads the text of one table, for tests.
#[cfg(test)]
pub(crate) fn of_text<T: FileValue>(text: &str) -> T {
    let text = format!("[value]\n{text}");
    let mut remarks = Remarks::new(&text);
    let document =
        fastpath_text::document::toml(&text, "a test", "write TOML", &mut remarks).unwrap_or_default();
    let value = value(&mut Fields::new("the test", 0, &document), "value", None, &mut remarks);
    value.unwrap_or_else(|| panic!("{:?}", remarks.finish()))
}
