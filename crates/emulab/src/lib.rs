//! Reads scripts of Emulab and ns-2 (Tcl) as descriptions of networks, and reports every mistake at
//! once.
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
//! A small Tcl interpreter evaluates the script, with bounds on time, memory and depth and without
//! files, programs or clocks. Commands that describe the network are executed. Commands that
//! prepare machines are ignored with a warning. Unknown words are mistakes.
//! The differences from a testbed:
//!
//! - a node with one neighbour is a host; a node with several is a router, in the kernel if the
//!   script starts programs or traffic on it, and otherwise inside the emulator; if no node has one
//!   neighbour and no program is started, all are hosts and none forwards;
//! - a lan is a switch;
//! - `down` drops queued and arriving packets until `up`; packets on the wire still arrive;
//! - agents and sources of traffic (`Agent/UDP`, `Application/Traffic/CBR`, `Exponential`,
//!   `Pareto`, `Poisson`) are traffic of the description: `packetSize_` is the payload of a
//!   datagram; the script's end (`$ns at 5.0 "finish"`) ends it;
//! - agents of TCP (`Agent/TCP/Reno`, `Agent/TCPSink`) and `Application/FTP` are connections;
//!   what they have in ns-2 and not here is named by a warning of each agent;
//! - events happen after the script has been read, in the order of their times: a procedure may be
//!   an event, and may make events. Results of a run (`bytes_`) are read as 0, with a warning;
//! - types of queues that are not there (SFQ, DRR, CBQ) are the nearest, with a warning
//!   (`ns_queue.rs`); values of classes (`Queue set limit_ 20`) are those of objects made later;
//! - timelines and sequences are started by events; nothing can follow a program in a sequence,
//!   because how long it runs is not known;
//! - start commands and program agents run in a lab, and start at time 0 and at their events;
//! - where addresses on one link are of several subnets, or one subnet is on several links, the
//!   addresses stand alone (/32), and each has a route of its own;
//! - a `simplex-link` without its counterpart loses every packet of the other direction.
//!
//! Every word of a script changes what would run, or a mistake or warning names it
//! (`mutations.rs`).
//!
//! Read first: `commands.rs` for the commands, `events.rs` for `$ns at`, `elsewhere.rs` for the
//! ignored ones, `interp.rs` for Tcl.
#![forbid(unsafe_code)]

mod agents;
mod build;
mod builtins;
mod class_values;
mod commands;
mod elsewhere;
mod error_model;
mod event_lists;
mod events;
mod expr;
mod flows;
mod interp;
mod ns_queue;
mod objects;
mod outcome;
mod programs;
mod quantity;
mod queues;
mod random;
mod rtmodel;
mod simulator;
mod state;
mod syntax;
mod tcp;
mod transfers;

use fastpath_spec::{Built, Description, Mistakes, NO_FILES, Topology, Warning, resolve_into};
use fastpath_text::mistake::{Checked, Remarks};

/// Reads a script and resolves what it describes. The error is every mistake in it, in the order of
/// the text.
pub fn parse(text: &str) -> Result<(Topology, Vec<Warning>), Mistakes> {
    check(text).into_result()
}

/// Reads a script as [`parse`] does. The warnings are returned with mistakes too.
pub fn check(text: &str) -> Checked<Topology> {
    let (built, mut remarks) = read(text);
    let mut topology = Topology::default();
    if remarks.is_clean() {
        topology = resolve_into(&built.description, NO_FILES, &mut remarks, &|path| built.offset(path));
    }
    remarks.check(topology)
}

/// Reads a script as a description, without resolving it.
///
/// # Errors
/// Every mistake in the script, in the order of the text.
pub fn describe(text: &str) -> Result<(Description, Vec<Warning>), Mistakes> {
    let (built, remarks) = read(text);
    remarks.finish().map(|warnings| (built.description, warnings))
}

fn read(text: &str) -> (Built, Remarks<'_>) {
    let mut tcl = interp::start(Remarks::new(text));
    tcl.run(text);
    let mut remarks = tcl.remarks;
    let mut built = Built::default();
    if remarks.is_clean() {
        built = build::build(&tcl.simulator, &mut remarks);
    }
    (built, remarks)
}

#[cfg(test)]
mod mutations;
#[cfg(test)]
mod tests;
