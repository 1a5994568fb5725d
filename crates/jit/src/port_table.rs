//! The ports of a switch as the data path sees them.

use crate::template::PORTS;
use fastpath_switch::{Port, Switch, port};
use std::collections::{BTreeMap, BTreeSet};

/// The most ports of numbers from [`PORTS`] on that have counters; further ones are treated as if
/// they did not exist.
const HIGH_PORTS: usize = 1024;
/// The most ports that have counters.
pub(crate) const PORT_CELLS: usize = PORTS as usize + HIGH_PORTS;

/// Bits of [`PortTable::flags`].
pub(crate) mod flags {
    pub(crate) const EXISTS: u8 = 1;
    pub(crate) const SENDS: u8 = 2;
    pub(crate) const RECEIVES: u8 = 4;
    pub(crate) const NO_PACKET_IN: u8 = 8;
    /// Set on every port of a switch with mirrors.
    pub(crate) const MIRRORED: u8 = 16;
}

/// Ports as the data path sees them.
#[derive(Debug)]
pub(crate) struct PortTable {
    /// Flags by cell. The cell of an ordinary port is its number; higher ports have cells above
    /// those, which they keep while they exist.
    pub(crate) flags: Box<[u8]>,
    high: BTreeMap<u32, usize>,
    /// The ports that flooding sends to, except the port of entry.
    pub(crate) flood: Vec<u32>,
}

impl PortTable {
    /// The ports of a switch. A port that was in `before` keeps its cell: counts are read from it.
    pub(crate) fn new(switch: &Switch, before: Option<&PortTable>) -> PortTable {
        let mut high = before.map(|before| before.high.clone()).unwrap_or_default();
        high.retain(|number, _| switch.port(*number).is_some());
        let taken: BTreeSet<usize> = high.values().copied().collect();
        let mut free = (PORTS as usize..PORT_CELLS).filter(|cell| !taken.contains(cell));
        let mut ports = PortTable { flags: vec![0; PORT_CELLS].into(), high, flood: Vec::new() };
        for (number, port) in switch.ports() {
            if number >= PORTS
                && !ports.high.contains_key(&number)
                && let Some(cell) = free.next()
            {
                ports.high.insert(number, cell);
            }
            if let Some(cell) = ports.cell(number) {
                let mirrored = if switch.bridging().mirrors.is_empty() { 0 } else { flags::MIRRORED };
                ports.flags[cell] = flags_of(port) | mirrored;
            }
            if number <= port::MAX && port.may_send() {
                ports.flood.push(number);
            }
        }
        ports
    }

    /// Returns the numbers of the ports and their cells.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        let low = (0..PORTS).map(|number| (number, number as usize));
        let low = low.filter(|(_, cell)| self.flags[*cell] & flags::EXISTS != 0);
        low.chain(self.high.iter().map(|(number, cell)| (*number, *cell)))
    }

    /// Returns the cell of a port, whether or not the port exists.
    pub(crate) fn cell(&self, number: u32) -> Option<usize> {
        if number < PORTS { Some(number as usize) } else { self.high.get(&number).copied() }
    }

    /// Returns the cell of a port and its flags; 0 if the port does not exist.
    pub(crate) fn get(&self, number: u32) -> (usize, u8) {
        self.cell(number).map_or((0, 0), |cell| (cell, self.flags[cell]))
    }
}

fn flags_of(port: &Port) -> u8 {
    let flag = |is: bool, bit: u8| if is { bit } else { 0 };
    flags::EXISTS
        | flag(port.may_send(), flags::SENDS)
        | flag(port.may_receive(), flags::RECEIVES)
        | flag(port.config & port::config::NO_PACKET_IN != 0, flags::NO_PACKET_IN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_switch::Limits;

    #[test]
    fn a_high_port_keeps_its_cell_while_others_come_and_go() {
        let mut switch = Switch::new(Limits::default());
        [5000, 6000, 7].into_iter().for_each(|number| switch.set_port(number, Port::up()));
        let first = PortTable::new(&switch, None);
        assert_eq!(first.cell(7), Some(7));
        let (low, high) = (first.cell(5000).unwrap(), first.cell(6000).unwrap());
        switch.remove_port(5000);
        switch.set_port(4000, Port::up());
        let second = PortTable::new(&switch, Some(&first));
        assert_eq!((second.cell(6000), second.cell(5000)), (Some(high), None));
        assert_eq!(second.cell(4000), Some(low), "the cell of a port that is gone is free");
        assert_eq!(second.cells().map(|(number, _)| number).collect::<Vec<_>>(), [7, 4000, 6000]);
    }

    #[test]
    fn ports_beyond_the_cells_do_not_exist() {
        let mut switch = Switch::new(Limits::default());
        (0..1025).for_each(|number| switch.set_port(2000 + number, Port::up()));
        let ports = PortTable::new(&switch, None);
        assert!(ports.cell(3023).is_some() && ports.cell(3024).is_none());
    }
}
