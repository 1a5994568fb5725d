//! `fastpath run`: a network between existing interfaces of this machine.

use super::lab::{NetworkArgs, stay, stop_on_signals};
use crate::Answer;
use clap::Args;
use fastpath_lab::Lab;
use std::io::{self, Write};

/// Emulate a network between interfaces of this machine, as a transparent bridge.
///
/// Every host of the description names the interface it stands for: `[host.a] port = "eth1"`.
/// Frames that arrive there enter the network at that host, and frames for that host leave there.
#[derive(Args)]
#[command(after_help = "\
Example: two hosts on one link, between eth1 and eth2
  [host.a]
  port = \"eth1\"
  [host.b]
  port = \"eth2\"
  [[link]]
  between = [\"a\", \"b\"]
  delay = \"25ms\"

While it runs, `fastpath ctl` shows and changes its links; Ctrl-C or `fastpath lab down` ends it.")]
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
