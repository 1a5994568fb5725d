//! A running lab: its hosts, its engine and its name. Dropping the value removes all of it.

use crate::attach::{AttachWatch, DetachedHosts};
use crate::host::host_namespace::HostNamespace;
use crate::host::nodes::{self, NodeMaker};
use crate::host::{Host, HostError};
use crate::kernel::namespace::{NotPermitted, Privilege, gain_privilege};
use crate::kernel::netlink::{LinkParameters, Netlink};
use crate::kernel_path::{DataPathError, LabPaths, PathWatch};
use crate::limits::open_files;
use crate::limits::{self, NotEnough};
use crate::programs::Programs;
use crate::programs::commands::Commands;
use crate::programs::ended::EndWatch;
use crate::programs::enter::{EnterError, alive};
use crate::programs::names;
use crate::programs::scope::{self, Scope};
use crate::programs::variables;
use crate::routing;
use crate::state::claim::Claim;
use crate::state::lab_files::{HOSTS, RESOLV_CONF, STATE};
use crate::state::{self, ClaimError, HostState, NamespaceState, State};
use crate::traffic::{LabTraffic, TrafficError, TrafficPorts};
use crate::uplink::{ForwardedPorts, Uplink, UplinkError, UplinkParts};
use fastpath_engine::control::{ApplyRequests, apply_requests};
use fastpath_engine::port::Port;
use fastpath_engine::{
    AttachError, Clock, EdgePorts, Notice, Options, Panicked, Report, Running, Sampler, StartError,
};
use fastpath_net::EdgeId;
use fastpath_spec::mistake::several;
use fastpath_spec::{NodeId, NodeKind, Topology};
use nix::net::if_::if_nametoindex;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const CONTROL_SOCKET: &str = "control.sock";

/// A topology brought up on this machine.
///
/// On drop the engine ends first, then the programs in the hosts. Then the namespaces close, and
/// the interfaces with them. The claim removes the state directory last.
#[derive(Debug)]
pub struct Lab {
    /// `None` without traffic, and on drop.
    traffic: Option<LabTraffic>,
    /// `None` only on drop.
    pub(crate) engine: Option<Running>,
    pub(crate) topology: Topology,
    /// Requests to change it; `None` if there are no hosts.
    pub(crate) requests: Option<ApplyRequests>,
    pub(crate) privilege: Privilege,
    pub(crate) notice: Notice,
    /// Reports hosts that end before the lab; `None` if none can.
    pub(crate) ends: Option<EndWatch>,
    /// The attached hosts whose namespace is gone.
    pub(crate) detached: Arc<DetachedHosts>,
    /// What attaches hosts again, by their names.
    pub(crate) attached: BTreeMap<String, AttachWatch>,
    /// By name. Ends the connections of the lab to the machine when it is dropped.
    pub(crate) uplinks: BTreeMap<String, Uplink>,
    /// Ends the programs when it is dropped. `None` if there are no hosts.
    pub(crate) _scope: Option<Scope>,
    /// Dropped after the scope, which ends the commands that it waits for. `None` if there are no
    /// hosts.
    commands: Option<Commands>,
    /// The commands of hosts that were added later.
    pub(crate) added_commands: Vec<Commands>,
    /// `None` if there are no hosts.
    pub(crate) programs: Option<Programs>,
    /// Watches the kernel's data path; `None` if there is none. Dropped before the hosts, whose
    /// interfaces it watches.
    _paths: Option<PathWatch>,
    pub(crate) hosts: Vec<Arc<Host>>,
    /// Dropped last: the name is free when nothing is left.
    pub(crate) claim: Claim,
    name: String,
    base: PathBuf,
}

/// Returns the control socket ([`fastpath_engine::control`]) of the running lab called `name`.
pub fn control_socket(name: &str) -> Result<PathBuf, EnterError> {
    let (directory, _) = alive(name)?;
    Ok(directory.join(CONTROL_SOCKET))
}

/// Whether an interface exists and is down.
fn is_down(interface: &str) -> bool {
    let all = nix::ifaddrs::getifaddrs().ok();
    let mut of_it = all.into_iter().flatten().filter(|address| address.interface_name == interface);
    of_it.next().is_some_and(|address| !address.flags.contains(nix::net::if_::InterfaceFlags::IFF_UP))
}

/// Brings the interface of a port up.
pub(crate) fn up_if_down(port: &dyn Port, notice: &Notice) -> Result<(), UpError> {
    let name = port.name();
    if is_down(name) {
        bring_up(name).map_err(|source| UpError::Down { name: name.to_owned(), source })?;
        notice.send(&format!("port {name} was down and is brought up"));
    }
    Ok(())
}

fn bring_up(interface: &str) -> io::Result<()> {
    Netlink::open()?.bring_up(if_nametoindex(interface)?, LinkParameters::default())
}

/// The parts from which a lab is made.
struct LabParts {
    base: PathBuf,
    claim: Claim,
    privilege: Privilege,
    scope: Option<Scope>,
    hosts: Vec<Arc<Host>>,
    ports: EdgePorts,
    detached: Arc<DetachedHosts>,
    attached: BTreeMap<String, AttachWatch>,
    uplinks: BTreeMap<String, Uplink>,
    paths: Option<PathWatch>,
}

/// Why a lab did not come up. Nothing remains.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpError {
    /// Network namespaces are not permitted here.
    #[error(transparent)]
    NotPermitted(#[from] NotPermitted),
    /// The name is bad or taken.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The limit of open files is too low.
    #[error(transparent)]
    TooManyFiles(#[from] open_files::TooManyFiles),
    /// The machine has too few namespaces or too little memory.
    #[error(transparent)]
    NotEnough(#[from] NotEnough),
    /// A host could not be made.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The traffic of the topology cannot be sent.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// A routing daemon does not run.
    #[error(transparent)]
    Daemon(#[from] routing::DaemonError),
    /// An uplink did not come up.
    #[error(transparent)]
    Uplink(#[from] UplinkError),
    /// The kernel's data path was asked for, and is not to be had.
    #[error(transparent)]
    DataPath(#[from] DataPathError),
    /// An interface could not be used.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// An interface is down and could not be brought up.
    #[error("port {name} is down: bringing it up: {source}; write ip link set {name} up")]
    Down {
        /// The interface.
        name: String,
        /// The reason.
        source: io::Error,
    },
    /// The engine did not start.
    #[error(transparent)]
    Engine(#[from] StartError),
    /// The state could not be written.
    #[error("state of lab {name}: {source}")]
    State {
        /// The lab.
        name: String,
        /// The reason.
        source: io::Error,
    },
}

impl UpError {
    /// Whether this machine or user may not have hosts at all, whatever the topology.
    pub fn is_refusal(&self) -> bool {
        use fastpath_engine::port::OpenError;
        let refused = |error: &OpenError| {
            matches!(error, OpenError::NotPermitted { .. } | OpenError::TapDriverClosed { .. })
        };
        match self {
            UpError::NotPermitted(_) | UpError::Host(HostError::NotPermitted(_)) => true,
            UpError::Host(HostError::Tap { source, .. }) => refused(source),
            _ => false,
        }
    }
}

impl Lab {
    /// Brings up every host of the topology and the engine between them, under a name that no other
    /// lab of this user has. A host with `port` is an interface of this machine. Without the
    /// privilege for namespaces the process first becomes root in its own user namespace, for which
    /// it must be single-threaded.
    ///
    /// The engine listens for `fastpath ctl` in the lab's state directory, whatever
    /// `options.control` says.
    pub fn up(topology: Topology, name: &str, options: Options) -> Result<Lab, UpError> {
        let topology = topology.with_namespaces();
        let containers = nodes::check(&topology, |_| true)?;
        limits::check(topology.hosts().count() as u64)?;
        routing::require(&topology)?;
        LabTraffic::check(&topology)?;
        let mut forwarded = ForwardedPorts::bind(topology.nodes.iter())?;
        // Before the process may become another user.
        let base = state::base();
        let claim = state::claim(name)?;
        let privilege = gain_privilege()?;
        let failed = |source| UpError::State { name: name.to_owned(), source };
        let scope = Scope::new(name, privilege).map_err(failed)?;
        scope.record().and_then(|text| claim.write(scope::FILE, &text)).map_err(failed)?;
        names::write(&claim, &topology, &options.notice).map_err(failed)?;
        open_files::allow(&topology)?;
        let mut real = fastpath_engine::attach_named(&topology, |_| true, &options.notice)?;
        let detached = DetachedHosts::none(claim.directory());
        let told = (&detached, &options.notice);
        let mut maker = NodeMaker::new(&topology, &scope, claim.directory(), containers, privilege, told);
        let paths = LabPaths::prepare(&topology, &options, privilege)?;
        maker.paths = paths.maker.as_ref();
        let (mut hosts, mut ports): (Vec<Arc<Host>>, EdgePorts) = Default::default();
        for (id, _) in topology.hosts() {
            let of_host = match real.remove(&id) {
                Some(port) => {
                    up_if_down(&*port, &options.notice)?;
                    vec![port]
                }
                None => {
                    let (host, ports) = maker.host(id)?;
                    hosts.push(Arc::new(host));
                    ports
                }
            };
            for port in of_host {
                // Edges are numbered in this order too: hosts, then their interfaces.
                ports.push((EdgeId(ports.len() as u32), port));
            }
        }
        let attached = maker.watches;
        let mut uplinks = BTreeMap::new();
        for host in
            hosts.iter().filter(|host| matches!(topology.node(host.node()).kind, NodeKind::Uplink { .. }))
        {
            let (directory, boundary) = (claim.directory(), scope.boundary());
            let parts =
                UplinkParts { host, topology: &topology, directory, boundary, notice: &options.notice };
            uplinks.insert(host.name.clone(), Uplink::up(&parts, &mut forwarded)?);
        }
        let scope = Some(scope);
        let (data_paths, paths) = paths.start(&topology, &options)?;
        let options = Options { data_paths: Some(data_paths), ..options };
        Lab::start(
            topology,
            name,
            options,
            LabParts { base, claim, privilege, scope, hosts, ports, detached, attached, uplinks, paths },
        )
    }

    /// Runs the topology between the existing interfaces that its hosts name (`port = "eth1"`),
    /// which makes this machine a transparent bridge with the network inside. There are no other
    /// hosts but those of the traffic, which ports of the engine send and receive.
    pub fn attach(topology: Topology, name: &str, options: Options) -> Result<Lab, UpError> {
        let commanded = topology.hosts_with_commands();
        if !commanded.is_empty() {
            let names = several(commanded.into_iter());
            options.notice.send(&format!("exec of {names} is ignored: programs run in a lab"));
        }
        let traffic = TrafficPorts::new(&topology, options.network.seed)?;
        let (base, claim) = (state::base(), state::claim(name)?);
        if let Some(text) = topology.emulation_notice() {
            options.notice.send(&text);
        }
        let ports =
            fastpath_engine::attach_with(&topology, &options.notice, |host| traffic.of(&topology, host))?;
        let named = topology
            .hosts()
            .flat_map(|(_, host)| host.interfaces.iter().map(|_| host.kind.port_name().is_some()));
        for ((_, port), _) in ports.iter().zip(named).filter(|(_, is_named)| *is_named) {
            up_if_down(&**port, &options.notice)?;
        }
        let (privilege, hosts) = (Privilege::Own, Vec::new());
        let (attached, uplinks) = (BTreeMap::new(), BTreeMap::new());
        let detached = DetachedHosts::none(claim.directory());
        let place = LabParts {
            base,
            claim,
            privilege,
            scope: None,
            hosts,
            ports,
            detached,
            attached,
            uplinks,
            paths: None,
        };
        let mut lab = Lab::start(topology, name, options, place)?;
        let engine = lab.engine.as_ref();
        lab.traffic =
            engine.and_then(|engine| LabTraffic::of_ports(traffic, engine.clock(), lab.notice.clone()));
        Ok(lab)
    }

    fn start(topology: Topology, name: &str, options: Options, place: LabParts) -> Result<Lab, UpError> {
        let LabParts { base, claim, privilege, scope, hosts, ports, detached, attached, uplinks, paths } =
            place;
        let (apply, requests) = apply_requests();
        let (apply, requests) = (scope.is_some().then_some(apply), scope.is_some().then_some(requests));
        let options = Options { control: Some(claim.directory().join(CONTROL_SOCKET)), apply, ..options };
        let (notice, seed) = (options.notice.clone(), options.network.seed);
        let engine = fastpath_engine::start(topology.clone(), ports, options)?;
        let clock = engine.clock();
        let programs = scope.as_ref().map(|scope| Programs {
            lab: name.to_owned(),
            directory: claim.directory().to_owned(),
            base: base.clone(),
            boundary: scope.boundary().clone(),
        });
        let ends = EndWatch::start(&hosts, notice.clone());
        let ends = ends.map_err(|source| UpError::State { name: name.to_owned(), source })?;
        let (engine, commands, _scope) = (Some(engine), None, scope);
        let name = name.to_owned();
        let mut lab = Lab {
            traffic: None,
            engine,
            topology,
            requests,
            privilege,
            notice: notice.clone(),
            ends,
            detached,
            attached,
            uplinks,
            _scope,
            commands,
            added_commands: Vec::new(),
            programs,
            _paths: paths,
            hosts,
            claim,
            name,
            base,
        };
        let failed = |source| UpError::State { name: lab.name.clone(), source };
        lab.publish().map_err(failed)?;
        if let Some(programs) = &lab.programs {
            routing::start(&lab.topology, programs, &lab.hosts)?;
        }
        lab.commands = lab.start_commands(clock, notice.clone()).transpose().map_err(failed)?;
        if lab._scope.is_some() {
            lab.traffic = LabTraffic::start(&lab.topology, &lab.hosts, (seed, clock), &notice)?;
        }
        Ok(lab)
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its topology.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns its hosts, in the order of the topology.
    pub fn hosts(&self) -> &[Arc<Host>] {
        &self.hosts
    }

    /// Returns the host called `name`.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name).map(Arc::as_ref)
    }

    /// Starts a program in a host, as `fastpath lab exec` does.
    pub fn spawn(&self, host: &Host, command: &mut Command) -> io::Result<Child> {
        self.programs.as_ref().expect("a lab with hosts has programs").spawn(host, command)
    }

    /// Waits until the commands that run once the lab is up (`exec`) have ended, or one of them has
    /// run for 30 s, or `stop` is set. A command that fails is a notice.
    pub fn wait_for_exec(&self, stop: &AtomicBool) {
        if let Some(commands) = &self.commands {
            commands.wait(stop);
        }
    }

    /// Waits until the traffic of the topology has been sent and received, or `stop` is set.
    /// Traffic without an end goes on until then.
    pub fn wait_for_traffic(&self, stop: &AtomicBool) {
        if let Some(traffic) = &self.traffic {
            traffic.wait(stop);
        }
    }

    /// Starts the commands of the description. `None` if there are no hosts.
    fn start_commands(&self, clock: Clock, notice: Notice) -> Option<io::Result<Commands>> {
        let host = |id: NodeId| self.hosts.iter().find(|host| host.node() == id).map(Arc::clone);
        let first = self
            .hosts
            .iter()
            .map(|host| (Arc::clone(host), self.topology.node(host.node()).kind.exec().to_vec()));
        let timed = self.topology.commands.iter();
        let timed = timed.filter_map(|command| Some((host(command.host)?, command.clone())));
        let programs = self.programs.clone()?;
        Some(Commands::start(programs, first.collect(), timed.collect(), clock, notice))
    }

    /// Prepares a program that runs on the machine itself, so that it can use `fastpath lab exec`.
    pub fn prepare<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env(variables::LAB, &self.name).env(variables::DIRECTORY, &self.base)
    }

    /// Returns the current report; `None` if the engine has ended.
    pub fn report(&self) -> Option<Report> {
        let (traffic, transfers) = self.traffic.as_ref().map(LabTraffic::results).unwrap_or_default();
        Some(Report { traffic, transfers, ..self.engine.as_ref()?.report()? })
    }

    /// Returns what takes samples of the engine from another thread; `None` if it has ended.
    pub fn sampler(&self) -> Option<Sampler> {
        Some(self.engine.as_ref()?.sampler())
    }

    /// Returns the changes of links up to now, as `GET /changes` has them.
    pub fn changes(&self) -> serde_json::Value {
        self.engine.as_ref().map(Running::changes).unwrap_or_default()
    }

    /// Whether the engine has ended, by request over its control socket or by failure.
    pub fn has_ended(&self) -> bool {
        self.engine.as_ref().is_none_or(Running::has_ended)
    }

    /// Ends the engine, removes everything, and returns the final report.
    pub fn down(mut self) -> Result<Report, Panicked> {
        let (traffic, transfers) = self.traffic.take().map(LabTraffic::end).unwrap_or_default();
        let report = self.engine.take().expect("only this and drop take it").stop()?;
        Ok(Report { traffic, transfers, ..report })
    }

    /// Writes how other processes find the hosts, and their names.
    pub(crate) fn publish(&self) -> io::Result<()> {
        self.claim.overwrite(HOSTS, names::hosts(&self.topology).as_bytes())?;
        self.claim.overwrite(RESOLV_CONF, names::resolv_conf(&self.topology).as_bytes())?;
        let namespace = |host: &Host| match &host.namespace {
            HostNamespace::Own(own) => NamespaceState::Held { fd: own.raw_fd(), inode: own.inode() },
            HostNamespace::Attached(there) => NamespaceState::Attached(there.name().to_string()),
        };
        let place = |host: &Host| HostState {
            namespace: namespace(host),
            inside: host.inside.clone(),
            env: host.env.clone(),
            addresses: host.addresses().iter().map(ToString::to_string).collect(),
        };
        let state = State {
            pid: std::process::id() as i32,
            user_namespace: self.privilege == Privilege::UserNamespace,
            hosts: self.hosts.iter().map(|host| (host.name.clone(), place(host))).collect(),
        };
        self.claim.write(STATE, &serde_json::to_vec_pretty(&state)?)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.commands.iter_mut().chain(&mut self.added_commands).for_each(Commands::close);
        self.traffic = None;
        // `down` returns the result; a drop only ends the engine.
        let _ = self.engine.take().map(Running::stop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::scope::Boundary;
    use crate::skip;
    use std::io::Read;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::process::Stdio;
    use std::sync::Mutex;
    use std::time::Duration;

    /// Two hosts on one ideal link: 10.0.0.1 and 10.0.0.2, and IPv6 addresses.
    fn pair() -> Topology {
        let mut topology = Topology::default();
        let ends = ["a", "b"].map(|name| topology.add_node(name, NodeKind::host()));
        topology.connect("a-b", ends[0], ends[1], Default::default());
        for (place, node) in topology.nodes.iter_mut().enumerate() {
            let number = place + 1;
            let addresses = [format!("10.0.0.{number}/24"), format!("fd00::{number}/64")];
            node.interfaces[0].addresses = addresses.map(|text| text.parse().unwrap()).to_vec();
        }
        topology
    }

    fn up(test: &str) -> Option<Lab> {
        let network = fastpath_net::Options::default();
        let name = format!("{test}-{}", std::process::id());
        match Lab::up(pair(), &name, Options::new(network)) {
            Ok(lab) => Some(lab),
            Err(UpError::NotPermitted(why)) => {
                skip(test, &why.to_string());
                None
            }
            Err(other) => panic!("{test}: {other}"),
        }
    }

    fn output(lab: &Lab, host: &str, program: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::piped());
        let child = lab.spawn(lab.host(host).unwrap(), &mut command).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    }

    #[test]
    fn a_host_has_its_interface_with_mac_mtu_addresses_and_routes() {
        let Some(lab) = up("interface") else { return };
        let in_a = |path: &str| output(&lab, "a", "cat", &[path]);
        assert_eq!(in_a("/proc/net/dev").matches("eth").count(), 1);
        let addresses = in_a("/proc/net/if_inet6");
        assert!(addresses.contains("fd000000000000000000000000000001"), "{addresses}");
        let routes = in_a("/proc/net/route");
        assert!(routes.contains("eth0\t0000000A"), "{routes}");
        let link = lab.host("a").unwrap().namespace.within(|| {
            let all = nix::ifaddrs::getifaddrs().unwrap().filter(|entry| entry.interface_name == "eth0");
            all.filter_map(|entry| entry.address?.as_link_addr()?.addr()).next()
        });
        assert_eq!(link.unwrap(), lab.topology().nodes[0].interfaces[0].mac.map(|mac| mac.0));
    }

    #[test]
    fn sys_is_that_of_the_host_and_settings_of_the_machine_are_read_only() {
        let Some(lab) = up("sys") else { return };
        let seen = output(&lab, "a", "ls", &["/sys/class/net"]);
        assert_eq!(seen.split_whitespace().collect::<Vec<_>>(), ["eth0", "lo"]);
        let script = "for file in /sys/class/net/eth0/mtu /proc/sys/net/ipv4/ip_forward \
            /sys/kernel/mm/transparent_hugepage/enabled /proc/sys/kernel/core_pattern /proc/sysrq-trigger
            do test -e $file && test -w $file && echo $file; done
            echo 1300 > /sys/class/net/eth0/mtu; cat /sys/class/net/eth0/mtu";
        let writable = ["/sys/class/net/eth0/mtu", "/proc/sys/net/ipv4/ip_forward", "1300"];
        assert_eq!(output(&lab, "a", "sh", &["-c", script]).lines().collect::<Vec<_>>(), writable);
        // Everything mounted below /sys outside is there inside, once.
        let mounts = "cut -d' ' -f5 /proc/self/mountinfo | grep ^/sys/ | grep -v /net$ | sort";
        let outside = Command::new("sh").args(["-c", mounts]).output().unwrap().stdout;
        let reachable = "for path in $0; do mountpoint -q $path || echo $path; done";
        let outside = String::from_utf8(outside).unwrap().replace('\n', " ");
        assert_eq!(output(&lab, "a", "sh", &["-c", reachable, &outside]), "");
    }

    #[test]
    fn programs_inherit_no_descriptor_of_the_lab() {
        let Some(lab) = up("descriptors") else { return };
        let arguments = ["-c", "ls /proc/$$/fd"];
        // Those that this process inherited itself.
        let elsewhere = Command::new("sh").args(arguments).output().unwrap().stdout;
        assert_eq!(output(&lab, "a", "sh", &arguments), String::from_utf8(elsewhere).unwrap());
    }

    #[test]
    fn a_port_that_is_down_is_brought_up() {
        let Some(lab) = up("ports") else { return };
        let said = Arc::new(Mutex::new(String::new()));
        let options = || {
            let copy = Arc::clone(&said);
            let notice = Notice::new(move |text| copy.lock().unwrap().push_str(text));
            Options { notice, ..Options::new(fastpath_net::Options::default()) }
        };
        let text = "[host.a]\nport = 'fpdown0'\n[host.b]\nport = 'fpdown1'\n[[link]]\nbetween = ['a', 'b']";
        let (topology, _) = fastpath_spec::parse(text).unwrap();
        let name = format!("down-{}", std::process::id());
        // The interfaces are in a namespace of their own.
        let attached = lab.host("a").unwrap().namespace.within(|| {
            let own = std::fs::File::open("/proc/thread-self/ns/net").unwrap();
            Netlink::open().unwrap().add_veth("fpdown0", "fpdown1", own.as_fd()).unwrap();
            let lab = Lab::attach(topology.clone(), &name, options()).unwrap();
            let down = ["fpdown0", "fpdown1"].map(is_down);
            drop(lab);
            down
        });
        assert_eq!(attached.unwrap(), [false, false]);
        assert!(said.lock().unwrap().contains("port fpdown1 was down"), "{said:?}");
    }

    #[test]
    fn hosts_send_nothing_of_their_own_and_know_their_neighbors() {
        let Some(lab) = up("quiet") else { return };
        let pairs = [("10.0.0.1:7", "10.0.0.2:7"), ("[fd00::1]:7", "[fd00::2]:7")];
        for (a, b) in pairs {
            let open = |host: &str, address: &str| {
                let socket = lab.host(host).unwrap().namespace.within(|| UdpSocket::bind(address));
                socket.unwrap().unwrap_or_else(|error| panic!("{address}: {error}"))
            };
            let (from, to) = (open("a", a), open("b", b));
            from.send_to(b"first", b).unwrap();
            to.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            assert_eq!(to.recv(&mut [0; 8]).unwrap(), 5);
        }
        // Neither resolution (ARP, Neighbor Discovery) nor multicast reports.
        let report = lab.report().unwrap();
        assert!(report.ports.iter().all(|port| port.counters.rx_overrun == 0), "{:?}", report.ports);
        let frames = report.accounting;
        assert_eq!((frames.total_in, frames.delivered), (2, 2), "{frames:?}");
    }

    #[test]
    fn programs_know_the_names_and_the_machine_does_not() {
        let Some(lab) = up("names") else { return };
        let found = output(&lab, "a", "getent", &["ahostsv4", "b"]);
        assert!(found.starts_with("10.0.0.2"), "{found}");
        assert!(!std::fs::read_to_string("/etc/hosts").unwrap().contains("10.0.0.2\tb"));
    }

    #[test]
    fn dropping_a_lab_ends_its_programs_and_removes_its_state() {
        let Some(lab) = up("drop") else { return };
        let mut command = Command::new("sh");
        command.args(["-c", "echo ready; read line"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = lab.spawn(lab.host("a").unwrap(), &mut command).unwrap();
        // While a program is being started it has no environment yet.
        let mut ready = [0; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        let _open = child.stdin.take();
        let directory = lab.claim.directory().to_owned();
        let boundary = Boundary::recorded(&directory).unwrap();
        assert_eq!(boundary.processes().len(), 1);
        // Reap the program on another thread: until then it is a zombie.
        let reaper = std::thread::spawn(move || child.wait().unwrap());
        drop(lab);
        assert!(!reaper.join().unwrap().success());
        assert!(boundary.processes().is_empty());
        assert!(!directory.exists());
    }
}
