//! `fastpath model queue`: queues in steady state, by formula and by simulation. One subcommand for
//! each kind of queue, so that every argument of a command matters to it.

use crate::{Answer, view};
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use fastpath_model::queueing::priority::Preemption;
use fastpath_model::queueing::text::{ClassText, Pace, StationText, percent};
use fastpath_model::queueing::{
    LawSpread, QueueOutput, Queueing, ServerGroup, SimulationOptions, Times, simulate, solve,
};
use fastpath_units::Bytes;

/// Solve queues: utilisation, waits, sojourn times, losses.
///
/// Arrivals and services are rates (800kpps, 3/s, 10Gbit with --size) or times each (1us).
/// Distributions are constant, exponential, erlang:K, hyper:CV2 and cv2:CV2, where CV2 is the
/// squared coefficient of variation. All queues serve in order of arrival.
#[derive(Args)]
pub(super) struct QueueCommand {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// Solve M/M/1: Poisson arrivals, exponential services.
    Mm1(Plain),
    /// Solve M/M/c: several servers.
    Mmc(Several),
    /// Solve M/D/1: services of constant time.
    Md1(Plain),
    /// Solve M/G/1: services of any distribution.
    Mg1(GeneralService),
    /// Solve G/M/1: gaps between arrivals of any distribution.
    Gm1(GeneralGaps),
    /// Solve G/G/c: any gaps and services, approximately.
    Ggc(General),
    /// Solve M/M/1/K: limited places.
    Mm1k(QueuePlaces),
    /// Solve M/M/c/K: several servers, limited places.
    Mmck(SeveralPlaces),
    /// Solve M/G/1/K: limited places, services of any distribution.
    Mg1k(GeneralPlaces),
    /// Solve M/M/c//N: sources that wait for their service.
    Repair(Repair),
    /// Solve a queue with priorities.
    Priority(Priority),
    /// Solve queues in a row.
    Tandem(Tandem),
    /// Solve a closed network: customers that go around.
    Closed(Closed),
}

/// Percentiles, simulation, units, output.
#[derive(Args)]
struct Common {
    /// Bytes of a packet on the link, such as 1538B, for rates of bits.
    #[arg(long, value_name = "BYTES")]
    size: Option<Bytes>,
    /// Percentiles of the times.
    #[arg(long, value_name = "PERCENT,…", value_delimiter = ',', default_value = "50,95,99", value_parser = percent)]
    percentiles: Vec<f64>,
    /// Also simulate, with this seed. Figures then have 95 % intervals.
    #[arg(long, value_name = "SEED")]
    simulate: Option<u64>,
    /// Number of customers to simulate.
    #[arg(long, value_name = "N", requires = "simulate", default_value_t = 1_000_000)]
    simulated: u64,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Arrivals at a queue, and services.
#[derive(Args)]
struct Load {
    /// Arrivals: a rate, or the mean time between them.
    #[arg(long, value_name = "RATE|TIME")]
    arrivals: Pace,
    /// Service of one server: a rate, or the mean time.
    #[arg(long, value_name = "RATE|TIME")]
    service: Pace,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct Plain {
    #[command(flatten)]
    load: Load,
}

#[derive(Args)]
struct Several {
    #[command(flatten)]
    load: Load,
    /// Number of servers.
    #[arg(long, value_name = "N")]
    servers: u32,
}

#[derive(Args)]
struct GeneralService {
    #[command(flatten)]
    load: Load,
    /// Distribution of the service times.
    #[arg(long, value_name = "DISTRIBUTION")]
    services: LawSpread,
}

#[derive(Args)]
struct GeneralGaps {
    #[command(flatten)]
    load: Load,
    /// Distribution of the gaps between arrivals.
    #[arg(long, value_name = "DISTRIBUTION")]
    gaps: LawSpread,
}

#[derive(Args)]
struct General {
    #[command(flatten)]
    load: Load,
    /// Number of servers.
    #[arg(long, value_name = "N")]
    servers: u32,
    /// Distribution of the gaps between arrivals.
    #[arg(long, value_name = "DISTRIBUTION")]
    gaps: LawSpread,
    /// Distribution of the service times.
    #[arg(long, value_name = "DISTRIBUTION")]
    services: LawSpread,
}

#[derive(Args)]
struct QueuePlaces {
    #[command(flatten)]
    load: Load,
    /// Most customers at once, the one in service included. Others are lost.
    #[arg(long, value_name = "N")]
    places: u32,
}

#[derive(Args)]
struct SeveralPlaces {
    #[command(flatten)]
    load: Load,
    /// Number of servers.
    #[arg(long, value_name = "N")]
    servers: u32,
    /// Most customers at once, those in service included. Others are lost.
    #[arg(long, value_name = "N")]
    places: u32,
}

#[derive(Args)]
struct GeneralPlaces {
    #[command(flatten)]
    load: Load,
    /// Distribution of the service times.
    #[arg(long, value_name = "DISTRIBUTION")]
    services: LawSpread,
    /// Most customers at once, the one in service included. Others are lost.
    #[arg(long, value_name = "N")]
    places: u32,
}

#[derive(Args)]
struct Repair {
    /// Number of sources, each with at most one request.
    #[arg(long, value_name = "N")]
    sources: u32,
    /// Mean time from an answer to the next request of a source.
    #[arg(long, value_name = "TIME")]
    think: Pace,
    /// Service of one server: a rate, or the mean time.
    #[arg(long, value_name = "RATE|TIME")]
    service: Pace,
    /// Number of servers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    servers: u32,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct Priority {
    /// A class: ARRIVALS,SERVICE or ARRIVALS,SERVICE,DISTRIBUTION. The first goes first. May be
    /// repeated.
    #[arg(long = "class", value_name = "CLASS", required = true)]
    classes: Vec<ClassText>,
    /// Number of servers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    servers: u32,
    /// Stop the service of a later class when one of an earlier class arrives, and resume it
    /// afterwards.
    #[arg(long)]
    preemptive: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct Tandem {
    /// Arrivals at the first station: a rate, or the mean time between them.
    #[arg(long, value_name = "RATE|TIME")]
    arrivals: Pace,
    /// A station: SERVICE or SERVICE*SERVERS. May be repeated, in their order.
    #[arg(long = "station", value_name = "STATION", required = true)]
    stations: Vec<StationText>,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct Closed {
    /// Number of customers, such as packets or requests in flight.
    #[arg(long, value_name = "N")]
    customers: u32,
    /// A station: SERVICE or SERVICE*SERVERS. May be repeated.
    #[arg(long = "station", value_name = "STATION", required = true)]
    stations: Vec<StationText>,
    /// Mean time of a round outside the stations.
    #[arg(long, value_name = "TIME")]
    think: Option<Pace>,
    #[command(flatten)]
    common: Common,
}

impl QueueCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        use LawSpread::{Constant, Exponential};
        match self.kind {
            Kind::Mm1(Plain { load }) => load.answer(Exponential, Exponential, 1, None),
            Kind::Mmc(Several { load, servers }) => load.answer(Exponential, Exponential, servers, None),
            Kind::Md1(Plain { load }) => load.answer(Exponential, Constant, 1, None),
            Kind::Mg1(GeneralService { load, services }) => load.answer(Exponential, services, 1, None),
            Kind::Gm1(GeneralGaps { load, gaps }) => load.answer(gaps, Exponential, 1, None),
            Kind::Ggc(General { load, servers, gaps, services }) => {
                load.answer(gaps, services, servers, None)
            }
            Kind::Mm1k(QueuePlaces { load, places }) => {
                load.answer(Exponential, Exponential, 1, Some(places))
            }
            Kind::Mmck(SeveralPlaces { load, servers, places }) => {
                load.answer(Exponential, Exponential, servers, Some(places))
            }
            Kind::Mg1k(GeneralPlaces { load, services, places }) => {
                load.answer(Exponential, services, 1, Some(places))
            }
            Kind::Repair(repair) => repair.answer(),
            Kind::Priority(priority) => priority.answer(),
            Kind::Tandem(tandem) => tandem.answer(),
            Kind::Closed(closed) => closed.answer(),
        }
    }
}

impl Load {
    fn answer(
        self,
        gaps: LawSpread,
        services: LawSpread,
        servers: u32,
        places: Option<u32>,
    ) -> anyhow::Result<Answer> {
        let paces = [self.arrivals, self.service];
        let seconds = |what: &str, pace: Pace| self.common.seconds(what, pace);
        let queue = Queueing::Single {
            gaps: Times { mean: seconds("--arrivals", self.arrivals)?, spread: gaps },
            group: ServerGroup {
                service: Times { mean: seconds("--service", self.service)?, spread: services },
                servers,
            },
            places,
        };
        self.common.print(queue, &paces)
    }
}

impl Repair {
    fn answer(self) -> anyhow::Result<Answer> {
        let group = ServerGroup {
            service: Times::exponential(self.common.seconds("--service", self.service)?),
            servers: self.servers,
        };
        let think = Times::exponential(self.common.seconds("--think", self.think)?);
        let queue = Queueing::Closed { stations: vec![group], customers: self.sources, think: Some(think) };
        self.common.print(queue, &[self.service, self.think])
    }
}

impl Priority {
    fn answer(self) -> anyhow::Result<Answer> {
        let classes = self.classes.iter().map(|class| class.class(self.common.size));
        let classes =
            classes.collect::<Result<_, _>>().map_err(|error| anyhow::anyhow!("--class: {error}"))?;
        let preemption = if self.preemptive { Preemption::Resume } else { Preemption::None };
        let paces: Vec<Pace> =
            self.classes.iter().flat_map(|class| [class.arrivals, class.service]).collect();
        self.common.print(Queueing::Priority { classes, servers: self.servers, preemption }, &paces)
    }
}

impl Tandem {
    fn answer(self) -> anyhow::Result<Answer> {
        let gaps = Times::exponential(self.common.seconds("--arrivals", self.arrivals)?);
        let stations = self.common.stations(&self.stations)?;
        let paces = self.stations.iter().map(|station| station.service).chain([self.arrivals]);
        self.common.print(Queueing::Tandem { gaps, stations }, &paces.collect::<Vec<_>>())
    }
}

impl Closed {
    fn answer(self) -> anyhow::Result<Answer> {
        let think = self.think.map(|pace| self.common.seconds("--think", pace)).transpose()?;
        let stations = self.common.stations(&self.stations)?;
        let paces: Vec<Pace> =
            self.stations.iter().map(|station| station.service).chain(self.think).collect();
        let queue =
            Queueing::Closed { stations, customers: self.customers, think: think.map(Times::exponential) };
        self.common.print(queue, &paces)
    }
}

impl Common {
    fn seconds(&self, what: &str, pace: Pace) -> anyhow::Result<f64> {
        pace.seconds(self.size).map_err(|error| anyhow::anyhow!("{what}: {error}"))
    }

    fn stations(&self, texts: &[StationText]) -> anyhow::Result<Vec<ServerGroup>> {
        let groups = texts.iter().map(|text| text.group(self.size));
        groups.collect::<Result<_, _>>().map_err(|error| anyhow::anyhow!("--station: {error}"))
    }

    /// Solves a queue, simulates it if asked to, and prints both.
    fn print(&self, queue: Queueing, paces: &[Pace]) -> anyhow::Result<Answer> {
        if let Some(size) = self.size
            && !paces.iter().any(|pace| pace.is_bits())
        {
            bail!("--size {size}: no rate is in bits: leave it out, or write a rate such as 10Gbit");
        }
        let formula = solve(&queue, &self.percentiles)?;
        if formula.is_none() && self.simulate.is_none() {
            bail!(
                "{}: no formula is known: simulate it with --simulate SEED, such as --simulate 1",
                queue.name()
            );
        }
        let simulation = self
            .simulate
            .map(|seed| {
                let options = SimulationOptions { seed, customers: self.simulated };
                simulate(&queue, &self.percentiles, options).context("--simulate")
            })
            .transpose()?;
        let output = QueueOutput { name: queue.name(), queue, formula, simulation };
        view::print(&output, self.json)?;
        Ok(Answer::Yes)
    }
}
