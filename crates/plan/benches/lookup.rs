//! Cost of a lookup by rule set, structure and traffic; cost of building a plan.
//!
//! `cargo bench -p fastpath-switch`. An iteration is 4096 lookups: divide by that. Keys: 64 Ki
//! uniformly random ones; 64 Ki drawn by Zipf's law over 1000 flows that follow rules; one flow.

use divan::{Bencher, black_box};
use fastpath_plan::{Base, Cache, TablePlan};
use fastpath_switch::workload::{self, Filter};
use fastpath_switch::{FlowMod, Instructions, Key, Limits, Match, Switch};
use fastpath_units::Time;

fn main() {
    divan::main();
}

const LOOKUPS: usize = 4096;
const SETS: &[&str] = &[
    "routes:4",
    "routes:5",
    "routes:912",
    "routes:10000",
    "routes:1000000",
    "filters:1000",
    "filters:10000",
    "macs:100000",
];
const TRAFFIC: &[&str] = &["random", "follow", "zipf", "one"];

fn filters(set: &str) -> Vec<Filter> {
    let (kind, count) = set.split_once(':').expect("KIND:COUNT");
    let count = count.parse().expect("a number");
    match kind {
        "routes" => workload::routes(count, 1),
        "filters" => workload::filters(count, 1),
        _ => workload::macs(count, 1),
    }
}

fn keys(filters: &[Filter], traffic: &str) -> Vec<Key> {
    match traffic {
        "random" => workload::random_keys(65_536, 2),
        "follow" => workload::matching_keys(filters, 65_536, 2),
        "zipf" => workload::zipf(&workload::matching_keys(filters, 1000, 2), 65_536, 3),
        _ => vec![workload::matching_keys(filters, 1, 2)[0]; 65_536],
    }
}

fn plan(filters: &[Filter]) -> TablePlan {
    let mut switch = Switch::new(Limits { tables: 1, ..Limits::default() });
    for (priority, matching) in filters {
        let add = FlowMod::add(0, *priority, matching.clone(), Instructions::default());
        switch.flow_mod(Time::ZERO, &add).expect("room");
    }
    TablePlan::new(&switch.tables()[0])
}

fn cases() -> impl Iterator<Item = String> {
    SETS.iter().flat_map(|set| TRAFFIC.iter().map(move |traffic| format!("{set} {traffic}")))
}

fn run(bencher: Bencher, keys: &[Key], mut lookup: impl FnMut(&Key) -> u32) {
    // The key is filled in the first-level cache, as from a packet just parsed; 64 Ki whole keys
    // would be 8 MiB to read.
    let changing: Vec<[u64; 6]> =
        keys.iter().map(|key| [0, 1, 4, 6, 7, 5].map(|word| key.words()[word])).collect();
    let (mut at, mut key) = (0, keys[0]);
    bencher.bench_local(|| {
        let mut sum = 0u32;
        for [presence, kind, protocol, addresses, ports, src] in &changing[at..at + LOOKUPS] {
            let words = key.words_mut();
            (words[0], words[1], words[4], words[5]) = (*presence, *kind, *protocol, *src);
            (words[6], words[7]) = (*addresses, *ports);
            sum = sum.wrapping_add(lookup(black_box(&key)));
        }
        at = (at + LOOKUPS) % keys.len();
        sum
    });
}

fn case(case: &str) -> (Vec<Filter>, Vec<Key>) {
    let (set, traffic) = case.split_once(' ').expect("SET TRAFFIC");
    let filters = filters(set);
    let keys = keys(&filters, traffic);
    (filters, keys)
}

/// The cost of the loop around the lookups, to be subtracted.
#[divan::bench(sample_count = 64, sample_size = 4)]
fn nothing(bencher: Bencher) {
    run(bencher, &workload::random_keys(65_536, 2), |key| key.words()[6] as u32);
}

#[divan::bench(args = cases(), sample_count = 64, sample_size = 4)]
fn planned(bencher: Bencher, name: &str) {
    let (filters, keys) = case(name);
    let plan = plan(&filters);
    run(bencher, &keys, |key| plan.find(key).number());
}

#[divan::bench(args = cases(), sample_count = 64, sample_size = 4)]
fn cached(bencher: Bencher, name: &str) {
    let (filters, keys) = case(name);
    let plan = plan(&filters);
    let mut cache = Cache::new(8192);
    run(bencher, &keys, |key| cache.find(&plan, key).number());
}

#[divan::bench(args = cases().filter(|case| !case.contains("1000000")), sample_count = 8, sample_size = 1)]
fn hash_per_mask(bencher: Bencher, name: &str) {
    let (filters, keys) = case(name);
    let plan = plan(&filters);
    let base = Base::hash_per_mask(plan.rules().iter().map(|rule| rule.rank.matching()));
    run(bencher, &keys, |key| base.lookup(key).unwrap_or(0));
}

#[divan::bench(args = cases().filter(|case| case.contains(":4 ") || case.contains(":912 ")), sample_count = 4, sample_size = 1)]
fn interpreted(bencher: Bencher, name: &str) {
    let (filters, keys) = case(name);
    let plan = plan(&filters);
    let matches: Vec<Match> = plan.rules().iter().map(|rule| rule.rank.matching().clone()).collect();
    run(bencher, &keys, |key| matches.iter().position(|matching| matching.matches(key)).unwrap_or(0) as u32);
}

#[divan::bench(args = SETS, sample_count = 3, sample_size = 1)]
fn build(bencher: Bencher, set: &str) {
    let plan = plan(&filters(set));
    bencher.bench_local(|| Base::new(plan.rules().iter().map(|rule| rule.rank.matching())));
}
