//! `fastpath replay`: captures and traffic through a network, offline, in virtual time.

use crate::network_file::{ReadingArgs, load_with_warnings};
use crate::{Answer, progress, view};
use anyhow::bail;
use clap::Args;
use fastpath::replay::{BytesRead, CaptureAt};
use fastpath::{Reading, replay};
use std::path::{Path, PathBuf};

/// Send captures and traffic through a network offline, exactly.
///
/// Each frame of a capture enters at its host, at the time of its timestamp. Hosts send the
/// [[traffic]] of the spec beside captures or without any. Frames that reach a host are written
/// with their arrival times. Time is virtual: no privileges are needed and nothing waits.
#[derive(Args)]
pub(crate) struct ReplayCommand {
    /// The network: a spec (TOML or .json), an Emulab script (.ns) or a containerlab file (.yml).
    spec: PathBuf,
    #[command(flatten)]
    reading: ReadingArgs,
    /// In a network of two hosts: the capture that enters at the first host.
    #[arg(value_name = "IN.pcap", requires = "output", conflicts_with_all = ["inputs", "outputs"])]
    input: Option<PathBuf>,
    /// In a network of two hosts: the file for frames that reach the second host.
    #[arg(value_name = "OUT.pcap")]
    output: Option<PathBuf>,
    /// A capture that enters at a host; with several interfaces, HOST:INTERFACE=FILE. May be
    /// repeated.
    #[arg(long = "in", value_name = "HOST=FILE")]
    inputs: Vec<CaptureAt>,
    /// The file for frames that reach a host, or one interface of it. May be repeated.
    #[arg(long = "out", value_name = "HOST=FILE")]
    outputs: Vec<CaptureAt>,
    /// Write the exact times of every frame (CSV): index, in_ps, out_ps or the drop reason.
    #[arg(long, value_name = "FILE")]
    times: Option<PathBuf>,
    /// Write a per-packet log (pcapng; times and drop reasons as packet comments).
    #[arg(long, value_name = "FILE.pcapng")]
    ledger: Option<PathBuf>,
    /// The seed of every random choice; by default the seed of the spec, otherwise 1.
    #[arg(long)]
    seed: Option<u64>,
    /// Let nothing enter from this time of the run on, such as 30s.
    #[arg(long, value_name = "TIME")]
    until: Option<fastpath_units::Duration>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl ReplayCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let network = load_with_warnings(&self.spec, &self.reading.reading())?;
        network.spec.topology.emulation_notice().iter().for_each(|text| eprintln!("fastpath: {text}"));
        let mut replay = fastpath::Replay::new(&network);
        if let Some(file) = self.times {
            replay = replay.times(file);
        }
        if let Some(file) = self.ledger {
            replay = replay.packet_log(file);
        }
        if let Some(until) = self.until {
            replay = replay.until(until);
        }
        if let Some(seed) = self.seed {
            replay = replay.seed(seed);
        }
        replay = match (&self.input, &self.output) {
            (Some(input), Some(output)) => replay.between_two_hosts(input, output)?,
            _ => replay.inputs(self.inputs).outputs(self.outputs),
        };
        run(replay, self.json)
    }
}

/// Sends a capture into the first host of a network whose warnings have been printed.
#[cfg(target_os = "linux")]
pub(crate) fn at_first_host(
    (spec, reading): (&Path, &Reading),
    capture: &Path,
    seed: Option<u64>,
    as_json: bool,
) -> anyhow::Result<Answer> {
    let mut replay = fastpath::Replay::new(&fastpath::load_with(spec, reading)?).at_first_host(capture)?;
    if let Some(seed) = seed {
        replay = replay.seed(seed);
    }
    run(replay, as_json)
}

fn run(replay: replay::Replay, as_json: bool) -> anyhow::Result<Answer> {
    let bar = progress::bar(0, "{bytes} of {total_bytes}, {eta} left");
    let summary = replay.run_with_progress(&mut |BytesRead { done, total }| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let summary = summary?;
    if summary.out_of_order > 0 {
        let count = summary.out_of_order;
        eprintln!(
            "fastpath: {count} packets are older than their predecessor in the capture; they entered late"
        );
    }
    view::print(&summary, as_json)?;
    let Some((first, others)) = summary.problems.split_first() else { return Ok(Answer::Yes) };
    others.iter().for_each(|other| eprintln!("fastpath: {other}"));
    bail!("{first}")
}
