//! The texts about blocks, held to the code.

use super::{BlockText, blocks};
use crate::every_word_tests::without_places;
use crate::framing::Framing;
use crate::keys::FileValue;
use crate::ports::OtherPorts;
use crate::unit::UnitSpec;
use crate::{Machine, PortsSpec, Program, Workload, run};
use fastpath_text::fields::{Field, Fields};
use fastpath_text::mistake::Remarks;

/// What `text` says as the table of a `T`, or the mistakes in it.
fn read<T: FileValue + std::fmt::Debug>(text: &str) -> Result<String, String> {
    let text = format!("[value]\n{text}");
    let mut remarks = Remarks::new(&text);
    let document = fastpath_text::document::toml(&text, "a test", "write TOML", &mut remarks);
    let document = document.unwrap_or_default();
    let field: Option<Field> = Fields::new("the test", 0, &document).get("value");
    let value = field.and_then(|field| T::read(&field, &mut remarks));
    match remarks.finish() {
        Ok(_) => Ok(without_places(&value)),
        Err(mistakes) => Err(format!("{text}: {mistakes:?}")),
    }
}

/// Holds the keys of a block to those that `T` reads.
fn check<T: FileValue + std::fmt::Debug>(name: &str) {
    let blocks = blocks();
    let block = blocks.iter().find(|block| block.name == name).unwrap_or_else(|| panic!("{name}"));
    let mut described: Vec<(&str, bool)> =
        block.key.iter().map(|key| (key.name.as_str(), key.default == "required")).collect();
    let mut known = T::KEYS.to_vec();
    // It is in every table, whether the table stores it or not.
    known.retain(|(key, _)| *key != "source");
    described.retain(|(key, _)| *key != "source");
    known.sort_unstable();
    described.sort_unstable();
    if !known.is_empty() {
        assert_eq!(described, known, "{name}");
    }
    let line = |key: &str, value: &str| format!("{key} = {value}\n");
    let required = block.key.iter().filter(|key| key.default == "required");
    let least: String = required.map(|key| line(&key.name, &key.example)).collect();
    let unchanged = read::<T>(&least).unwrap_or_else(|error| panic!("{name}: {error}"));
    for key in block.key.iter().filter(|key| key.default != "required") {
        let example = read::<T>(&(least.clone() + &line(&key.name, &key.example)));
        let changed = example.unwrap_or_else(|error| panic!("{name}.{}: {error}", key.name));
        assert!(key.name == "source" || changed != unchanged, "{name}.{} has no effect", key.name);
        // Words such as `none` and `as read` are not values.
        if let Ok(same) = read::<T>(&(least.clone() + &line(&key.name, &key.default))) {
            assert_eq!(same, unchanged, "the default of {name}.{}", key.name);
        } else {
            assert!(!key.default.starts_with(['"', '{', '0', '1']), "{name}.{}: {}", key.name, key.default);
        }
    }
}

#[test]
fn the_keys_are_those_that_are_read_and_the_defaults_those_of_the_code() {
    check::<PortsSpec>("ports");
    check::<OtherPorts>("other");
    check::<Framing>("framing");
    check::<crate::memory::MemorySpec>("memory");
    check::<crate::cache::CacheSpec>("cache");
    check::<crate::cache::LevelSpec>("level");
    check::<crate::queue::QueueSpec>("queue");
    UnitSpec::with_types(&mut UnitCheck);
    crate::program::with_tables(&mut UnitCheck);
}

/// Checks the block of each unit type.
pub(crate) struct UnitCheck;

impl UnitCheck {
    pub(crate) fn table<T: FileValue + std::fmt::Debug>(&mut self, name: &str) {
        check::<T>(name);
    }
}

/// The example of a block, run.
fn run_example(block: &BlockText) -> crate::Outcome {
    let machine = Machine::parse("machine.toml", &block.machine_text());
    let machine = machine.unwrap_or_else(|error| panic!("{}: {error}", block.name));
    let program = Program::parse("program.toml", &block.program_text());
    let program = program.unwrap_or_else(|error| panic!("{}: {error}", block.name));
    let workload: Workload = block.workload.parse().unwrap();
    run(&machine, &program, &workload, 1).unwrap_or_else(|error| panic!("{}: {error}", block.name))
}

#[test]
fn every_example_runs_and_every_unit_of_it_is_used() {
    for block in blocks() {
        let outcome = run_example(&block);
        assert!(outcome.forwarded > 0 && outcome.deadlock.is_none(), "{}: {outcome:?}", block.name);
        let used = |name: &String| outcome.units[name].busy > 0.0 || outcome.units[name].queue_mean > 0.0;
        assert!(outcome.units.keys().all(used), "{}: {:?}", block.name, outcome.units);
        let printed = block.to_string();
        assert!(block.key.iter().all(|key| printed.contains(&key.meaning)), "{printed}");
    }
}

#[test]
fn the_fields_of_a_workload_are_those_that_are_read() {
    let blocks = blocks();
    let block = blocks.iter().find(|block| block.name == "workload").unwrap();
    for key in block.key.iter().filter(|key| key.name != "kind") {
        let kinds = ["poisson", "on-off", "links,rate=1Mbit", "closed"];
        let with = |kind: &&str| format!("{kind},{}={}", key.name, key.example).parse::<Workload>().is_ok();
        assert!(kinds.iter().any(with), "{}", key.name);
    }
    let error = "poisson,x=1".parse::<Workload>().unwrap_err().to_string();
    let have = error.split("have: ").nth(1).unwrap().trim_end_matches(')');
    let have: Vec<&str> = have.split(", ").collect();
    assert!(have.iter().all(|have| block.key.iter().any(|key| key.name == *have)), "{have:?}");
    assert_eq!(have.len() + 1, block.key.len());
}
