//! Port numbers by name, and rule files.

use crate::error::{Error, Result};
use fastpath_ofctl::{self as ofctl, PortNames};
use fastpath_switch::{Switch, port};
use fastpath_units::Time;
use std::collections::BTreeSet;
use std::path::Path;

/// Highest port number that is assigned (OFPP_MAX is 0xffffff00; a dense table ends here).
const NUMBER_MAX: u32 = 65_279;

/// Loads flows, groups and meters from a file in the syntax of ovs-ofctl into a switch.
///
/// # Errors
/// A file that cannot be read, or every mistake in it.
pub fn load_rules(switch: &mut Switch, path: &Path, names: &PortNames) -> Result<()> {
    let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
    let loaded = ofctl::parse(&text, names).and_then(|lines| ofctl::load(switch, Time::ZERO, &lines));
    loaded.map_err(|mistakes| {
        let count = match mistakes.len() {
            1 => "1 mistake".to_owned(),
            count => format!("{count} mistakes"),
        };
        let lines = mistakes.iter().map(|mistake| format!("{}:{mistake}", path.display()));
        Error::Mistakes(std::iter::once(count).chain(lines).collect())
    })
}

/// Assigns numbers to ports by name: `pN` is number N, `LOCAL` is OFPP_LOCAL, and the others get
/// the smallest free numbers in their order.
///
/// # Errors
/// [`Error::Argument`] for a name that is empty, longer than 15 letters or given twice, and for
/// more ports than there are numbers.
pub fn number_ports<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<(u32, &'a str)>> {
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
            let text = format!("port '{name}': give each port a name of its own, of 1 to 15 letters");
            return Err(Error::Argument(text));
        }
        let number = own(name).or_else(|| (1..=NUMBER_MAX).find(|number| !taken.contains(number)));
        let Some(number) = number else {
            return Err(Error::Argument(format!("port '{name}': there are {NUMBER_MAX} ports already")));
        };
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
            number_ports(names.iter().copied())
                .map(|all| all.iter().map(|(number, _)| *number).collect::<Vec<_>>())
        };
        assert_eq!(numbers(&["p1", "p2"]).unwrap(), [1, 2]);
        assert_eq!(numbers(&["eth7", "p3", "p1", "lan"]).unwrap(), [2, 3, 1, 4]);
        assert_eq!(numbers(&["p0", "p01", "px"]).unwrap(), [1, 2, 3]);
        assert_eq!(numbers(&["LOCAL", "eth0", "p1"]).unwrap(), [port::LOCAL, 2, 1]);
        assert!(numbers(&["a", "a"]).is_err() && numbers(&[""]).is_err());
    }
}
