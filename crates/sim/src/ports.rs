//! The Ethernet ports of a machine.

use crate::keys::read_table;
use fastpath_units::Rate;

/// The Ethernet ports of a machine, all alike.
#[derive(Clone, Debug)]
pub struct PortsSpec {
    /// Number of ports, 1 … 1024.
    pub count: u32,
    /// Bits per second of each port, one direction.
    pub rate: Rate,
    /// Bytes per chunk where the machine works on frames in chunks.
    pub chunk: u32,
    /// The publication or data sheet that gives the numbers.
    pub source: String,
}

read_table!(PortsSpec as "ports", "{ count = 2, rate = \"1Gbit\" }": {
    count,
    rate,
    chunk = 64,
    source = String::new(),
});
