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

/// A network, and the frames that its hosts send.
#[derive(Clone, PartialEq, Debug)]
pub struct RandomNetwork {
    /// The network, without traffic.
    pub topology: Topology,
    /// Length of every frame, without FCS.
    pub bytes: usize,
    /// The disciplines of its links, by name.
    pub queues: [&'static str; 2],
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
        let mut rng = Rng::new(seed ^ 0x6361_7061_6369_7479);
        let mut between = |[low, high]: [u64; 2]| low + rng.below(high - low + 1);
        // As many small ones as large ones.
        let routers = 1 + between([0, ROUTERS_MAX - 1]) * between([1, 4]) / 4;
        let hosts = 2 + between([0, HOSTS_MAX - 2]) * between([1, 4]) / 4;
        let bytes = between(BYTES) as usize;
        let mut text = "family = 'v4'\n".to_owned();
        (0..routers).for_each(|router| _ = writeln!(text, "[router.r{router}]"));
        (0..hosts).for_each(|host| _ = writeln!(text, "[host.h{host}]"));
        let mut ends: Vec<[String; 2]> = (1..routers)
            .map(|router| {
                [format!("r{router}"), format!("r{}", router - 1 - between([0, router.min(3) - 1]))]
            })
            .collect();
        ends.extend((0..hosts).map(|host| [format!("h{host}"), format!("r{}", between([0, routers - 1]))]));
        for [a, b] in ends {
            let queue = queues[between([0, 1]) as usize].map_or(DROP_TAIL, |place| QUEUES[place].1);
            let (rate, delay) = (between(RATE_GBIT), between(DELAY_US));
            let _ = writeln!(
                text,
                "[[link]]\nbetween = ['{a}', '{b}']\nrate = '{rate}Gbit'\ndelay = '{delay}us'\nqueue = {queue}"
            );
        }
        let (topology, _) = fastpath_spec::parse(&text).unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
        let queues = queues.map(|place| place.map_or("drop-tail", |place| QUEUES[place].0));
        RandomNetwork { topology, bytes, queues }
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
        let (topology, _) = fastpath_spec::parse(&text).unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
        RandomNetwork { topology, bytes: 200, queues: ["drop-tail"; 2] }
    }
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
    fn stars_and_rows_have_their_hosts_and_links() {
        let (star, row) = (RandomNetwork::star(5).topology, RandomNetwork::row(4).topology);
        assert_eq!((star.hosts().count(), star.links.len()), (5, 5));
        assert_eq!((row.hosts().count(), row.links.len()), (2, 5));
    }
}
