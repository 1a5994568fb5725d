//! The canonical form of a description, which is JSON. The head of `description.rs` shows it.

use crate::description::Description;
use crate::files::{Files, NO_FILES};
use crate::keys::TOP;
use crate::mistake::{Mistake, Mistakes};
use crate::reader;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

impl Description {
    /// Reads a description from JSON in the canonical form. `files` returns the text of a file that
    /// the description names.
    ///
    /// # Errors
    /// Every mistake in the values. [`resolve`](crate::resolve()) reports values that contradict
    /// each other.
    pub fn from_json(text: &str, files: &Files) -> Result<Description, Mistakes> {
        reader::description_of_json(text, files)
    }

    /// Reads a description from the text of a spec file (TOML), as [`Description::from_json`] does.
    ///
    /// # Errors
    /// Every mistake in the values.
    pub fn from_toml(text: &str, files: &Files) -> Result<Description, Mistakes> {
        reader::description_of_toml(text, files)
    }

    /// Returns the description as JSON in the canonical form.
    pub fn to_json(&self) -> Value {
        let written = TOP.iter().filter_map(|top| Some((top.key.to_owned(), (top.write)(self)?)));
        Value::Object(written.collect())
    }
}

impl Serialize for Description {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Description {
    /// Reads the canonical form. No files can be read here: laws of jitter from files need
    /// [`Description::from_json`].
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Description, D::Error> {
        let text = Value::deserialize(deserializer)?.to_string();
        Description::from_json(&text, NO_FILES).map_err(|mistakes| {
            let said = |mistake: &Mistake| format!("{}; {}", mistake.what, mistake.instead);
            D::Error::custom(mistakes.iter().map(said).collect::<Vec<_>>().join("\n"))
        })
    }
}
