//! Random networks and frames, for tests that compare a network with its parts.

use fastpath_net::{EdgeId, HostPath, Routes};
use fastpath_spec::Topology;
use fastpath_units::{Duration, Rng, Time};
use fastpath_wire::build::Ip;
use std::fmt::Write as _;
use std::net::IpAddr;

/// Writes a description, part by part.
struct Author {
    rng: Rng,
    links: String,
    names: Vec<String>,
    groups: bool,
}

/// Returns a random description, which a few combinations of values make invalid: routers in a
/// connected graph with cycles, and hosts behind switches, OpenFlow switches, NATs or at routers.
/// Equal delays make many events simultaneous.
pub(crate) fn network(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let groups = rng.below(6) == 0;
    let mut author = Author { rng, links: String::new(), names: Vec::new(), groups };
    let mut nodes = String::new();
    let mut hosts: Vec<(String, bool)> = Vec::new();
    let routers = 2 + author.rng.below(4);
    for router in 0..routers {
        let _ = writeln!(nodes, "[router.r{router}]");
        if router > 0 {
            let before = author.rng.below(router);
            author.link(&format!("r{before}"), &format!("r{router}"));
        }
    }
    for _ in 0..author.rng.below(routers) {
        let [a, b] = [(); 2].map(|()| author.rng.below(routers));
        if a != b {
            author.link(&format!("r{a}"), &format!("r{b}"));
        }
    }
    for router in 0..routers {
        for _ in 0..1 + author.rng.below(2) {
            author.access(&mut nodes, &mut hosts, router);
        }
    }
    let traffic = author.traffic(&hosts);
    let mut text = String::new();
    if author.rng.below(3) == 0 {
        text += "routes = 'dynamic'\n";
    }
    if author.rng.below(3) == 0 {
        text += "ecmp = true\n";
    }
    text += &nodes;
    if author.groups {
        text += "[group.cell]\nstart = 'first-packet'\n";
    }
    text += &author.links;
    for _ in 0..author.rng.below(6) {
        text += &author.event();
    }
    text + &traffic
}

impl Author {
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.rng.below(of.len() as u64) as usize]
    }

    fn access(&mut self, nodes: &mut String, hosts: &mut Vec<(String, bool)>, router: u64) {
        let number = hosts.len();
        let kind = self.pick(&["host", "switch", "openflow", "nat"]);
        let mut at = format!("r{router}");
        if kind != "host" {
            let node = format!("{}{number}", &kind[..1]);
            self.link(&node, &at);
            match kind {
                "nat" => {
                    let inside = format!("h{number}-{node}', 'h{}-{node}", number + 1);
                    let _ = writeln!(nodes, "[nat.{node}]\ninside = ['{inside}']");
                }
                "openflow" => {
                    let _ = writeln!(nodes, "[openflow.{node}]\nrules = 'priority=1,actions=NORMAL'");
                }
                _ => _ = writeln!(nodes, "[switch.{node}]"),
            }
            at = node;
        }
        for host in number..number + if kind == "host" { 1 } else { 2 } {
            let _ = writeln!(nodes, "[host.h{host}]");
            self.link(&format!("h{host}"), &at);
            hosts.push((format!("h{host}"), kind == "nat"));
        }
    }

    fn link(&mut self, a: &str, b: &str) {
        let plain = format!("{a}-{b}");
        let name = if self.names.contains(&plain) { format!("{plain}-{}", self.names.len()) } else { plain };
        let _ = writeln!(self.links, "[[link]]\nbetween = ['{a}', '{b}']\nname = '{name}'");
        let delay = self.pick(&["0s", "1ns", "7ns", "10us", "1ms", "1ms", "1ms", "2ms", "3ms"]);
        let _ = writeln!(self.links, "delay = '{delay}'");
        if self.rng.below(2) == 0 {
            let rate = self.pick(&["1Mbit", "10Mbit", "10Mbit", "1Gbit"]);
            let _ = writeln!(self.links, "rate = '{rate}'");
            if self.rng.below(3) == 0 {
                let cross = self.pick(&["'700kbit'", "{ rate = '5Mbit', law = 'constant', packet = 300 }"]);
                let _ = writeln!(self.links, "cross = {cross}");
            }
        }
        let effects = [
            "queue = '3p'",
            "queue = '20p'",
            "queue = { kind = 'codel', target = '1ms', interval = '5ms' }",
            "queue = { kind = 'fq-codel', target = '1ms', interval = '5ms' }",
            "queue = { kind = 'drop-head', limit = '4p' }",
            "loss = '10%'",
            "loss = { probability = '5%', at = 'egress' }",
            "jitter = { law = 'uniform', half_width = '500us' }",
            "jitter = { law = 'uniform', half_width = '900us', reorder = 'allow' }",
            "jitter = { law = 'uniform', half_width = '900us', reorder = 'drop' }",
            "jitter = { law = 'normal', sd = '50us' }",
            "jitter = { law = 'exponential', mean = '300us' }",
            "reorder = '10%'",
            "duplicate = '20%'",
            "duplicate = { probability = '20%', later = '300us' }",
            "corrupt = '5%'",
            "slots = '400us'",
            "mtu = 600",
            "trace = { poisson = '2Mbit', length = '20ms', seed = 3, end = 'reset' }",
            "trace = { poisson = '2Mbit', length = '20ms', seed = 3, end = 'stop' }",
        ];
        let mut keys: Vec<String> = Vec::new();
        for _ in 0..self.rng.below(3) {
            let effect = self.pick(&effects);
            let key = effect.split(' ').next().expect("a key").to_owned();
            if !keys.contains(&key) {
                let _ = writeln!(self.links, "{effect}");
                keys.push(key);
            }
        }
        if self.groups && self.rng.below(3) == 0 {
            let _ = writeln!(self.links, "group = 'cell'");
        }
        self.names.push(name);
    }

    fn event(&mut self) -> String {
        let link = self.rng.below(self.names.len() as u64) as usize;
        let what = self.pick(&[
            "delay = '1ms'",
            "delay = '5ms'",
            "delay = '300us'",
            "rate = '3Mbit'",
            "state = 'down'",
            "state = 'up'",
            "loss = '30%'",
            "queue = '2p'",
            "jitter = { law = 'uniform', half_width = '200us' }",
            "jitter = 'none'",
        ]);
        let at = self.pick(&["3ms", "5ms", "8ms", "12ms", "20ms"]);
        format!("[[event]]\nat = '{at}'\nlink = '{}'\n{what}\n", self.names[link])
    }

    fn traffic(&mut self, hosts: &[(String, bool)]) -> String {
        let outside: Vec<&str> = hosts.iter().filter(|host| !host.1).map(|host| host.0.as_str()).collect();
        let mut text = String::new();
        for flow in 0..2 + self.rng.below(5) {
            let from = self.rng.below(hosts.len() as u64) as usize;
            let from = hosts[from].0.as_str();
            let Some(to) = (!outside.is_empty()).then(|| self.pick(&outside)) else { continue };
            if from == to {
                continue;
            }
            let kind = self.pick(&["constant", "constant", "poisson"]);
            let size = self.pick(&[40, 100, 400, 1200]);
            let rate = self.pick(&["800kbit", "4Mbit", "8Mbit"]);
            let start = self.pick(&["0s", "0s", "1ms", "2ms"]);
            let _ = writeln!(
                text,
                "[[traffic]]\nname = 'f{flow}'\nfrom = '{from}'\nto = '{to}'\nkind = '{kind}'\nsize = {size}\n\
                 rate = '{rate}'\nstart = '{start}'\nstop = '25ms'"
            );
        }
        text
    }
}

/// Returns random frames between the hosts of a network, ordered by time: many at the same instant,
/// some to no one, and some with a short life.
pub(crate) fn frames(topology: &Topology, seed: u64) -> Vec<(Time, EdgeId, Vec<u8>)> {
    let mut rng = Rng::stream(seed, 99);
    let routes = Routes::compute(topology);
    let hosts: Vec<_> = topology.hosts().map(|(id, _)| id).collect();
    let mut first_edges = Vec::new();
    let mut edges = 0;
    for (_, host) in topology.hosts() {
        first_edges.push(edges);
        edges += host.interfaces.len() as u32;
    }
    let (mut frames, mut at) = (Vec::new(), Time::ZERO);
    for number in 0..120_u16 {
        if rng.below(3) > 0 {
            at += Duration::from_us(100 * rng.below(5));
        }
        let [from, to] = [(); 2].map(|()| rng.below(hosts.len() as u64) as usize);
        let Some(path) = HostPath::find(topology, &routes, hosts[from], hosts[to]) else { continue };
        let mut target = path.to;
        if rng.below(12) == 0
            && let IpAddr::V4(address) = target.1
        {
            // Of the same subnet, with no station.
            target.1 = IpAddr::V4((u32::from(address) ^ 0x30).into());
        }
        let ttl = if rng.below(12) == 0 { 1 + rng.below(3) as u8 } else { 64 };
        let ip = Ip { ttl, ..Ip::between(path.from, target) };
        let payload = vec![number as u8; rng.below(1300) as usize];
        let bytes = ip.udp(1000 + number, 7, &payload);
        frames.push((at, EdgeId(first_edges[from] + path.interface as u32), bytes));
    }
    frames
}
