//! `fastpath replay`: captures and traffic through a network, offline, in virtual time.

use crate::network_file::{ReadingArgs, load_with_warnings};
use crate::{Answer, progress};
use anyhow::bail;
use clap::Args;
use fastpath::net::FrameAccounting;
use fastpath::replay::{BytesRead, CaptureAt, PairDelays, RealisedDelays};
use fastpath::{Reading, ReplaySummary, replay};
use serde_json::json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Most pairs of hosts that the text shows.
const PAIRS_SHOWN: usize = 20;

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
    /// Write the exact times of every frame to this file (CSV): index, in_ps, and out_ps or the
    /// drop reason.
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
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl ReplayCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let network = load_with_warnings(&self.spec, &self.reading.reading())?;
        network.spec.topology.emulation_notice().iter().for_each(|text| eprintln!("fastpath: {text}"));
        let mut replay = fastpath::Replay::new(&network).times(self.times).packet_log(self.packet_log);
        replay = replay.until(self.until);
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
    print(&summary, as_json)?;
    let Some((first, others)) = summary.problems.split_first() else { return Ok(Answer::Yes) };
    others.iter().for_each(|other| eprintln!("fastpath: {other}"));
    bail!("{first}")
}

fn print(summary: &ReplaySummary, as_json: bool) -> io::Result<()> {
    let ReplaySummary { frames, jitter, pairs, traffic, seed, .. } = summary;
    let FrameAccounting { delivered, dropped, held, .. } = frames;
    let mut out = io::stdout().lock();
    if as_json {
        let conservation =
            json!({ "in": frames.total_in(), "delivered": delivered, "dropped": dropped, "held": held });
        let mut all = json!({ "conservation": conservation, "seed": seed });
        if !jitter.is_empty() {
            all["jitter"] = json!(jitter);
        }
        if !pairs.is_empty() {
            all["pairs"] = json!(pairs);
        }
        if !traffic.is_empty() {
            all["traffic"] = json!(traffic);
        }
        return writeln!(out, "{all}");
    }
    writeln!(out, "in         {:>12}", frames.total_in())?;
    writeln!(out, "delivered  {delivered:>12}")?;
    writeln!(out, "dropped    {:>12}", frames.total_dropped())?;
    for (reason, count) in dropped {
        writeln!(out, "  {reason:<13}{count:>8}")?;
    }
    writeln!(out, "held       {held:>12}")?;
    writeln!(out, "seed       {seed:>12}")?;
    for RealisedDelays { from, to, delays, .. } in jitter {
        writeln!(out, "delay      {from} → {to}: {delays}")?;
    }
    for flow in traffic {
        writeln!(out, "traffic    {flow}")?;
    }
    print_pairs(&mut out, pairs)
}

/// Prints how long frames took between hosts.
fn print_pairs(out: &mut impl Write, pairs: &[PairDelays]) -> io::Result<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    let named: Vec<(String, &PairDelays)> =
        pairs.iter().map(|pair| (format!("{} → {}", pair.from, pair.to), pair)).collect();
    let shown = &named[..named.len().min(PAIRS_SHOWN)];
    let width = shown.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(9);
    writeln!(out, "\n{:width$}  {:>9}  delay, ms: {:>9}  {:>9}  {:>9}", "", "frames", "min", "mean", "max")?;
    for (name, PairDelays { frames, min, mean, max, .. }) in shown {
        let [min, mean, max] = [min, mean, max].map(|delay| delay.as_ms_f64());
        writeln!(out, "{name:width$}  {frames:>9}  {min:>20.3}  {mean:>9.3}  {max:>9.3}")?;
    }
    let more = pairs.len() - shown.len();
    if more > 0 { writeln!(out, "and {more} more pairs of hosts: see --json") } else { Ok(()) }
}
