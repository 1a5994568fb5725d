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

use fastpath_spec::mistake::Remarks;
use fastpath_spec::{Description, Mistake, NO_FILES, Topology, Warning, resolve_into};

/// Reads a script and resolves what it describes. The error is every mistake in it, in the order of
/// the text.
pub fn parse(text: &str) -> Result<(Topology, Vec<Warning>), Vec<Mistake>> {
    let (built, mut remarks) = read(text);
    let mut topology = Topology::default();
    if remarks.is_clean() {
        topology = resolve_into(&built.description, NO_FILES, &mut remarks, &|path| built.offset(path));
    }
    remarks.finish().map(|warnings| (topology, warnings))
}

/// Reads a script as a description, without resolving it.
///
/// # Errors
/// Every mistake in the script, in the order of the text.
pub fn describe(text: &str) -> Result<(Description, Vec<Warning>), Vec<Mistake>> {
    let (built, remarks) = read(text);
    remarks.finish().map(|warnings| (built.description, warnings))
}

fn read(text: &str) -> (build::Built, Remarks<'_>) {
    let mut tcl = interp::Interp::new(Remarks::new(text));
    tcl.run(text);
    let mut remarks = tcl.remarks;
    let mut built = build::Built::default();
    if remarks.is_clean() {
        built = build::build(&tcl.simulator, &mut remarks);
    }
    (built, remarks)
}

#[cfg(test)]
mod tests;
