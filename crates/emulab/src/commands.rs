//! The commands of ns-2 and Emulab that describe a network, and the known commands that do not.
//!
//! Their semantics are Emulab's ("Testbed NS Command Extensions"): a link's delay and loss hold in
//! each direction; a lan is a switch whose every member's link has half the lan's delay each way
//! and 1 − √(1 − loss) of loss, so that the values hold between two members.

use crate::ns_queue::NsQueue;
use crate::objects::{add, made, node, object, shown, usage};
use crate::outcome::{Interrupt, TclResult, mistake};
use crate::simulator::{Lan, LinkEnd, Object, PREFIX_LENGTH, Pipe, ScriptLink, Simulator};
use crate::state::Interp;
use crate::syntax::Value;
use crate::{
    agents, class_values, elsewhere, error_model, event_lists, events, programs, quantity, queues, random,
};
use fastpath_text::mistake::{Code, nearest};
use fastpath_units::Probability;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Commands, for suggestions.
pub(crate) const NAMES: [&str; 17] = [
    "new",
    "tb-set-noshaping",
    "tb-set-link-loss",
    "tb-set-lan-loss",
    "tb-set-node-lan-delay",
    "tb-set-node-lan-bandwidth",
    "tb-set-node-lan-loss",
    "tb-set-node-lan-params",
    "tb-set-link-simplex-params",
    "tb-set-lan-simplex-params",
    "tb-set-ip",
    "tb-set-ip-link",
    "tb-set-ip-lan",
    "tb-set-ip-interface",
    "tb-set-netmask",
    "tb-set-node-startcmd",
    "tb-set-node-startup",
];
/// The methods of `$ns` that are executed.
const METHODS: [&str; 19] = [
    "node",
    "after",
    "now",
    "event-group",
    "event-sequence",
    "event-timeline",
    "duplex-link",
    "simplex-link",
    "make-lan",
    "newLan",
    "link",
    "lanlink",
    "queue-limit",
    "rtproto",
    "run",
    "at",
    "attach-agent",
    "connect",
    "create-connection",
];
/// Calls a command about the network. Returns `None` if `name` is not one. A mistake is reported
/// here; the value then causes no further mistakes, so that the script continues.
pub(crate) fn call(tcl: &mut Interp, name: &str, words: &[Value]) -> Option<TclResult> {
    let outcome = match tcl.simulator.object(name) {
        Some(object) if events::is_event(tcl, object, words) => {
            events::event(tcl, object, words).map(|()| Value::default())
        }
        Some(object) => method(tcl, object, words),
        None if name == "Simulator" && matches!(words, [word] if &**word == "instance") => instance(tcl),
        None if name == "new" => new(tcl, words),
        None if name.starts_with("tb-") => testbed(tcl, name, words),
        None if tcl.simulator.refused.contains(name) => Err(Interrupt::Reported),
        None if elsewhere::HEADERS.contains(&name) => Ok(Value::default()),
        None if matches!(name, "bw_parse" | "delay_parse" | "time_parse" | "ns-random") => {
            ns_command(tcl, name, words)
        }
        None if name == "Node" => node_class(tcl, words),
        None if elsewhere::REFUSED.iter().any(|(known, ..)| *known == name) => refuse(tcl, name, words),
        None if class_values::is_class(name) => class_values::call(tcl, name, words),
        None => return None,
    };
    Some(match outcome {
        Err(Interrupt::Mistake(what, instead)) => {
            tcl.blame(tcl.at, what, instead);
            add(tcl, Object::Broken)
        }
        Err(Interrupt::Reported) => add(tcl, Object::Broken),
        other => other,
    })
}

/// Refuses a command or a class of ns-2. What a class of the script is used for is not reported
/// again.
fn refuse(tcl: &mut Interp, name: &str, words: &[Value]) -> TclResult {
    if let Some(class) = words.first().filter(|_| name == "Class") {
        tcl.simulator.refused.insert(class.trim().to_owned());
    }
    let found = elsewhere::REFUSED.iter().find(|(known, ..)| *known == name);
    let (what, instead) = found.map_or(("it is not there", "another"), |(_, what, instead)| (what, instead));
    mistake(format!("{name}: {what}"), format!("write {instead}"))
}

/// The commands of ns-2 for quantities and random numbers.
fn ns_command(tcl: &mut Interp, name: &str, words: &[Value]) -> TclResult {
    match (name, words) {
        ("bw_parse", [rate]) => match quantity::rate(rate)? {
            Some(rate) => Ok(Value::from(format!("{:?}", rate.as_bps() as f64))),
            None => mistake("this bandwidth is unlimited", "write for example 10Mb"),
        },
        ("delay_parse" | "time_parse", [delay]) => {
            Ok(Value::from(format!("{:?}", quantity::delay(delay, 1.0)?.as_secs_f64())))
        }
        ("ns-random", []) => random::generator(tcl, 0, &[Value::from("next-random")]),
        ("ns-random", [seed]) => random::generator(tcl, 0, &[Value::from("seed"), seed.clone()]),
        ("ns-random", _) => usage("ns-random 7"),
        ("bw_parse", _) => usage("bw_parse 10Mb"),
        _ => usage(&format!("{name} 10ms")),
    }
}

/// Commands of the class of nodes.
fn node_class(tcl: &mut Interp, words: &[Value]) -> TclResult {
    match words {
        [name, ..] if &**name == "allocaddr" => {
            mistake("multicast is not routed: there are no groups", "write $ns connect for each receiver")
        }
        words => class_values::call(tcl, "Node", words),
    }
}

/// `[Simulator instance]`: the simulator that the script has made.
fn instance(tcl: &mut Interp) -> TclResult {
    match tcl.simulator.first(Object::Simulator) {
        Some(index) => Ok(Value::from(Simulator::handle(index))),
        None => mistake("there is no simulator", "write set ns [new Simulator] before"),
    }
}

/// Classes, for suggestions.
const CLASSES: [&str; 10] = [
    "Simulator",
    "RNG",
    "Program",
    "EventGroup",
    "Agent/UDP",
    "Agent/TCP",
    "Agent/Null",
    "Agent/LossMonitor",
    "Agent/TCPSink",
    "Application/Traffic/CBR",
];

/// Returns a handle for a new object.
fn new(tcl: &mut Interp, words: &[Value]) -> TclResult {
    let Some((class, rest)) = words.split_first() else { return usage("new Simulator") };
    // `new Program $ns`: the simulator is known.
    if let Some(outcome) = error_model::new(tcl, class, rest) {
        return outcome;
    }
    let is_of_simulator = matches!(rest, [ns] if tcl.simulator.object(ns) == Some(Object::Simulator));
    if !is_of_simulator {
        extra(tcl, &format!("new {}", &**class), rest);
    }
    if class.eq_ignore_ascii_case("simulator") {
        return add(tcl, Object::Simulator);
    }
    if let Some(outcome) = random::new(tcl, class) {
        return outcome;
    }
    match &**class {
        "Program" if is_of_simulator => return programs::new(tcl),
        "EventGroup" if is_of_simulator => return event_lists::new_group(tcl, &[]),
        "Program" | "EventGroup" => return usage(&format!("new {} $ns", &**class)),
        _ => {}
    }
    if tcl.simulator.refused.contains(&**class) {
        return Err(Interrupt::Reported);
    }
    let top = class.split('/').next().unwrap_or(class);
    if elsewhere::REFUSED.iter().any(|(known, ..)| *known == top || *known == &**class) {
        let known = if top == "Application" { &**class } else { top };
        return refuse(tcl, known, &[]);
    }
    if let Some(outcome) = agents::new(tcl, class) {
        return outcome;
    }
    if let Some(meant) = nearest(class, CLASSES).filter(|_| !elsewhere::AGENTS.contains(&&**class)) {
        return mistake(format!("there is no class '{}'", &**class), format!("write new {meant}"));
    }
    tcl.warn(Code::Ignored, format!("{} is ignored: run real programs in the hosts", &**class));
    match class.starts_with("Agent/") {
        true => agents::new_other(tcl),
        false => add(tcl, Object::Other),
    }
}

fn method(tcl: &mut Interp, object: Object, words: &[Value]) -> TclResult {
    let name = words.first().map_or("", |word| word);
    let rest = words.get(1..).unwrap_or_default();
    match (object, name) {
        (Object::Broken, _) => Err(Interrupt::Reported),
        (Object::Simulator, _) => simulator(tcl, words),
        (Object::Link(link), "queue") => add(tcl, Object::Queue(link, [true, false])),
        (Object::Link(link), "NsQueue") => {
            let [node] = rest else { return usage("$link NsQueue $node") };
            let end = end_at(tcl, link, node)?;
            add(tcl, Object::Queue(link, only(end)))
        }
        (Object::Lan(lan), "NsQueue") => {
            let [node] = rest else { return usage("$lan NsQueue $node") };
            let link = member(tcl, lan, node)?;
            add(tcl, Object::Queue(link, [true, true]))
        }
        (Object::Direction(link, ends), "queue") => add(tcl, Object::Queue(link, ends)),
        (Object::Link(link), "errormodule") if rest.len() == 1 => {
            error_model::put(tcl, &rest[0], link, [true, false])
        }
        (Object::Direction(link, ends), "errormodule") if rest.len() == 1 => {
            error_model::put(tcl, &rest[0], link, ends)
        }
        (Object::ErrorModel(model), _) => error_model::method(tcl, model, words),
        (Object::Queue(link, ends), _) if queues::is_refused(tcl, link, ends) => Err(Interrupt::Reported),
        // Parameters of DRR are commands too (drr.cc).
        (Object::Queue(link, ends), "blimit" | "buckets" | "mask" | "quantum") if rest.len() == 1 => {
            queues::set(tcl, link, ends, &[Value::from(format!("{name}_")), rest[0].clone()])
        }
        (Object::Queue(link, ends), "set") => queues::set(tcl, link, ends, rest),
        (Object::Variable(variable), _) => random::variable(tcl, variable, words),
        (Object::Generator(generator), _) => random::generator(tcl, generator, words),
        (Object::Node(node), "program-agent") => programs::agent(tcl, node, rest),
        (Object::Node(node), "start-cmd" | "start-command") => {
            let [command] = rest else { return usage("$node start-command \"COMMAND\"") };
            programs::start_command(tcl, node, command)
        }
        (Object::Program(program), "set") => programs::set(tcl, program, rest),
        (Object::Program(_), _) => {
            mistake("a program is started by an event", "write $ns at 10.0 \"$program start\"")
        }
        (Object::Agent(agent), _) => agents::agent_method(tcl, agent, words),
        (Object::Source(source), _) => agents::source_method(tcl, source, words),
        (Object::EventList(list), _) => event_lists::list_method(tcl, list, words),
        (Object::Group(group), _) => event_lists::group_method(tcl, group, words),
        (Object::Other, _) => {
            tcl.warn(Code::Ignored, format!("'{name}' of an object that is ignored is ignored"));
            add(tcl, Object::Other)
        }
        (Object::Node(node), "id" | "node-addr") if rest.is_empty() => Ok(Value::from(node.to_string())),
        (Object::Node(_), name) if elsewhere::NODE_VISUAL.contains(&name) => Ok(Value::default()),
        _ => other_method(tcl, object, name),
    }
}

/// A command of a node, queue or link that is not executed: ignored, or a mistake.
fn other_method(tcl: &mut Interp, object: Object, name: &str) -> TclResult {
    let (what, known) = match object {
        Object::Node(_) => ("a node", &elsewhere::NODE_METHODS[..]),
        Object::Queue(..) => ("a queue", &elsewhere::QUEUE_METHODS[..]),
        _ => ("a link or lan", &elsewhere::LINK_METHODS[..]),
    };
    if known.contains(&name) {
        tcl.warn(Code::Ignored, format!("{name} is ignored: {}", elsewhere::why(name)));
        return add(tcl, Object::Other);
    }
    // Commands of wireless nodes, which were refused.
    if tcl.simulator.is_wireless && matches!(object, Object::Node(_)) {
        return Err(Interrupt::Reported);
    }
    let instead = match nearest(name, known.iter().copied()) {
        Some(meant) => format!("write {meant}"),
        None => "write a command of ns-2 or Emulab, or remove it".to_owned(),
    };
    mistake(format!("{what} has no command '{name}'"), instead)
}

fn simulator(tcl: &mut Interp, words: &[Value]) -> TclResult {
    // Joglekar 2004 writes `$ns set duplex-link …`.
    let words = match words {
        [set, rest @ ..] if &**set == "set" => rest,
        all => all,
    };
    let Some((name, words)) = words.split_first() else { return usage("$ns run") };
    if tcl.now.is_some() && MAKES.contains(&&**name) {
        return mistake("an event cannot change what the network consists of", "make it before $ns run");
    }
    let outcome = agents::simulator(tcl, name, words).or_else(|| events::simulator(tcl, name, words));
    let outcome = outcome.or_else(|| of_links(tcl, name, words));
    if let Some(outcome) = outcome {
        return outcome;
    }
    match (&**name, words) {
        ("node", rest) => {
            extra(tcl, "node", rest);
            new_node(tcl)
        }
        ("duplex-link", [a, b, rate, delay, queue, rest @ ..]) => {
            extra(tcl, "duplex-link", rest);
            link(tcl, [a, b], [rate, delay, queue], [true, true])
        }
        ("simplex-link", [a, b, rate, delay, queue, rest @ ..]) => {
            extra(tcl, "simplex-link", rest);
            link(tcl, [a, b], [rate, delay, queue], [true, false])
        }
        ("make-lan" | "newLan" | "make-cloud", [nodes, rate, delay, rest @ ..]) => {
            extra(tcl, "make-lan", rest);
            lan(tcl, nodes, rate, delay)
        }
        ("queue-limit", [a, b, limit]) => queue_limit(tcl, [a, b], limit),
        ("bw_parse" | "delay_parse", words) => ns_command(tcl, name, words),
        ("node-config", words) if words.iter().any(|word| elsewhere::WIRELESS.contains(&&**word)) => {
            tcl.simulator.is_wireless = true;
            mistake("wireless nodes are not emulated", "write $ns duplex-link for each pair of neighbours")
        }
        ("rtproto", [protocol, rest @ ..]) => {
            extra(tcl, "rtproto", rest);
            routing(tcl, protocol)
        }
        ("run", []) => {
            tcl.simulator.ran = true;
            Ok(Value::default())
        }
        (name, _) => not_made(tcl, name),
    }
}

/// The commands of `$ns` about links that are there. `None` if `name` is another command.
fn of_links(tcl: &mut Interp, name: &str, words: &[Value]) -> Option<TclResult> {
    let direction = |tcl: &mut Interp, a, b| between(tcl, a, b).map(|(link, end)| (link, only(end)));
    Some(match (name, words) {
        ("lossmodel" | "link-lossmodel", [model, a, b]) => {
            direction(tcl, a, b).and_then(|(link, ends)| error_model::put(tcl, model, link, ends))
        }
        ("lossmodel" | "link-lossmodel", _) => usage(&format!("$ns {name} $em $n0 $n1")),
        ("link" | "get-link", [a, b]) => {
            direction(tcl, a, b).and_then(|(link, ends)| add(tcl, Object::Direction(link, ends)))
        }
        ("lanlink", [lan, node]) => {
            let link = lan_of(tcl, lan).and_then(|lan| member(tcl, lan, node));
            link.and_then(|link| add(tcl, Object::Direction(link, [true, true])))
        }
        _ => return None,
    })
}

/// What is not a complete call of `$ns`: an example of it, or why it is ignored.
fn not_made(tcl: &mut Interp, name: &str) -> TclResult {
    match name {
        "rtproto" => usage("$ns rtproto Static"),
        "duplex-link" | "simplex-link" => usage(&format!("$ns {name} $a $b 10Mb 10ms DropTail")),
        "make-lan" | "newLan" => usage("$ns make-lan \"$a $b $c\" 100Mb 0ms"),
        "link" => usage("$ns link $a $b"),
        "lanlink" => usage("$ns lanlink $lan $node"),
        "queue-limit" => usage("$ns queue-limit $a $b 50"),
        name if elsewhere::VISUAL.contains(&name) => Ok(Value::default()),
        name if elsewhere::METHODS.contains(&name) => {
            tcl.warn(Code::Ignored, format!("$ns {name} is ignored: {}", elsewhere::why(name)));
            add(tcl, Object::Other)
        }
        _ if tcl.simulator.is_wireless => Err(Interrupt::Reported),
        name => unknown_method(name),
    }
}

/// The methods of `$ns` that make the network.
const MAKES: [&str; 6] = ["node", "duplex-link", "simplex-link", "make-lan", "newLan", "make-cloud"];

fn new_node(tcl: &mut Interp) -> TclResult {
    let (made, handle) = made(tcl, Object::Node(tcl.simulator.nodes.len()))?;
    tcl.simulator.nodes.push(made);
    tcl.grant();
    Ok(handle)
}

fn queue_limit(tcl: &mut Interp, [a, b]: [&Value; 2], limit: &Value) -> TclResult {
    let (link, end) = between(tcl, a, b)?;
    queues::set(tcl, link, only(end), &[Value::from("limit_"), limit.clone()])
}

fn unknown_method(name: &str) -> TclResult {
    if let Some((_, instead)) = elsewhere::OTHERWISE.iter().find(|(known, _)| *known == name) {
        return mistake(format!("$ns {name} is not supported"), format!("write {instead}"));
    }
    let known = METHODS.into_iter().chain(elsewhere::VISUAL).chain(elsewhere::METHODS);
    let instead = match nearest(name, known) {
        Some(meant) => format!("write $ns {meant}"),
        None => format!("write $ns and one of {}, or remove it", METHODS.join(", ")),
    };
    mistake(format!("the simulator has no command '{name}'"), instead)
}

/// Warns of words after those that a command takes here.
fn extra(tcl: &mut Interp, command: &str, words: &[Value]) {
    if let Some(first) = words.first() {
        let of = if command.starts_with("new ") { "" } else { "$ns " };
        tcl.warn(Code::Ignored, format!("'{}' and what follows in {of}{command} is ignored", &**first));
    }
}

/// The protocols of ns-2 (ns-lib.tcl) and Emulab (sim.tcl).
const ROUTING: [&str; 8] =
    ["Static", "Static-old", "Static-ddijk", "Session", "DV", "LS", "Algorithmic", "Manual"];

fn routing(tcl: &mut Interp, protocol: &Value) -> TclResult {
    let Some(known) = ROUTING.into_iter().find(|known| known.eq_ignore_ascii_case(protocol)) else {
        let any = || format!("and one of {}", ROUTING.join(", "));
        let meant = nearest(protocol, ROUTING).map_or_else(any, str::to_owned);
        let what = format!("there is no routing protocol '{}'", &**protocol);
        return mistake(what, format!("write $ns rtproto {meant}"));
    };
    match known {
        "Manual" => tcl.warn(Code::Ignored, "rtproto Manual is ignored: routes are computed"),
        "Session" => tcl.simulator.has_dynamic_routes = true,
        "DV" | "LS" => {
            tcl.warn(
                Code::Different,
                format!("rtproto {known} is Session here: routes change with a link, without messages"),
            );
            tcl.simulator.has_dynamic_routes = true;
        }
        _ => (),
    }
    Ok(Value::default())
}

fn link(
    tcl: &mut Interp,
    ends: [&Value; 2],
    [rate, delay, queue]: [&Value; 3],
    made_ends: [bool; 2],
) -> TclResult {
    let [a, b] = ends.map(|end| node(tcl, end));
    let (a, b) = (a?, b?);
    if a == b {
        return mistake("the link joins a node to itself", "write two nodes");
    }
    let queue = queues::of_type(tcl, queue)?;
    let pipe = Pipe {
        rate: quantity::rate(rate)?,
        delay: quantity::delay(delay, 1.0)?,
        loss: Probability::NEVER,
        queue,
    };
    // Two simplex links, there and back, are one link.
    let missing = |&(link, end): &(usize, usize)| tcl.simulator.links[link].pipes[end].is_none();
    let half = tcl.simulator.between(a, b).filter(missing);
    if let Some((link, end)) = half.filter(|_| made_ends == [true, false]) {
        tcl.simulator.links[link].pipes[end] = Some(pipe);
        return add(tcl, Object::Direction(link, only(end)));
    }
    let (made, handle) = made(tcl, Object::Link(tcl.simulator.links.len()))?;
    tcl.grant();
    tcl.simulator.add_link(ScriptLink {
        made: Some(made),
        at: tcl.at,
        ends: [LinkEnd::Node(a), LinkEnd::Node(b)],
        pipes: made_ends.map(|made| made.then(|| pipe.clone())),
        addresses: [None; 2],
        prefix_length: PREFIX_LENGTH,
    });
    Ok(handle)
}

fn lan(tcl: &mut Interp, nodes: &Value, rate: &Value, delay: &Value) -> TclResult {
    let rate = quantity::rate(rate)?;
    let delay = quantity::half(quantity::delay(delay, 1.0)?);
    let members = tcl.elements(nodes)?;
    let (mut ends, mut seen) = (Vec::new(), BTreeSet::new());
    for member in &members {
        let member = node(tcl, member)?;
        if !seen.insert(member) {
            return mistake("a node is twice in the lan", "write each node once");
        }
        ends.push(member);
        tcl.spend(ends.len() as u64)?;
    }
    let lan = tcl.simulator.lans.len();
    let (made, handle) = made(tcl, Object::Lan(lan))?;
    let first = tcl.simulator.links.len();
    let pipe = Pipe { rate, delay, loss: Probability::NEVER, queue: NsQueue::default() };
    for &member in &ends {
        tcl.simulator.add_link(ScriptLink {
            made: None,
            at: tcl.at,
            ends: [LinkEnd::Node(member), LinkEnd::Lan(lan)],
            pipes: [Some(pipe.clone()), Some(pipe.clone())],
            addresses: [None; 2],
            prefix_length: PREFIX_LENGTH,
        });
    }
    tcl.simulator.lans.push(Lan { made, links: (first..first + ends.len()).collect() });
    Ok(handle)
}

fn only(end: usize) -> [bool; 2] {
    [end == 0, end == 1]
}

fn testbed(tcl: &mut Interp, name: &str, words: &[Value]) -> TclResult {
    tcl.simulator.is_emulab = true;
    match (name, words) {
        ("tb-set-link-loss", [a, b, loss]) => {
            let (link, _) = between(tcl, a, b)?;
            set_loss(tcl, link, quantity::loss(loss)?);
        }
        ("tb-set-link-loss", [link, loss]) => match object(tcl, link, "link")? {
            Object::Link(link) => set_loss(tcl, link, quantity::loss(loss)?),
            Object::Lan(lan) => set_lan_loss(tcl, lan, quantity::loss(loss)?),
            _ => return mistake(format!("{} is not a link", shown(tcl, link)), "write a link, or two nodes"),
        },
        ("tb-set-lan-loss", [lan, loss]) => {
            let lan = lan_of(tcl, lan)?;
            set_lan_loss(tcl, lan, quantity::loss(loss)?);
        }
        ("tb-set-node-lan-delay", [node, lan, delay]) => {
            let delay = quantity::delay(delay, 1.0)?;
            at_member(tcl, node, lan, |pipe| pipe.delay = delay)?;
        }
        ("tb-set-node-lan-bandwidth", [node, lan, rate]) => {
            let rate = quantity::rate(rate)?;
            at_member(tcl, node, lan, |pipe| pipe.rate = rate)?;
        }
        ("tb-set-node-lan-loss", [node, lan, loss]) => {
            let loss = quantity::loss(loss)?;
            at_member(tcl, node, lan, |pipe| pipe.loss = loss)?;
        }
        ("tb-set-node-lan-params", [node, lan, delay, rate, loss]) => {
            let set = parameters(delay, rate, loss)?;
            at_member(tcl, node, lan, set)?;
        }
        ("tb-set-link-simplex-params", [link, node, delay, rate, loss]) => {
            let link = link_of(tcl, link)?;
            let end = end_at(tcl, link, node)?;
            tcl.simulator.change_pipes(link, only(end), parameters(delay, rate, loss)?);
        }
        ("tb-set-lan-simplex-params", [lan, node, delay, rate, loss, from_delay, from_rate, from_loss]) => {
            let lan = lan_of(tcl, lan)?;
            let link = member(tcl, lan, node)?;
            tcl.simulator.change_pipes(link, [true, false], parameters(delay, rate, loss)?);
            tcl.simulator.change_pipes(link, [false, true], parameters(from_delay, from_rate, from_loss)?);
        }
        ("tb-set-noshaping", [link, on]) if matches!(&**on, "1" | "0") => shaping(tcl, link, &**on == "0")?,
        ("tb-set-node-startcmd" | "tb-set-node-startup", [at_node, command]) => {
            let at_node = node(tcl, at_node)?;
            return programs::start_command(tcl, at_node, command);
        }
        _ if elsewhere::TESTBED.contains(&name) => {
            tcl.warn(Code::Ignored, format!("{name} is ignored: {}", elsewhere::why(name)));
        }
        _ if NAMES.contains(&name) => {
            let example = TESTBED_USAGE.iter().find(|example| example.split(' ').next() == Some(name));
            return example.map_or_else(|| addresses(tcl, name, words), |example| usage(example));
        }
        _ => return unknown_testbed(name),
    }
    Ok(Value::default())
}

/// Takes the rates of a link or lan away where they are not emulated.
fn shaping(tcl: &mut Interp, link: &Value, is_on: bool) -> Result<(), Interrupt> {
    let links = match object(tcl, link, "link")? {
        Object::Lan(lan) => tcl.simulator.lans[lan].links.clone(),
        _ => vec![link_of(tcl, link)?],
    };
    for link in links.into_iter().filter(|_| !is_on) {
        tcl.simulator.change_pipes(link, [true, true], |pipe| pipe.rate = None);
    }
    Ok(())
}

fn unknown_testbed(name: &str) -> TclResult {
    let instead = match nearest(name, NAMES.into_iter().chain(elsewhere::TESTBED)) {
        Some(meant) => format!("write {meant}"),
        None => "write a command of Emulab, or remove it".to_owned(),
    };
    mistake(format!("there is no command '{name}'"), instead)
}

const TESTBED_USAGE: [&str; 11] = [
    "tb-set-node-startcmd $node \"COMMAND\"",
    "tb-set-node-startup $node \"COMMAND\"",
    "tb-set-noshaping $link 1",
    "tb-set-link-loss $link 0.05",
    "tb-set-lan-loss $lan 0.05",
    "tb-set-node-lan-delay $node $lan 40ms",
    "tb-set-node-lan-bandwidth $node $lan 20Mb",
    "tb-set-node-lan-loss $node $lan 0.05",
    "tb-set-node-lan-params $node $lan 40ms 20Mb 0.05",
    "tb-set-link-simplex-params $link $node 40ms 20Mb 0.05",
    "tb-set-lan-simplex-params $lan $node 40ms 20Mb 0.05 5ms 100Mb 0",
];

fn parameters(delay: &Value, rate: &Value, loss: &Value) -> Result<impl Fn(&mut Pipe) + use<>, Interrupt> {
    let (delay, rate, loss) = (quantity::delay(delay, 1.0)?, quantity::rate(rate)?, quantity::loss(loss)?);
    Ok(move |pipe: &mut Pipe| {
        pipe.delay = delay;
        pipe.rate = rate;
        pipe.loss = loss;
    })
}

fn at_member(
    tcl: &mut Interp,
    node: &Value,
    lan: &Value,
    change: impl Fn(&mut Pipe),
) -> Result<(), Interrupt> {
    let lan = lan_of(tcl, lan)?;
    let link = member(tcl, lan, node)?;
    tcl.simulator.change_pipes(link, [true, true], change);
    Ok(())
}

fn set_loss(tcl: &mut Interp, link: usize, loss: Probability) {
    tcl.simulator.change_pipes(link, [true, true], |pipe| pipe.loss = loss);
}

fn set_lan_loss(tcl: &mut Interp, lan: usize, loss: Probability) {
    for link in tcl.simulator.lans[lan].links.clone() {
        set_loss(tcl, link, quantity::root(loss));
    }
}

fn addresses(tcl: &mut Interp, name: &str, words: &[Value]) -> TclResult {
    let (link, end, ip) = match (name, words) {
        ("tb-set-ip", [at, ip]) => {
            let at_node = node(tcl, at)?;
            let Some((link, end)) = tcl.simulator.only_link(at_node) else {
                let what = format!("{} does not have a single link", shown(tcl, at));
                return mistake(what, "write tb-set-ip-link or tb-set-ip-lan, after the links");
            };
            (link, end, ip)
        }
        ("tb-set-ip-interface", [a, b, ip]) => {
            let (link, end) = between(tcl, a, b)?;
            (link, end, ip)
        }
        ("tb-set-ip-link", [node, link, ip]) => {
            let link = link_of(tcl, link)?;
            (link, end_at(tcl, link, node)?, ip)
        }
        ("tb-set-ip-lan", [node, lan, ip]) => {
            let lan = lan_of(tcl, lan)?;
            (member(tcl, lan, node)?, 0, ip)
        }
        ("tb-set-netmask", [link, mask]) => return netmask(tcl, link, mask),
        ("tb-set-ip", _) => return usage("tb-set-ip $node 10.1.0.2"),
        ("tb-set-ip-interface", _) => return usage("tb-set-ip-interface $node $neighbour 10.1.0.2"),
        ("tb-set-ip-link", _) => return usage("tb-set-ip-link $node $link 10.1.0.2"),
        ("tb-set-ip-lan", _) => return usage("tb-set-ip-lan $node $lan 10.1.0.2"),
        _ => return usage("tb-set-netmask $lan 255.255.255.0"),
    };
    let Ok(address) = ip.trim().parse::<Ipv4Addr>() else {
        return mistake(format!("'{}' is not an IPv4 address", &**ip), "write for example 10.1.0.2");
    };
    tcl.simulator.links[link].addresses[end] = Some((address, tcl.at));
    Ok(Value::default())
}

fn netmask(tcl: &mut Interp, link: &Value, mask: &Value) -> TclResult {
    let links = match object(tcl, link, "link")? {
        Object::Lan(lan) => tcl.simulator.lans[lan].links.clone(),
        _ => vec![link_of(tcl, link)?],
    };
    let length = mask.trim().parse::<Ipv4Addr>().ok().and_then(|mask| ipnet::ipv4_mask_to_prefix(mask).ok());
    let Some(length) = length.filter(|length| (8..=31).contains(length)) else {
        return mistake(format!("'{}' is not a netmask", &**mask), "write for example 255.255.255.0");
    };
    links.into_iter().for_each(|link| tcl.simulator.links[link].prefix_length = length);
    Ok(Value::default())
}

fn link_of(tcl: &mut Interp, word: &Value) -> Result<usize, Interrupt> {
    match object(tcl, word, "link")? {
        Object::Link(link) => Ok(link),
        _ => mistake(format!("{} is not a link", shown(tcl, word)), "write a link"),
    }
}

fn lan_of(tcl: &mut Interp, word: &Value) -> Result<usize, Interrupt> {
    match object(tcl, word, "lan")? {
        Object::Lan(lan) => Ok(lan),
        _ => mistake(format!("{} is not a lan", shown(tcl, word)), "write a lan"),
    }
}

fn between(tcl: &mut Interp, a: &Value, b: &Value) -> Result<(usize, usize), Interrupt> {
    let (from, to) = (node(tcl, a)?, node(tcl, b)?);
    match tcl.simulator.between(from, to) {
        Some(found) => Ok(found),
        None => {
            let what = format!("no link joins {} and {}", shown(tcl, a), shown(tcl, b));
            mistake(what, "write $ns duplex-link for them before")
        }
    }
}

fn member(tcl: &mut Interp, lan: usize, word: &Value) -> Result<usize, Interrupt> {
    let node = node(tcl, word)?;
    match tcl.simulator.member(lan, node) {
        Some(link) => Ok(link),
        None => mistake(format!("{} is not in the lan", shown(tcl, word)), "write a member of the lan"),
    }
}

fn end_at(tcl: &mut Interp, link: usize, word: &Value) -> Result<usize, Interrupt> {
    let node = node(tcl, word)?;
    match tcl.simulator.links[link].ends.iter().position(|end| *end == LinkEnd::Node(node)) {
        Some(end) => Ok(end),
        None => {
            mistake(format!("{} is not an end of the link", shown(tcl, word)), "write an end of the link")
        }
    }
}
