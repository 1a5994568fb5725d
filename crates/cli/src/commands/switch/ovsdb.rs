//! The bridges of an Open vSwitch database.

use super::rules::SwitchArgs;
use super::serve::POLL;
use crate::signals::stop_on_signals;
use crate::{Answer, view};
use anyhow::ensure;
use fastpath::switching::{OvsdbOptions, OvsdbSwitches, Remote, TlsFiles};
use fastpath_engine::Notice;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Serves the bridges until a signal ends them.
pub(super) fn run(
    switch_args: &SwitchArgs,
    (remote, tls): (Remote, Option<TlsFiles>),
    packet_in_rate: u32,
    as_json: bool,
) -> anyhow::Result<Answer> {
    let is_secure = matches!(remote, Remote::Ssl { .. });
    ensure!(!is_secure || tls.is_some(), "--ovsdb {remote}: give --private-key, --certificate and --ca-cert");
    ensure!(
        is_secure || tls.is_none(),
        "--private-key is for --ovsdb ssl:HOST:PORT; keys for the controllers of bridges are set by `ovs-vsctl set-ssl`"
    );
    let stop = stop_on_signals()?;
    // Where the programs of Open vSwitch look for sockets.
    let run_dir = std::env::var_os("OVS_RUNDIR").map(PathBuf::from);
    let options = OvsdbOptions { remote, run_dir, tls, packet_in_rate, notice: Notice::to_stderr() };
    let mut switches = OvsdbSwitches::new(switch_args.switch(), options);
    // At once: a script may read one line and close the pipe.
    let mut out = io::stdout().lock();
    out.write_all(format!("switching (process {})\n", std::process::id()).as_bytes())?;
    out.flush()?;
    drop(out);
    while !stop.load(Ordering::Relaxed) {
        ensure!(!switches.has_failed(), "internal error: a thread of a bridge has ended; please report this");
        switches.turn(POLL);
    }
    let summaries = switches.stop();
    let balances = summaries.iter().all(|(_, summary)| summary.packets.balances());
    view::print(&view::BridgeSummaries(summaries), as_json)?;
    ensure!(balances, "internal error: packet accounting does not balance; please report this");
    Ok(Answer::Yes)
}
