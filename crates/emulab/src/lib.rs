//! Emulab's and ns-2's scripts: Tcl in, a checked [`Topology`] out, or every mistake at once.
//!
//! ```tcl
//! set ns [new Simulator]
//! source tb_compat.tcl
//! set n0 [$ns node]
//! set n1 [$ns node]
//! set link [$ns duplex-link $n0 $n1 10Mb 25ms DropTail]
//! tb-set-link-loss $link 0.01
//! $ns at 10.0 "$link delay 50ms"
//! $ns run
//! ```
//!
//! The script is evaluated by a small Tcl interpreter with bounds on time, memory and depth; there
//! are no files, programs or clocks in it. What describes the network is done, what generates
//! traffic or prepares machines is ignored with a warning, and what is unknown is a mistake. Where
//! the result differs from a testbed's:
//!
//! - a node with one neighbour is a host; one with several is a router inside the emulator, where
//!   no programs run; if that leaves no host, all are hosts and none forwards;
//! - a lan is a switch;
//! - `down` drops what is queued and what comes, until `up`: packets on the way still arrive;
//! - a `simplex-link` without its counterpart loses all that goes the other way.
//!
//! Read first: `commands.rs` for what is known and what it means, `elsewhere.rs` for what is
//! ignored; `interp.rs` for Tcl.

mod build;
mod builtins;
mod commands;
mod elsewhere;
mod expr;
mod interp;
mod quantity;
mod simulator;
mod syntax;

use fastpath_spec::Topology;
use fastpath_spec::{Mistake, Warning, mistake::Remarks};

/// Reads a script. The error is every mistake in it, in the order of the text.
pub fn parse(text: &str) -> Result<(Topology, Vec<Warning>), Vec<Mistake>> {
    let mut tcl = interp::Interp::new(Remarks::new(text));
    tcl.run(text);
    let mut remarks = tcl.remarks;
    let mut topology = Topology::default();
    if remarks.is_clean() {
        topology = build::build(&tcl.simulator, &mut remarks);
    }
    remarks.finish().map(|warnings| (topology, warnings))
}

#[cfg(test)]
mod tests;
