//! The controllers of OpenFlow nodes in networks that run in real time (Linux).

use super::executor::executor;
use crate::error::{Error, Result};
use fastpath_engine::switching::{Control, PacketInLimit, serve_node};
use fastpath_engine::{NodeSwitch, Notice};
use fastpath_net::Executors;
use fastpath_ofctl as ofctl;
use fastpath_openflow::agent::{self, Agent, Doorbell, FailMode, Listen, PortInfo, TlsFiles, Versions};
use fastpath_spec::{Controllers, Node, NodeId, NodeKind, Topology, rules};
use fastpath_units::Time;
use fastpath_wire::MacAddr;
use std::any::Any;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Silence after which a controller gets an echo request.
const PROBE_EVERY: Duration = Duration::from_secs(15);
/// The longest wait before a controller is dialled again. It starts with the lab, and the user
/// waits for it.
const BACKOFF_MAX: Duration = Duration::from_secs(2);
/// The longest name of a port (OFP_MAX_PORT_NAME_LEN without its end).
const NAME_MAX: usize = 15;

/// Lets every OpenFlow node that has controllers be served by an agent of its own. Files are
/// relative to
/// `directory`.
///
/// # Errors
/// No code can be run, or the operating system refuses a descriptor.
pub fn attach_controllers(
    topology: &Topology,
    directory: &Path,
    options: &mut fastpath_engine::Options,
) -> Result<()> {
    let mut switches = BTreeMap::new();
    for (index, node) in topology.nodes.iter().enumerate() {
        if let NodeKind::OpenFlow { lines, controllers, .. } = &node.kind
            && controllers.is_served()
        {
            let id = NodeId(index as u32);
            let (switch, control) = node_switch((topology, id), lines, controllers, directory, options)?;
            options.switches.push(switch);
            switches.insert(node.name.clone(), control);
        }
    }
    if !switches.is_empty() {
        let notice = options.notice.clone();
        options.network.executors = Executors::new(move |node, switch| match switches.get(node) {
            Some(control) => Box::new(control.node_executor()),
            None => executor(switch, &|text| notice.send(text)),
        });
    }
    Ok(())
}

fn node_switch(
    (topology, id): (&Topology, NodeId),
    lines: &[ofctl::RuleLine],
    controllers: &Controllers,
    directory: &Path,
    options: &fastpath_engine::Options,
) -> Result<(NodeSwitch, Control)> {
    let node = topology.node(id);
    let name = node.name.clone();
    let failed = |why: String| Error::Argument(format!("openflow {name}: {why}"));
    let mut switch = rules::switch(node.interfaces.len());
    if let Err(mistakes) = ofctl::load(&mut switch, Time::ZERO, lines) {
        return Err(failed(format!("{} rules cannot be loaded", mistakes.len())));
    }
    let doorbell = Doorbell::new().map_err(|error| failed(error.to_string()))?;
    let notice = {
        let (notice, name) = (options.notice.clone(), name.clone());
        Notice::new(move |text| notice.send(&format!("openflow {name}: {text}")))
    };
    let best = executor(&mut switch, &|text| notice.send(text));
    let control = Control::new(switch, best, PacketInLimit::default(), doorbell.ringer())
        .map_err(|error| failed(error.to_string()))?;
    let agent_options = agent_options((topology, id), controllers, directory, notice.clone());
    // An engine starts it once.
    let parts = Mutex::new(Some((doorbell, agent_options)));
    let serve = {
        let control = control.clone();
        move || {
            let parts = parts.lock().unwrap_or_else(PoisonError::into_inner).take();
            let (doorbell, agent_options) = parts.ok_or("its agent has been started already")?;
            let building = serve_node(&control).map_err(|error| error.to_string())?;
            let asked = agent_options.listen.clone();
            let agent = Agent::start(&control, doorbell, agent_options).map_err(|error| error.to_string())?;
            say_where(&asked, &agent, &notice);
            // The agent ends before the builder.
            Ok(Box::new((agent, building)) as Box<dyn Any + Send + Sync>)
        }
    };
    Ok((NodeSwitch { node: node.name.clone(), control: control.clone(), serve: Arc::new(serve) }, control))
}

fn agent_options(
    (topology, id): (&Topology, NodeId),
    controllers: &Controllers,
    directory: &Path,
    notice: Notice,
) -> agent::Options {
    let file = |name: &str| directory.join(name);
    agent::Options {
        versions: Versions::default(),
        datapath_id: topology.datapath_id(id).unwrap_or_default(),
        ports: ports(topology, topology.node(id)),
        listen: controllers.listen.clone(),
        snoop: Vec::new(),
        connect: controllers.dial.clone(),
        tls: controllers.tls.as_ref().map(|tls| TlsFiles {
            private_key: file(&tls.private_key),
            certificate: file(&tls.certificate),
            ca_certificate: file(&tls.ca_certificate),
        }),
        fail_mode: match controllers.fail_mode {
            Some(fastpath_spec::FailMode::Standalone) => FailMode::Standalone,
            Some(fastpath_spec::FailMode::Secure) | None => FailMode::Secure,
        },
        probe_every: PROBE_EVERY,
        backoff_max: BACKOFF_MAX,
        links: None,
        notice,
    }
}

/// Says where controllers may connect.
fn say_where(asked: &[Listen], agent: &Agent, notice: &Notice) {
    for (listen, at) in asked.iter().zip(agent.listening()) {
        let listen = Listen { at: *at, ..*listen };
        let who = if listen.is_exposed() { "; every host that reaches it may control the node" } else { "" };
        notice.send(&format!("listening on {listen}{who}"));
    }
}

/// Names and hardware addresses of the ports of a node, as controllers see them: a port has the
/// name of the node at the other end of its link.
fn ports(topology: &Topology, node: &Node) -> BTreeMap<u32, PortInfo> {
    let numbered = (1..).zip(&node.interfaces);
    let info = numbered.map(|(number, interface)| {
        let far = topology.peer(interface).0;
        let mut name = topology.node(far).name.clone();
        while name.len() > NAME_MAX {
            name.pop();
        }
        (number, PortInfo { name, hw_addr: interface.mac.unwrap_or(MacAddr::from_index(number)) })
    });
    info.collect()
}
