//! Every word of a machine, a program or a workload has an effect, or is named: one word is
//! changed, misspelled or removed, and the simulation is another one, or there is a mistake.
//!
//! `FASTPATH_MUTATIONS=100000 cargo test -p fastpath-sim every_word` makes more changes than the
//! tests do.

use crate::machine::Machine;
use crate::program::Program;
use crate::shipped::{MACHINES, PROGRAMS};
use crate::workload::Workload;
use fastpath_text::mutation::keyed::{WordChange, changed, words};
use fastpath_units::Rng;
use std::collections::BTreeSet;

/// Words whose change makes no difference: the list that they are in, the key, the reason.
const EQUIVALENT: [(&str, &str, &str); 3] = [
    ("", "source", "free text"),
    ("level", "name", "only paths of --set use it, and an unknown one is a mistake"),
    ("stage", "name", "only skips and paths of --set use it, and an unknown one is a mistake"),
];

const WORKLOADS: [&str; 6] = [
    "line-rate,size=128,ports=4,flows=9,priorities=3,groups=2,duration=20ms,warm-up=1ms,precision=2%",
    "constant,rate=3Mpps,size=imix,ports=0+2,duration=3ms",
    "poisson,rate=5Gbit,size=70",
    "on-off,on=20us,off=30us",
    "links,rate=128kbit,links=480",
    "closed,population=12,think=7us,size=90,priorities=2",
];

fn count(default: u64) -> u64 {
    option_env!("FASTPATH_MUTATIONS").and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A value as text, without the places of its names.
pub(crate) fn without_places(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    let mut parts = text.split("at: ");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        all.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    all
}

fn machine(text: &str) -> Option<Machine> {
    Machine::parse("x.toml", text).ok()
}

/// The program as its machine runs it; `None`: there are mistakes.
fn route(text: &str, machine: &Machine) -> Option<String> {
    let program = Program::parse("x.toml", text).ok()?;
    let route = program.bind(machine).ok()?;
    Some(without_places(&(program.name(), program.params(), route)))
}

/// Changes every word of a text, and returns the changes without an effect.
fn silent(text: &str, rounds: u64, what_runs: &dyn Fn(&str) -> Option<String>) -> BTreeSet<String> {
    let mut rng = Rng::new(33);
    let words = words(text);
    let unchanged = what_runs(text).expect("a shipped file");
    let mut silent = BTreeSet::new();
    for (word, change) in
        (0..rounds).flat_map(|_| &words).flat_map(|word| WordChange::ALL.map(|how| (word, how)))
    {
        let mut parts = word.path.rsplit('.');
        let (key, _, list) = (parts.next(), parts.next(), parts.next().unwrap_or_default());
        let is_listed =
            EQUIVALENT.iter().any(|(of, name, _)| Some(*name) == key && (of.is_empty() || *of == list));
        let Some(new) = changed(text, &words, word, change, &mut rng) else { continue };
        // What is gone and makes no difference had its default value, if another value makes one.
        let mut is_default = || {
            let other = changed(text, &words, word, WordChange::Another, &mut rng);
            change == WordChange::Removed
                && other.is_some_and(|other| what_runs(&other).as_ref() != Some(&unchanged))
        };
        if !is_listed && what_runs(&new).as_ref() == Some(&unchanged) && !is_default() {
            let lines = new.lines().zip(text.lines()).find(|(new, old)| new != old);
            silent.insert(format!("{} {change:?}: {lines:?}", word.path));
        }
    }
    silent
}

#[test]
fn every_word_of_a_machine_has_an_effect_or_is_a_mistake() {
    let rounds = count(1000).div_ceil(1000);
    let what_runs = |text: &str| machine(text).map(|machine| without_places(&machine));
    for (name, text) in MACHINES {
        let silent = silent(text, rounds, &what_runs);
        assert!(silent.is_empty(), "{name}: {silent:#?}");
    }
}

#[test]
fn every_word_of_a_program_has_an_effect_or_is_a_mistake() {
    let rounds = count(1000).div_ceil(1000);
    for (name, text) in PROGRAMS {
        // What is done 0 times may take any time.
        let text = &text.replace("params = { h = 0 }", "params = { h = 3 }");
        let machines = MACHINES.iter().filter_map(|(_, text)| machine(text));
        let machine = machines.into_iter().find(|machine| route(text, machine).is_some());
        let machine = machine.unwrap_or_else(|| panic!("{name} fits no machine"));
        let silent = silent(text, rounds, &|text| route(text, &machine));
        assert!(silent.is_empty(), "{name}: {silent:#?}");
    }
}

#[test]
fn every_word_of_a_workload_has_an_effect_or_is_a_mistake() {
    let mut rng = Rng::new(33);
    let mut silent = BTreeSet::new();
    for number in 0..count(20_000) {
        let text = WORKLOADS[(number % WORKLOADS.len() as u64) as usize];
        let unchanged: Workload = text.parse().expect("a workload");
        let parts: Vec<&str> = text.split(',').collect();
        let at = rng.below(parts.len() as u64) as usize;
        let mut part = parts[at].to_owned();
        let mut new: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
        match rng.below(3) {
            0 => drop(new.remove(at)),
            1 => {
                part.insert(
                    rng.below(part.len() as u64 + 1) as usize,
                    char::from(b'a' + rng.below(26) as u8),
                );
                new[at] = part;
            }
            _ => {
                // A digit too many.
                let digit = char::from(b'1' + rng.below(9) as u8);
                let Some(first) = part.find(|c: char| c.is_ascii_digit()) else { continue };
                part.insert(first, digit);
                new[at] = part;
            }
        }
        let new = new.join(",");
        if new.parse::<Workload>().as_ref() == Ok(&unchanged) {
            silent.insert(new);
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
}
