//! The words of a scenario: its name, and arguments `--key=value` as ns-3 reads them.
//!
//! Every key is used once and by the scenario that has it; what is left is named with the keys that
//! there are.

use fastpath_text::mistake::{Remarks, choice};
use fastpath_units::{Bytes, Duration, Probability, Rate};
use std::ops::RangeInclusive;

/// The scenarios, in the order of the interop runner's documentation, and the keys that each has
/// beside those of the bottleneck.
const SCENARIOS: [(&str, &[&str]); 8] = [
    ("simple-p2p", &[]),
    ("drop-rate", &RATES),
    ("corrupt-rate", &RATES),
    ("droplist", &["drops_to_client", "drops_to_server"]),
    ("blackhole", &["on", "off", "repeat", "direction"]),
    ("rebind", &["first-rebind", "rebind-freq", "rebind-addr"]),
    ("tcp-cross-traffic", &[]),
    ("udp-cross-traffic", &["crossdatarate"]),
];
const BOTTLENECK: [&str; 3] = ["delay", "bandwidth", "queue"];
const RATES: [&str; 4] = ["rate_to_client", "burst_to_client", "rate_to_server", "burst_to_server"];

/// The units of ns-3's DataRate in bits per second: of bits, then of bytes (× 8).
const BITS: [(&str, &str); 8] = [
    ("bps", "bit"),
    ("b/s", "bit"),
    ("kbps", "kbit"),
    ("kb/s", "kbit"),
    ("Mbps", "Mbit"),
    ("Mb/s", "Mbit"),
    ("Gbps", "Gbit"),
    ("Gb/s", "Gbit"),
];
const BYTES: [(&str, &str); 8] = [
    ("Bps", "bit"),
    ("B/s", "bit"),
    ("kBps", "kbit"),
    ("kB/s", "kbit"),
    ("MBps", "Mbit"),
    ("MB/s", "Mbit"),
    ("GBps", "Gbit"),
    ("GB/s", "Gbit"),
];
/// Units of 1024 bits and their powers; the same letters as of bytes, whose number is that of bits.
const BINARY: [(&str, &str); 3] = [("Kib/s", "KiB"), ("Mib/s", "MiB"), ("Gib/s", "GiB")];

/// The arguments of a scenario.
pub(super) struct Arguments<'t> {
    /// The name of the scenario.
    pub(super) scenario: &'static str,
    /// Where it is in the text.
    at: usize,
    keys: &'static [&'static str],
    given: Vec<Given<'t>>,
}

/// One argument.
#[derive(Clone, Copy)]
pub(super) struct Given<'t> {
    at: usize,
    key: &'t str,
    /// `None` without `=`.
    value: Option<&'t str>,
    is_used: bool,
}

impl<'t> Arguments<'t> {
    /// Reads the name of a scenario and its arguments. `None` without a known name.
    pub(super) fn read(text: &'t str, remarks: &mut Remarks) -> Option<Arguments<'t>> {
        let mut words = words(text);
        let names = || SCENARIOS.iter().map(|(name, _)| *name);
        let Some((at, name)) = words.next() else {
            let names: Vec<&str> = names().collect();
            let instead = format!("write one of {}, and its arguments", names.join(", "));
            remarks.mistake(0, "the scenario is empty", instead);
            return None;
        };
        let Some((scenario, keys)) = SCENARIOS.iter().find(|(known, _)| *known == name) else {
            remarks.mistake(at, format!("there is no scenario '{name}'"), choice(name, names()));
            return None;
        };
        let mut arguments = Arguments { scenario, at, keys, given: Vec::new() };
        words.for_each(|(at, word)| arguments.add(at, word, remarks));
        Some(arguments)
    }

    fn add(&mut self, at: usize, word: &'t str, remarks: &mut Remarks) {
        let Some(argument) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
            remarks.mistake(at, format!("'{word}' is not an argument"), "write --key=value, without spaces");
            return;
        };
        let (key, value) = match argument.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (argument, None),
        };
        let keys = || BOTTLENECK.iter().chain(self.keys).copied();
        if !keys().any(|known| known == key) {
            let what = format!("{} has no --{key}", self.scenario);
            let keys: Vec<String> = keys().map(|key| format!("--{key}")).collect();
            remarks.mistake(at, what, choice(&format!("--{key}"), keys.iter().map(String::as_str)));
        } else if self.given.iter().any(|given| given.key == key) {
            remarks.mistake(at, format!("--{key} is given twice"), "keep one of them");
        } else {
            self.given.push(Given { at, key, value, is_used: false });
        }
    }

    /// Takes an argument that may be absent.
    pub(super) fn optional(&mut self, key: &str) -> Option<Given<'t>> {
        let given = self.given.iter_mut().find(|given| given.key == key)?;
        given.is_used = true;
        Some(*given)
    }

    /// Takes an argument that has to be there.
    fn required(&mut self, key: &str, example: &str, remarks: &mut Remarks) -> Option<(usize, &'t str)> {
        match self.optional(key) {
            Some(given) => given.text(example, remarks),
            None => {
                let what = format!("{} has no --{key}", self.scenario);
                remarks.mistake(self.at, what, format!("write --{key}={example}"));
                None
            }
        }
    }

    /// Takes a time, as ns-3 writes one: a number without a unit is in seconds.
    pub(super) fn time(&mut self, key: &str, example: &str, remarks: &mut Remarks) -> Option<Duration> {
        let (at, text) = self.required(key, example, remarks)?;
        time(at, key, text, example, remarks)
    }

    /// Takes a time that is not zero.
    pub(super) fn span(&mut self, key: &str, example: &str, remarks: &mut Remarks) -> Option<Duration> {
        let (at, text) = self.required(key, example, remarks)?;
        let span = time(at, key, text, example, remarks)?;
        if span.is_zero() {
            remarks.mistake(at, format!("--{key} is 0"), format!("write --{key}={example}"));
            return None;
        }
        Some(span)
    }

    /// Takes a rate, as ns-3 writes one: a number without a unit is in bits per second.
    pub(super) fn rate(&mut self, key: &str, example: &str, remarks: &mut Remarks) -> Option<Rate> {
        let (at, text) = self.required(key, example, remarks)?;
        let rate = rate(text);
        if rate.is_none() {
            let what = format!("--{key}: '{text}' is not a rate");
            remarks.mistake(at, what, format!("write --{key}={example}, with bps, kbps, Mbps or Gbps"));
        }
        rate
    }

    /// Takes a whole number.
    pub(super) fn whole(
        &mut self,
        key: &str,
        example: &str,
        range: RangeInclusive<u64>,
        remarks: &mut Remarks,
    ) -> Option<u64> {
        let (at, text) = self.required(key, example, remarks)?;
        whole((at, key), text, range, remarks)
    }

    /// Takes a share in percent.
    pub(super) fn percent(&mut self, key: &str, example: &str, remarks: &mut Remarks) -> Option<Probability> {
        let (at, text) = self.required(key, example, remarks)?;
        let percent = text.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
        let share = percent.and_then(|percent| Probability::new(percent / 100.0));
        if share.is_none() {
            let what = format!("--{key}: '{text}' is not a share in percent");
            remarks.mistake(at, what, format!("write --{key}={example}, from 0 to 100"));
        }
        share
    }

    /// Names what no scenario has asked for.
    pub(super) fn finish(self, remarks: &mut Remarks) {
        for given in self.given.iter().filter(|given| !given.is_used) {
            let what = format!("--{} has no effect here", given.key);
            remarks.mistake(given.at, what, "remove it");
        }
    }
}

impl<'t> Given<'t> {
    /// Returns its value and the place of it.
    pub(super) fn text(&self, example: &str, remarks: &mut Remarks) -> Option<(usize, &'t str)> {
        let value = self.value.filter(|value| !value.is_empty());
        if value.is_none() {
            let what = format!("--{} has no value", self.key);
            remarks.mistake(self.at, what, format!("write --{}={example}", self.key));
        }
        value.map(|value| (self.at, value))
    }

    /// Returns a time.
    pub(super) fn time(&self, example: &str, remarks: &mut Remarks) -> Option<Duration> {
        let (at, text) = self.text(example, remarks)?;
        time(at, self.key, text, example, remarks)
    }

    /// Returns a whole number.
    pub(super) fn whole(
        &self,
        example: &str,
        range: RangeInclusive<u64>,
        remarks: &mut Remarks,
    ) -> Option<u64> {
        let (at, text) = self.text(example, remarks)?;
        whole((at, self.key), text, range, remarks)
    }

    /// Returns a list of numbers from 1, which may be empty.
    pub(super) fn numbers(&self, remarks: &mut Remarks) -> Option<Vec<u64>> {
        let text = self.value.unwrap_or_default();
        let numbers = text.split(',').filter(|number| !number.is_empty());
        let range = 1..=i64::MAX as u64;
        numbers.map(|number| whole((self.at, self.key), number, range.clone(), remarks)).collect()
    }

    /// Returns whether a switch is on: ns-3 takes no value for true.
    pub(super) fn switch(&self, remarks: &mut Remarks) -> bool {
        match self.value {
            None | Some("1" | "true" | "t") => true,
            Some("0" | "false" | "f") => false,
            Some(other) => {
                let what = format!("--{}: '{other}' is neither true nor false", self.key);
                remarks.mistake(self.at, what, format!("write --{} alone", self.key));
                false
            }
        }
    }

    /// Returns the place of its value among words.
    pub(super) fn word(&self, words: &[&str], remarks: &mut Remarks) -> Option<usize> {
        let (at, text) = self.text(words[0], remarks)?;
        let place = words.iter().position(|word| *word == text);
        if place.is_none() {
            let what = format!("--{}: '{text}' is unknown", self.key);
            remarks.mistake(at, what, choice(text, words.iter().copied()));
        }
        place
    }
}

/// Returns the words of a text, each with its byte offset.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let offset = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    text.split_ascii_whitespace().map(move |word| (offset(word), word))
}

fn time(at: usize, key: &str, text: &str, example: &str, remarks: &mut Remarks) -> Option<Duration> {
    let is_bare = text.ends_with(|c: char| c.is_ascii_digit() || c == '.');
    let with_unit = if is_bare { format!("{text}s") } else { text.to_owned() };
    let time = with_unit.parse().ok();
    if time.is_none() {
        let what = format!("--{key}: '{text}' is not a time");
        remarks.mistake(at, what, format!("write --{key}={example}, with s, ms or us"));
    }
    time
}

fn whole(
    (at, key): (usize, &str),
    text: &str,
    range: RangeInclusive<u64>,
    remarks: &mut Remarks,
) -> Option<u64> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    if number.is_none() {
        let what = format!("--{key}: '{text}' is not a whole number from {}", range.start());
        remarks.mistake(at, what, format!("write --{key}={}", range.start()));
    }
    number
}

fn rate(text: &str) -> Option<Rate> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let in_unit = |units: &[(&str, &'static str)]| {
        units.iter().find(|(name, _)| *name == unit).map(|(_, ours)| format!("{number}{ours}"))
    };
    // ns-3 knows the thousands with both letters.
    let lower = unit.replacen('K', "k", 1);
    if unit.is_empty() {
        return format!("{number}bit").parse().ok();
    }
    if let Some(binary) = in_unit(&BINARY) {
        return Rate::from_bps(binary.parse::<Bytes>().ok()?.0);
    }
    let in_lower = |units: &[(&str, &'static str)]| {
        units.iter().find(|(name, _)| *name == lower).map(|(_, ours)| format!("{number}{ours}"))
    };
    if let Some(bits) = in_lower(&BITS) {
        return bits.parse().ok();
    }
    let bytes: Rate = in_lower(&BYTES)?.parse().ok()?;
    Rate::from_bps(bytes.as_bps().checked_mul(8)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_the_units_of_ns3() {
        for (text, bps) in [
            ("10Mbps", 10_000_000),
            ("1.5Mb/s", 1_500_000),
            ("10kBps", 80_000),
            ("10Kbps", 10_000),
            ("1Gbps", 1_000_000_000),
            ("2MB/s", 16_000_000),
            ("1Kib/s", 1024),
            ("64000", 64_000),
        ] {
            assert_eq!(rate(text), Rate::from_bps(bps), "{text}");
        }
        for text in ["", "fast", "10Mpbs", "-1Mbps", "0bps", "Mbps"] {
            assert_eq!(rate(text), None, "{text}");
        }
    }
}
