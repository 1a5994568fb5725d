//! The Ethernet ports of a machine.

use crate::spec::text;
use fastpath_units::Rate;
use serde::Deserialize;

/// The Ethernet ports of a machine, all alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortsSpec {
    /// Number of ports, 1 … 1024.
    pub count: u32,
    /// Bits per second of each port, one direction.
    #[serde(deserialize_with = "text")]
    pub rate: Rate,
    /// Bytes per chunk where the machine works on frames in chunks.
    #[serde(default = "default_chunk")]
    pub chunk: u32,
    /// The publication or data sheet that gives the numbers.
    #[serde(default)]
    pub source: String,
}

fn default_chunk() -> u32 {
    64
}
