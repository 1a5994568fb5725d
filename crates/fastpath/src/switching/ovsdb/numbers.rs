//! Numbers of the interfaces of a bridge: pure.

use fastpath_ovsdb::{InterfaceSpec, Uuid};
use fastpath_switch::port;
use std::collections::{BTreeMap, BTreeSet};

/// Highest number of an ordinary port in Open vSwitch's database.
const NUMBER_MAX: u32 = 65_279;
/// The number of the local port in the database (OFPP_LOCAL of OpenFlow 1.0).
const LOCAL_IN_DATABASE: u32 = 65_534;

/// Numbers interfaces. One that asks for a number gets it, the first by name if several ask for the
/// same. The others keep theirs, then get what the database holds, then the smallest free one.
pub(super) fn assign<'a>(
    interfaces: impl Iterator<Item = &'a InterfaceSpec> + Clone,
    before: &BTreeMap<Uuid, u32>,
) -> BTreeMap<Uuid, u32> {
    let mut numbers = BTreeMap::new();
    let mut taken = BTreeSet::new();
    let asked = |one: &InterfaceSpec| if one.is_local { Some(port::LOCAL) } else { one.ofport_request };
    let kept = |one: &InterfaceSpec| before.get(&one.uuid).copied().filter(|number| *number <= NUMBER_MAX);
    for round in 0..3 {
        for one in interfaces.clone() {
            let number = match round {
                0 => asked(one),
                1 => kept(one),
                _ => one.ofport,
            };
            if !numbers.contains_key(&one.uuid)
                && let Some(number) = number
                && taken.insert(number)
            {
                numbers.insert(one.uuid, number);
            }
        }
    }
    let mut next = 1;
    for one in interfaces {
        if numbers.contains_key(&one.uuid) {
            continue;
        }
        while taken.contains(&next) {
            next += 1;
        }
        if next <= NUMBER_MAX {
            taken.insert(next);
            numbers.insert(one.uuid, next);
        }
    }
    numbers
}

/// Returns the number of a port as the database has it.
pub(super) fn in_database(number: u32) -> i64 {
    if number == port::LOCAL { LOCAL_IN_DATABASE.into() } else { number.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_ovsdb::InterfaceKind;

    fn interface(id: u128, request: Option<u32>, held: Option<u32>) -> InterfaceSpec {
        InterfaceSpec {
            uuid: Uuid::from_u128(id),
            name: format!("i{id}"),
            kind: Ok(InterfaceKind::System),
            is_local: id == 0,
            ofport_request: request,
            ofport: held,
            hw_addr: None,
            mtu: None,
            policing: None,
            notes: Vec::new(),
        }
    }

    fn numbers(interfaces: &[InterfaceSpec], before: &[(u128, u32)]) -> Vec<u32> {
        let before = before.iter().map(|(id, number)| (Uuid::from_u128(*id), *number)).collect();
        let all = assign(interfaces.iter(), &before);
        interfaces.iter().map(|one| all[&one.uuid]).collect()
    }

    #[test]
    fn requests_come_first_then_what_a_port_had_then_the_smallest_free_number() {
        let plain = |id| interface(id, None, None);
        assert_eq!(numbers(&[plain(0), plain(1), plain(2)], &[]), [port::LOCAL, 1, 2]);
        assert_eq!(numbers(&[plain(1), interface(2, Some(1), None)], &[]), [2, 1]);
        assert_eq!(numbers(&[interface(1, Some(7), None), interface(2, Some(7), None)], &[]), [7, 1]);
        assert_eq!(numbers(&[plain(1), plain(2)], &[(1, 2), (2, 1)]), [2, 1], "they keep theirs");
        assert_eq!(numbers(&[plain(1), interface(2, Some(2), None)], &[(1, 2)]), [1, 2], "unless asked for");
        assert_eq!(
            numbers(&[plain(1), interface(2, None, Some(1)), interface(3, None, Some(9))], &[]),
            [2, 1, 9]
        );
        assert_eq!(numbers(&[interface(0, Some(5), Some(9))], &[]), [port::LOCAL]);
        assert_eq!((in_database(port::LOCAL), in_database(5)), (65_534, 5));
    }

    #[test]
    fn there_are_no_more_interfaces_than_numbers() {
        let all: Vec<InterfaceSpec> = (1..=65_281).map(|id| interface(id, None, None)).collect();
        assert_eq!(assign(all.iter(), &BTreeMap::new()).len(), 65_279);
    }
}
