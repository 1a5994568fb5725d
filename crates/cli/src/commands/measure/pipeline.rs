//! `fastpath measure pipeline`: cost of a packet by length, steps, cores, links, bursts and flows;
//! and the highest rate without loss.

use super::Output;
use crate::Answer;
use crate::view::PipelinePoints;
use clap::{Args, ValueEnum};
use fastpath_measure::{DutAttachment, NetworkShape, PipelineGrid, PipelineProgram, Rules, Slowdown};

/// Measure the cost of a packet in a pipeline, over a grid.
///
/// There is one record for each point of the grid. Frame lengths are without FCS, as in memory: 60
/// bytes are 64 bytes on the wire. The records state this. With --json the results of a record are
/// also at its top level.
#[derive(Args)]
pub(super) struct PipelineCommand {
    /// What the measured program does with a packet.
    #[arg(long, default_value = "netcope")]
    program: ProgramArg,
    /// Frame lengths in bytes, without FCS.
    #[arg(long, visible_alias = "p", alias = "frames", value_name = "BYTES,…", value_delimiter = ',', default_value = "64", value_parser = clap::value_parser!(u32).range(60..=9000))]
    size: Vec<u32>,
    /// Steps of parsing and hashing per packet (netcope).
    #[arg(long, value_name = "STEPS,…", value_delimiter = ',', default_value = "0")]
    h: Vec<usize>,
    /// Number of cores. Each has its own port and its own copy of the program. Emulated links are
    /// divided among them.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cores: Vec<u16>,
    /// Number of frames that arrive together.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "64", value_parser = clap::value_parser!(u32).range(1..=4096))]
    burst: Vec<u32>,
    /// Number of flows (netcope, forward, switch).
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    flows: Vec<u32>,
    /// The tables, as for `fastpath measure switch` (switch).
    #[arg(long, value_name = "KIND:WHAT", default_value = "cidr:912")]
    table: Rules,
    /// Number of links (emulate). By default 1, or 48 with --topology.
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    links: Vec<u32>,
    /// Emulate one connected network with at most this number of links, with one worker and with
    /// several in turns (emulate).
    #[arg(long)]
    topology: Option<ShapeArg>,
    /// Workers that run the connected network side by side.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2", requires = "topology", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Vec<u16>,
    /// Packets to time per point and core. They are divided into up to 250 passes over the grid,
    /// and medians are reported. With switch and --port there are five passes, with emulate one.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    packets: u64,
    /// The port: memory, veth (a packet socket between namespaces), xdp (AF_XDP between
    /// namespaces), or DEVICE+SOURCE (two interfaces of this machine that a cable connects).
    #[arg(long, value_name = "PORT", default_value = "memory", value_parser = DutAttachment::parse_or_memory)]
    port: Attachment,
    /// Search for the highest rate of a core that loses at most this share of packets. A share of 0
    /// gives the throughput of RFC 2544. Emulated links have no random loss in the search. Time
    /// counts only while the program runs: host stalls are left out and counted. Between two
    /// interfaces the search runs in real time, and a trial that lost packets during a host stall
    /// is repeated.
    #[arg(long, value_name = "RATIO,…", value_delimiter = ',')]
    loss_ratio: Vec<f64>,
    /// Add work to emulate a core that is FACTOR times slower (netcope and forward, on memory
    /// ports).
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    slowdown: Slowdown,
    /// Seed of random losses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProgramArg {
    /// Receive, steps of jumps and hashes, push a VLAN tag, send.
    Netcope,
    /// Receive, send.
    Forward,
    /// Receive, classify, apply loss, queue, rate and delay of one of many links, send.
    Emulate,
    /// Receive, apply compiled tables, send.
    Switch,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ShapeArg {
    /// Two routers with hosts.
    Dumbbell,
    /// A router with hosts.
    Star,
    /// A fat tree of routers.
    FatTree,
}

impl From<ShapeArg> for NetworkShape {
    fn from(shape: ShapeArg) -> NetworkShape {
        match shape {
            ShapeArg::Dumbbell => NetworkShape::Dumbbell,
            ShapeArg::Star => NetworkShape::Star,
            ShapeArg::FatTree => NetworkShape::FatTree,
        }
    }
}

/// The attachment of the device; none: memory ports.
type Attachment = Option<DutAttachment>;

impl From<ProgramArg> for PipelineProgram {
    fn from(program: ProgramArg) -> PipelineProgram {
        match program {
            ProgramArg::Netcope => PipelineProgram::Netcope,
            ProgramArg::Forward => PipelineProgram::Forward,
            ProgramArg::Emulate => PipelineProgram::Emulate,
            ProgramArg::Switch => PipelineProgram::Switch,
        }
    }
}

impl PipelineCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let grid = PipelineGrid {
            program: self.program.into(),
            sizes: self.size,
            steps: self.h,
            cores: self.cores,
            bursts: self.burst,
            flows: self.flows,
            links: match (self.links.is_empty(), self.topology) {
                (false, _) => self.links,
                (true, None) => vec![1],
                (true, Some(_)) => vec![48],
            },
            topology: self.topology.map(NetworkShape::from),
            workers: self.workers,
            rules: self.table,
            packets: self.packets,
            attachment: self.port,
            loss_ratios: self.loss_ratio,
            slowdown: self.slowdown,
            seed: self.seed,
        };
        self.output.record(|tool, progress| Ok(PipelinePoints(grid.measure(tool, progress)?)))
    }
}
