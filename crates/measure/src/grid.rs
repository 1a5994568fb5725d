//! A grid of measurements of packet pipelines: one record per point, by frame length, steps, cores,
//! links, bursts and flows.
//!
//! ```text
//!  PipelineGrid ─▶ points ─▶ passes over all points ─▶ medians (`passes.rs`) ─▶ a Measurement per point
//!                                └─ last pass: search for the rate without loss (`rate.rs`)
//! ```

use crate::passes::Results;
use crate::{
    ConnectedQuestion, DutAttachment, DutPort, DutPortError, Effort, EmulationQuestion, Found, Goal, Hunt,
    LinkKind, LinkWeight, NetcopeQuestion, NetworkShape, Progress, Rules, SEARCH, SearchError, Slowdown,
    SwitchError, SwitchFrames, SwitchQuestion, Tag, Watch, connected, emulate, emulate_over,
    emulate_throughput, netcope, netcope_over, netcope_throughput, switched, switched_over,
    switched_throughput, typical, undisturbed, weigh,
};
use fastpath_model::fcs::{self, Fcs};
use fastpath_record::{Disturbance, Measurement, Provenance, Tool, fields};
use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Frames that the queue holds during a search for the rate without loss.
const QUEUE: u64 = 4096;
/// Duration of the final trials of that search.
const TRIAL: Duration = Duration::from_millis(250);
/// Relative distance of the two bounds that end that search.
const WIDTH: f64 = 0.02;
/// Passes over the grid.
const PASSES: RangeInclusive<u64> = 5..=250;
/// Packets of each pass at a point. Few, so that a pass meets one speed of a machine whose speed
/// changes.
const PASS_PACKETS: u64 = 4_000;

/// What the measured device does with packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PipelineProgram {
    /// Receives, does steps of jumps and hashes, pushes a VLAN tag, sends.
    Netcope,
    /// Receives and sends.
    Forward,
    /// Receives, classifies, applies loss, queue, rate and delay of one of many links, sends.
    Emulate,
    /// Receives, applies compiled tables, sends.
    Switch,
}

/// A grid of measurements: every combination of the lists is a point.
#[derive(Clone, Debug)]
pub struct PipelineGrid {
    /// The program that is measured.
    pub program: PipelineProgram,
    /// Frame lengths in bytes, without FCS.
    pub sizes: Vec<u32>,
    /// Steps of jumps and hashes per packet (netcope).
    pub steps: Vec<usize>,
    /// Numbers of cores, each with a port and a device of its own.
    pub cores: Vec<u16>,
    /// Frames that arrive together.
    pub bursts: Vec<u32>,
    /// Numbers of flows (netcope, forward, switch).
    pub flows: Vec<u32>,
    /// Numbers of links (emulate).
    pub links: Vec<u32>,
    /// The shape of one connected network that is emulated in place of separate links.
    pub topology: Option<NetworkShape>,
    /// Numbers of workers that run it side by side.
    pub workers: Vec<u16>,
    /// The tables (switch).
    pub rules: Rules,
    /// Packets timed per point and core.
    pub packets: u64,
    /// The attachment of the device to source and sink; `None`: memory ports.
    pub attachment: Option<DutAttachment>,
    /// Loss ratios for which the highest rate is searched, 0 ≤ ratio < 1.
    pub loss_ratios: Vec<f64>,
    /// Emulate a slower core by adding work (netcope, forward on memory ports).
    pub slowdown: Slowdown,
    /// The seed of random losses.
    pub seed: u64,
}

impl Default for PipelineGrid {
    /// One point, as of `fastpath measure pipeline --program forward`: 64-byte frames of a thousand
    /// flows in bursts of 64 through one core on memory ports.
    fn default() -> PipelineGrid {
        PipelineGrid {
            program: PipelineProgram::Forward,
            sizes: vec![64],
            steps: vec![0],
            cores: vec![1],
            bursts: vec![64],
            flows: vec![1000],
            links: vec![1],
            topology: None,
            workers: vec![2],
            rules: Rules::Cidr(912),
            packets: 1_000_000,
            attachment: None,
            loss_ratios: Vec::new(),
            slowdown: Slowdown::NONE,
            seed: 1,
        }
    }
}

/// Why a grid cannot be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GridError {
    /// Values that contradict each other or this machine.
    #[error("{0}")]
    Argument(String),
    /// The device cannot be attached.
    #[error(transparent)]
    Attachment(#[from] DutPortError),
    /// The search for a rate without loss failed.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The switch cannot be measured.
    #[error(transparent)]
    Switch(#[from] SwitchError),
}

/// Returns the larger disturbance of two.
fn worse(a: Disturbance, b: Disturbance) -> Disturbance {
    Disturbance {
        stolen_share: a.stolen_share.max(b.stolen_share),
        others_share: a.others_share.max(b.others_share),
        disturbed: a.disturbed || b.disturbed,
    }
}

/// A point of the grid.
#[derive(Clone, Copy)]
struct GridPoint {
    size: u32,
    h: usize,
    cores: u16,
    links: u32,
    burst: u32,
    flows: u32,
    workers: u16,
}

impl PipelineGrid {
    /// Measures all points. Returns one record per point.
    ///
    /// # Errors
    /// [`GridError::Argument`] before anything is measured; the others while measuring.
    pub fn measure(&self, tool: &Tool, progress: Progress<'_>) -> Result<Vec<Measurement>, GridError> {
        self.check()?;
        let points = self.points();
        let most = self.links.iter().max().map_or(1, |&links| links as usize);
        let is_separate = self.program == PipelineProgram::Emulate && self.topology.is_none();
        let weight = is_separate.then(|| weigh(most, self.seed));
        let passes = self.passes();
        let watch = Watch::start();
        let (mut parameters, mut found) = (Vec::new(), vec![Vec::new(); points.len()]);
        let (mut rates, mut disturbance) = (Vec::new(), Disturbance::default());
        for pass in 0..passes {
            let is_last = pass + 1 == passes;
            let measure_point = |(i, point): (usize, &GridPoint)| {
                let whole = |step: &str, done: usize, total: usize| {
                    if step == SEARCH {
                        let what = format!("rate search {} of {}, trials", i + 1, points.len());
                        return progress(&what, done, total);
                    }
                    let share = done as f64 / total.max(1) as f64;
                    let done = (pass * points.len() + i) as f64 + share;
                    progress("points", (1000.0 * done) as usize, 1000 * passes * points.len());
                };
                // The rates are searched in the last pass.
                let loss_ratios = if is_last { &self.loss_ratios[..] } else { &[] };
                self.measure_point(*point, weight, passes, loss_ratios, &whole)
            };
            // A pass that other work disturbs is repeated.
            let all = || points.iter().enumerate().map(measure_point).collect::<Result<Vec<_>, GridError>>();
            let (measured, of_pass) = undisturbed(all)?;
            disturbance = worse(disturbance, of_pass.disturbance());
            for (i, (set, mut results)) in measured.into_iter().enumerate() {
                if is_last {
                    parameters.push(set);
                    rates.push(results.remove("throughput"));
                }
                found[i].push(results);
            }
        }
        // Of the passes that are kept.
        let provenance = Provenance { disturbance, ..watch.provenance(tool, self.seed, self.packets) };
        let record = |((parameters, mut results), rates): ((_, Results), Option<Value>)| {
            results.extend(rates.map(|rates| ("throughput".to_owned(), rates)));
            let (kind, provenance) = ("pipeline".to_owned(), provenance.clone());
            Measurement { kind, provenance, parameters, results, platform: None }
        };
        Ok(parameters.into_iter().zip(typical(found)).zip(rates).map(record).collect())
    }

    fn check(&self) -> Result<(), GridError> {
        let refuse = |text: String| Err(GridError::Argument(text));
        let is_over_memory = self.attachment.is_none();
        if !is_over_memory && self.cores != [1] {
            return refuse("--port: a device on an interface has one core; leave --cores out".to_owned());
        }
        if self.topology.is_some() {
            if self.program != PipelineProgram::Emulate {
                return refuse("--topology: use it with --program emulate".to_owned());
            }
            if !is_over_memory || !self.loss_ratios.is_empty() || self.cores != [1] {
                return refuse("--topology: leave --port, --loss-ratio and --cores out".to_owned());
            }
        }
        let there = std::thread::available_parallelism().map_or(1, usize::from);
        if let Some(cores) = self.cores.iter().find(|&&cores| usize::from(cores) > there) {
            return refuse(format!(
                "--cores {cores}: this machine has {there}; `fastpath model cores` predicts more cores"
            ));
        }
        if self.program == PipelineProgram::Emulate
            && let (Some(&links), Some(&cores)) = (self.links.iter().min(), self.cores.iter().max())
            && links < u32::from(cores)
        {
            return refuse(format!("--cores {cores}: {links} links are too few to divide among the cores"));
        }
        let is_slowed = self.slowdown != Slowdown::NONE;
        let can_be_slow = matches!(self.program, PipelineProgram::Netcope | PipelineProgram::Forward);
        if is_slowed && !(can_be_slow && is_over_memory) {
            return refuse("--slowdown: use it with netcope or forward on memory ports".to_owned());
        }
        if is_slowed && !self.loss_ratios.is_empty() {
            return refuse("--slowdown: leave --loss-ratio out".to_owned());
        }
        if let Some(ratio) = self.loss_ratios.iter().find(|ratio| !(0.0..1.0).contains(*ratio)) {
            return refuse(format!("--loss-ratio {ratio}: must be at least 0 and below 1"));
        }
        if self.program != PipelineProgram::Netcope && self.steps.iter().any(|&h| h > 0) {
            return refuse("--h: only netcope has steps".to_owned());
        }
        if self.program == PipelineProgram::Emulate && self.flows.len() > 1 {
            return refuse("--flows: each emulated link has one flow; use --links".to_owned());
        }
        Ok(())
    }

    fn passes(&self) -> usize {
        let (least, most) = PASSES.into_inner();
        match (self.program, &self.attachment) {
            (PipelineProgram::Emulate, _) => 1,
            (PipelineProgram::Switch, _) | (_, Some(_)) => least as usize,
            _ => (self.packets / PASS_PACKETS).clamp(least, most) as usize,
        }
    }

    /// Returns the points. A parameter that the program does not have is not varied.
    fn points(&self) -> Vec<GridPoint> {
        let first = self.flows[0];
        let point =
            |&size: &u32| GridPoint { size, h: 0, cores: 1, links: 0, burst: 0, flows: first, workers: 1 };
        let mut points: Vec<GridPoint> = self.sizes.iter().map(point).collect();
        if self.program == PipelineProgram::Emulate {
            points = varied(points, &self.links, |point, links| GridPoint { links, ..point });
        } else {
            points = varied(points, &self.steps, |point, h| GridPoint { h, ..point });
            points = varied(points, &self.flows, |point, flows| GridPoint { flows, ..point });
        }
        if self.topology.is_some() {
            return varied(points, &self.workers, |point, workers| GridPoint { workers, ..point });
        }
        points = varied(points, &self.cores, |point, cores| GridPoint { cores, ..point });
        varied(points, &self.bursts, |point, burst| GridPoint { burst, ..point })
    }

    /// Measures one point in one of `passes` passes. Searches the rates for `loss_ratios`.
    fn measure_point(
        &self,
        point: GridPoint,
        weight: Option<LinkWeight>,
        passes: usize,
        loss_ratios: &[f64],
        progress: Progress<'_>,
    ) -> Result<(Map<String, Value>, Results), GridError> {
        let packets = self.packets.div_ceil(passes as u64);
        let goals: Vec<Goal> = loss_ratios.iter().map(|&loss_ratio| Goal { loss_ratio }).collect();
        let hunt = Hunt { goals: &goals, duration: TRIAL, width: WIDTH, queue: QUEUE };
        let open = |attachment| DutPort::open(attachment, point.size as usize);
        let dut_port = self.attachment.as_ref().map(open).transpose()?;
        let port = dut_port.as_ref().map(DutPort::kind);
        let measuring = Measuring { point, packets, dut_port, hunt, progress };
        let (mut parameters, mut results, rates) = match weight {
            Some(weight) => self.emulate_point(measuring, weight)?,
            None if self.program == PipelineProgram::Emulate => self.connected_point(measuring)?,
            None if self.program == PipelineProgram::Switch => self.switch_point(measuring)?,
            None => self.netcope_point(measuring)?,
        };
        if !rates.is_empty() {
            results.insert("throughput".to_owned(), json!(rates));
        }
        parameters.extend(port.map(|port| ("port".to_owned(), json!(port))));
        parameters.insert("program".to_owned(), json!(self.program.name()));
        parameters.insert(fcs::COLUMN.to_owned(), json!(Fcs::Without));
        // The packets of all passes together.
        parameters.insert("packets".to_owned(), json!(self.packets));
        Ok((parameters, results))
    }

    fn emulate_point(&self, of: Measuring<'_>, weight: LinkWeight) -> Result<Measured, GridError> {
        let GridPoint { size, cores, links, burst, .. } = of.point;
        let question = EmulationQuestion {
            size: size as usize,
            links: links as usize,
            burst: burst as usize,
            packets: self.packets,
            seed: self.seed,
            link: LinkKind::default(),
            cores: cores.into(),
        };
        let (found, rates) = match of.dut_port {
            Some(dut_port) => emulate_over(&question, weight, dut_port, of.hunt, of.progress)?,
            None => {
                let found = emulate(&question, weight, of.progress);
                let rates = emulate_throughput(&question, found.t_ns, of.hunt, of.progress)?;
                (found, rates)
            }
        };
        Ok((fields(&question), fields(&found), rates))
    }

    fn connected_point(&self, of: Measuring<'_>) -> Result<Measured, GridError> {
        let GridPoint { size, links, workers, .. } = of.point;
        let topology = self.topology.unwrap_or(NetworkShape::Dumbbell);
        let (size, links, workers) = (size as usize, links as usize, usize::from(workers));
        let question = ConnectedQuestion { topology, links, workers, size, seed: self.seed };
        let found = connected(&question, of.progress).map_err(GridError::Argument)?;
        Ok((fields(&question), fields(&found), Vec::new()))
    }

    fn switch_point(&self, of: Measuring<'_>) -> Result<Measured, GridError> {
        let GridPoint { size, cores, burst, flows, .. } = of.point;
        let (size, cores, burst) = (size as usize, usize::from(cores), burst as usize);
        let flows = flows as usize;
        let rules = self.rules.clone();
        let table = format!("{rules:?}");
        let question = SwitchQuestion { rules, flows, seed: self.seed, effort: Effort::Quick };
        let frames = SwitchFrames { size, burst, packets: of.packets };
        let (found, rates) = match of.dut_port {
            Some(dut_port) => switched_over(&question, frames, dut_port, of.hunt, of.progress)?,
            None => {
                let found = switched(&question, frames, cores, of.progress)?;
                let rates = switched_throughput(&question, frames, found.t_ns, of.hunt, of.progress)?;
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
        Ok((parameters, fields(&found), rates))
    }

    fn netcope_point(&self, of: Measuring<'_>) -> Result<Measured, GridError> {
        let GridPoint { size, h, cores, burst, flows, .. } = of.point;
        let question = NetcopeQuestion {
            p: size as usize,
            h,
            cores: cores.into(),
            burst: burst as usize,
            flows: flows as usize,
            packets: of.packets,
            tag: if self.program == PipelineProgram::Netcope { Tag::Push } else { Tag::None },
            slowdown: self.slowdown.factor(),
        };
        let (found, rates) = match of.dut_port {
            Some(dut_port) => netcope_over(&question, dut_port, of.hunt, of.progress)?,
            None => {
                let found = netcope(&question, of.progress);
                let rates = netcope_throughput(&question, found.t_ns, of.hunt, of.progress)?;
                (found, rates)
            }
        };
        Ok((fields(&question), fields(&found), rates))
    }
}

/// One pass over a point.
struct Measuring<'m> {
    point: GridPoint,
    packets: u64,
    /// `None`: in memory.
    dut_port: Option<DutPort>,
    hunt: Hunt<'m>,
    progress: Progress<'m>,
}

/// The parameters and results of a point, and the rates that were found.
type Measured = (Map<String, Value>, Results, Vec<Found>);

impl PipelineProgram {
    /// The name in records and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            PipelineProgram::Netcope => "netcope",
            PipelineProgram::Forward => "forward",
            PipelineProgram::Emulate => "emulate",
            PipelineProgram::Switch => "switch",
        }
    }
}

/// Combines every point with every value.
fn varied<T: Copy>(
    points: Vec<GridPoint>,
    values: &[T],
    with: impl Fn(GridPoint, T) -> GridPoint,
) -> Vec<GridPoint> {
    points
        .into_iter()
        .flat_map(|point| values.iter().map(move |&value| (point, value)))
        .map(|(point, value)| with(point, value))
        .collect()
}
