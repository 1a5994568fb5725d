//! `fastpath ctl`: shows a running network and changes its links.

use crate::Answer;
use crate::view::{self, LinkTable, load_table};
use anyhow::bail;
use clap::{Args, Subcommand};
use fastpath::link_loads::LinkLoads;
use fastpath::origin::{of_running, with_origin};
use fastpath_engine::Report;
use fastpath_engine::control::{
    Changes, ConnectionList, ConnectionReport, Flush, Request, Response, Setting, call,
};
use fastpath_lab::{control_socket, only_lab};
use serde_json::{Map, Value};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::thread;

/// Show a running network and change its links.
#[derive(Args)]
#[command(after_help = "\
The same over HTTP, with curl on the control socket or on --http of the network:
  curl --unix-socket PATH http://localhost/openapi.json")]
pub(crate) struct Ctl {
    #[command(flatten)]
    network: RunningNetwork,
    #[command(subcommand)]
    action: Action,
}

/// A network that runs.
#[derive(Args)]
pub(super) struct RunningNetwork {
    /// Name of the running network. Needed only if several are up.
    #[arg(long, global = true, value_name = "NAME")]
    lab: Option<String>,
    /// Path of the network's control socket, instead of its name.
    #[arg(long, global = true, value_name = "PATH", conflicts_with = "lab")]
    socket: Option<PathBuf>,
}

impl RunningNetwork {
    pub(super) fn socket(self) -> anyhow::Result<PathBuf> {
        Ok(match (self.socket, self.lab) {
            (Some(path), _) => path,
            (None, Some(name)) => control_socket(&name)?,
            (None, None) => control_socket(&only_lab(|lab| lab.alive)?)?,
        })
    }
}

#[derive(Subcommand)]
enum Action {
    /// Show the links with their parameters and counters.
    Links(Show),
    /// Show the links by load, with queueing delays, drops and lateness.
    ///
    /// In a terminal the table is updated until Ctrl-C. Otherwise it is printed once.
    Top {
        /// Print one sample as JSON.
        #[arg(long)]
        json: bool,
        /// Time over which rates are computed.
        #[arg(long, value_name = "TIME", default_value = "500ms")]
        interval: fastpath_units::Duration,
    },
    /// Show links, ports, lateness and frame accounting.
    Report(Show),
    /// Show or end the connections that OpenFlow nodes track.
    ///
    /// One a line, in the words of 'ovs-appctl dpctl/dump-conntrack'.
    Connections {
        /// Only those of this zone.
        zone: Option<u16>,
        /// Only those of this OpenFlow node.
        #[arg(long, value_name = "NODE")]
        node: Option<String>,
        /// End them.
        #[arg(long, conflicts_with = "json")]
        flush: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Set parameters of links, all at one instant.
    ///
    /// Frames in the links stay there. Parameters driven by an active trace cannot be set.
    Set(Box<Set>),
    /// Start the traces of a group from their beginning.
    Start {
        /// The group of links.
        group: String,
    },
    /// End the network.
    Stop,
}

#[derive(Args)]
struct Show {
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Set {
    /// The links to change.
    #[arg(value_name = "LINK", required_unless_present = "group")]
    links: Vec<String>,
    /// Change all links of this group. May be repeated.
    #[arg(long, value_name = "GROUP")]
    group: Vec<String>,
    /// When to change, as time since the start of the network, such as 12.5s. By default at once.
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Set any key of a link in a spec file. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    values: Vec<String>,
    /// Change only the direction that starts at this node.
    #[arg(long, value_name = "NODE")]
    from: Option<String>,
    /// Rate, such as 10Mbit, or unlimited. The frame in transmission continues at the new rate.
    #[arg(long)]
    rate: Option<String>,
    /// One-way delay, such as 25ms. Frames keep their order.
    #[arg(long)]
    delay: Option<String>,
    /// Loss, such as 1%, a table as in a spec file, or none.
    #[arg(long)]
    loss: Option<String>,
    /// Queue: 50p, 64KiB, 20ms, unlimited, or a table as in a spec file. Queued packets stay.
    #[arg(long)]
    queue: Option<String>,
    /// Bytes on the wire beyond those of the frame: a number, or ethernet.
    #[arg(long, value_name = "BYTES")]
    overhead: Option<String>,
    /// Jitter: a table as in a spec file, or none.
    #[arg(long)]
    jitter: Option<String>,
    /// Reordering, such as 25%, a table as in a spec file, or none.
    #[arg(long)]
    reorder: Option<String>,
    /// Duplication, such as 1%, a table as in a spec file, or none.
    #[arg(long)]
    duplicate: Option<String>,
    /// Corruption, such as 0.1%, a table as in a spec file, or none.
    #[arg(long)]
    corrupt: Option<String>,
    /// Transmission slots, such as 2ms, a table as in a spec file, or none.
    #[arg(long)]
    slots: Option<String>,
    /// Cross traffic, such as 4Mbit, a table as in a spec file, or none.
    #[arg(long)]
    cross: Option<String>,
    /// State of the link: up or down. A link that goes down drops its queued packets.
    #[arg(long)]
    state: Option<String>,
}

impl Ctl {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let socket = self.network.socket()?;
        let ask = |request| match call(&socket, &request)? {
            Response::Error(why) => bail!(why),
            answer => Ok(answer),
        };
        match self.action {
            Action::Links(Show { json }) => {
                view::print(&LinkTable(&report(ask(Request::Report)?)?), json)?;
            }
            Action::Report(Show { json: true }) => {
                let report = report(ask(Request::Report)?)?;
                let Response::Topology(description) = ask(Request::Topology)? else {
                    bail!("the engine did not answer with its topology (another version of fastpath?)");
                };
                writeln!(io::stdout(), "{}", with_origin(&report, &of_running(report.seed, description)))?;
            }
            Action::Report(Show { json: false }) => {
                view::print(&report(ask(Request::Report)?)?, false)?;
            }
            Action::Top { json, interval } => {
                let sample = || report(ask(Request::Report)?);
                top(json, interval, sample, &mut io::stdout().lock())?;
            }
            Action::Connections { zone, node, flush: true, .. } => {
                let Response::Flushed(ended) = ask(Request::Flush(Flush { node, zone }))? else {
                    bail!("the engine did not say which connections ended (another version of fastpath?)");
                };
                writeln!(io::stdout(), "{} connections ended", ended.connections)?;
            }
            Action::Connections { zone, node, json, .. } => {
                let Response::Connections(mut list) = ask(Request::Connections)? else {
                    bail!("the engine did not list its connections (another version of fastpath?)");
                };
                let is_wanted = |one: &ConnectionReport| {
                    zone.is_none_or(|zone| zone == one.zone)
                        && node.as_ref().is_none_or(|node| *node == one.node)
                };
                list.connections.retain(is_wanted);
                print_connections(&list, json)?;
            }
            Action::Set(set) => drop(ask(Request::Set(set.changes()?))?),
            Action::Start { group } => drop(ask(Request::Start { group })?),
            Action::Stop => drop(ask(Request::Stop)?),
        }
        Ok(Answer::Yes)
    }
}

fn print_connections(list: &ConnectionList, json: bool) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string(list)?)?;
        return Ok(());
    }
    let first = list.connections.first().map(|one| &one.node);
    let has_several = list.connections.iter().any(|one| Some(&one.node) != first);
    for one in &list.connections {
        match has_several {
            true => writeln!(out, "{}: {}", one.node, one.text)?,
            false => writeln!(out, "{}", one.text)?,
        }
    }
    if list.omitted > 0 {
        writeln!(io::stderr(), "{} more connections are not listed", list.omitted)?;
    }
    Ok(())
}

/// Prints the loads of links: once, or again and again in a terminal.
fn top(
    json: bool,
    interval: fastpath_units::Duration,
    sample: impl Fn() -> anyhow::Result<Report>,
    out: &mut io::StdoutLock<'_>,
) -> anyhow::Result<()> {
    let is_live = out.is_terminal() && !json;
    let mut before = sample()?;
    loop {
        thread::sleep(interval.to_std());
        let after = sample()?;
        let loads = LinkLoads::between(&before, &after);
        match (json, is_live) {
            (true, _) => writeln!(out, "{}", serde_json::to_string(&loads)?)?,
            // Clears the screen (ECMA-48: CUP, ED).
            (_, true) => writeln!(out, "\x1b[H\x1b[2J{}", load_table(&loads, rows()))?,
            (..) => writeln!(out, "{}", load_table(&loads, usize::MAX))?,
        }
        out.flush()?;
        if !is_live {
            return Ok(());
        }
        before = after;
    }
}

/// The rows of the terminal that a table of links has.
fn rows() -> usize {
    let (height, _) = console::Term::stdout().size();
    usize::from(height).saturating_sub(7).max(1)
}

impl Set {
    fn changes(self) -> anyhow::Result<Changes> {
        let named = [
            ("rate", self.rate),
            ("delay", self.delay),
            ("loss", self.loss),
            ("queue", self.queue),
            ("overhead", self.overhead),
            ("jitter", self.jitter),
            ("reorder", self.reorder),
            ("duplicate", self.duplicate),
            ("corrupt", self.corrupt),
            ("slots", self.slots),
            ("cross", self.cross),
            ("state", self.state),
        ];
        let mut set: Map<String, Value> =
            named.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into()))).collect();
        for text in &self.values {
            let Some((key, value)) = text.split_once('=') else {
                bail!("'{text}' is not a value of a link: write for example --set rate=1Mbit");
            };
            if set.insert(key.trim().to_owned(), value.trim().into()).is_some() {
                bail!("{key} is given twice");
            }
        }
        if set.is_empty() {
            bail!("nothing to set: give --rate, --delay, --loss, --queue, … or --set KEY=VALUE");
        }
        let (from, at) = (self.from, self.at);
        let of_link =
            |link| Setting { link: Some(link), from: from.clone(), set: set.clone(), ..Setting::default() };
        let of_group = |group| Setting {
            group: Some(group),
            from: from.clone(),
            set: set.clone(),
            ..Setting::default()
        };
        let changes =
            self.links.into_iter().map(of_link).chain(self.group.into_iter().map(of_group)).collect();
        Ok(Changes { changes, at })
    }
}

fn report(answer: Response) -> anyhow::Result<Report> {
    match answer {
        Response::Report(report) => Ok(*report),
        other => bail!("the engine answered {other:?} to a request for a report"),
    }
}
