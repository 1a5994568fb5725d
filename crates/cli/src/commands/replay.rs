//! `fastpath replay`: captures and traffic through a network, offline, in virtual time.

use crate::network_file::{ReadingArgs, load_with_warnings};
use crate::{Answer, progress, view};
use anyhow::{Context, bail};
use clap::Args;
use fastpath::replay;
use fastpath::replay::{BytesRead, CaptureAt, WorkerCount};
use std::path::PathBuf;

/// Send captures and traffic through a network offline, exactly.
///
/// Each frame of a capture enters at its host, at the time of its timestamp. Hosts send the
/// [[traffic]] of the spec file too; then a capture is not needed. Frames that reach a host are
/// written with their arrival times. Time is virtual: a replay needs no privileges and does not
/// wait.
#[derive(Args)]
pub(crate) struct ReplayCommand {
    /// The network: a spec file (TOML or JSON), an Emulab script (.ns) or a containerlab file
    /// (.yml).
    spec: PathBuf,
    #[command(flatten)]
    reading: ReadingArgs,
    /// The capture that enters at the first host, in a network of two hosts.
    #[arg(value_name = "IN.pcap", requires = "output", conflicts_with_all = ["inputs", "outputs"])]
    input: Option<PathBuf>,
    /// The file for frames that reach the second host, in a network of two hosts.
    #[arg(value_name = "OUT.pcap")]
    output: Option<PathBuf>,
    /// A capture, and the host at which it enters. For a host with several interfaces, write
    /// HOST:INTERFACE=FILE. May be repeated.
    #[arg(long = "in", value_name = "HOST=FILE")]
    inputs: Vec<CaptureAt>,
    /// The file for frames that reach a host, or an interface of it. May be repeated.
    #[arg(long = "out", value_name = "HOST=FILE")]
    outputs: Vec<CaptureAt>,
    /// Write the exact times of every frame to this file (CSV): index (the frame number of the
    /// per-packet log), host, number in the capture, in_ps, and out_ps or the drop reason.
    #[arg(long, value_name = "FILE")]
    times: Option<PathBuf>,
    /// Write the fate of every packet on every link to this file: times and drop reasons as packet
    /// comments.
    #[arg(long, alias = "ledger", value_name = "FILE.pcapng")]
    packet_log: Option<PathBuf>,
    /// Seed of every random choice. By default the seed of the spec file, or 1.
    #[arg(long)]
    seed: Option<u64>,
    /// Stop captures and traffic at this time of the run, such as 30s. Frames in the network still
    /// leave it.
    #[arg(long, value_name = "TIME")]
    until: Option<fastpath_units::Duration>,
    /// Workers that run the network side by side: a number, or auto for as many as pay off on this
    /// machine. The results are the same for every number; `fastpath check --workers` shows the
    /// parts.
    #[arg(long, value_name = "N", default_value_t = WorkerCount::ONE)]
    workers: WorkerCount,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Cuts the network at random for its workers, by this seed: for tests that results do not depend
/// on the parts.
const PARTITION_SEED: &str = "FASTPATH_PARTITION_SEED";

impl ReplayCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let network = load_with_warnings(&self.spec, &self.reading.reading())?;
        network.spec.topology.emulation_notice().iter().for_each(|text| eprintln!("fastpath: {text}"));
        let mut replay = fastpath::Replay::new(&network);
        if let Some(file) = self.times {
            replay = replay.times(file);
        }
        if let Some(file) = self.packet_log {
            replay = replay.packet_log(file);
        }
        if let Some(until) = self.until {
            replay = replay.until(until);
        }
        if let Some(seed) = self.seed {
            replay = replay.seed(seed);
        }
        replay = replay.workers(self.workers);
        if let Ok(seed) = std::env::var(PARTITION_SEED) {
            replay = replay.partition_seed(seed.parse().context("FASTPATH_PARTITION_SEED: write a number")?);
        }
        replay = match (&self.input, &self.output) {
            (Some(input), Some(output)) => replay.between_two_hosts(input, output)?,
            _ => replay.inputs(self.inputs).outputs(self.outputs),
        };
        run(replay, self.json, self.workers)
    }
}

/// Sends a capture into the first host of a network whose warnings have been printed.
#[cfg(target_os = "linux")]
pub(crate) fn at_first_host(
    (spec, reading): (&std::path::Path, &fastpath::Reading),
    capture: &std::path::Path,
    seed: Option<u64>,
    as_json: bool,
) -> anyhow::Result<Answer> {
    let mut replay = fastpath::Replay::new(&fastpath::load_with(spec, reading)?).at_first_host(capture)?;
    if let Some(seed) = seed {
        replay = replay.seed(seed);
    }
    run(replay, as_json, WorkerCount::ONE)
}

fn run(replay: replay::Replay, as_json: bool, workers: WorkerCount) -> anyhow::Result<Answer> {
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
    if summary.above_mtu > 0 {
        let count = summary.above_mtu;
        eprintln!(
            "fastpath: {count} frames are longer than the MTU of their link, which a host would not send; they \
             passed whole: write `mtu = 9000` at the link, or capture with segmentation offload off (ethtool -K \
             IFACE tso off gso off)"
        );
    }
    for (link_type, count) in &summary.left_out {
        eprintln!(
            "fastpath: {count} packets of link type {link_type} are left out: they are neither Ethernet frames \
             nor IP packets"
        );
    }
    // Times of the machine are not among the results.
    match &summary.workers {
        Some(workers) => workers.to_string().lines().for_each(|line| eprintln!("fastpath: {line}")),
        None if workers == WorkerCount::ONE => {}
        None => eprintln!(
            "fastpath: one worker runs the whole network: `fastpath check --workers {workers}` shows why"
        ),
    }
    view::print(&summary, as_json)?;
    let Some((first, others)) = summary.problems.split_first() else { return Ok(Answer::Yes) };
    others.iter().for_each(|other| eprintln!("fastpath: {other}"));
    bail!("{first}")
}
