//! `fastpath switch --in … --out …`: captures through a switch, in virtual time.

use super::rules::SwitchArgs;
use crate::{Answer, progress, view};
use anyhow::ensure;
use clap::Args;
use fastpath::replay::BytesRead;
use fastpath::switching::{NamedCapture, OfflineCaptures};
use fastpath_spec::mistake::printable;

/// Captures and the ports where they enter and leave.
#[derive(Args)]
pub(super) struct OfflineArgs {
    /// A capture, and the port on which it arrives. May be repeated.
    #[arg(long = "in", value_name = "PORT=FILE")]
    inputs: Vec<NamedCapture>,
    /// The file for packets that leave by a port. May be repeated.
    #[arg(long = "out", value_name = "PORT=FILE")]
    outputs: Vec<NamedCapture>,
}

impl OfflineArgs {
    pub(super) fn is_given(&self) -> bool {
        !self.inputs.is_empty() || !self.outputs.is_empty()
    }
}

/// Switches the captures and prints the summary.
pub(super) fn run(switch_args: &SwitchArgs, args: &OfflineArgs, as_json: bool) -> anyhow::Result<Answer> {
    ensure!(!args.inputs.is_empty(), "nothing to switch: give --in PORT=FILE");
    let captures = OfflineCaptures::new(&args.inputs, &args.outputs)?;
    let mut switch = switch_args.switch();
    let by_name = captures.add_ports(&mut switch);
    switch_args.load(&mut switch, &by_name)?;
    let bar = progress::bar(0, "{bytes} of {total_bytes}, {eta} left");
    let notice = |text: &str| eprintln!("fastpath: {}", printable(text));
    let summary = captures.run(switch, &notice, &mut |BytesRead { done, total }| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let summary = summary?;
    summary.problems.iter().for_each(|problem| eprintln!("fastpath: {}", printable(&problem.to_string())));
    view::print(&summary, as_json)?;
    Ok(if summary.problems.is_empty() { Answer::Yes } else { Answer::No })
}
