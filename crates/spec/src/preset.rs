//! Presets: values of common access networks by name, each with its source. The data is in
//! `presets.toml`.

use crate as spec;
use fastpath_link::Change;
use std::sync::OnceLock;
use toml::de::{DeTable, DeValue};

const TEXT: &str = include_str!("presets.toml");

/// Values of a link by name.
#[derive(Clone, PartialEq, Debug)]
pub struct Preset {
    /// The name, for example `lte`.
    pub name: String,
    /// A description for people.
    pub title: String,
    /// The publication that the numbers are from: title, year, table.
    pub source: String,
    /// Which values were derived from the source, and how.
    pub derived: String,
    /// The values from the subscriber to the network, as text of a spec.
    pub up_text: String,
    /// The values from the network to the subscriber.
    pub down_text: String,
    /// The values from the subscriber to the network.
    pub up: Change,
    /// The values from the network to the subscriber.
    pub down: Change,
}

/// Returns all presets, in the order of the file.
pub fn all() -> &'static [Preset] {
    static ALL: OnceLock<Vec<Preset>> = OnceLock::new();
    ALL.get_or_init(|| read(TEXT).unwrap_or_else(|what| panic!("presets.toml: {what}")))
}

/// Returns the preset with this name.
pub fn named(name: &str) -> Option<Preset> {
    all().iter().find(|preset| preset.name == name).cloned()
}

fn read(text: &str) -> Result<Vec<Preset>, String> {
    let document = DeTable::parse(text).map_err(|error| error.to_string())?;
    let mut tables: Vec<_> = document.get_ref().iter().collect();
    tables.sort_by_key(|(name, _)| name.span().start);
    let preset = |(name, value): &(&toml::Spanned<std::borrow::Cow<str>>, &toml::Spanned<DeValue>)| {
        let name = name.get_ref().to_string();
        let DeValue::Table(table) = value.get_ref() else { return Err(format!("{name} is not a table")) };
        let text = |key: &str| match table.get(key).map(toml::Spanned::get_ref) {
            Some(DeValue::String(text)) if !text.is_empty() => Ok(text.to_string()),
            _ => Err(format!("{name} has no {key}")),
        };
        let values = |key: &str| {
            let text = text(key)?;
            let change = spec::parse_change(&text.replace("; ", "\n"));
            let said = |mistakes: crate::Mistakes| format!("{name}: {key}: {}", mistakes[0]);
            Ok::<_, String>((change.map_err(said)?, text))
        };
        if let Some(other) = table.keys().find(|key| !KEYS.contains(&key.get_ref().as_ref())) {
            return Err(format!("{name}: '{}' is not known", other.get_ref()));
        }
        let ((up, up_text), (down, down_text)) = (values("up")?, values("down")?);
        let (title, source, derived) = (text("title")?, text("source")?, text("derived")?);
        Ok(Preset { name, title, source, derived, up_text, down_text, up, down })
    };
    tables.iter().map(preset).collect()
}

const KEYS: [&str; 5] = ["title", "source", "derived", "up", "down"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_read_and_names_its_source_and_a_year() {
        let names: Vec<&str> = all().iter().map(|preset| preset.name.as_str()).collect();
        let asked_for =
            ["3g", "lte", "5g", "docsis", "ftth", "dsl", "wifi", "starlink", "geo", "transatlantic"];
        assert_eq!(names, asked_for);
        for preset in all() {
            let year = |word: &str| word.len() == 4 && (word.starts_with("19") || word.starts_with("20"));
            let words = |c: char| !c.is_ascii_alphanumeric();
            assert!(preset.source.split(words).any(year), "{}: {}", preset.name, preset.source);
            assert!(preset.up.delay.is_some() && preset.down.delay.is_some(), "{}", preset.name);
        }
    }

    #[test]
    fn what_is_no_preset_is_refused() {
        for (text, said) in [
            ("a = 1", "a is not a table"),
            ("[a]\nup = \"delay = '1ms'\"", "a has no down"),
            (
                "[a]\nup = \"dleay = '1ms'\"\ndown = \"delay = '1ms'\"",
                "a: up: 1:1: a link has no key 'dleay'",
            ),
            ("[a]\ncolour = \"red\"", "a: 'colour' is not known"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_links_own_values_win_over_its_preset() {
        let text = "[host.home]\n[host.net]\n[[link]]\nbetween = [\"home\", \"net\"]\npreset = \"lte\"\nqueue = \"9p\"\n\
                    net_to_home = { rate = \"20Mbit\" }\n";
        let (topology, _) = spec::parse(text).unwrap();
        let [up, down] = &topology.links[0].pipes;
        let lte = named("lte").unwrap();
        assert_eq!((up.rate, up.delay), (lte.up.rate.unwrap(), lte.up.delay.unwrap()));
        assert_eq!((down.rate, down.delay), ("20Mbit".parse().ok(), lte.down.delay.unwrap()));
        let mistakes = spec::parse(&text.replace("lte", "let")).unwrap_err();
        assert_eq!(mistakes[0].to_string(), "5:10: there is no preset 'let'; write \"lte\"");
        // Not the nearest: another number is another network.
        let mistakes = spec::parse(&text.replace("lte", "4g")).unwrap_err();
        assert!(
            mistakes[0].to_string().contains("there is no preset '4g'; write one of 3g, lte, 5g"),
            "{mistakes}"
        );
    }
}
