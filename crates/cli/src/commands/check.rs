//! `fastpath check SPEC`: reports every mistake of a description at once, or summarises the
//! description.

use crate::Answer;
use crate::data_path_arg::DataPathArg;
use crate::network_file::ReadingArgs;
use crate::view::{self, CheckedFile};
use clap::Args;
use fastpath::net::data_path::{DataPathNeeds, DataPathPlan};
use fastpath::replay::WorkerCount;
use fastpath_spec::{DataPathChoice, Topology, json_schema};
use std::io::{self, Write};
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

/// Whether a link of a lab can run in the kernel.
fn has_kernel_links(topology: &Topology) -> bool {
    let needs = DataPathNeeds { choice: DataPathChoice::Kernel, ..DataPathNeeds::default() };
    DataPathPlan::of(&topology.clone().with_namespaces(), needs).has_kernel()
}
