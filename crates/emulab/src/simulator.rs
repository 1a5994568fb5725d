//! The objects that a script has created: nodes, links, lans, their parameters and events, by
//! handle.

use crate::ns_queue::{NsQueue, QueueParameter};
use crate::syntax::Value;
use fastpath_spec::TrafficKind;
use fastpath_traffic::{CongestionControl, PeriodLaw};
use fastpath_units::{Duration, Probability, Rate, Rng, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The most objects in one script.
const OBJECTS_MAX: usize = 1 << 20;
/// The prefix length that Emulab gives to links and lans.
pub(crate) const PREFIX_LENGTH: u8 = 24;

/// The object of a handle. The numbers are indices into the vectors of [`Simulator`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Object {
    Simulator,
    Node(usize),
    Link(usize),
    Lan(usize),
    /// One end's outgoing direction of a link, `[$ns link $a $b]`, or of both for a node's link to
    /// a lan.
    Direction(usize, [bool; 2]),
    /// The queue of such a direction.
    Queue(usize, [bool; 2]),
    /// A random variable: `new RandomVariable/Uniform`.
    Variable(usize),
    /// A generator of random numbers: `new RNG`.
    Generator(usize),
    /// A program of a node: `$node program-agent`, `new Program`.
    Program(usize),
    /// An end of traffic: `new Agent/UDP`.
    Agent(usize),
    /// A source of traffic: `new Application/Traffic/CBR`.
    Source(usize),
    /// A timeline or a sequence of events.
    EventList(usize),
    /// Objects that have their events together: `new EventGroup`.
    Group(usize),
    /// Losses of packets: `new ErrorModel`.
    ErrorModel(usize),
    /// Something that does not concern the network, such as a file.
    Other,
    /// The result of a command with a mistake.
    Broken,
}

/// All objects of a script.
#[derive(Debug, Default)]
pub(crate) struct Simulator {
    objects: Vec<Object>,
    /// The name of each object: the first global variable that held it.
    names: Vec<Option<String>>,
    by_name: BTreeMap<String, usize>,
    pub(crate) nodes: Vec<Creation>,
    pub(crate) lans: Vec<Lan>,
    pub(crate) links: Vec<ScriptLink>,
    /// By the two ends of links, the lesser first: the last link between them.
    last_between: BTreeMap<[LinkEnd; 2], usize>,
    /// By end: how many links it has, and the first of them.
    at_end: BTreeMap<LinkEnd, (usize, usize)>,
    pub(crate) events: Vec<Event>,
    /// Events that wait for the end of the script, in the order in which they happen.
    pub(crate) pending: BTreeMap<(Time, u64), Pending>,
    /// How many events have waited.
    pub(crate) waited: u64,
    /// How many of them were made by events.
    pub(crate) following: u64,
    pub(crate) lists: Vec<EventList>,
    pub(crate) groups: Vec<EventGroup>,
    pub(crate) models: Vec<LinkModel>,
    /// The random numbers of models.
    pub(crate) model_rng: Option<Rng>,
    pub(crate) class_values: Vec<ClassValue>,
    pub(crate) error_models: Vec<ErrorModel>,
    /// Classes of the script, which are refused where it makes them.
    pub(crate) refused: BTreeSet<String>,
    /// Whether the script makes wireless nodes, which are refused.
    pub(crate) is_wireless: bool,
    /// Parameters of queues that only RED has, and the script's places of them.
    pub(crate) red_settings: Vec<RedSetting>,
    /// Whether the script is one of Emulab, not of ns-2: it has commands of Emulab.
    pub(crate) is_emulab: bool,
    pub(crate) programs: Vec<ProgramAgent>,
    pub(crate) commands: Vec<NodeCommand>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) sources: Vec<Source>,
    /// When the script ends the simulation: `$ns at 5.0 "finish"`.
    pub(crate) end: Option<Time>,
    pub(crate) variables: Vec<RandomVariable>,
    /// Generators of random numbers; the first is `$defaultRNG`.
    pub(crate) generators: Vec<Rng>,
    pub(crate) ran: bool,
    /// Whether routes follow the states of links (`rtproto Session`).
    pub(crate) has_dynamic_routes: bool,
}

/// An event that has not happened yet.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) place: usize,
    pub(crate) act: PendingAct,
    /// Whether a procedure made it that is an event itself.
    pub(crate) is_of_event: bool,
}

/// What an event does.
#[derive(Clone, Debug)]
pub(crate) enum PendingAct {
    /// Events as `$ns at` takes them, with `;` between them; or a script.
    Script(Value),
    /// The words of one command.
    Words(Vec<Value>),
    /// What a model of links does next: whether they go down.
    Model(usize, bool),
}

/// Links that go down and up by themselves (`$ns rtmodel`).
#[derive(Clone, Debug)]
pub(crate) struct LinkModel {
    pub(crate) place: usize,
    /// The links, by their numbers.
    pub(crate) links: Vec<usize>,
    /// Whether the intervals are means of an exponential law.
    pub(crate) is_random: bool,
    pub(crate) up: Duration,
    pub(crate) down: Duration,
    pub(crate) finish: Option<Time>,
}

/// Losses of packets, and the directions of links that have them.
#[derive(Clone, Debug)]
pub(crate) struct ErrorModel {
    pub(crate) made: Creation,
    pub(crate) rate: Probability,
    pub(crate) is_of_packets: bool,
    pub(crate) links: Vec<(usize, [bool; 2])>,
}

/// A value that objects of a class have from the start: `Agent/TCP set window_ 30`.
#[derive(Clone, Debug)]
pub(crate) struct ClassValue {
    pub(crate) place: usize,
    pub(crate) class: String,
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) is_used: bool,
}

/// A timeline, whose events have times from its start, or a sequence, whose events follow each
/// other.
#[derive(Clone, Debug)]
pub(crate) struct EventList {
    pub(crate) made: Creation,
    pub(crate) is_sequence: bool,
    pub(crate) events: Vec<ListedEvent>,
    pub(crate) is_started: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ListedEvent {
    /// From the start of a timeline.
    pub(crate) after: Duration,
    pub(crate) place: usize,
    pub(crate) act: PendingAct,
}

#[derive(Clone, Debug)]
pub(crate) struct EventGroup {
    pub(crate) made: Creation,
    /// Their handles.
    pub(crate) members: Vec<Value>,
    pub(crate) is_used: bool,
}

/// A parameter of RED that a script has set.
#[derive(Clone, Debug)]
pub(crate) struct RedSetting {
    pub(crate) place: usize,
    pub(crate) link: usize,
    pub(crate) ends: [bool; 2],
    pub(crate) name: String,
}

/// A program of a node, which events start and stop.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct ProgramAgent {
    pub(crate) made: Option<Creation>,
    /// Whether it is on the testbed's own machine.
    pub(crate) is_on_ops: bool,
    pub(crate) is_used: bool,
    pub(crate) node: Option<usize>,
    /// A command of a shell.
    pub(crate) command: Option<String>,
    pub(crate) directory: Option<String>,
    /// Seconds after which it ends.
    pub(crate) timeout: Option<String>,
}

/// A command of a node at a time of the run.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct NodeCommand {
    pub(crate) at: Time,
    pub(crate) place: usize,
    pub(crate) what: ScriptAction,
}

/// What a command does.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum ScriptAction {
    /// Runs a command of a shell on a node.
    Run(usize, String),
    /// Starts a program, with the values that it has then.
    Start(usize, Box<ProgramAgent>),
    /// Ends a program by a signal.
    Stop(usize, String),
}

/// A random variable of ns-2; `random.rs` has the distributions.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RandomVariable {
    /// Which distribution.
    pub(crate) law: usize,
    pub(crate) parameters: Vec<f64>,
    /// The generator it draws from.
    pub(crate) generator: usize,
}

/// The number of an object and where the script creates it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Creation {
    pub(crate) object: usize,
    pub(crate) at: usize,
}

#[derive(Debug)]
pub(crate) struct Lan {
    pub(crate) made: Creation,
    /// Its links, one per member.
    pub(crate) links: Vec<usize>,
}

/// An end of a link: a node or a lan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum LinkEnd {
    Node(usize),
    Lan(usize),
}

#[derive(Debug)]
pub(crate) struct ScriptLink {
    /// `None` for a member's link to a lan.
    pub(crate) made: Option<Creation>,
    pub(crate) at: usize,
    pub(crate) ends: [LinkEnd; 2],
    /// From end 0 to end 1, and back; `None` where only the other direction was made.
    pub(crate) pipes: [Option<Pipe>; 2],
    /// The addresses given to the ends, with their place in the script.
    pub(crate) addresses: [Option<(Ipv4Addr, usize)>; 2],
    pub(crate) prefix_length: u8,
}

/// One direction of a link.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Pipe {
    pub(crate) rate: Option<Rate>,
    pub(crate) delay: Duration,
    pub(crate) loss: Probability,
    pub(crate) queue: NsQueue,
}

/// `$ns at`: what happens to the pipes of some links.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Event {
    pub(crate) at: Time,
    pub(crate) link: usize,
    pub(crate) ends: [bool; 2],
    pub(crate) act: Act,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Act {
    Rate(Option<Rate>),
    Delay(Duration),
    Loss(Probability),
    Queue(QueueParameter),
    Up,
    Down,
}

impl Simulator {
    /// Adds an object. Returns `None` if there are too many.
    pub(crate) fn add(&mut self, object: Object) -> Option<usize> {
        if self.objects.len() == OBJECTS_MAX {
            return None;
        }
        self.objects.push(object);
        self.names.push(None);
        Some(self.objects.len() - 1)
    }

    /// Returns the first object that is this one.
    pub(crate) fn first(&self, wanted: Object) -> Option<usize> {
        self.objects.iter().position(|object| *object == wanted)
    }

    /// Returns the object of a handle or name.
    pub(crate) fn object(&self, text: &str) -> Option<Object> {
        self.index(text).map(|index| self.objects[index])
    }

    pub(crate) fn handle(index: usize) -> String {
        format!("_o{index}")
    }

    fn index(&self, text: &str) -> Option<usize> {
        let handle = text.strip_prefix("_o").and_then(|number| number.parse().ok());
        handle.filter(|&index| index < self.objects.len()).or_else(|| self.by_name.get(text).copied())
    }

    /// Names an object by the variable that holds it, as Emulab does: `nodes(3)` is `nodes-3`. The
    /// first such variable counts.
    pub(crate) fn name_object(&mut self, handle: &str, variable: &str) {
        let Some(index) = self.index(handle).filter(|_| handle.starts_with("_o")) else { return };
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '-' };
        let name: String = variable.trim_end_matches(')').chars().map(plain).collect();
        if self.names[index].is_none() && !self.by_name.contains_key(&name) {
            self.by_name.insert(name.clone(), index);
            self.names[index] = Some(name);
        }
    }

    /// Returns the node on which a command runs.
    pub(crate) fn node_of(&self, action: &ScriptAction) -> Option<usize> {
        match action {
            ScriptAction::Run(node, _) => Some(*node),
            ScriptAction::Start(program, _) | ScriptAction::Stop(program, _) => self.programs[*program].node,
        }
    }

    pub(crate) fn name(&self, made: Creation) -> Option<&str> {
        self.names[made.object].as_deref()
    }

    /// Returns the name of the object of a handle or name.
    pub(crate) fn name_of(&self, text: &str) -> Option<&str> {
        self.names[self.index(text)?].as_deref()
    }

    /// Changes the pipes of a link that leave the marked ends.
    pub(crate) fn change_pipes(&mut self, link: usize, ends: [bool; 2], change: impl Fn(&mut Pipe)) {
        let pipes = self.links[link].pipes.iter_mut().zip(ends);
        pipes.filter(|(_, marked)| *marked).filter_map(|(pipe, _)| pipe.as_mut()).for_each(change);
    }

    /// Ends the run at a time, if it does not end before.
    pub(crate) fn end_at(&mut self, at: Time) {
        self.end = Some(self.end.map_or(at, |end| end.min(at)));
    }

    /// The objects that have sources: agents that send.
    pub(crate) fn sending_agents(&self) -> BTreeSet<usize> {
        self.sources.iter().filter_map(|source| source.agent).collect()
    }

    /// Adds a link.
    pub(crate) fn add_link(&mut self, link: ScriptLink) {
        let index = self.links.len();
        self.last_between.insert(sorted(link.ends), index);
        for end in link.ends {
            self.at_end.entry(end).or_insert((0, index)).0 += 1;
        }
        self.links.push(link);
    }

    /// Returns the last link between two nodes, and its end at the first.
    pub(crate) fn between(&self, a: usize, b: usize) -> Option<(usize, usize)> {
        let (a, b) = (LinkEnd::Node(a), LinkEnd::Node(b));
        let link = *self.last_between.get(&sorted([a, b]))?;
        Some((link, self.end_of(link, a)?))
    }

    /// Returns the link between a node and a lan. The node is end 0.
    pub(crate) fn member(&self, lan: usize, node: usize) -> Option<usize> {
        self.last_between.get(&sorted([LinkEnd::Node(node), LinkEnd::Lan(lan)])).copied()
    }

    /// Returns the only link of a node, and its end there.
    pub(crate) fn only_link(&self, node: usize) -> Option<(usize, usize)> {
        let end = LinkEnd::Node(node);
        let &(count, link) = self.at_end.get(&end)?;
        Some((link, self.end_of(link, end)?)).filter(|_| count == 1)
    }

    fn end_of(&self, link: usize, end: LinkEnd) -> Option<usize> {
        self.links[link].ends.iter().position(|other| *other == end)
    }
}

fn sorted(mut ends: [LinkEnd; 2]) -> [LinkEnd; 2] {
    ends.sort();
    ends
}

/// An agent: an end of traffic on a node.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) made: Creation,
    pub(crate) class: AgentClass,
    pub(crate) node: Option<usize>,
    pub(crate) peer: Option<usize>,
    /// The source of an agent that is one itself (`Agent/CBR`).
    pub(crate) source: Option<usize>,
    /// Values without effect here: a script may read what it has set.
    pub(crate) values: BTreeMap<String, Value>,
    /// What only agents of TCP have.
    pub(crate) tcp: Option<TcpAgent>,
}

/// The values of an agent of TCP, with ns-2's defaults.
#[derive(Clone, Debug)]
pub(crate) struct TcpAgent {
    /// Its class, without `Agent/`.
    pub(crate) class: String,
    pub(crate) congestion: CongestionControl,
    /// Bytes of data in a packet.
    pub(crate) packet_size: u32,
    /// Packets in flight, as the script writes it.
    pub(crate) window: String,
    pub(crate) ecn: bool,
    /// The source of what the agent itself is told to send.
    pub(crate) sender: Option<usize>,
    /// Packets that it was told to send so far.
    pub(crate) packets: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AgentClass {
    Udp,
    Tcp,
    /// A sink that acknowledges.
    TcpSink,
    Sink,
    /// A class that is not known here: an end of traffic, which sends nothing by itself.
    Other,
}

/// A source of packets, and what events do with it.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) made: Creation,
    pub(crate) kind: SourceKind,
    pub(crate) values: SourceValues,
    pub(crate) agent: Option<usize>,
    pub(crate) switches: Vec<Switch>,
    /// Whether it is one message, `$udp send 1000`.
    pub(crate) is_message: bool,
}

/// The values of a source, which a script sets.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct SourceValues {
    /// `None`: the default of its kind.
    pub(crate) rate: Option<Rate>,
    /// A packet in each interval, and the size of packets when it was set.
    pub(crate) interval: Option<(Duration, u32)>,
    pub(crate) size: u32,
    pub(crate) burst: Duration,
    pub(crate) idle: Duration,
    pub(crate) shape: f64,
    pub(crate) packets_max: Option<u64>,
    pub(crate) dscp: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SourceKind {
    Constant,
    Poisson,
    Exponential,
    Pareto,
    /// Data without end, or of a size, over TCP.
    Ftp,
    /// Packets of a terminal over TCP.
    Telnet,
}

/// What happens to a source at a time.
#[derive(Clone, Debug)]
pub(crate) struct Switch {
    pub(crate) at: Time,
    pub(crate) act: SwitchAct,
    pub(crate) place: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum SwitchAct {
    Start,
    Stop,
    /// Bytes over TCP.
    Send(u64),
    /// A key and its new value.
    Set(String, Value),
}

impl Source {
    pub(crate) fn new(made: Creation, kind: SourceKind) -> Source {
        let values = SourceValues {
            rate: None,
            interval: None,
            size: 210,
            burst: Duration::from_ms(500),
            idle: Duration::from_ms(500),
            shape: 1.5,
            packets_max: None,
            dscp: 0,
        };
        Source { made, kind, values, agent: None, switches: Vec::new(), is_message: false }
    }

    pub(crate) fn is_started(&self) -> bool {
        self.switches.iter().any(|switch| matches!(switch.act, SwitchAct::Start | SwitchAct::Send(_)))
    }
}

impl SourceValues {
    /// What a source of these values is in a description.
    pub(crate) fn kind(&self, kind: SourceKind) -> TrafficKind {
        match kind {
            SourceKind::Constant | SourceKind::Ftp | SourceKind::Telnet => TrafficKind::Constant,
            SourceKind::Poisson => TrafficKind::Poisson,
            SourceKind::Exponential => TrafficKind::OnOff {
                on: PeriodLaw::Exponential(self.burst),
                off: PeriodLaw::Exponential(self.idle),
            },
            SourceKind::Pareto => {
                let law = |mean| PeriodLaw::Pareto { mean, shape: self.shape };
                TrafficKind::OnOff { on: law(self.burst), off: law(self.idle) }
            }
        }
    }

    /// The rate, or a packet in each interval. The defaults are those of ns-2 (ns-default.tcl) and
    /// of Emulab (ns2ir/traffic.tcl).
    pub(crate) fn rate(&self, kind: SourceKind, is_emulab: bool) -> Option<Rate> {
        let Some((interval, size_then)) = self.interval else {
            let default = match (kind, is_emulab) {
                (SourceKind::Constant, true) => 100_000_000,
                (SourceKind::Constant, false) => 448_000,
                _ => 64_000,
            };
            return self.rate.or(Rate::from_bps(default));
        };
        // ns-2 makes it a rate at once (ns-source.tcl): a later size changes the interval.
        let is_rate = kind == SourceKind::Constant && !is_emulab;
        let size = if is_rate { size_then } else { self.size };
        Rate::from_bps((f64::from(size) * 8.0 / interval.as_secs_f64()).round() as u64)
    }
}
