//! Random changes of a running lab: at any moment its hosts are those of a lab that was started
//! with the same description.
#![cfg(target_os = "linux")]

mod common;

use common::{run, up_with};
use fastpath_lab::{ApplyMode, Lab};
use fastpath_spec::{NO_FILES, Topology, read, resolve};
use fastpath_units::Rng;
use std::collections::BTreeSet;

/// Nodes that there can be. `k` and `m` are routers of the kernel.
const NODES: [&str; 11] = ["a", "b", "c", "d", "s", "t", "u", "q", "r", "k", "m"];
/// Changes between two comparisons with a fresh start.
const COMPARED_EVERY: usize = 10;

fn below(rng: &mut Rng, bound: usize) -> usize {
    (rng.next_u64() % bound as u64) as usize
}

/// Returns a lab with these nodes and these links between them. The first node is a host.
fn text(nodes: &[&str], links: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for node in nodes {
        let lines = match node.chars().next() {
            Some('a'..='h') => format!("[host.{node}]\n"),
            Some('s'..='u') => format!("[switch.{node}]\n"),
            Some('k' | 'm') => format!("[router.{node}]\nkind = 'kernel'\n"),
            _ => format!("[router.{node}]\n"),
        };
        text += &lines;
    }
    for (one, other) in links {
        text += &format!("[[link]]\nbetween = ['{one}', '{other}']\n");
    }
    text
}

/// Some of the nodes and some links between them, both in any order.
#[derive(Clone)]
struct Parts {
    nodes: Vec<&'static str>,
    links: Vec<(&'static str, &'static str)>,
}

impl Parts {
    fn vary(&mut self, rng: &mut Rng) {
        for _ in 0..=below(rng, 4) {
            let node = NODES[below(rng, NODES.len())];
            let place = self.nodes.iter().position(|other| *other == node);
            match (below(rng, 3), place) {
                // At least one host stays.
                (0, Some(place)) if node != "a" => {
                    self.nodes.remove(place);
                    self.links.retain(|(one, other)| *one != node && *other != node);
                }
                (0, Some(_)) => {}
                (0, None) => self.nodes.insert(below(rng, self.nodes.len() + 1), node),
                (1, _) if !self.links.is_empty() => _ = self.links.remove(below(rng, self.links.len())),
                _ if self.nodes.len() > 1 => {
                    let (one, other) = (below(rng, self.nodes.len()), below(rng, self.nodes.len()));
                    let (one, other) = (self.nodes[one], self.nodes[other]);
                    let same = |link: &&(&str, &str)| **link == (one, other) || **link == (other, one);
                    if one != other && !self.links.iter().any(|link| same(&link)) {
                        self.links.insert(below(rng, self.links.len() + 1), (one, other));
                    }
                }
                _ => {}
            }
        }
    }
}

fn apply(lab: &mut Lab, text: &str) -> Result<(), String> {
    let description = read(text, NO_FILES).expect("a valid spec").0.description;
    let applied = lab.apply(&description, NO_FILES, ApplyMode::Change).map_err(|error| error.to_string())?;
    let failed: Vec<String> =
        applied.notices.into_iter().filter(|notice| notice.contains("removing")).collect();
    if !failed.is_empty() {
        return Err(failed.join("; "));
    }
    let fresh = resolve(&description, NO_FILES).expect("a valid spec").0;
    assert_eq!(names(lab.topology()), names(&fresh));
    Ok(())
}

fn names(topology: &Topology) -> Vec<String> {
    let all = topology.nodes.iter().flat_map(|node| &node.interfaces);
    all.map(|interface| interface.name.clone()).collect()
}

/// What programs of a host see of the network: interfaces with their addresses and states, routes
/// and neighbours, names.
fn seen(lab: &Lab, host: &str) -> BTreeSet<String> {
    // Indices, counters and ages are not compared. A TAP whose carrier was set once is "up", and
    // one whose carrier was not is "unknown".
    let script = "cd /proc/net; sed 's/^/hosts /' /etc/hosts; awk '{ print \"v4\", $1, $2, $3, $4, $7, $8 }' route;
        awk '{ print \"v6\", $1, $2, $5, $6, $10 }' ipv6_route; awk '{ print \"own\", $1, $3, $4, $6 }' if_inet6;
        awk '$1 ~ /^[0-9]/ { print \"arp\", $1, $4, $6 }' arp; awk '/32 host/ { print \"local\", was } { was = $2 }' fib_trie;
        cd /sys/class/net; for i in *; do echo link $i $(cat $i/address $i/mtu $i/operstate $i/carrier $i/flags | sed s/unknown/up/); done
        cd /proc/sys/net; for i in ipv6/conf/eth*/disable_ipv6 ipv4/conf/all/arp_ignore; do echo $i $(cat $i); done";
    run(lab, host, &["sh", "-c", script]).1.lines().map(str::to_owned).collect()
}

/// Compares a lab with one that is started with the same topology.
fn assert_as_fresh(test: &str, lab: &Lab, what: &str) {
    let name = format!("fresh-{}", lab.name());
    let options = fastpath_engine::Options::new(fastpath_net::Options::default());
    let fresh =
        Lab::up(lab.topology().clone(), &name, options).unwrap_or_else(|error| panic!("{test}: {error}"));
    for host in lab.hosts() {
        let (now, then) = (seen(lab, &host.name), seen(&fresh, &host.name));
        let more: Vec<_> = now.difference(&then).collect();
        let less: Vec<_> = then.difference(&now).collect();
        assert!(now == then, "{what}: host {}: has {more:#?} and not {less:#?}", host.name);
    }
}

fn changes_end_as_a_fresh_start(test: &str, all: &[String]) {
    let Some(mut lab) = up_with(test, "awk", &all[0]) else { return };
    for (number, text) in all.iter().enumerate().skip(1) {
        let what = || format!("change {number}, from\n{}\nto\n{text}", all[number - 1]);
        apply(&mut lab, text).unwrap_or_else(|error| panic!("{error}: {}", what()));
        if number % COMPARED_EVERY == 0 || number + 1 == all.len() {
            assert_as_fresh(test, &lab, &what());
        }
    }
    let report = lab.down().unwrap();
    assert!(report.accounting.balances(), "{:?}", report.accounting);
}

#[test]
fn an_address_of_an_interface_that_goes_becomes_that_of_a_router() {
    let test = "an address becomes that of a router";
    let from = text(&["h", "s"], &[("h", "s")]);
    let to = text(&["h", "t", "s", "r"], &[("s", "t"), ("r", "s"), ("h", "t")]);
    changes_end_as_a_fresh_start(test, &[from.clone(), to, from]);
}

#[test]
fn a_host_leaves_its_router_for_a_switch() {
    let test = "a host leaves its router for a switch";
    let from = text(&["a", "h", "r"], &[("a", "r"), ("h", "r")]);
    let to = text(&["h", "g", "s", "q", "r"], &[("q", "s"), ("r", "s"), ("h", "s"), ("g", "q")]);
    changes_end_as_a_fresh_start(test, &[from.clone(), to, from]);
}

#[test]
fn a_kernel_router_without_links_gets_one() {
    let test = "a kernel router without links gets one";
    let from = text(&["a", "k"], &[]);
    let to = text(&["b", "q", "k"], &[("k", "q"), ("b", "q")]);
    changes_end_as_a_fresh_start(test, &[from.clone(), to, from]);
}

#[test]
fn two_interfaces_change_their_names_with_each_other() {
    let test = "two interfaces change their names";
    let (one, other) = (("a", "b"), ("a", "c"));
    let [from, to] = [[one, other], [other, one]].map(|links| text(&["a", "b", "c"], &links));
    changes_end_as_a_fresh_start(test, &[from.clone(), to, from]);
}

/// With its MAC address an interface loses all neighbours, and with an MTU below 1280 IPv6.
#[test]
fn an_interface_with_another_mac_or_mtu_keeps_its_neighbours_and_addresses() {
    let test = "an interface with another MAC or MTU";
    let of = |mac: &str, mtu: u32| {
        format!(
            "[host.a]\nmac = '02:00:00:00:00:{mac}'\n[host.b]\n[host.c]\n[switch.s]\n\
             [[link]]\nbetween = ['a', 's']\nmtu = {mtu}\n[[link]]\nbetween = ['b', 's']\n[[link]]\nbetween = ['c', 's']\n"
        )
    };
    for (mac, mtu) in [("bb", 1500), ("aa", 1400), ("bb", 1000)] {
        changes_end_as_a_fresh_start(test, &[of("aa", 1500), of(mac, mtu)]);
        changes_end_as_a_fresh_start(test, &[of(mac, mtu), of("aa", 1500)]);
    }
}

/// `FASTPATH_CHANGES=200` takes minutes; `FASTPATH_SEED` is another series.
#[test]
fn random_changes_end_as_a_fresh_start() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: {text}")))
    };
    let mut rng = Rng::new(number("FASTPATH_SEED", 1));
    let mut parts = Parts { nodes: vec!["a", "s"], links: vec![("a", "s")] };
    let all = (0..=number("FASTPATH_CHANGES", 30)).map(|_| {
        let now = text(&parts.nodes, &parts.links);
        parts.vary(&mut rng);
        now
    });
    changes_end_as_a_fresh_start("random changes", &all.collect::<Vec<_>>());
}
