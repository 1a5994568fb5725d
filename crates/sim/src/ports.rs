//! The Ethernet ports of a machine.
//!
//! ```toml
//! [ports]
//! count = 50
//! rate = "25Gbit"
//! other = [{ ports = "48-49", rate = "100Gbit" }]    # ports that differ
//! ```

use crate::framing::Framing;
use crate::keys::{FileValue, read_table};
use fastpath_text::fields::Field;
use fastpath_text::mistake::Remarks;
use fastpath_units::Rate;

/// The most ports of a machine.
const COUNT_MAX: u32 = 1024;

/// The Ethernet ports of a machine.
#[derive(Clone, Debug)]
pub struct PortsSpec {
    /// Number of ports, 1 … 1024.
    pub count: u32,
    /// Bits per second of each port, one direction.
    pub rate: Rate,
    /// Bytes per chunk where the machine works on frames in chunks.
    pub chunk: u32,
    /// What a frame is on the wire of a port.
    pub framing: Framing,
    /// Ports that differ from these.
    pub other: Vec<OtherPorts>,
    /// The publication or data sheet that gives the numbers.
    pub source: String,
}

/// Some ports that differ from the others.
#[derive(Clone, Debug)]
pub struct OtherPorts {
    /// The first and the last of them.
    pub ports: PortRange,
    /// Bits per second of each, one direction.
    pub rate: Rate,
    /// What a frame is on their wires.
    pub framing: Framing,
}

/// Ports by their first and last number, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// The first.
    pub first: u32,
    /// The last.
    pub last: u32,
    at: usize,
}

read_table!(PortsSpec as "ports", "{ count = 2, rate = \"1Gbit\" }": {
    count,
    rate,
    chunk = 64,
    framing = Framing::default(),
    other = Vec::new(),
    source = String::new(),
});

read_table!(OtherPorts as "other ports", "{ ports = \"2-3\", rate = \"10Gbit\" }": {
    ports,
    rate,
    framing = Framing::default(),
});

impl FileValue for PortRange {
    const EXAMPLE: &'static str = "\"2-3\"";

    fn read(field: &Field, remarks: &mut Remarks) -> Option<PortRange> {
        let text = field.text("2-3", remarks)?;
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let range = first.trim().parse().ok().zip(last.trim().parse().ok());
        let range = range.filter(|(first, last)| first <= last);
        if range.is_none() {
            remarks.mistake(field.at, format!("'{text}' are not ports"), "write ports = \"2-3\" or \"2\"");
        }
        range.map(|(first, last)| PortRange { first, last, at: field.at })
    }
}

impl PortsSpec {
    /// Reports values out of range; `at` is the place of the table.
    pub(crate) fn check(&self, at: usize, remarks: &mut Remarks) {
        if !(1..=COUNT_MAX).contains(&self.count) || self.chunk == 0 {
            let what = "count or chunk of ports is out of range";
            remarks.mistake(at, what, "write a count from 1 to 1024 and a chunk of at least 1");
        }
        self.framing.check(at, remarks);
        let mut seen = vec![false; self.count.min(COUNT_MAX) as usize];
        for other in &self.other {
            let PortRange { first, last, at } = other.ports;
            other.framing.check(at, remarks);
            if last >= self.count {
                let instead = format!("write ports from 0 to {}", self.count.saturating_sub(1));
                remarks.mistake(at, format!("there is no port {last}"), instead);
                continue;
            }
            let own = &mut seen[first as usize..=last as usize];
            if own.iter().any(|seen| *seen) {
                remarks.mistake(at, "a port is in two ranges", "write each port in one range");
            }
            own.fill(true);
        }
        if !seen.is_empty() && seen.iter().all(|seen| *seen) {
            let what = "rate of ports has no effect: all ports have another";
            remarks.mistake(at, what, "leave out the range of one rate, and write that rate for ports");
        }
    }

    /// Rate and framing of port number `port`.
    pub fn of(&self, port: u32) -> (Rate, Framing) {
        let other = self.other.iter().find(|other| (other.ports.first..=other.ports.last).contains(&port));
        other.map_or((self.rate, self.framing), |other| (other.rate, other.framing))
    }

    /// True if some ports differ from the others.
    pub(crate) fn differ(&self) -> bool {
        !self.other.is_empty()
    }
}
