//! Rule files and names of ports, for all ways to run a switch.

use anyhow::{Context, bail};
use clap::Args;
use fastpath_switch::ofctl::{self, PortNames};
use fastpath_switch::{Limits, Switch, port};
use fastpath_units::Time;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Numbers of ports that a table of places holds.
const NUMBER_MAX: u32 = 65_279;

/// What the switch is made of.
#[derive(Args)]
pub(super) struct SwitchArgs {
    /// Flows, groups and meters, one a line, in the syntax of ovs-ofctl.
    #[arg(long, value_name = "FILE")]
    pub(super) rules: Option<PathBuf>,
    /// Tables, 1 to 254.
    #[arg(long, value_name = "N", default_value_t = 254, value_parser = clap::value_parser!(u8).range(1..=254))]
    tables: u8,
    /// Flows that a table holds; more are refused.
    #[arg(long, value_name = "N", default_value_t = Limits::default().flows)]
    flows: usize,
}

impl SwitchArgs {
    /// The switch without ports and rules.
    pub(super) fn switch(&self) -> Switch {
        Switch::new(Limits { tables: self.tables, flows: self.flows, ..Limits::default() })
    }

    /// Puts the rules in, if there are any.
    pub(super) fn load(&self, switch: &mut Switch, names: &PortNames) -> anyhow::Result<()> {
        let Some(path) = &self.rules else { return Ok(()) };
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let loaded = ofctl::parse(&text, names).and_then(|lines| ofctl::load(switch, Time::ZERO, &lines));
        loaded.or_else(|mistakes| bail!("{}", shown(path, &mistakes)))
    }
}

/// A line for each mistake.
fn shown(path: &Path, mistakes: &[ofctl::Mistake]) -> String {
    let mut text = match mistakes.len() {
        1 => "1 mistake".to_owned(),
        count => format!("{count} mistakes"),
    };
    for mistake in mistakes {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{}:{mistake}", path.display());
    }
    text
}

/// Numbers for ports by name: `pN` is number N, `LOCAL` the port to the machine itself, the others
/// get the smallest that are free, in their order.
pub(super) fn number<'a>(names: impl IntoIterator<Item = &'a str>) -> anyhow::Result<Vec<(u32, &'a str)>> {
    let names: Vec<&str> = names.into_iter().collect();
    let own = |name: &str| {
        if name == "LOCAL" {
            return Some(port::LOCAL);
        }
        let number = name.strip_prefix('p').filter(|digits| !digits.starts_with(['0', '+']))?;
        number.parse::<u32>().ok().filter(|number| (1..=NUMBER_MAX).contains(number))
    };
    let mut taken: BTreeSet<u32> = names.iter().filter_map(|name| own(name)).collect();
    let mut seen = BTreeSet::new();
    let mut numbered = Vec::new();
    for name in names {
        if name.is_empty() || name.len() > 15 || !seen.insert(name) {
            bail!("port '{name}': give each port a name of its own, of 1 to 15 letters");
        }
        let number = own(name).or_else(|| (1..=NUMBER_MAX).find(|number| !taken.contains(number)));
        let Some(number) = number else { bail!("port '{name}': {NUMBER_MAX} ports are there already") };
        taken.insert(number);
        numbered.push((number, name));
    }
    Ok(numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_have_the_numbers_in_their_names_or_the_next_ones_free() {
        let numbers = |names: &[&str]| {
            number(names.iter().copied()).map(|all| all.iter().map(|(number, _)| *number).collect::<Vec<_>>())
        };
        assert_eq!(numbers(&["p1", "p2"]).unwrap(), [1, 2]);
        assert_eq!(numbers(&["eth7", "p3", "p1", "lan"]).unwrap(), [2, 3, 1, 4]);
        assert_eq!(numbers(&["p0", "p01", "px"]).unwrap(), [1, 2, 3]);
        assert_eq!(numbers(&["LOCAL", "eth0", "p1"]).unwrap(), [port::LOCAL, 2, 1]);
        assert!(numbers(&["a", "a"]).is_err() && numbers(&[""]).is_err());
    }
}
