//! Random networks in memory: trees of routers with hosts, links with a rate, a delay and one
//! of two queue disciplines.

use fastpath_spec::Topology;
use fastpath_units::Rng;
use std::fmt::Write;

/// Disciplines besides drop-tail, by the names of their costs, as a spec writes them. Their limits
/// are so large that bursts of a saturated engine fit.
pub const QUEUES: [(&str, &str); 12] = [
    ("drop-head", "{ kind = 'drop-head', limit = '100000p' }"),
    ("sojourn", "'900ms'"),
    ("red", "{ kind = 'red', limit = '100000p', min = '50000p', max = '90000p' }"),
    ("codel", "{ kind = 'codel', limit = '100000p' }"),
    ("fq-codel", "{ kind = 'fq-codel', limit = '100000p' }"),
    ("pie", "{ kind = 'pie', limit = '100000p' }"),
    ("dualpi2", "{ kind = 'dualpi2', limit = '100000p' }"),
    ("token-bucket", "{ kind = 'token-bucket', rate = '100Gbit', burst = '10MB', limit = '100000p' }"),
    ("policer", "{ kind = 'policer', rate = '100Gbit', burst = '10MB', limit = '100000p' }"),
    ("mahimahi", "{ kind = 'mahimahi', packets = 100000 }"),
    ("prio", "{ kind = 'prio', bands = [{ dscp = 'EF', limit = '1000p' }, { limit = '100000p' }] }"),
    (
        "drr",
        "{ kind = 'drr', classes = [{ dscp = 'EF', quantum = '3028B', limit = '1000p' }, { limit = '100000p' }] }",
    ),
];
/// Drop-tail with as large a limit.
const DROP_TAIL: &str = "'100000p'";
/// Bounds of the random choices.
const ROUTERS_MAX: u64 = 12;
const HOSTS_MAX: u64 = 40;
const DELAY_US: [u64; 2] = [20, 300];
const RATE_GBIT: [u64; 2] = [40, 100];
const BYTES: [u64; 2] = [60, 1400];
/// Headers of Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;
/// Most routers and hosts of a lab: every host is a namespace, with threads that send and receive.
const LAB_ROUTERS_MAX: u64 = 5;
const LAB_HOSTS_MAX: u64 = 6;
/// The rate of the slow link of a lab, Mbit/s: even in its logarithm.
const SLOW_MBIT: [f64; 2] = [100.0, 4000.0];

/// A network, and the frames that its hosts send.
#[derive(Clone, PartialEq, Debug)]
pub struct RandomNetwork {
    /// The network, without traffic.
    pub topology: Topology,
    /// Length of every frame, without FCS.
    pub bytes: usize,
    /// The disciplines of its links, by name.
    pub queues: [&'static str; 2],
    /// The description, without traffic.
    text: String,
}

/// How the hosts of a network are attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Access {
    /// By a link to a router.
    Direct,
    /// Every second host by a switch, to which its link holds no frame: in a lab both run in the
    /// kernel.
    HalfSwitched,
}

/// Whether the link of the first host of a lab has a rate that one connection can fill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstLink {
    /// As fast as the others.
    Fast,
    /// The slowest one.
    Slow,
}

impl RandomNetwork {
    /// The network of a seed, with two random disciplines.
    pub fn new(seed: u64) -> RandomNetwork {
        let mut rng = Rng::new(seed);
        let queues = [(); 2].map(|()| rng.below(QUEUES.len() as u64 + 1) as usize);
        RandomNetwork::with_queues(seed, queues.map(|place| place.checked_sub(1)))
    }

    /// The network of a seed whose links have these disciplines, by place in [`QUEUES`]; `None` is
    /// drop-tail.
    pub fn with_queues(seed: u64, queues: [Option<usize>; 2]) -> RandomNetwork {
        RandomNetwork::drawn(seed, queues, [ROUTERS_MAX, HOSTS_MAX], (Access::Direct, None))
    }

    /// A network of a seed that is small enough for a lab, with two random disciplines.
    pub fn lab(seed: u64, first: FirstLink) -> RandomNetwork {
        RandomNetwork::small(seed, first, Access::Direct)
    }

    /// As [`RandomNetwork::lab`]. Every second host is at a switch that runs in the kernel.
    pub fn half_switched_lab(seed: u64) -> RandomNetwork {
        RandomNetwork::small(seed, FirstLink::Fast, Access::HalfSwitched)
    }

    fn small(seed: u64, first: FirstLink, access: Access) -> RandomNetwork {
        let mut rng = Rng::new(seed ^ 0x6c61_6273);
        let queues = [(); 2].map(|()| rng.below(QUEUES.len() as u64 + 1) as usize);
        let [low, high] = SLOW_MBIT.map(f64::ln);
        let slow = (low + rng.unit_f64() * (high - low)).exp() as u64;
        let slow = (first == FirstLink::Slow).then_some(slow);
        let most = [LAB_ROUTERS_MAX, LAB_HOSTS_MAX];
        RandomNetwork::drawn(seed, queues.map(|place| place.checked_sub(1)), most, (access, slow))
    }

    /// The network of a seed with at most these numbers of routers and hosts. `slow` is the rate of
    /// the first host's link in Mbit/s, if it is not random as the others.
    fn drawn(
        seed: u64,
        queues: [Option<usize>; 2],
        [routers_max, hosts_max]: [u64; 2],
        (access, slow): (Access, Option<u64>),
    ) -> RandomNetwork {
        let mut rng = Rng::new(seed ^ 0x6361_7061_6369_7479);
        let mut between = |[low, high]: [u64; 2]| low + rng.below(high - low + 1);
        // As many small ones as large ones.
        let routers = 1 + between([0, routers_max - 1]) * between([1, 4]) / 4;
        let hosts = 2 + between([0, hosts_max - 2]) * between([1, 4]) / 4;
        let bytes = between(BYTES) as usize;
        let mut text = "family = 'v4'\n".to_owned();
        (0..routers).for_each(|router| _ = writeln!(text, "[router.r{router}]"));
        (0..hosts).for_each(|host| _ = writeln!(text, "[host.h{host}]"));
        let mut ends: Vec<[String; 2]> = (1..routers)
            .map(|router| {
                [format!("r{router}"), format!("r{}", router - 1 - between([0, router.min(3) - 1]))]
            })
            .collect();
        for host in 0..hosts {
            let router = format!("r{}", between([0, routers - 1]));
            if access == Access::HalfSwitched && host % 2 == 1 {
                let _ = writeln!(text, "[switch.s{host}]\n[[link]]\nbetween = ['h{host}', 's{host}']");
                ends.push([format!("s{host}"), router]);
            } else {
                ends.push([format!("h{host}"), router]);
            }
        }
        for [a, b] in ends {
            let queue = queues[between([0, 1]) as usize].map_or(DROP_TAIL, |place| QUEUES[place].1);
            let (rate, delay) = (between(RATE_GBIT), between(DELAY_US));
            let slow = slow.filter(|_| a == "h0").map(|rate| format!("{rate}Mbit"));
            let rate = slow.unwrap_or_else(|| format!("{rate}Gbit"));
            let _ = writeln!(
                text,
                "[[link]]\nbetween = ['{a}', '{b}']\nrate = '{rate}'\ndelay = '{delay}us'\nqueue = {queue}"
            );
        }
        let queues = queues.map(|place| place.map_or("drop-tail", |place| QUEUES[place].0));
        RandomNetwork { topology: parsed(&text), bytes, queues, text }
    }

    /// Returns the network with `packets_per_second` datagrams of all hosts together: each sends to
    /// the one that is half of all hosts further.
    pub fn with_datagrams(&self, packets_per_second: f64) -> Topology {
        let hosts = self.topology.hosts().count();
        let size = self.bytes.saturating_sub(HEADERS).max(1);
        let each = (packets_per_second / hosts as f64 * 8.0 * size as f64).max(1.0) as u64;
        let mut text = self.text.clone();
        for host in 0..hosts {
            let to = (host + hosts / 2) % hosts;
            let _ = writeln!(
                text,
                "[[traffic]]\nfrom = 'h{host}'\nto = 'h{to}'\nkind = 'constant'\nrate = '{each}bit'\nsize = {size}"
            );
        }
        parsed(&text)
    }

    /// Returns the network with a bulk TCP connection from the first host to the one that is half
    /// of all hosts further.
    pub fn with_tcp(&self) -> Topology {
        let to = self.topology.hosts().count() / 2;
        parsed(&format!("{}[[traffic]]\nfrom = 'h0'\nto = 'h{to}'\nkind = 'tcp'\n", self.text))
    }

    /// A star of hosts around one router, with drop-tail queues.
    pub fn star(hosts: usize) -> RandomNetwork {
        RandomNetwork::tree(&["r0".to_owned()], &vec![0; hosts])
    }

    /// Routers in a row with a host at each end, with drop-tail queues.
    pub fn row(routers: usize) -> RandomNetwork {
        let names: Vec<String> = (0..routers).map(|router| format!("r{router}")).collect();
        RandomNetwork::tree(&names, &[0, routers - 1])
    }

    /// Routers in a row, and a host at each of these places.
    fn tree(routers: &[String], hosts: &[usize]) -> RandomNetwork {
        let mut text = "family = 'v4'\n".to_owned();
        routers.iter().for_each(|router| _ = writeln!(text, "[router.{router}]"));
        (0..hosts.len()).for_each(|host| _ = writeln!(text, "[host.h{host}]"));
        let row = routers.windows(2).map(|pair| [pair[0].clone(), pair[1].clone()]);
        let access =
            hosts.iter().enumerate().map(|(host, router)| [format!("h{host}"), routers[*router].clone()]);
        for [a, b] in row.chain(access) {
            let _ = writeln!(
                text,
                "[[link]]\nbetween = ['{a}', '{b}']\nrate = '100Gbit'\ndelay = '100us'\nqueue = {DROP_TAIL}"
            );
        }
        RandomNetwork { topology: parsed(&text), bytes: 200, queues: ["drop-tail"; 2], text }
    }
}

fn parsed(text: &str) -> Topology {
    fastpath_spec::parse(text).unwrap_or_else(|mistakes| panic!("{}", mistakes[0])).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_seed_is_a_network_and_all_disciplines_are_drawn() {
        let mut seen = BTreeSet::new();
        for seed in 0..200 {
            let network = RandomNetwork::new(seed);
            assert_eq!(network, RandomNetwork::new(seed));
            assert!((2..=HOSTS_MAX as usize).contains(&network.topology.hosts().count()));
            assert!((60..=1400).contains(&network.bytes));
            seen.extend(network.queues);
        }
        assert_eq!(seen.len(), QUEUES.len() + 1, "{seen:?}");
    }

    #[test]
    fn labs_are_small_with_a_slow_link_or_switches() {
        for seed in 0..50 {
            let fast = RandomNetwork::lab(seed, FirstLink::Fast);
            let slow = RandomNetwork::lab(seed, FirstLink::Slow);
            let hosts = fast.topology.hosts().count();
            assert!((2..=LAB_HOSTS_MAX as usize).contains(&hosts));
            let lowest = |network: &RandomNetwork| {
                let rates = network.topology.links.iter().map(|link| link.pipes[0].rate.unwrap().as_bps());
                rates.min().unwrap()
            };
            assert!(lowest(&fast) >= 40_000_000_000);
            assert!((100_000_000..=4_000_000_000).contains(&lowest(&slow)));
            let switched = RandomNetwork::half_switched_lab(seed);
            let added = switched.topology.links.len() - fast.topology.links.len();
            assert_eq!((switched.topology.hosts().count(), added), (hosts, hosts / 2));
            let sent = fast.with_datagrams(1000.0);
            assert_eq!(sent.traffic.len(), hosts);
            let bps: f64 = sent.traffic.iter().map(|traffic| traffic.model.mean_bps()).sum();
            let payload = (fast.bytes - HEADERS) as f64;
            assert!((bps / (8000.0 * payload) - 1.0).abs() < 0.01, "{bps}");
            assert_eq!(fast.with_tcp().transfers.len(), 1);
        }
    }

    #[test]
    fn stars_and_rows_have_their_hosts_and_links() {
        let (star, row) = (RandomNetwork::star(5).topology, RandomNetwork::row(4).topology);
        assert_eq!((star.hosts().count(), star.links.len()), (5, 5));
        assert_eq!((row.hosts().count(), row.links.len()), (2, 5));
    }
}
