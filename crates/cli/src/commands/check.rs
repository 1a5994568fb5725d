//! `fastpath check SPEC`: reports every mistake of a description at once, or summarises the
//! description.

use crate::Answer;
use crate::data_path_arg::DataPathArg;
use crate::network_file::ReadingArgs;
use crate::view::{self, CheckedFile};
#[cfg(target_os = "linux")]
use crate::{
    commands::measure::{bar, show, tool},
    view::CapacityView,
};
use clap::Args;
use fastpath::net::data_path::{DataPathNeeds, DataPathPlan};
use fastpath::replay::WorkerCount;
#[cfg(target_os = "linux")]
use fastpath::{
    capacity::{CapacityAnswer, CapacityOptions, CapacityRecord, with_traffic},
    measure::{Effort, capacity::EngineWorkers},
    model::capacity::CapacityVerdict,
    spec::{Checked, NetworkSpec},
};
use fastpath_spec::{DataPathChoice, Topology, json_schema};
use std::io::{self, Write};
#[cfg(target_os = "linux")]
use std::path::Path;
use std::path::PathBuf;

/// Check a network description and report every mistake.
#[derive(Args)]
pub(crate) struct Check {
    /// The network: a spec file (TOML or JSON), an Emulab script (.ns) or a containerlab file
    /// (.yml).
    #[arg(required_unless_present = "schema")]
    spec: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Show how the network is cut for this many workers of `fastpath replay`, or auto: the parts,
    /// how early frames between them are known, and the expected speed-up.
    #[arg(long, value_name = "N", conflicts_with = "schema")]
    workers: Option<WorkerCount>,
    /// Show where the links of a lab run, as with --data-path of `fastpath lab`, and why not in the
    /// kernel.
    #[arg(long, value_name = "WHERE", conflicts_with = "schema")]
    data_path: Option<DataPathArg>,
    /// Predict whether this machine carries the network: packets per second, TCP rate, lateness,
    /// memory and start time, with 95 % intervals, and what would help. The first time this takes
    /// twenty seconds, in which the machine is measured.
    #[cfg(target_os = "linux")]
    #[arg(long, conflicts_with = "schema")]
    capacity: bool,
    /// Add this load to the traffic of the description, as keys and values of [[traffic]]:
    /// from=a,to=b,rate=2Mbit. May be repeated.
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "KEY=VALUE,…", requires = "capacity")]
    traffic: Vec<String>,
    /// Measure the machine again, although there is a record of it.
    #[cfg(target_os = "linux")]
    #[arg(long, requires = "capacity")]
    remeasure: bool,
    /// Print one JSON object: the resolved topology, mistakes and warnings.
    #[arg(long)]
    json: bool,
    /// Print the JSON Schema of descriptions.
    #[arg(long, conflicts_with_all = ["spec", "json"])]
    schema: bool,
}

impl Check {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let Some(path) = &self.spec else {
            writeln!(io::stdout(), "{:#}", json_schema())?;
            return Ok(Answer::Yes);
        };
        let checked = fastpath::check_with(path, &self.reading.reading())?;
        #[cfg(target_os = "linux")]
        if self.capacity && checked.value.is_some() {
            return self.answer_capacity(path, &checked);
        }
        view::print(
            &CheckedFile {
                path,
                checked: &checked,
                workers: self.workers,
                data_path: self.data_path.map(Into::into),
            },
            self.json,
        )?;
        let Some(spec) = &checked.value else { return Ok(Answer::No) };
        if self.data_path == Some(DataPathArg::Kernel) && !has_kernel_links(&spec.topology) {
            // As `fastpath lab` refuses it.
            eprintln!("fastpath: --data-path kernel: no link can run in the kernel");
            return Ok(Answer::No);
        }
        Ok(Answer::Yes)
    }
}

#[cfg(target_os = "linux")]
impl Check {
    /// Predicts what this machine does with the network. The answer is no if it does not carry it.
    fn answer_capacity(&self, path: &Path, checked: &Checked<NetworkSpec>) -> anyhow::Result<Answer> {
        let Some(spec) = &checked.value else { return Ok(Answer::No) };
        checked.warnings.iter().for_each(|warning| eprintln!("{}", fastpath::at(path, warning)));
        let spec = with_traffic(spec, &self.traffic, path.parent().unwrap_or(Path::new("")))?;
        let tool = tool();
        let cached = if self.remeasure { None } else { CapacityRecord::cached(&tool) };
        let record = match cached {
            Some(record) => record,
            None => {
                let bar = bar();
                let record = CapacityRecord::measure(&tool, Effort::Quick, &show(&bar));
                bar.finish_and_clear();
                record?
            }
        };
        let mut options = CapacityOptions::of_settings(&spec.engine);
        options.data_path = self.data_path.map_or(options.data_path, DataPathChoice::from);
        options.workers = match self.workers {
            None => options.workers,
            Some(WorkerCount::Auto) => EngineWorkers::Auto,
            Some(WorkerCount::AtMost(count)) => EngineWorkers::AtMost(count),
        };
        let answer = CapacityAnswer::of(&record, &spec.topology, &options)?;
        view::print(&CapacityView { path, record: &record, answer: &answer }, self.json)?;
        Ok(if answer.verdict == CapacityVerdict::Not { Answer::No } else { Answer::Yes })
    }
}

/// Whether a link of a lab can run in the kernel.
fn has_kernel_links(topology: &Topology) -> bool {
    let needs = DataPathNeeds { choice: DataPathChoice::Kernel, ..DataPathNeeds::default() };
    DataPathPlan::of(&topology.clone().with_namespaces(), needs).has_kernel()
}
