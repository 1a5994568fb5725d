//! `fastpath measure pipeline`: what a packet costs, by length, steps, cores, links, bursts and
//! flows; and the highest rate without loss.

use super::{Output, bar, show, slowdown, tool, warn};
use crate::{Answer, print};
use anyhow::{bail, ensure};
use clap::{Args, ValueEnum};
use fastpath_measure::Watch;
use fastpath_measure::{
    DutAttachment, DutPort, Effort, EmulationQuestion, Goal, Hunt, LinkKind, LinkWeight, NetcopeQuestion,
    Progress, Results, Rules, SEARCH, Slowdown, Stage, SwitchFrames, SwitchQuestion, Tag, emulate,
    emulate_over, emulate_throughput, netcope, netcope_over, netcope_throughput, switched, switched_over,
    switched_throughput, typical, weigh,
};
use fastpath_model::fcs::{self, Fcs};
use fastpath_report::{Record, fields};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::time::Duration;

/// Frames the queue holds in a search for the rate without loss.
const QUEUE: u64 = 4096;
/// Final trials of that search, and how close its bounds come.
const TRIAL: Duration = Duration::from_millis(250);
const WIDTH: f64 = 0.02;
/// Passes over the grid, and packets of each at a point. Short, so that a pass meets one speed of a
/// machine that changes it.
const PASSES: std::ops::RangeInclusive<u64> = 5..=250;
const PASS_PACKETS: u64 = 4_000;
/// A point whose odd passes differ from its even ones by more is not known better than that.
const NOISY_PCT: f64 = 2.0;

/// Measure what a packet costs a pipeline; one record per point of the grid.
///
/// Lengths are of the frame in memory, without FCS, and records say so: 60 bytes are 64 on a wire.
/// With one point and --json, one object is printed whose results also stand at the top.
#[derive(Args)]
pub(super) struct PipelineCommand {
    /// What happens to packets.
    #[arg(long, default_value = "netcope")]
    program: Program,
    /// Frame lengths in bytes.
    #[arg(long, visible_alias = "p", value_name = "BYTES,…", value_delimiter = ',', default_value = "64", value_parser = clap::value_parser!(u32).range(60..=9000))]
    size: Vec<u32>,
    /// Steps of parsing and hashing per packet (netcope).
    #[arg(long, value_name = "STEPS,…", value_delimiter = ',', default_value = "0")]
    h: Vec<usize>,
    /// Cores, each with a port and a device of its own; emulated links are shared out among them.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cores: Vec<u16>,
    /// Frames that arrive together.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "64", value_parser = clap::value_parser!(u32).range(1..=4096))]
    burst: Vec<u32>,
    /// Different flows among them (netcope, forward, switch).
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    flows: Vec<u32>,
    /// The tables (switch), as for `fastpath measure switch`.
    #[arg(long, value_name = "KIND:WHAT", default_value = "cidr:912")]
    table: Rules,
    /// Links packets are spread over (emulate).
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    links: Vec<u32>,
    /// Packets timed per point and core, in up to 250 passes over the grid whose medians count
    /// (five where a point is dear to set up: switch, --port; emulate: one).
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    packets: u64,
    /// The device's port: memory, veth (a packet socket between namespaces), xdp (AF_XDP there), or
    /// DEVICE+SOURCE, two interfaces of this machine joined by a cable.
    #[arg(long, value_name = "PORT", default_value = "memory", value_parser = port)]
    port: Port,
    /// Also search the highest rate of a core that loses no more than these shares of packets; 0 is
    /// RFC 2544's throughput. Emulated links then lose nothing at random. One search for all, in
    /// the device's own time: pauses of the machine are left out and counted. Between two
    /// interfaces in real time: trials in which the machine stood still and packets were lost are
    /// made again.
    #[arg(long, value_name = "RATIO,…", value_delimiter = ',')]
    loss_ratio: Vec<f64>,
    /// As a core so many times slower would do (netcope, forward on memory ports): work is added.
    /// For experiments with predictions.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = slowdown)]
    slowdown: Slowdown,
    /// The seed of random losses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Program {
    /// Receive, steps of jumps and hashes, push a VLAN tag, send.
    Netcope,
    /// Receive, send.
    Forward,
    /// Receive, classify, through loss, queue, rate and delay of one of many links, send.
    Emulate,
    /// Receive, through compiled tables, send.
    Switch,
}

/// A point of the grid.
#[derive(Clone, Copy)]
struct Point {
    size: u32,
    h: usize,
    cores: u16,
    links: u32,
    burst: u32,
    flows: u32,
}

/// Where the device's port is.
#[derive(Clone, PartialEq, Eq)]
enum Port {
    Memory,
    Over(DutAttachment),
}

fn port(text: &str) -> Result<Port, String> {
    match text {
        "memory" => Ok(Port::Memory),
        other => other
            .parse()
            .map(Port::Over)
            .map_err(|error: fastpath_measure::ParseAttachmentError| error.to_string()),
    }
}

impl PipelineCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        if self.port != Port::Memory {
            ensure!(self.cores == [1], "--port: a device on an interface has one core; leave --cores out");
        }
        let there = std::thread::available_parallelism()?.get();
        if let Some(cores) = self.cores.iter().find(|&&cores| usize::from(cores) > there) {
            bail!(
                "--cores {cores}: this machine has {there}; `fastpath model cores` says what more would do"
            );
        }
        if self.program == Program::Emulate
            && let (Some(&links), Some(&cores)) = (self.links.iter().min(), self.cores.iter().max())
        {
            ensure!(links >= u32::from(cores), "--cores {cores}: {links} links are too few to share out");
        }
        let slowed = self.slowdown != Slowdown::NONE;
        let slows = matches!(self.program, Program::Netcope | Program::Forward) && self.port == Port::Memory;
        ensure!(slows || !slowed, "--slowdown: use it with netcope or forward on memory ports");
        ensure!(!slowed || self.loss_ratio.is_empty(), "--slowdown: leave --loss-ratio out");
        for ratio in &self.loss_ratio {
            ensure!((0.0..1.0).contains(ratio), "--loss-ratio {ratio}: must be at least 0 and below 1");
        }
        if self.program != Program::Netcope && self.h.iter().any(|&h| h > 0) {
            bail!("--h: only netcope has steps");
        }
        if self.program == Program::Emulate && self.flows.len() > 1 {
            bail!("--flows: of emulated links there is one flow each; use --links");
        }
        let file = self.output.open()?;
        let bar = bar();
        let points = self.points();
        let most = self.links.iter().max().map_or(1, |&links| links as usize);
        let weight = (self.program == Program::Emulate).then(|| weigh(most, self.seed));
        let passes = self.passes();
        let watch = Watch::start();
        let (mut parameters, mut found) = (Vec::new(), vec![Vec::new(); points.len()]);
        let mut rates = Vec::new();
        for pass in 0..passes {
            for (i, point) in points.iter().enumerate() {
                let whole = |step: &str, done: usize, total: usize| {
                    if step == SEARCH {
                        let what = format!("rate search {} of {}, trials", i + 1, points.len());
                        return show(&bar)(&what, done, total);
                    }
                    let share = done as f64 / total.max(1) as f64;
                    let done = (pass * points.len() + i) as f64 + share;
                    show(&bar)("points", (1000.0 * done) as usize, 1000 * passes * points.len());
                };
                // The search comes once, with the last pass.
                let is_last = pass + 1 == passes;
                let (set, mut results) = self.measure(*point, weight, (passes, is_last), &whole)?;
                if is_last {
                    parameters.push(set);
                    rates.push(results.remove("throughput"));
                }
                found[i].push(results);
            }
        }
        let provenance = watch.provenance(&tool(), self.seed, self.packets);
        let records: Vec<Record> = parameters
            .into_iter()
            .zip(typical(found))
            .zip(rates)
            .map(|((parameters, mut results), rates)| {
                results.extend(rates.map(|rates| ("throughput".to_owned(), rates)));
                Record {
                    kind: "pipeline".to_owned(),
                    provenance: provenance.clone(),
                    parameters,
                    results,
                    platform: None,
                }
            })
            .collect();
        bar.finish_and_clear();
        self.output.write(file, &records)?;
        self.print(&records)?;
        if let Some(record) = records.first() {
            warn(record);
        }
        let is_noisy = |r: &&Record| r.results.get("spread_pct").and_then(Value::as_f64) > Some(NOISY_PCT);
        let noisy = records.iter().filter(is_noisy).count();
        if noisy > 0 {
            eprintln!(
                "fastpath: note: {noisy} of {} points differed by more than {NOISY_PCT} % between their odd and even passes: \
                 the machine was too noisy to know them better; measure again, or more --packets",
                records.len()
            );
        }
        Ok(Answer::Yes)
    }

    fn passes(&self) -> usize {
        let (least, most) = PASSES.into_inner();
        match (self.program, &self.port) {
            (Program::Emulate, _) => 1,
            (Program::Switch, _) | (_, Port::Over(_)) => least as usize,
            _ => (self.packets / PASS_PACKETS).clamp(least, most) as usize,
        }
    }

    /// The grid. What a program has not is not varied.
    fn points(&self) -> Vec<Point> {
        let mut points: Vec<Point> = self
            .size
            .iter()
            .map(|&size| Point { size, h: 0, cores: 1, links: 0, burst: 0, flows: self.flows[0] })
            .collect();
        if self.program == Program::Emulate {
            points = varied(points, &self.links, |point, links| Point { links, ..point });
        } else {
            points = varied(points, &self.h, |point, h| Point { h, ..point });
            points = varied(points, &self.flows, |point, flows| Point { flows, ..point });
        }
        points = varied(points, &self.cores, |point, cores| Point { cores, ..point });
        varied(points, &self.burst, |point, burst| Point { burst, ..point })
    }

    fn measure(
        &self,
        Point { size, h, cores, links, burst, flows }: Point,
        weight: Option<LinkWeight>,
        (passes, searches): (usize, bool),
        progress: Progress<'_>,
    ) -> anyhow::Result<(Map<String, Value>, Results)> {
        let packets = self.packets.div_ceil(passes as u64);
        let (size, burst, cores) = (size as usize, burst as usize, usize::from(cores));
        let goals: Vec<Goal> =
            self.loss_ratio.iter().filter(|_| searches).map(|&loss_ratio| Goal { loss_ratio }).collect();
        let hunt = Hunt { goals: &goals, duration: TRIAL, width: WIDTH, queue: QUEUE };
        let dut_port = match &self.port {
            Port::Memory => None,
            Port::Over(attachment) => Some(DutPort::open(attachment, size)?),
        };
        let port = dut_port.as_ref().map(DutPort::kind);
        let (mut parameters, mut results, rates) = match weight {
            Some(weight) => {
                let question = EmulationQuestion {
                    size,
                    links: links as usize,
                    burst,
                    packets: self.packets,
                    seed: self.seed,
                    link: LinkKind::default(),
                    cores,
                };
                let (found, rates) = match dut_port {
                    Some(dut_port) => emulate_over(&question, weight, dut_port, hunt, progress)?,
                    None => {
                        let found = emulate(&question, weight, progress);
                        let rates = emulate_throughput(&question, found.t_ns, hunt, progress)?;
                        (found, rates)
                    }
                };
                (fields(&question), fields(&found), rates)
            }
            None if self.program == Program::Switch => {
                let flows = flows as usize;
                let rules = self.table.clone();
                let table = format!("{rules:?}");
                let question = SwitchQuestion { rules, flows, seed: self.seed, effort: Effort::Quick };
                let frames = SwitchFrames { size, burst, packets };
                let (found, rates) = match dut_port {
                    Some(dut_port) => switched_over(&question, frames, dut_port, hunt, progress)?,
                    None => {
                        let found = switched(&question, frames, cores, progress)?;
                        let rates = switched_throughput(&question, frames, found.t_ns, hunt, progress)?;
                        (found, rates)
                    }
                };
                let parameters = Map::from_iter([
                    ("p".to_owned(), json!(size)),
                    ("table".to_owned(), json!(table)),
                    ("cores".to_owned(), json!(cores)),
                    ("flows".to_owned(), json!(flows)),
                    ("burst".to_owned(), json!(burst)),
                ]);
                (parameters, fields(&found), rates)
            }
            None => {
                let question = NetcopeQuestion {
                    p: size,
                    h,
                    cores,
                    burst,
                    flows: flows as usize,
                    packets,
                    tag: if self.program == Program::Netcope { Tag::Push } else { Tag::None },
                    slowdown: self.slowdown.factor(),
                };
                let (found, rates) = match dut_port {
                    Some(dut_port) => netcope_over(&question, dut_port, hunt, progress)?,
                    None => {
                        let found = netcope(&question, progress);
                        let rates = netcope_throughput(&question, found.t_ns, hunt, progress)?;
                        (found, rates)
                    }
                };
                (fields(&question), fields(&found), rates)
            }
        };
        if !rates.is_empty() {
            results.insert("throughput".to_owned(), json!(rates));
        }
        parameters.extend(port.map(|port| ("port".to_owned(), json!(port))));
        let program = self.program.to_possible_value().map_or(String::new(), |v| v.get_name().to_owned());
        parameters.insert("program".to_owned(), Value::String(program));
        parameters.insert(fcs::COLUMN.to_owned(), json!(Fcs::Without));
        // Of all passes together.
        parameters.insert("packets".to_owned(), json!(self.packets));
        Ok((parameters, results))
    }

    fn print(&self, records: &[Record]) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if !self.output.json {
            return Ok(tables(&mut out, records)?);
        }
        for record in records {
            let mut value = serde_json::to_value(record)?;
            if let Value::Object(top) = &mut value {
                // Scripts find the results at the top too.
                record.results.iter().for_each(|(name, found)| drop(top.insert(name.clone(), found.clone())));
            }
            writeln!(out, "{value}")?;
        }
        Ok(())
    }
}

/// Every point with every value.
fn varied<T: Copy>(points: Vec<Point>, values: &[T], with: impl Fn(Point, T) -> Point) -> Vec<Point> {
    points
        .into_iter()
        .flat_map(|point| values.iter().map(move |&value| (point, value)))
        .map(|(point, value)| with(point, value))
        .collect()
}

fn tables(out: &mut impl Write, records: &[Record]) -> io::Result<()> {
    let names = told(records);
    let point = |parameters: &Map<String, Value>| point(parameters, &names);
    let mut table =
        print::table(["point", "ns per packet", "packets/s", "ceiling", "stages, ns", "stages − whole"]);
    for Record { parameters, results, .. } in records {
        let number =
            |name: &str| results.get(name).and_then(Value::as_f64).map_or(String::new(), print::number);
        let stages: Vec<Stage> =
            results.get("stages").cloned().and_then(|v| serde_json::from_value(v).ok()).unwrap_or_default();
        let stages: Vec<String> = stages.iter().map(|s| format!("{} {:.1}", s.name, s.ns)).collect();
        let difference = results.get("stages_minus_whole_pct").and_then(Value::as_f64).unwrap_or(f64::NAN);
        table.add_row([
            point(parameters),
            number("T_ns"),
            number("packets_per_second"),
            number("ceiling_packets_per_second"),
            stages.join(", "),
            format!("{difference:+.1} %"),
        ]);
    }
    writeln!(out, "{table}")?;
    for Record { parameters, results, .. } in records {
        for found in results.get("throughput").and_then(Value::as_array).into_iter().flatten() {
            writeln!(out, "{}: {}", point(parameters), throughput(found))?;
        }
        if let Some(bytes) = results.get("bytes_per_link").and_then(Value::as_f64) {
            writeln!(out, "{}: {bytes:.0} bytes per idle link", point(parameters))?;
        }
    }
    Ok(())
}

/// The answer to one goal of a search.
fn throughput(found: &Value) -> String {
    let number = |name: &str| found[name].as_f64().map_or("–".to_owned(), print::number);
    let loss = print::number(100.0 * found["goal"]["loss_ratio"].as_f64().unwrap_or(f64::NAN));
    let mut said = if found["lower_pps"].is_null() {
        format!("even {} packets/s lose more than {loss} %", number("upper_pps"))
    } else {
        let not = if found["upper_pps"].is_null() {
            "no more was offered".to_owned()
        } else {
            format!("not {}", number("upper_pps"))
        };
        let came = if loss == "0" {
            String::new()
        } else {
            format!(", {} of them come through", number("conditional_pps"))
        };
        format!("up to {} packets/s ({not}) lose at most {loss} %{came}", number("lower_pps"))
    };
    let counts = [
        ("pauses", "pauses of the machine left out"),
        ("spoilt", "trials made again: the machine stood still"),
    ];
    for (name, what) in counts {
        if let Some(count) = found[name].as_u64().filter(|&count| count > 0) {
            said += &format!(" ({count} {what})");
        }
    }
    said
}

/// The parameters that are told of a point: bursts and flows only where there are several.
fn told(records: &[Record]) -> Vec<&'static str> {
    let is_varied = |name: &&str| {
        let values = || records.iter().map(|record| record.parameters.get(*name));
        values().zip(values().skip(1)).any(|(one, next)| one != next)
    };
    let always = ["port", "table", "p", "h", "size", "cores", "links"];
    always.into_iter().chain(["flows", "burst"].into_iter().filter(is_varied)).collect()
}

/// `netcope p = 64, h = 10, cores = 1`
fn point(parameters: &Map<String, Value>, names: &[&str]) -> String {
    let program = parameters.get("program").and_then(Value::as_str).unwrap_or_default();
    let told = names.iter().filter_map(|name| Some((*name, parameters.get(*name)?)));
    let values: Vec<String> = told.map(|(name, value)| format!("{name} = {value}")).collect();
    format!("{program} {}", values.join(", "))
}
