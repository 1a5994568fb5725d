//! Random descriptions with every key there is, as JSON. Every one can be read, and many resolve. A
//! test compares the keys with those of the schema: a new key gets its values here.

use fastpath_units::Rng;
use serde_json::{Map, Value, json};

type Table = Map<String, Value>;

/// A source of random values.
struct Random(Rng);

/// Returns the description of a seed.
pub(crate) fn description(seed: u64) -> Value {
    let mut random = Random(Rng::new(seed));
    let r = &mut random;
    let mut nodes = vec![json!({ "name": "n0", "kind": "host" }), json!({ "name": "n1", "kind": "host" })];
    let mut links = vec![json!({ "name": "l0", "between": ["n0", "n1"] })];
    for index in 2..2 + r.below(6) {
        let kind = r.pick(&["host", "host", "router", "kernel", "nat", "uplink", "switch", "openflow"]);
        let name = format!("n{index}{}", r.pick(&["", ".x", "-y", "_Z"]));
        // A NAT has a link on either side.
        for other in ["n0", "n1"].into_iter().take(1 + usize::from(kind == "nat" || r.one_in(3))) {
            links.push(json!({ "name": format!("l{}", links.len()), "between": [name.as_str(), other] }));
        }
        let inside = links[links.len() - 2]["name"].clone();
        nodes.push(r.node(kind, &name, &inside));
    }
    for (index, link) in links.iter_mut().enumerate() {
        r.link(index, link.as_object_mut().expect("a table"));
    }
    let mut all = Table::new();
    r.maybe(&mut all, "seed", |r| json!(r.0.next_u64()));
    r.maybe(&mut all, "family", |r| json!(r.pick(&["v4", "v6"])));
    r.maybe(&mut all, "routes", |_| json!("dynamic"));
    r.maybe(&mut all, "ecmp", |_| json!(true));
    r.maybe(&mut all, "engine", Random::engine);
    r.maybe(&mut all, "traffic", |r| (0..1 + r.below(2)).map(|index| r.traffic(index)).collect());
    let groups = ["g0", "g 1"].map(|name| json!({ "name": name.replace(' ', "-"), "start": r.start() }));
    all.insert("groups".to_owned(), groups.into_iter().collect());
    all.insert("events".to_owned(), (0..r.below(3)).map(|_| r.event()).collect());
    // Numbers of their own: what a seed describes otherwise stays.
    let mut more = Random(Rng::new(!seed));
    links.iter_mut().for_each(|link| more.bounds(link.as_object_mut().expect("a table")));
    more.rebinding(&nodes, &mut all);
    all.insert("links".to_owned(), Value::Array(links));
    all.insert("nodes".to_owned(), Value::Array(nodes));
    Value::Object(all)
}

/// Draws a value.
type Draw = fn(&mut Random) -> Value;

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }

    /// Gives the key a value, or leaves it out.
    fn maybe(&mut self, table: &mut Table, key: &str, value: impl FnOnce(&mut Random) -> Value) {
        if self.one_in(4) {
            table.insert(key.to_owned(), value(self));
        }
    }

    fn rate(&mut self) -> Value {
        // At most 800 Gbit/s.
        let (bound, unit) =
            [(1_000, "kbit"), (1_000_000, "kbit"), (40_000_000_000, "bit")][self.below(3) as usize];
        json!(format!("{}{unit}", 1 + self.below(bound)))
    }

    fn time(&mut self) -> Value {
        let number = 1 + self.below(10_000_000);
        json!(format!("{number}{}", self.pick(&["ns", "us"])))
    }

    fn bytes(&mut self) -> Value {
        json!(format!("{}{}", 2000 + self.below(1 << 20), self.pick(&["B", "KiB"])))
    }

    fn limit(&mut self) -> Value {
        if self.one_in(2) { json!(format!("{}p", 1 + self.below(10_000))) } else { self.bytes() }
    }

    /// A probability from 0 to below a half.
    fn share(&mut self) -> Value {
        match self.below(3) {
            0 => json!(format!("{}%", 1 + self.below(49))),
            1 => json!(self.0.unit_f64() / 2.0),
            _ => json!(format!("{}.{}%", self.below(49), 1 + self.below(9999))),
        }
    }

    /// A text as an author may write it: with quotes, lines, and characters beyond ASCII.
    fn text(&mut self) -> Value {
        json!(self.pick(&[
            "echo",
            "a \"b\" 'c'",
            "two\nlines\t",
            "\\back",
            "\u{7f}\u{1b}[1m",
            "größe ∞ 𝄞",
            "#"
        ]))
    }

    fn start(&mut self) -> Value {
        let time = self.time();
        self.pick(&[time, json!("first-packet"), json!("command")])
    }

    fn engine(&mut self) -> Value {
        let mut all = Table::new();
        self.maybe(&mut all, "tolerance", Random::time);
        self.maybe(&mut all, "late", |r| json!(r.pick(&["deliver", "drop"])));
        self.maybe(&mut all, "idle", |r| json!(r.pick(&["busy", "save", "sleep"])));
        self.maybe(&mut all, "data_path", |r| json!(r.pick(&["auto", "kernel", "user"])));
        self.maybe(&mut all, "workers", |r| r.pick(&[json!("auto"), json!(3), json!([0, 2])]));
        all.insert("memory".to_owned(), json!(format!("{}MiB", 4 + self.below(4000))));
        Value::Object(all)
    }

    fn node(&mut self, kind: &str, name: &str, inside: &Value) -> Value {
        let mut all = Table::new();
        if !matches!(kind, "switch" | "openflow") {
            self.routed(&mut all, inside);
        }
        match kind {
            "host" => {
                self.maybe(&mut all, "port", |r| json!(r.pick(&["eth1", "xdp:eth2", "tap:t0", "memory"])));
                self.programs(&mut all);
            }
            "kernel" => {
                self.programs(&mut all);
                if self.one_in(2) {
                    self.daemon(&mut all, inside);
                }
            }
            "nat" => self.nat(&mut all, inside),
            "uplink" => self.maybe(
                &mut all,
                "forward",
                |r| json!({ r.pick(&["8080", "udp:53", "10.0.0.1:1", "udp:[::1]:9"]): "n0:80", "7": "n1:7" }),
            ),
            "openflow" => self.openflow(&mut all),
            _ => {}
        }
        self.maybe(&mut all, "position", |r| json!([r.below(2000), r.below(2000) as f64 / 2.0 - 500.0]));
        all.insert("name".to_owned(), json!(name));
        all.insert("kind".to_owned(), json!(kind));
        Value::Object(all)
    }

    /// The keys of nodes that have addresses.
    fn routed(&mut self, all: &mut Table, link: &Value) {
        let link = link.as_str().unwrap_or_default();
        let address = |r: &mut Random| {
            let number = r.below(200);
            r.pick(&[json!(format!("10.{number}.9.7/24")), json!(format!("fd00:{number}::7/64"))])
        };
        let several = |r: &mut Random| json!([address(r), format!("10.201.{}.1/24", r.below(200))]);
        match self.below(12) {
            0 => _ = all.insert("address".to_owned(), address(self)),
            1 => _ = all.insert("addresses".to_owned(), several(self)),
            2 => _ = all.insert("addresses".to_owned(), json!({ link: several(self) })),
            _ => {}
        }
        if self.one_in(8) {
            let mac = json!(format!("02:00:00:00:09:{:02x}", self.below(256)));
            all.insert("mac".to_owned(), self.pick(&[json!([mac]), json!({ link: [mac] })]));
        }
        if self.one_in(12) {
            let routes = json!({ "10.250.0.0/16": "10.1.9.8", "::/0": "fd00:1::8" });
            all.insert("routes".to_owned(), routes);
        }
        if self.one_in(8) {
            all.insert("assign".to_owned(), json!(false));
        }
    }

    fn programs(&mut self, all: &mut Table) {
        match self.below(8) {
            0 => _ = all.insert("attach".to_owned(), json!(self.pick(&["netns:a", "netns:/a", "pid:1"]))),
            1 => _ = all.insert("image".to_owned(), json!("localhost/i:1")),
            2 => _ = all.insert("rootfs".to_owned(), json!("files of/it")),
            _ => {}
        }
        if all.contains_key("image") || all.contains_key("rootfs") {
            self.maybe(all, "command", |r| json!(["sleep", r.text()]));
        }
        self.maybe(all, "env", |r| json!({ "A": r.text(), "b.c": "1" }));
        self.maybe(all, "binds", |r| json!([r.pick(&["/p:/q:ro", "r:/s"])]));
        self.maybe(all, "private", |_| json!(["/var/run"]));
        self.maybe(all, "pid_namespace", |_| json!(true));
        self.maybe(all, "sysctls", |_| json!({ "net.ipv4.ip_forward": "1" }));
        self.maybe(all, "exec", |r| json!([r.text(), "sleep 1 &"]));
    }

    fn daemon(&mut self, all: &mut Table, link: &Value) {
        let link = link.as_str().unwrap_or_default();
        let program = self.pick(&["frr", "bird"]);
        all.insert("daemon".to_owned(), json!(program));
        all.insert("ospf".to_owned(), json!(true));
        self.maybe(all, "router_id", |r| json!(format!("1.2.3.{}", r.below(256))));
        self.maybe(all, "static_routes", |_| json!(true));
        self.maybe(all, "config", |_| json!("router ospf\nexit\n"));
        self.maybe(all, "ospf", |r| {
            let times = json!({ "hello": "1s", "dead": "4s", "area": "0.0.0.7" });
            r.pick(&[times, json!({ "areas": { link: "0.0.0.1" }, "costs": { link: 7 } })])
        });
        self.maybe(all, "bgp", |r| json!({ "asn": 1 + r.below(4_000_000_000), "unnumbered": true }));
        if program == "frr" {
            self.maybe(all, "isis", |r| json!({ "level": 1 + r.below(2), "area": "49.0001" }));
            self.maybe(all, "pim", |_| json!({ "rp": "10.0.0.1", "hello": "2s" }));
        }
    }

    fn nat(&mut self, all: &mut Table, inside: &Value) {
        all.insert("inside".to_owned(), json!([inside]));
        let words = ["endpoint-independent", "address-dependent", "address-and-port-dependent"];
        for key in ["mapping", "filtering"] {
            self.maybe(all, key, |r| json!(r.pick(&words)));
        }
        self.maybe(all, "pool", |r| json!([format!("192.0.2.{}", 1 + r.below(200))]));
        self.maybe(all, "pooling", |_| json!("arbitrary"));
        self.maybe(all, "ports", |r| json!(format!("{}-65000", 1 + r.below(60_000))));
        for key in ["port_preservation", "port_parity", "hairpinning"] {
            self.maybe(all, key, |_| json!(false));
        }
        self.maybe(all, "inbound_refresh", |_| json!(true));
        self.maybe(all, "timeouts", |r| {
            let keys = ["udp", "tcp", "tcp_transitory", "icmp", "fragments"];
            Value::Object(keys.map(|key| (key.to_owned(), r.time())).into_iter().collect())
        });
        self.maybe(all, "sessions_max", |r| json!(1 + r.below(65_000)));
    }

    fn openflow(&mut self, all: &mut Table) {
        match self.below(4) {
            0 => _ = all.insert("file".to_owned(), json!("rules.txt")),
            _ => _ = all.insert("rules".to_owned(), json!("priority=1,actions=flood\n# rest\n")),
        }
        self.maybe(all, "controller", |r| json!([r.pick(&["tcp:127.0.0.1:6653", "tcp:[::1]:7"])]));
        self.maybe(all, "listen", |_| json!(["ptcp:6634"]));
        self.maybe(all, "dpid", |r| json!(format!("{:#x}", r.0.next_u64())));
        self.maybe(all, "fail_mode", |r| json!(r.pick(&["secure", "standalone"])));
        self.maybe(all, "tls", |_| json!({ "private_key": "k", "certificate": "c", "ca_certificate": "a" }));
    }

    fn link(&mut self, index: usize, link: &mut Table) {
        if self.one_in(6) {
            // Nothing refers to a link without a name.
            let names: Vec<Value> = (0..2).map(|end| json!(format!("up{index}.{end}"))).collect();
            link.insert("interfaces".to_owned(), Value::Array(names));
        }
        self.maybe(link, "mtu", |r| json!(1248 + r.below(8000)));
        self.maybe(link, "preset", |r| json!(r.pick(&["lte", "dsl"])));
        self.maybe(link, "group", |r| json!(r.pick(&["g0", "g-1"])));
        if self.one_in(2) {
            self.values(link, 6);
            self.maybe(link, "trace", Random::traces);
        } else {
            for way in ["forward", "backward"] {
                let mut direction = Table::new();
                self.values(&mut direction, 6);
                self.maybe(&mut direction, "trace", Random::traces);
                if !direction.is_empty() {
                    link.insert(way.to_owned(), Value::Object(direction));
                }
            }
        }
    }

    fn event(&mut self) -> Value {
        let mut all = Table::from_iter([("at".to_owned(), self.time())]);
        if self.one_in(4) {
            all.insert("host".to_owned(), json!("n0"));
            all.insert("exec".to_owned(), self.text());
            return Value::Object(all);
        }
        if self.one_in(6) {
            all.insert("group".to_owned(), json!("g0"));
            all.insert("traces".to_owned(), json!(self.pick(&["start", "stop"])));
            return Value::Object(all);
        }
        match self.below(4) {
            0 => _ = all.insert("group".to_owned(), json!("g0")),
            1 => _ = all.insert("link".to_owned(), json!(["l0", "l1"])),
            _ => _ = all.insert("link".to_owned(), json!("l0")),
        }
        if all.get("link").is_some_and(Value::is_string) {
            self.maybe(&mut all, "direction", |r| {
                json!(r.pick(&["forward", "backward", "n0_to_n1", "both"]))
            });
        }
        self.values(&mut all, 8);
        all.insert("delay".to_owned(), self.time());
        Value::Object(all)
    }

    fn traffic(&mut self, index: u64) -> Value {
        let mut all = Table::from_iter([("from".to_owned(), json!("n0")), ("to".to_owned(), json!("n1"))]);
        let kind = self.pick(&["constant", "poisson", "on-off", "voice", "tcp", "quic", "request"]);
        all.insert("kind".to_owned(), json!(kind));
        if kind == "on-off" {
            all.insert("on".to_owned(), self.period());
            all.insert("off".to_owned(), self.period());
        }
        if ["tcp", "quic", "request"].contains(&kind) {
            self.transfer(kind, &mut all);
        } else if kind != "voice" {
            match self.below(3) {
                0 => _ = all.insert("load".to_owned(), json!(format!("{}% of l0", 1 + self.below(99)))),
                _ => _ = all.insert("rate".to_owned(), self.rate()),
            }
            self.maybe(&mut all, "size", |r| json!(16 + r.below(1400)));
        }
        self.maybe(&mut all, "name", |_| json!(format!("t{index}")));
        self.maybe(&mut all, "start", Random::time);
        self.maybe(&mut all, "stop", |r| json!(format!("{}s", 10 + r.below(90))));
        self.maybe(&mut all, "port", |r| json!(1 + r.below(65_535)));
        self.maybe(&mut all, "dscp", |r| json!(1 + r.below(63)));
        Value::Object(all)
    }

    fn transfer(&mut self, kind: &str, all: &mut Table) {
        if kind == "request" {
            self.maybe(all, "request", |r| json!(format!("{}B", 1 + r.below(5000))));
            let size = self.amount(|r| json!(format!("{}kB", 1 + r.below(500))));
            all.insert("size".to_owned(), size);
            self.maybe(all, "think", |r| r.amount(Random::time));
            self.maybe(all, "requests", |r| json!(1 + r.below(50)));
        } else {
            self.maybe(all, "size", |r| json!(format!("{}kB", 1 + r.below(500))));
        }
        self.maybe(all, "flows", |r| json!(2 + r.below(9)));
        self.maybe(all, "congestion", |_| json!("reno"));
        self.maybe(all, "ecn", |_| json!(true));
    }

    /// An amount, or a law of amounts.
    fn amount(&mut self, one: fn(&mut Random) -> Value) -> Value {
        let amount = one(self);
        let constant = json!({ "law": "constant", "mean": amount });
        let exponential = json!({ "law": "exponential", "mean": amount });
        let pareto = json!({ "law": "pareto", "mean": amount, "shape": 1.1 + self.0.unit_f64() });
        let values = json!({ "values": [amount, one(self)] });
        self.pick(&[amount, constant, exponential, pareto, values])
    }

    fn period(&mut self) -> Value {
        let mean = self.time();
        let constant = json!({ "law": "constant", "mean": mean });
        let pareto = json!({ "law": "pareto", "mean": mean, "shape": 1.1 + self.0.unit_f64() });
        self.pick(&[mean, constant, pareto])
    }

    /// Values of a pipe: each with a chance of one in `bound`.
    fn values(&mut self, all: &mut Table, bound: u64) {
        let values: [(&str, Draw); 11] = [
            ("rate", |r| if r.one_in(5) { json!("unlimited") } else { r.rate() }),
            ("overhead", |r| {
                let cells = json!({ "bytes": 8, "cell": 48, "cell_overhead": 5 });
                r.pick(&[json!(24), json!(-14), cells])
            }),
            ("delay", Random::time),
            ("loss", Random::losses),
            ("queue", Random::queue),
            ("jitter", Random::jitter),
            (
                "reorder",
                |r| json!({ "probability": r.share(), "correlation": r.share(), "gap": 2 + r.below(9) }),
            ),
            (
                "duplicate",
                |r| json!({ "probability": r.share(), "correlation": r.share(), "later": r.time() }),
            ),
            ("corrupt", |r| {
                let packets = json!({ "probability": r.share(), "correlation": r.share() });
                r.pick(&[json!("none"), packets, json!({ "bits": 1e-6 }), json!("1%")])
            }),
            ("slots", Random::slots),
            ("state", |r| json!(r.pick(&["up", "down"]))),
        ];
        for (key, value) in values {
            if self.one_in(bound) {
                all.insert(key.to_owned(), value(self));
            }
        }
        // Packets cannot overtake and keep their order.
        if all.contains_key("reorder") {
            all.remove("jitter");
        }
    }

    fn losses(&mut self) -> Value {
        match self.below(8) {
            0 => json!("none"),
            1 => self.share(),
            2 => json!([self.loss(), { "kind": "packets", "numbers": [1], "at": "egress" }]),
            3 => json!({ "probability": self.share(), "at": "egress" }),
            _ => self.loss(),
        }
    }

    fn loss(&mut self) -> Value {
        let (p, q) = (self.share(), self.share());
        match self.below(8) {
            0 => json!({ "probability": p, "ecn": true }),
            1 => json!({ "kind": "uniform", "probability": p, "correlation": q }),
            2 => {
                json!({ "kind": "gilbert-elliott", "to_bad": p, "to_good": q, "loss_in_bad": p, "loss_in_good": q })
            }
            3 => json!({ "kind": "four-state", "p13": p, "p31": q, "p32": p, "p23": q, "p14": p }),
            4 => json!({ "kind": "runs", "passed": [99, 1 + self.below(9)], "lost": [1, 2] }),
            5 => json!({ "kind": "packets", "numbers": [3, 17] }),
            6 => json!({ "kind": "bytes", "offsets": [0, 90_000] }),
            _ => json!({ "kind": "outage", "start": self.time(), "for": "1us", "every": "20s" }),
        }
    }

    /// Replaces a loss or corruption of a link by one with a bound or a filter.
    fn bounds(&mut self, link: &mut Table) {
        if link.contains_key("loss") && self.one_in(4) {
            let loss = match self.below(3) {
                0 => json!({ "kind": "packets", "numbers": [1, 4], "of": "udp" }),
                1 => json!({ "probability": self.share(), "burst_max": 1 + self.below(9) }),
                _ => json!({ "probability": self.share(), "burst_max": 2, "of": "udp", "at": "egress" }),
            };
            link.insert("loss".to_owned(), loss);
        }
        if link.contains_key("corrupt") && self.one_in(2) {
            let of = self.pick(&["udp", "udp-payload"]);
            let corrupt = json!({ "probability": self.share(), "burst_max": 3, "of": of });
            link.insert("corrupt".to_owned(), corrupt);
        }
    }

    /// Adds an event that rebinds a NAT, if there is one.
    fn rebinding(&mut self, nodes: &[Value], all: &mut Table) {
        let Some(nat) = nodes.iter().find(|node| node["kind"] == "nat") else { return };
        if let Some(Value::Array(events)) = all.get_mut("events").filter(|_| self.one_in(3)) {
            let mut event = Table::new();
            event.insert("at".to_owned(), self.time());
            event.insert("nat".to_owned(), nat["name"].clone());
            let has_pool = nat["pool"].as_array().is_some_and(|pool| pool.len() > 1);
            let words = if has_pool { ["port", "address"] } else { ["port", "port"] };
            event.insert("rebind".to_owned(), json!(self.pick(&words)));
            self.maybe(&mut event, "every", Random::time);
            events.push(Value::Object(event));
        }
    }

    fn queue(&mut self) -> Value {
        let (limit, time, rate) = (self.limit(), self.time(), self.rate());
        let dscp = self.below(60);
        let all = [
            limit.clone(),
            time.clone(),
            json!("unlimited"),
            json!({ "kind": "drop-head", "limit": limit }),
            json!({ "kind": "drop-tail", "limit": limit }),
            json!({ "kind": "mahimahi", "packets": 1 + self.below(99), "drop": "head" }),
            json!({ "kind": "mahimahi", "bytes": 60_000 }),
            json!({ "kind": "policer", "rate": rate, "burst": "20KiB" }),
            json!({
                "kind": "token-bucket", "rate": "1Mbit", "burst": "9000B", "peak": "2Mbit",
                "peak_burst": "3000B", "limit": limit,
            }),
            json!({ "kind": "prio", "bands": [{ "dscp": [dscp], "limit": limit }, { "limit": "9p" }] }),
            json!({ "kind": "drr", "classes": [{ "dscp": dscp, "limit": limit, "quantum": "3000B" }, { "limit": "9p" }] }),
        ];
        match self.below(3) {
            0 => self.pick(&all),
            1 => self.red(),
            _ => self.controlled(),
        }
    }

    fn red(&mut self) -> Value {
        let (min, max) = (format!("{}p", 1 + self.below(9)), format!("{}p", 20 + self.below(90)));
        let idle = self.pick(&["ns-2", "linux"].map(|word| json!(word)));
        let all = [
            json!({
                "kind": "red", "limit": "900p", "min": min, "max": max, "probability": self.share(),
                "weight": "0.2%", "gentle": false, "ecn": true, "mean_packet": "700B", "idle": idle,
            }),
            json!({ "kind": "ared", "limit": "900p", "min": min, "max": max, "interval": "300ms" }),
            json!({ "kind": "ared", "limit": "900p", "target": "5ms", "ecn": true }),
        ];
        self.pick(&all)
    }

    /// A discipline that controls the delay of its queue.
    fn controlled(&mut self) -> Value {
        let (limit, time, alpha) = (self.limit(), self.time(), self.0.unit_f64());
        let all = [
            json!({ "kind": "codel", "target": time, "interval": "1s", "mtu": "999B", "ecn": true, "limit": limit }),
            json!({ "kind": "fq-codel", "target": time, "quantum": "300B", "flows": 1 + self.below(99) }),
            json!({
                "kind": "pie", "target": time, "update": "9ms", "burst": "1ms", "alpha": alpha, "beta": 0.5,
                "cap_adjustment": false, "derandomize": true, "ecn": true, "mark_below": "9%",
                "mean_packet": "700B", "limit": limit,
            }),
            json!({
                "kind": "dualpi2", "target": time, "update": "9ms", "alpha": alpha, "beta": 2.5, "coupling": 1.5,
                "ramp_start": "400us", "ramp_range": "300us", "ramp_packets": 3, "shift": "20ms",
                "limit": limit,
            }),
            json!({ "kind": "dualpi2", "classic_share": self.below(100) }),
            json!({ "kind": "sojourn", "longest": time, "limit": limit }),
        ];
        self.pick(&all)
    }

    fn jitter(&mut self) -> Value {
        let mut all = self.law();
        let table = all.as_object_mut().expect("a table");
        if table["law"] != "trace" {
            match self.below(3) {
                0 => _ = table.insert("half_life".to_owned(), self.time()),
                1 => _ = table.insert("correlation".to_owned(), self.share()),
                _ => {}
            }
        }
        self.maybe(table, "reorder", |r| json!(r.pick(&["allow", "drop"])));
        if self.one_in(8) { json!("none") } else { all }
    }

    fn law(&mut self) -> Value {
        let (mean, sd) = (self.time(), self.time());
        let all = [
            json!({ "law": "uniform", "half_width": mean }),
            json!({ "law": "normal", "sd": sd }),
            json!({ "law": "lognormal", "mean": mean, "sd": sd }),
            json!({ "law": "pareto", "mean": mean, "shape": 1.01 + 9.0 * self.0.unit_f64() }),
            json!({ "law": "exponential", "mean": mean }),
            json!({ "law": "table", "values": [mean, sd] }),
            json!({ "law": "trace", "values": [mean, sd] }),
        ];
        self.pick(&all)
    }

    fn slots(&mut self) -> Value {
        let (wait, bytes) = (self.time(), self.bytes());
        let between = json!({ "min": "1us", "max": "20s", "packets": 1 + self.below(64), "bytes": bytes });
        let all = [wait.clone(), json!("none"), between, json!({ "mean": wait, "law": self.law() })];
        self.pick(&all)
    }

    fn traces(&mut self) -> Value {
        let end = self.pick(&["repeat", "hold", "reset", "stop"]);
        let file = json!({ "file": "rate.csv", "format": self.pick(&["csv", "theaterq"]), "end": end });
        let poisson = json!({
            "poisson": "500kbit", "length": "1s", "seed": self.below(9), "offset": self.time(),
            "end": self.pick(&["repeat", "stop"]),
        });
        self.pick(&[file.clone(), poisson.clone(), json!([file, poisson])])
    }
}
