//! The ports of a switch as the data path sees them.

use crate::template::PORTS;
use fastpath_switch::{Port, Switch, port};
use std::collections::BTreeMap;

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
}

/// Ports as the data path sees them.
#[derive(Debug)]
pub(crate) struct PortTable {
    /// Flags by cell. The cell of an ordinary port is its number; higher ports have cells in the
    /// order in which they are listed.
    pub(crate) flags: Box<[u8]>,
    high: BTreeMap<u32, usize>,
    /// The ports that flooding sends to, except the port of entry.
    pub(crate) flood: Vec<u32>,
}

impl PortTable {
    pub(crate) fn new(switch: &Switch) -> PortTable {
        let mut ports =
            PortTable { flags: vec![0; PORT_CELLS].into(), high: BTreeMap::new(), flood: Vec::new() };
        for (number, port) in switch.ports() {
            if number >= PORTS && ports.high.len() < HIGH_PORTS {
                ports.high.insert(number, PORTS as usize + ports.high.len());
            }
            if let Some(cell) = ports.cell(number) {
                ports.flags[cell] = flags_of(port);
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
