//! The arguments of every command that runs a network in real time.

use crate::commands::measure::tool;
use crate::data_path_arg::DataPathArg;
use crate::network_file::{ReadingArgs, load_with_warnings};
use anyhow::ensure;
use clap::Args;
use fastpath::capacity::{CapacityAnswer, CapacityOptions, CapacityRecord};
use fastpath::guest_run::is_inside;
use fastpath::model::capacity::CapacityVerdict;
use fastpath::replay::WorkerCount;
use fastpath_engine::control::{Dashboard, HttpAddress, Nodes};
use fastpath_engine::{Idle, Late, Notice, Workers};
use fastpath_lab::{Lab, UpError};
use fastpath_spec::{DataPathChoice, Topology};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of a host's log that the dashboard shows.
const LOG_MAX: u64 = 16 << 10;

#[derive(Args)]
pub(crate) struct NetworkArgs {
    /// The network: a spec file (TOML or JSON), an Emulab script (.ns) or a containerlab file
    /// (.yml).
    pub(crate) spec: PathBuf,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    /// Name of the lab. By default the name of the spec file without its extension.
    #[arg(long)]
    name: Option<String>,
    /// Seed of every random choice. By default the seed of the spec file, or 1.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Write the fate of every packet on every link to this file: times and drop reasons as packet
    /// comments.
    #[arg(long, alias = "ledger", value_name = "FILE.pcapng")]
    pub(crate) packet_log: Option<PathBuf>,
    /// Serve the HTTP control API on this address too: 127.0.0.1:8080, or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<HttpAddress>,
    /// Serve a page that shows and changes the network, and print its address. Without ADDRESS the
    /// page is on a free port of 127.0.0.1.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:0")]
    dashboard: Option<HttpAddress>,
    #[command(flatten)]
    real_time: RealTimeArgs,
    #[arg(skip)]
    tolerance_default: Option<fastpath_units::Duration>,
    /// Whether the run is recorded.
    #[arg(skip)]
    pub(crate) records_flows: bool,
}

/// How the engine keeps time. The [engine] table of a spec has the same settings.
#[derive(Args)]
struct RealTimeArgs {
    /// Exit with 1 if a frame is released later than this, and name its links. By default the
    /// tolerance of the spec file.
    #[arg(long, value_name = "TIME")]
    tolerance: Option<fastpath_units::Duration>,
    /// Deliver or drop frames that are later than the tolerance.
    #[arg(long, value_name = "ACTION")]
    late: Option<LateArg>,
    /// Busy-poll instead of sleeping: lowest jitter, one full core per worker.
    #[arg(long)]
    busy: bool,
    /// Worker threads that run the network side by side: a number, or auto for as many as pay off
    /// on this machine, at most half of its cores. Parts that exchange no frames are separate, and
    /// a connected network is cut at links with a delay of 100 µs or more, a lab only on request.
    #[arg(long, value_name = "N")]
    workers: Option<WorkerCount>,
    /// Where links and switches of a lab run that hold no frame: no rate, delay or queue. In the
    /// kernel they cost less. auto: there, where that changes nothing else; `fastpath check` says
    /// which. kernel: also losses and the per-packet log, with super-packets off on those links.
    #[arg(long, value_name = "WHERE")]
    data_path: Option<DataPathArg>,
    /// Memory that frames in the network may use, such as 256MiB. By default 1GiB, or half of the
    /// cgroup's limit.
    #[arg(long, value_name = "BYTES", value_parser = memory)]
    memory: Option<NonZeroUsize>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum LateArg {
    /// Deliver late frames and count them.
    Deliver,
    /// Drop late frames and count them as late.
    Drop,
}

fn memory(text: &str) -> Result<NonZeroUsize, String> {
    fastpath_spec::memory(text).map_err(|(what, instead)| format!("{what}; {instead}"))
}

impl RealTimeArgs {
    fn apply_to(&self, options: &mut fastpath_engine::Options) {
        options.tolerance = self.tolerance.or(options.tolerance);
        options.late = self.late.map(late).or(options.late);
        options.idle = self.busy.then_some(Idle::Busy).or(options.idle);
        options.workers = match self.workers {
            None => options.workers.take(),
            Some(WorkerCount::AtMost(count)) => Some(Workers::Count(count)),
            Some(WorkerCount::Auto) => Some(Workers::Auto),
        };
        options.data_path = self.data_path.map_or(options.data_path, DataPathChoice::from);
        options.network.pool_limit = self.memory.unwrap_or(options.network.pool_limit);
    }
}

fn late(arg: LateArg) -> Late {
    match arg {
        LateArg::Deliver => Late::Deliver,
        LateArg::Drop => Late::Drop,
    }
}

/// What the dashboard shows of the nodes of a lab.
fn nodes(name: &str) -> Nodes {
    let (lab, of_log) = (name.to_owned(), name.to_owned());
    let list = move || {
        let found = fastpath_lab::inspect(&lab).map_err(|error| error.to_string())?;
        serde_json::to_value(found).map_err(|error| error.to_string())
    };
    let log = move |host: &str| fastpath_lab::log(&of_log, host, LOG_MAX);
    Nodes { list: Arc::new(list), log: Arc::new(log) }
}

impl NetworkArgs {
    /// Uses this tolerance if neither the command line nor the spec has one.
    pub(crate) fn default_tolerance(&mut self, tolerance: fastpath_units::Duration) {
        self.tolerance_default = Some(tolerance);
    }

    /// Returns the options that have no meaning in virtual time, and the memory that is given.
    pub(crate) fn in_virtual_time(&self) -> (Vec<&'static str>, Option<u64>) {
        let RealTimeArgs { busy, workers, memory, data_path, .. } = &self.real_time;
        let given = [
            (self.http.is_some(), "--http"),
            (self.dashboard.is_some(), "--dashboard"),
            (*busy, "--busy"),
            (workers.is_some(), "--workers"),
            (data_path.is_some(), "--data-path"),
        ];
        let names = given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, name)| name);
        (names.collect(), memory.map(|memory| memory.get() as u64))
    }

    /// Returns where a result of this network comes from.
    pub(crate) fn origin(&self) -> anyhow::Result<fastpath::record::Origin> {
        let network = fastpath::load_with(&self.spec, &self.reading.reading())?;
        Ok(fastpath::origin::of(&network, self.seed))
    }

    /// Warns of traffic that this machine will not carry, if it was measured before. With --strict
    /// that is an error.
    fn compare_with_machine(
        &self,
        topology: &Topology,
        options: &fastpath_engine::Options,
    ) -> anyhow::Result<()> {
        if !topology.has_traffic() {
            return Ok(());
        }
        let is_strict = self.reading.reading().strict;
        let Some(record) = CapacityRecord::cached(&tool()) else {
            if is_strict {
                eprintln!(
                    "fastpath: whether this machine carries the traffic is not known: \
                     `fastpath check {} --capacity` measures it",
                    self.spec.display()
                );
            }
            return Ok(());
        };
        // A network of which nothing is predicted is none that will fail.
        let Ok(answer) = CapacityAnswer::of(&record, topology, &CapacityOptions::of_run(options)) else {
            return Ok(());
        };
        if answer.verdict == CapacityVerdict::Not {
            let sentence = answer.sentence();
            ensure!(!is_strict, "{sentence} (--strict; {})", record.describe());
            eprintln!("fastpath: {sentence}");
        }
        Ok(())
    }

    /// Starts the network with `start`: [`Lab::up`] or [`Lab::attach`].
    pub(crate) fn start(
        &self,
        start: impl FnOnce(Topology, &str, fastpath_engine::Options) -> Result<Lab, UpError>,
    ) -> anyhow::Result<Lab> {
        let network = load_with_warnings(&self.spec, &self.reading.reading())?;
        let name = self.name.clone().unwrap_or_else(|| fastpath::name_of(&self.spec));
        let mut options = network.engine_options(self.seed, Notice::to_stderr())?;
        options.packet_log.clone_from(&self.packet_log);
        options.records_flows = self.records_flows;
        options.http.clone_from(&self.http);
        options.dashboard = self
            .dashboard
            .clone()
            .map(|address| Dashboard { nodes: Some(nodes(&name)), ..fastpath::picture::dashboard(address) });
        self.real_time.apply_to(&mut options);
        if is_inside() {
            // In virtual time the engine has all links, and the clock.
            options.data_path = DataPathChoice::User;
        }
        options.tolerance = options.tolerance.or(self.tolerance_default);
        if !is_inside() {
            self.compare_with_machine(&network.spec.topology, &options)?;
        }
        Ok(start(network.spec.topology, &name, options)?)
    }
}
