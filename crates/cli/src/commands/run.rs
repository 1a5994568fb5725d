//! `fastpath run`: a network between existing interfaces of this machine.

use super::lab::stay;
use crate::Answer;
use crate::network_args::NetworkArgs;
use crate::signals::stop_on_signals;
use clap::Args;
use fastpath_lab::Lab;
use std::io::{self, Write};

/// Emulate a network between interfaces of this machine, as a transparent bridge.
///
/// Every host of the description names an interface: `[host.a] port = "eth1"`. Frames that arrive
/// on the interface enter the network at that host. Frames for that host leave by the interface.
#[derive(Args)]
#[command(after_help = "\
A spec of two hosts on one link, between eth1 and eth2:
  [host.a]
  port = \"eth1\"
  [host.b]
  port = \"eth2\"
  [[link]]
  between = [\"a\", \"b\"]
  delay = \"25ms\"

While the network runs, `fastpath ctl` shows and changes its links. Ctrl-C or `fastpath lab down` ends the network.")]
pub(crate) struct Run {
    #[command(flatten)]
    network: NetworkArgs,
}

impl Run {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let stop = stop_on_signals()?;
        let lab = self.network.start(Lab::attach)?;
        writeln!(io::stdout(), "{} is running (process {})", lab.name(), std::process::id())?;
        stay(lab, &stop)
    }
}
