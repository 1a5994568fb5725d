//! `fastpath guest`: the kernel of runs in virtual time.

use crate::{Answer, view};
use clap::Args;
use fastpath::guest::{Source, build, init, status};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread::available_parallelism;

/// The kernel in which labs run in virtual time.
///
/// It is a Linux kernel that runs as an ordinary process, without rights, on the files of this
/// machine.
#[derive(Args)]
pub(crate) struct GuestCommand {
    #[command(subcommand)]
    action: Action,
}

subcommands! {
    Action {
        Build(Build),
        Status(Status),
        Init(Init),
    }
}

/// Build the kernel of guests.
///
/// It is done once, and takes about 10 minutes of CPU, and 3 GB of disk while it builds.
///
/// The source is Debian's newest package linux-source-*, fetched with lists of sources that are
/// removed at the end: nothing of this machine's apt changes. The kernel is kept below
/// $XDG_DATA_HOME or ~/.local/share, or in $FASTPATH_GUEST.
#[derive(Args)]
struct Build {
    /// Use the source of a kernel in this directory: Linux 6.12 or newer.
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    /// How many compilers run at once. By default one per core.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

/// Show the kernel of guests.
///
/// Its version, file and checksum, and the command that builds it.
#[derive(Args)]
struct Status {
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// The first process of a guest.
#[derive(Args)]
#[command(hide = true)]
struct Init {
    /// The files of its job.
    directory: PathBuf,
}

impl GuestCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        self.action.run()
    }
}

impl Build {
    fn run(self) -> anyhow::Result<Answer> {
        let source = self.source.map_or(Source::Debian, Source::Directory);
        let jobs = self.jobs.or_else(|| available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        build(&source, jobs, &mut |step| eprintln!("fastpath: {step}"))?;
        view::print(&status(), false)?;
        Ok(Answer::Yes)
    }
}

impl Status {
    fn run(self) -> anyhow::Result<Answer> {
        let status = status();
        view::print(&status, self.json)?;
        Ok(if status.is_current { Answer::Yes } else { Answer::No })
    }
}

impl Init {
    fn run(self) -> anyhow::Result<Answer> {
        init(&self.directory)
    }
}
