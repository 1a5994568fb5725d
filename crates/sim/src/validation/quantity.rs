//! The publication of a figure, its place, the quantity with its unit, and the point at which it
//! was measured, from the id of the figure.

use serde::Serialize;
use std::fmt;

/// A quantity of a publication.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quantity {
    /// The publication: `Joglekar 2004`.
    pub publication: &'static str,
    /// The table, figure or section: `Figure 5.3`.
    pub place: &'static str,
    /// The quantity and its unit: `share of the line rate sent, four ports`.
    pub quantity: String,
    /// The point at which it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<Point>,
}

/// The point on the x axis of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The axis: `frame size, bytes`.
    pub axis: &'static str,
    /// The value.
    pub value: f64,
}

impl fmt::Display for Quantity {
    /// `Joglekar 2004, Figure 5.3: LinkEM before egress, …; frame size 64 bytes`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}: {}", self.publication, self.place, self.quantity)?;
        let Some(Point { axis, value }) = &self.point else { return Ok(()) };
        match axis.split_once(", ") {
            Some((name, unit)) => write!(f, "; {name} {value} {unit}"),
            None => write!(f, "; {axis} {value}"),
        }
    }
}

const JOGLEKAR: &str = "Joglekar 2004";
const HARTIKAINEN: &str = "Hartikainen 2016";
const SPALINK: &str = "Spalink et al. 2001";
const ASICS: &str = "2020 High Speed Ethernet ASICs";
const SMARTNIC_WU: &str = "SmartNIC-WU (Liu et al. 2021)";
const USERSPACE_XDP: &str = "userspace-xdp 2024";
const FRAME: &str = "frame size, bytes";
const RATE: &str = "rate of a link, kbit/s";
const CORES: &str = "number of cores";

/// The beginning of an id, the place, the quantity and the axis of what follows in the id.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str);

/// A longer beginning stands before a shorter one.
const ROWS: &[Row] = &[
    ("cn6880-slope", HARTIKAINEN, "Communication Latencies", "t_in + t_out over the frame size, µs/byte", ""),
    ("cn6880-intercept", HARTIKAINEN, "Communication Latencies", "t_in + t_out of an empty frame, µs", ""),
    ("cn6880-r2", HARTIKAINEN, "Communication Latencies", "R² of t_in + t_out over the frame size", ""),
    (
        "cn6880-memory-linear-threads",
        HARTIKAINEN,
        "Memory",
        "threads up to which the throughput of memory is linear",
        "array size, KiB",
    ),
    (
        "cn6880-memory-flat",
        HARTIKAINEN,
        "Memory",
        "latency with 32 threads, multiple of that with one",
        "array size, KiB",
    ),
    (
        "cn6880-memory-step",
        HARTIKAINEN,
        "Memory",
        "latency with 32 threads, multiple of that at 1 KiB",
        "array size, KiB",
    ),
    (
        "cn6880-memory-thrash",
        HARTIKAINEN,
        "Memory",
        "throughput beyond 32 threads, share of that with 32",
        "",
    ),
    (
        "ixp1200-before-egress",
        JOGLEKAR,
        "Figure 5.3",
        "LinkEM before egress, four ports, share of the line rate",
        FRAME,
    ),
    ("ixp1200-sent", JOGLEKAR, "Figure 5.2", "LinkEM, four ports, share of the line rate sent", FRAME),
    (
        "ixp1200-underflow-two-ports",
        JOGLEKAR,
        "§A.2.2",
        "LinkEM, two ports, share of frames that underflow",
        FRAME,
    ),
    ("ixp1200-underflow", JOGLEKAR, "§A.2.2", "LinkEM, four ports, share of frames that underflow", FRAME),
    (
        "ixp1200-two-engines",
        JOGLEKAR,
        "§5.2.1",
        "two egress engines, four ports, share of the line rate sent",
        FRAME,
    ),
    ("ixp1200-two-ports", JOGLEKAR, "§5.2.2", "LinkEM, two ports, share of the line rate sent", FRAME),
    (
        "ixp1200-bridge-underflow",
        JOGLEKAR,
        "§A.2.2",
        "Intel's bridging code, share of frames that underflow",
        FRAME,
    ),
    ("ixp1200-links", JOGLEKAR, "Figures 5.6, 5.8", "LinkEM, links multiplexed", RATE),
    ("ixp1200-u", JOGLEKAR, "§4.2.2", "share u of the memory cycles that other threads hide", ""),
    (
        "ixp1200-first-formula",
        JOGLEKAR,
        "§4.2.2",
        "least load by T_t = 4 T_c + (1 − u) T_m, share of the line rate",
        "",
    ),
    ("ixp1200-tick", JOGLEKAR, "§4.2", "time between ticks, µs", ""),
    ("dummynet-links", JOGLEKAR, "Figures 5.6, 5.8", "Dummynet, links multiplexed", RATE),
    ("dummynet-two-ports", JOGLEKAR, "Figure 5.5", "Dummynet, two ports, share of the line rate", FRAME),
    ("dummynet-four-ports", JOGLEKAR, "Figure 5.4", "Dummynet, four ports, share of the line rate", FRAME),
    ("netcope-cores", "Netcope 2017", "Results", "cores for 100 Gbit/s", FRAME),
    ("netcope-grid", "Netcope 2017", "Results", "largest deviation from C + P·p + H·h, share", ""),
    ("vpp-l2-64", "FD.io CSIT 17.01", "L2 forwarding", "throughput of 64-byte frames, packets/s", CORES),
    ("vpp-l2-1518", "FD.io CSIT 17.01", "L2 forwarding", "throughput of 1518-byte frames, packets/s", CORES),
    ("vpp-l3-64", "FD.io CSIT 17.01", "L3 forwarding", "throughput of 64-byte frames, packets/s", CORES),
    ("spectrum-2", "Linley Newsletter 2017", "Spectrum-2 Debuts 200GbE", "packets/s of all ports", FRAME),
    ("spectrum-3", ASICS, "Spectrum-3", "packets/s of all ports", FRAME),
    ("tomahawk", "ipSpace.net 2015", "Broadcom Tomahawk 101", "share of the line rate of all ports", FRAME),
    ("spalink-forward", SPALINK, "abstract", "packets/s forwarded", FRAME),
    ("spalink-swap", SPALINK, "not published", "packets/s with three cycles at each swap", FRAME),
    ("spalink-pentium", SPALINK, "abstract", "packets/s through the Pentium", FRAME),
    ("bluefield-2-one-core", SMARTNIC_WU, "pktgen_bench", "packets/s of one core in the kernel", FRAME),
    ("bluefield-2-eight-cores", SMARTNIC_WU, "pktgen_bench", "packets/s of eight cores in the kernel", FRAME),
    ("icelake-katran-xdp", USERSPACE_XDP, "bench/draw", "Katran in the kernel, packets/s of one core", FRAME),
    ("icelake-katran-dpdk", USERSPACE_XDP, "bench/draw", "Katran on DPDK, packets/s of one core", FRAME),
    ("icelake-vxlan", "FD.io CSIT 21.06", "3n-icx, E810", "VXLAN, packets/s of 64-byte frames", CORES),
    ("vpp-l3-imix", "FD.io CSIT 17.01", "L3 forwarding", "throughput of the IMIX, packets/s", CORES),
];

/// Returns what the figure called `id` is. Panics if no row is about it.
pub(super) fn of(id: &str) -> Quantity {
    let row = ROWS.iter().find_map(|row| Some((row, id.strip_prefix(row.0)?)));
    let (&(_, publication, place, quantity, axis), rest) = row.unwrap_or_else(|| panic!("{id}: what is it?"));
    let mut words = rest.split('-').filter(|word| !word.is_empty());
    let value = words.next().and_then(number);
    let more: Vec<&str> = words.filter(|word| !["core", "cores"].contains(word)).collect();
    let quantity =
        if more.is_empty() { quantity.to_owned() } else { format!("{quantity}, {}", more.join(" ")) };
    let point = value.filter(|_| !axis.is_empty()).map(|value| Point { axis, value });
    Quantity { publication, place, quantity, point }
}

/// Parses `64`, `1k` (array sizes in KiB) or `10m`: rates in kbit/s.
fn number(word: &str) -> Option<f64> {
    let digits = word.trim_end_matches(['k', 'm']);
    let factor = if word.ends_with('m') { 1000.0 } else { 1.0 };
    digits.parse::<f64>().ok().map(|number| factor * number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_say_what_the_figures_are() {
        for (id, text) in [
            (
                "ixp1200-before-egress-128",
                "Joglekar 2004, Figure 5.3: LinkEM before egress, four ports, share of the line rate; frame size 128 bytes",
            ),
            (
                "dummynet-links-2m-four-ports",
                "Joglekar 2004, Figures 5.6, 5.8: Dummynet, links multiplexed, four ports; rate of a link 2000 kbit/s",
            ),
            (
                "vpp-l3-64-4-cores",
                "FD.io CSIT 17.01, L3 forwarding: throughput of 64-byte frames, packets/s; number of cores 4",
            ),
            ("ixp1200-u", "Joglekar 2004, §4.2.2: share u of the memory cycles that other threads hide"),
        ] {
            assert_eq!(of(id).to_string(), text);
        }
    }
}
