//! `fastpath switch`: an OpenFlow switch, on ports with controllers, or offline on captures.
//!
//! ```text
//!  serve.rs    ports ─▶ Datapath ─▶ ports, Agent ═ controllers        (Linux)
//!  ovsdb.rs    ovs-vsctl ═ ovsdb-server ─▶ bridges, each with ports and controllers     (Linux)
//!  offline.rs  captures ─▶ executor at their times ─▶ captures        (anywhere)
//!  explain.rs  what the tables became, and one packet's way through
//! ```

mod explain;
mod offline;
#[cfg(target_os = "linux")]
mod ovsdb;
mod rules;
#[cfg(target_os = "linux")]
mod serve;

use crate::Answer;
use anyhow::bail;
use clap::{Args, Subcommand};
use rules::SwitchArgs;

/// Switch packets by OpenFlow tables, between ports or on captures.
///
/// Rules come from a file, from controllers, or both. With --in and --out, captures go through the
/// tables offline, in virtual time. Otherwise the switch serves its ports until Ctrl-C. It listens
/// for controllers, connects to them, or both.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Ports named p1, p2, … have these numbers, LOCAL is OFPP_LOCAL; others get the free numbers, in order."
)]
pub(crate) struct SwitchCommand {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    switch: SwitchArgs,
    #[command(flatten)]
    offline: offline::OfflineArgs,
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    serve: serve::ServeArgs,
    /// Print one JSON object at the end.
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    Explain(explain::Explain),
}

impl SwitchCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        if let Some(Action::Explain(explain)) = self.action {
            return explain.run();
        }
        let is_offline = self.offline.is_given();
        #[cfg(target_os = "linux")]
        {
            if let Some(remote) = &self.serve.ovsdb {
                let server = (remote.clone(), self.serve.tls());
                return ovsdb::run(&self.switch, server, self.serve.packet_in_rate, self.json);
            }
            let serves = !(self.serve.ports.is_empty()
                && self.serve.listen.is_empty()
                && self.serve.connect.is_empty());
            if is_offline && self.serve.has_workers() {
                bail!("--workers and --split are for --port: captures are switched by one thread");
            }
            match (is_offline, serves) {
                (false, true) => return serve::run(&self.switch, self.serve, self.json),
                (true, true) => bail!(
                    "captures go through offline: give --in and --out without --port, --listen, --connect"
                ),
                (true, false) | (false, false) => {}
            }
        }
        if !is_offline {
            bail!(
                "nothing to switch: give --in NAME=FILE for captures, --port and --listen or --connect to serve, \
                 or --ovsdb for the bridges of a database"
            );
        }
        offline::run(&self.switch, &self.offline, self.json)
    }
}
