//! A bridge that runs: a switch, its agent, and ports that come and go.

use super::super::executor::executor;
use super::super::server::ServedSummary;
use super::bridging::{self, BridgingState};
use fastpath_engine::Notice;
use fastpath_engine::port::Port;
use fastpath_engine::switching::{
    Control, Datapath, LinkWatch, PacketInLimit, PolicingSpec, PortQueueSpec, SwitchRunning, serve,
};
use fastpath_ofctl::controller::Security;
use fastpath_openflow::agent::{
    self, Agent, AgentState, Dial, Doorbell, FailMode, LocalService, PortInfo, Remotes, TlsFiles, Versions,
};
use fastpath_ovsdb::{BridgeSpec, Configuration, FailureMode, Uuid};
use fastpath_switch::bridging::{Bridging, Mirror, MirrorCounters};
use fastpath_switch::port::LinkState;
use fastpath_switch::{PortCounters, Switch, port};
use fastpath_wire::MacAddr;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

/// Memory for frames that wait for the ports of a bridge.
pub(super) const POOL: NonZeroUsize = NonZeroUsize::new(32 << 20).expect("not zero");
/// Most controllers of a bridge.
const CONTROLLERS_MAX: usize = 32;

/// A running bridge. Its agent ends before its switch.
pub(super) struct RunningBridge {
    agent: Agent,
    running: SwitchRunning,
    pub(super) control: Control,
    pub(super) links: LinkWatch,
    /// What the agent was told last.
    remotes: Remotes,
    /// Why controllers of the database are not dialled or listened for.
    pub(super) refused: BTreeMap<Uuid, String>,
    /// By the names of their interfaces.
    pub(super) ports: BTreeMap<String, RunningPort>,
    /// The numbers that interfaces have or had.
    pub(super) numbers: BTreeMap<Uuid, u32>,
    /// The VLANs of ports and the mirrors that were set last, and what the mirrors have copied.
    pub(super) bridging: BridgingState,
    pub(super) mirror_counters: BTreeMap<Uuid, MirrorCounters>,
}

/// A port of a running bridge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RunningPort {
    pub(super) number: u32,
    /// What its interface is.
    pub(super) attachment: PortAttachment,
    pub(super) hw_addr: MacAddr,
    /// What it was given last.
    pub(super) queues: Option<PortQueueSpec>,
    pub(super) policing: Option<PolicingSpec>,
}

impl RunningPort {
    /// Returns a port without queues.
    pub(super) fn new(number: u32, attachment: PortAttachment, hw_addr: MacAddr) -> RunningPort {
        RunningPort { number, attachment, hw_addr, queues: None, policing: None }
    }
}

/// What a port is attached to. Two that are equal are the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PortAttachment {
    /// An interface that exists.
    System,
    /// An interface made for the bridge.
    Internal,
    /// One end of the pair with this number.
    Patch(u64),
}

/// Returns the versions of OpenFlow that a bridge allows: those of its protocols that are there, or
/// those of the default if it names none of them.
fn versions(spec: &BridgeSpec) -> Versions {
    let name = |protocol: &String| match protocol.as_str() {
        "OpenFlow10" => Some("1.0"),
        "OpenFlow13" => Some("1.3"),
        "OpenFlow14" => Some("1.4"),
        "OpenFlow15" => Some("1.5"),
        _ => None,
    };
    let names: Vec<&str> = spec.protocols.iter().filter_map(name).collect();
    names.join(",").parse().unwrap_or_default()
}

impl RunningBridge {
    /// Starts a bridge without ports and controllers; `Err` says why it cannot run.
    pub(super) fn start(
        spec: &BridgeSpec,
        mut switch: Switch,
        packet_in_rate: u32,
        notice: &Notice,
    ) -> Result<RunningBridge, String> {
        let notice = {
            let (notice, name) = (notice.clone(), spec.name.clone());
            Notice::new(move |text| notice.send(&format!("bridge {name}: {text}")))
        };
        let text = |error: std::io::Error| error.to_string();
        let executor = executor(&mut switch, &|text| notice.send(text));
        let doorbell = Doorbell::new().map_err(text)?;
        let limit = PacketInLimit { per_second: packet_in_rate, ..PacketInLimit::default() };
        let control = Control::new(switch, executor, limit, doorbell.ringer()).map_err(text)?;
        let running =
            serve(&control, Datapath::new(&control, Vec::new(), POOL, notice.clone())).map_err(text)?;
        // Without controllers and secure, until it is told otherwise.
        let remotes = Remotes {
            datapath_id: datapath_id(spec),
            versions: versions(spec),
            dial: Vec::new(),
            listen: Vec::new(),
            tls: None,
            fail_mode: FailMode::Secure,
        };
        let options = agent::Options {
            datapath_id: remotes.datapath_id,
            versions: remotes.versions,
            ports: BTreeMap::new(),
            listen: Vec::new(),
            snoop: Vec::new(),
            connect: Vec::new(),
            tls: None,
            fail_mode: remotes.fail_mode,
            probe_every: Duration::from_secs(5),
            backoff_max: Duration::from_secs(8),
            links: None,
            notice,
        };
        let agent = Agent::start(&control, doorbell, options).map_err(|error| error.to_string())?;
        let links = LinkWatch::new([]).map_err(text)?;
        let (refused, ports, numbers) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (bridging, mirror_counters) = (BridgingState::default(), BTreeMap::new());
        Ok(RunningBridge {
            agent,
            running,
            control,
            links,
            remotes,
            refused,
            ports,
            numbers,
            bridging,
            mirror_counters,
        })
    }

    /// Listens in a directory for `ovs-ofctl`, which connects to a bridge by its name.
    pub(super) fn serve_in(&self, run_dir: &Path, name: &str) {
        let services = [("mgmt", LocalService::Management), ("snoop", LocalService::Snoop)];
        for (end, service) in services {
            self.agent.serve_at(run_dir.join(format!("{name}.{end}")), service);
        }
    }

    /// Tells the agent of the controllers, the mode and the datapath id of the bridge, if they have
    /// changed.
    pub(super) fn follow(&mut self, spec: &BridgeSpec, all: &Configuration) {
        let tls = all.tls.clone().map(|[private_key, certificate, ca_certificate]| TlsFiles {
            private_key,
            certificate,
            ca_certificate,
        });
        let fail_mode = match spec.fail_mode {
            FailureMode::Standalone => FailMode::Standalone,
            FailureMode::Secure => FailMode::Secure,
        };
        let (datapath_id, versions) = (datapath_id(spec), versions(spec));
        let mut remotes =
            Remotes { datapath_id, versions, dial: Vec::new(), listen: Vec::new(), tls, fail_mode };
        self.refused.clear();
        for (count, controller) in spec.controllers.iter().enumerate() {
            let added = if count < CONTROLLERS_MAX {
                add_controller(&mut remotes, controller)
            } else {
                Err(format!("a bridge has at most {CONTROLLERS_MAX} controllers"))
            };
            if let Err(why) = added {
                self.refused.insert(controller.uuid, why);
            }
        }
        if remotes != self.remotes {
            self.agent.follow(remotes.clone());
            self.remotes = remotes;
        }
    }

    /// Attaches an open port.
    pub(super) fn attach(&mut self, name: &str, running: RunningPort, open: Box<dyn Port>) {
        let RunningPort { number, hw_addr, ref attachment, .. } = running;
        if !matches!(attachment, PortAttachment::Patch(_)) {
            // Of an interface that is gone already, the port fails with its first frame.
            let _ = self.links.add(number, open.as_ref(), name);
        }
        self.control.attach(number, open);
        self.agent.add_port(number, PortInfo { name: port_name(name), hw_addr });
        self.ports.insert(name.to_owned(), running);
        self.watch_links();
    }

    /// Removes a port and closes it.
    pub(super) fn detach(&mut self, name: &str) {
        let Some(RunningPort { number, .. }) = self.ports.remove(name) else { return };
        self.links.remove(number);
        self.agent.remove_port(number);
        drop(self.control.detach(number));
    }

    /// Reads the link states of the interfaces.
    pub(super) fn watch_links(&self) {
        self.links.states().for_each(|(number, link)| self.control.set_link(number, link));
    }

    /// Whether the link of a port is up.
    pub(super) fn is_link_up(&self, number: u32) -> bool {
        self.control.peek(|switch| switch.port(number).is_some_and(|port| port.link == LinkState::Up))
    }

    /// The counters of all ports, by number.
    pub(super) fn counters(&self) -> BTreeMap<u32, PortCounters> {
        self.control.read(|switch, _| switch.ports().map(|(number, port)| (number, port.counters)).collect())
    }

    /// How its controllers are.
    pub(super) fn agent_state(&self) -> AgentState {
        self.agent.state()
    }

    /// Whether a thread of the bridge has ended by a defect.
    pub(super) fn has_failed(&self) -> bool {
        self.agent.has_failed() || self.running.has_failed()
    }

    /// Ends the bridge. Returns where all packets went.
    pub(super) fn stop(self) -> ServedSummary {
        let counters = self.counters();
        let RunningBridge { agent, running, ports, control, .. } = self;
        drop(agent);
        let port = |(name, RunningPort { number, .. }): (String, RunningPort)| {
            (number, name, counters.get(&number).copied().unwrap_or_default())
        };
        let mut ports: Vec<_> = ports.into_iter().map(port).collect();
        ports.sort_by_key(|(number, ..)| *number);
        let packets = running.stop();
        ServedSummary { packets, ports, workers: control.workers() }
    }
}

impl RunningBridge {
    /// Gives the ports their VLANs, and the bridge its mirrors, if they have changed. A mirror
    /// keeps its counters.
    pub(super) fn follow_bridging(&mut self, spec: &BridgeSpec) {
        let state = bridging::wanted(spec, &self.numbers);
        if state == self.bridging {
            return;
        }
        let mut counters = BTreeMap::new();
        let mirrors = state.mirrors.iter().map(|(uuid, selection, output, snap_len)| {
            let kept = self.mirror_counters.get(uuid).cloned().unwrap_or_default();
            counters.insert(*uuid, kept.clone());
            Mirror { selection: selection.clone(), output: *output, snap_len: *snap_len, counters: kept }
        });
        let (vlans, flood_vlans) = (state.vlans.clone(), state.flood_vlans.clone());
        let bridging = Bridging { mirrors: mirrors.collect(), vlans, flood_vlans };
        self.control.change(|switch, _| switch.set_bridging(bridging));
        self.mirror_counters = counters;
        self.bridging = state;
    }

    /// What each mirror has copied: packets and bytes.
    pub(super) fn mirrored(&self) -> impl Iterator<Item = (Uuid, (u64, u64))> {
        self.mirror_counters.iter().map(|(uuid, counters)| (*uuid, MirrorCounters::get(counters)))
    }
}

/// Adds a controller of the database to those of an agent; `Err` says why that is not possible.
fn add_controller(remotes: &mut Remotes, spec: &fastpath_ovsdb::ControllerSpec) -> Result<(), String> {
    let needs_tls = |security| match (security, &remotes.tls) {
        (Security::Tls, None) => {
            Err("table SSL does not name a private key, a certificate and a CA certificate")
        }
        _ => Ok(()),
    };
    if spec.target.starts_with('p') {
        let listen: agent::Listen = spec.target.parse().map_err(|error| format!("target: {error}"))?;
        needs_tls(listen.security)?;
        if !remotes.listen.contains(&listen) {
            remotes.listen.push(listen);
        }
        return Ok(());
    }
    let target: agent::Target = spec.target.parse().map_err(|error| format!("target: {error}"))?;
    needs_tls(target.security)?;
    let mut dial = Dial::new(target);
    if let Some(probe_every) = spec.inactivity_probe {
        dial = dial.probe_every(probe_every);
    }
    if let Some(backoff_max) = spec.max_backoff {
        dial = dial.backoff_max(backoff_max.max(Duration::from_secs(1)));
    }
    if remotes.dial.iter().any(|other| other.target == dial.target) {
        return Err("target: another controller of the bridge has the same".to_owned());
    }
    remotes.dial.push(dial);
    Ok(())
}

/// The hardware address of a bridge: what is asked for, or one made of its UUID, so that it is the
/// same whenever the program runs.
pub(super) fn hw_addr(spec: &BridgeSpec) -> [u8; 6] {
    spec.hw_addr.unwrap_or_else(|| {
        let number = spec.uuid.as_u128();
        let mixed = (number >> 64) as u64 ^ number as u64;
        let [.., a, b, c, d, e] = mixed.to_be_bytes();
        [0x02, a, b, c, d, e]
    })
}

/// The datapath id of a bridge: what is asked for, or its hardware address.
pub(super) fn datapath_id(spec: &BridgeSpec) -> u64 {
    spec.datapath_id.unwrap_or_else(|| hw_addr(spec).iter().fold(0, |id, byte| id << 8 | u64::from(*byte)))
}

/// A name of OpenFlow has at most 15 bytes (OFP_MAX_PORT_NAME_LEN without its end).
fn port_name(name: &str) -> String {
    let mut end = name.len().min(15);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

/// The hardware address of a patch port, which has no interface.
pub(super) fn patch_hw_addr(number: u32) -> MacAddr {
    MacAddr::from_index(0x0f00_0000 | number & 0x00ff_ffff)
}

/// Whether a number is that of the local port.
pub(super) fn is_local(number: u32) -> bool {
    number == port::LOCAL
}
