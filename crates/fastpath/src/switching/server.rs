//! A switch between real ports, driven by controllers (Linux).
//!
//! ```text
//!  controllers ═ Agent ═ Control (tables) ─▶ Datapath ═ ports
//! ```

use super::executor::{executor, executor_for};
use super::kernel::{self, KernelExecutor, SharedCounts};
use super::ports::{load_rules, number_ports};
use crate::error::{Error, Result};
use fastpath_engine::Notice;
use fastpath_engine::control::{HttpAddress, SwitchPage};
use fastpath_engine::port::{self, OpenContext};
use fastpath_engine::switching::{
    Control, Datapath, LinkWatch, PacketInLimit, SwitchAccounting, SwitchPort, SwitchRunning, WORKERS_MAX,
    WorkerSummary, serve_workers,
};
use fastpath_jit::ebpf::KernelCounts;
use fastpath_openflow::agent::{self, Agent, Doorbell, PortInfo};
pub use fastpath_openflow::agent::{FailMode, Listen, Target, TlsFiles, Versions};
use fastpath_spec::{DataPathChoice, ParsePortNameError, PortName};
use fastpath_switch::{Executor, PortCounters, Switch};
use fastpath_wire::MacAddr;
use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::PoisonError;
use std::time::Duration;

/// Memory for frames that wait for ports.
const POOL: NonZeroUsize = NonZeroUsize::new(64 << 20).expect("not zero");

/// The ports, rules and controllers of a switch that runs.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Names of the ports and what each attaches to. [`number_ports`] numbers them.
    pub ports: Vec<(String, PortName)>,
    /// A file of rules, in the syntax of ovs-ofctl.
    pub rules: Option<PathBuf>,
    /// The datapath id.
    pub datapath_id: u64,
    /// The versions of OpenFlow that controllers may use.
    pub versions: Versions,
    /// Addresses on which controllers may connect.
    pub listen: Vec<Listen>,
    /// Addresses on which a copy of all messages is served (`ovs-ofctl snoop`).
    pub snoop: Vec<Listen>,
    /// Controllers to dial.
    pub connect: Vec<Target>,
    /// Keys and certificates for TLS.
    pub tls: Option<TlsFiles>,
    /// What the switch does without a controller.
    pub fail_mode: FailMode,
    /// Most packet-ins per second; 0 for no limit.
    pub packet_in_rate: u32,
    /// Silence after which a controller gets an echo request; zero for never.
    pub probe_every: Duration,
    /// The longest wait before a controller is dialled again.
    pub backoff_max: Duration,
    /// Where packets are executed.
    pub data_path: DataPathChoice,
    /// The threads that move packets.
    pub workers: NonZeroUsize,
    /// How what arrives is split between them.
    pub split: FrameSplit,
    /// Where to show the tables in a browser; `None`: not.
    pub dashboard: Option<HttpAddress>,
    /// Receives notices of events: controllers that connect, ports that fail.
    pub notice: Notice,
}

/// How the frames that arrive are split between workers. Frames of a flow stay in order in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FrameSplit {
    /// Each port is polled by one worker.
    #[default]
    Ports,
    /// The kernel splits what arrives on an interface by a hash of its flows. Ports of other kinds
    /// are polled by one worker each.
    Flows,
}

/// A port of the switch and what it attaches to: `NAME=KIND`, or an interface.
#[derive(Clone, Debug)]
pub struct NamedPort {
    /// The name.
    pub name: String,
    /// The interface or memory to which the port attaches.
    pub port: PortName,
}

impl FromStr for NamedPort {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<NamedPort, String> {
        let (name, port) = text.split_once('=').map_or((None, text), |(name, port)| (Some(name), port));
        let port: PortName = port.parse().map_err(|error: ParsePortNameError| {
            format!("{error}: {}, each with NAME= before it", error.instead())
        })?;
        let name = name.or(port.interface()).unwrap_or(port.kind()).to_owned();
        Ok(NamedPort { name, port })
    }
}

/// Parses a datapath id: up to 16 hexadecimal digits, with colons or not.
///
/// # Errors
/// What to write instead.
pub fn parse_datapath_id(text: &str) -> std::result::Result<u64, &'static str> {
    let digits = text.strip_prefix("0x").unwrap_or(text).replace(':', "");
    u64::from_str_radix(&digits, 16).map_err(|_| "write up to 16 hexadecimal digits")
}

/// A switch that is being served. Dropping it ends it.
pub struct SwitchServer {
    control: Control,
    numbers: Vec<(u32, String)>,
    agent: Agent,
    running: SwitchRunning,
    listening: Vec<Listen>,
    data_path: String,
    kernel: Option<SharedCounts>,
    page: Option<SwitchPage>,
}

/// Open ports, their executor, and where packets are executed.
struct Opened {
    ports: Vec<SwitchPort>,
    executor: Box<dyn Executor>,
    data_path: String,
    kernel: Option<SharedCounts>,
}

/// The results of serving a switch.
#[derive(Debug)]
pub struct ServedSummary {
    /// Where all packets went.
    pub packets: SwitchAccounting,
    /// Number, name and counters of each port.
    pub ports: Vec<(u32, String, PortCounters)>,
    /// What each worker polled and received.
    pub workers: Vec<WorkerSummary>,
}

impl Default for ServerOptions {
    /// No ports, no controllers, fail-secure; notices go to standard error.
    fn default() -> ServerOptions {
        ServerOptions {
            ports: Vec::new(),
            rules: None,
            datapath_id: 1,
            versions: Versions::default(),
            listen: Vec::new(),
            snoop: Vec::new(),
            connect: Vec::new(),
            tls: None,
            fail_mode: FailMode::Secure,
            packet_in_rate: PacketInLimit::default().per_second,
            probe_every: Duration::from_secs(15),
            backoff_max: Duration::from_secs(8),
            data_path: DataPathChoice::User,
            workers: NonZeroUsize::MIN,
            split: FrameSplit::default(),
            dashboard: None,
            notice: Notice::to_stderr(),
        }
    }
}

impl ServerOptions {
    /// Returns warnings of addresses that other hosts reach without a certificate.
    pub fn warnings(&self) -> Vec<String> {
        let control = self.listen.iter().filter(|listen| listen.is_exposed()).map(|listen| {
            format!(
                "{listen}: every host that reaches it may control the switch: write \
                 ptcp:{port}:127.0.0.1, or ptls:{port}:{ip} with certificates",
                port = listen.at.port(),
                ip = listen.at.ip()
            )
        });
        let snoop =
            self.snoop.iter().filter(|snoop| snoop.is_exposed()).map(|snoop| {
                format!("{snoop}: every host that reaches it may read all messages of the switch")
            });
        control.chain(snoop).collect()
    }
}

impl SwitchServer {
    /// Opens the ports, loads the rules, and starts the data path and the agent.
    ///
    /// # Errors
    /// Ports that cannot be opened, mistakes in rules, addresses in use, keys that cannot be read.
    pub fn start(mut switch: Switch, options: ServerOptions) -> Result<SwitchServer> {
        let ServerOptions { ports: named, notice, .. } = &options;
        let numbers = number_ports(named.iter().map(|(name, _)| name.as_str()))?;
        let numbers: Vec<(u32, String)> = numbers.into_iter().map(|(n, name)| (n, name.to_owned())).collect();
        numbers.iter().for_each(|(number, _)| switch.set_port(*number, fastpath_switch::Port::up()));
        if let Some(rules) = &options.rules {
            let by_name = numbers.iter().map(|(number, name)| (name.clone(), *number)).collect();
            load_rules(&mut switch, rules, &by_name)?;
        }
        let start = |error: io::Error| Error::Argument(format!("starting the switch: {error}"));
        let Opened { ports, executor, data_path, kernel } = open(&mut switch, &numbers, &options)?;
        let interfaces = ports.iter().zip(named).filter_map(|(port, (_, name))| {
            Some((port.number, port.channels[0].as_ref(), name.interface()?))
        });
        let links = LinkWatch::new(interfaces).map_err(start)?;
        let doorbell = Doorbell::new().map_err(start)?;
        let limit = PacketInLimit { per_second: options.packet_in_rate, ..PacketInLimit::default() };
        let control = Control::with_workers(switch, executor, limit, options.workers, doorbell.ringer());
        let control = control.map_err(start)?;
        let workers = Datapath::workers(&control, ports, POOL, notice);
        let running = serve_workers(&control, workers).map_err(start)?;
        let page = options.dashboard.as_ref().map(|address| {
            let page = SwitchPage::start(address, &control, numbers.iter().cloned().collect());
            page.map_err(|error| Error::Argument(format!("dashboard at {address}: {error}")))
        });
        let page = page.transpose()?;
        let agent_options = agent::Options {
            versions: options.versions,
            datapath_id: options.datapath_id,
            ports: port_infos(&numbers, &links),
            listen: options.listen.clone(),
            snoop: options.snoop.clone(),
            connect: options.connect,
            tls: options.tls,
            fail_mode: options.fail_mode,
            probe_every: options.probe_every,
            backoff_max: options.backoff_max,
            links: Some(links),
            notice: options.notice,
        };
        let agent = Agent::start(&control, doorbell, agent_options);
        let agent = agent.map_err(|error| Error::Argument(error.to_string()))?;
        let asked = options.listen.iter().chain(&options.snoop);
        let listening = asked.zip(agent.listening()).map(|(listen, at)| Listen { at: *at, ..*listen });
        let listening = listening.collect();
        Ok(SwitchServer { control, numbers, agent, running, listening, data_path, kernel, page })
    }

    /// The addresses on which the switch listens, with the port numbers that the system chose.
    pub fn listening(&self) -> &[Listen] {
        &self.listening
    }

    /// Returns the address of the dashboard, with its token.
    pub fn dashboard(&self) -> Option<String> {
        self.page.as_ref().map(SwitchPage::address)
    }

    /// Where packets are executed, and why not in the kernel.
    pub fn data_path(&self) -> &str {
        &self.data_path
    }

    /// What each worker polls: the numbers of its ports.
    pub fn polled(&self) -> Vec<Vec<u32>> {
        self.control.workers().into_iter().map(|worker| worker.ports).collect()
    }

    /// Whether a thread of the switch has ended by a defect.
    pub fn has_failed(&self) -> bool {
        self.agent.has_failed() || self.running.has_failed()
    }

    /// Ends the switch. Returns where all packets went.
    pub fn stop(self) -> ServedSummary {
        let SwitchServer { control, numbers, agent, running, kernel, page, .. } = self;
        drop((agent, page));
        let counters = |(number, name): (u32, String)| {
            let counters = control.read(|switch, _| switch.port(number).map(|port| port.counters));
            (number, name, counters.unwrap_or_default())
        };
        let ports = numbers.into_iter().map(counters).collect();
        let mut packets = running.stop();
        if let Some(counts) = kernel {
            add(&mut packets, &counts.lock().unwrap_or_else(PoisonError::into_inner));
        }
        ServedSummary { packets, ports, workers: control.workers() }
    }
}

/// Refuses combinations of workers and ports that would not be what they say.
fn check_workers(options: &ServerOptions) -> Result<()> {
    let (workers, ports) = (options.workers.get(), options.ports.len());
    let refuse = |text: String| Err(Error::Argument(format!("--workers {workers}: {text}")));
    let splits = options.split == FrameSplit::Flows;
    if splits && workers == 1 {
        return refuse("one worker has nothing to split; write --workers 2, or leave --split out".to_owned());
    }
    if splits && !options.ports.iter().any(|(_, name)| port::splits_flows(name)) {
        return Err(Error::Argument(
            "--split flow: the kernel splits flows for packet sockets, and no port has one; write --port \
             NAME=IFACE, or --split port"
                .to_owned(),
        ));
    }
    match workers {
        1 => Ok(()),
        _ if workers > WORKERS_MAX => refuse(format!("write at most {WORKERS_MAX}")),
        _ if options.data_path != DataPathChoice::User => {
            refuse("workers execute packets in user space; write --data-path user".to_owned())
        }
        _ if !splits && workers > ports => refuse(format!(
            "a worker polls at least one port, and there are {ports}; write fewer workers, or --split flow"
        )),
        _ => Ok(()),
    }
}

/// Opens the ports, and makes their executor, in the kernel if that is wanted and possible.
fn open(switch: &mut Switch, numbers: &[(u32, String)], options: &ServerOptions) -> Result<Opened> {
    check_workers(options)?;
    let notice = options.notice.clone();
    let say = |text: &str| notice.send(text);
    let data_path = match options.data_path {
        DataPathChoice::User => "user".to_owned(),
        DataPathChoice::Kernel | DataPathChoice::Auto => match open_kernel(switch, numbers, options) {
            Ok(opened) => return Ok(opened),
            Err(error) if options.data_path == DataPathChoice::Kernel => {
                return Err(Error::Argument(format!("--data-path kernel: {error}; write --data-path user")));
            }
            Err(error) => format!("user, because {error}"),
        },
    };
    let mut context = OpenContext::new(options.ports.iter().map(|(_, port)| port.clone()), &options.notice);
    let mut ports = Vec::new();
    for ((number, _), (_, name)) in numbers.iter().zip(&options.ports) {
        let channels = match options.split {
            FrameSplit::Flows => port::open_channels(name, options.workers.get()),
            FrameSplit::Ports => Ok(None),
        };
        let channels = match channels {
            Ok(Some(channels)) => Ok(channels),
            Ok(None) => port::open(name, &mut context).map(|port| vec![port]),
            Err(error) => Err(error),
        };
        let channels = channels.map_err(|error| Error::Argument(error.to_string()))?;
        ports.push(SwitchPort { number: *number, channels });
    }
    Ok(Opened { ports, executor: executor_for(switch, options.workers, &say), data_path, kernel: None })
}

/// Opens ports to the kernel's tables.
fn open_kernel(switch: &mut Switch, numbers: &[(u32, String)], options: &ServerOptions) -> Result<Opened> {
    if let Some(obstacle) = kernel::obstacle(&options.ports) {
        return Err(Error::Argument(obstacle));
    }
    let (mut ports, mut at) = (Vec::new(), BTreeMap::new());
    for ((number, _), (_, name)) in numbers.iter().zip(&options.ports) {
        let (port, place) = kernel::user_port(name.interface().unwrap_or_default())?;
        ports.push(SwitchPort { number: *number, channels: vec![port] });
        at.insert(*number, place);
    }
    let notice = options.notice.clone();
    let user = executor(switch, &|text: &str| notice.send(text));
    let say = Box::new(move |text: &str| notice.send(text));
    let (executor, kernel) =
        KernelExecutor::new(switch, at, user, say).map_err(|error| Error::Argument(error.to_string()))?;
    let data_path = executor.describe();
    Ok(Opened { ports, executor: Box::new(executor), data_path, kernel: Some(kernel) })
}

/// Adds what the kernel did to the accounting of user space.
fn add(packets: &mut SwitchAccounting, kernel: &KernelCounts) {
    packets.received += kernel.received;
    packets.sent += kernel.sent;
    for (reason, count) in &kernel.dropped {
        *packets.dropped.entry(reason.name()).or_default() += count;
    }
    let outcomes = kernel.sent + kernel.dropped.values().sum::<u64>();
    packets.copied += outcomes.saturating_sub(kernel.received);
}

/// Names and hardware addresses of the ports, as controllers see them. A port without an interface
/// gets an address made of its number.
fn port_infos(numbers: &[(u32, String)], links: &LinkWatch) -> BTreeMap<u32, PortInfo> {
    let info = |(number, name): &(u32, String)| {
        let own = MacAddr::from_index(0x0f00_0000 | *number);
        let hw_addr = links.hw_addr(*number).map_or(own, MacAddr);
        (*number, PortInfo { name: name.clone(), hw_addr })
    };
    numbers.iter().map(info).collect()
}
