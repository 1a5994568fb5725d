//! The canonical form of a description, which is JSON. The head of `description.rs` shows it.

use crate::description::Description;
use crate::engine_settings::EngineSettings;
use crate::files::{Files, NO_FILES};
use crate::mistake::{Mistake, Mistakes};
use crate::topology::Routing;
use crate::{event, group, link, node, reader, traffic};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

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

    /// Returns the description as JSON in the canonical form.
    pub fn to_json(&self) -> Value {
        let mut all = Map::new();
        if let Some(seed) = self.seed {
            all.insert("seed".to_owned(), json!(seed));
        }
        if let Some(family) = self.family {
            all.insert("family".to_owned(), json!(family.word()));
        }
        if self.routing.is_dynamic {
            all.insert("routes".to_owned(), json!(Routing::WORDS[1]));
        }
        if self.routing.is_multipath {
            all.insert("ecmp".to_owned(), json!(true));
        }
        all.insert("nodes".to_owned(), self.nodes.iter().map(node::write).collect());
        all.insert("links".to_owned(), self.links.iter().map(link::write).collect());
        all.insert("events".to_owned(), self.events.iter().map(event::write).collect());
        if !self.traffic.is_empty() {
            all.insert("traffic".to_owned(), self.traffic.iter().map(traffic::write).collect());
        }
        all.insert("groups".to_owned(), self.groups.iter().map(group::write).collect());
        if self.engine != EngineSettings::default() {
            all.insert("engine".to_owned(), self.engine.write());
        }
        Value::Object(all)
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
