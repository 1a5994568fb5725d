//! Rule sets and keys for measurements and tests: routes, five-tuple filters and MAC tables,
//! generated from a seed.
//!
//! The filters resemble access lists: long source and destination prefixes that share a few
//! networks, well-known destination ports, some port ranges, a few wide rules last. They do not
//! come from a published list or generator. The generated rules are frozen: the same seed gives the
//! same rules.

use crate::field::Field;
use crate::key::Key;
use crate::matching::{FieldMatch, Match};
use fastpath_units::Rng;

/// Priority and match of a rule.
pub type Filter = (u16, Match);

/// Generates IPv4 routes: distinct prefixes of 8 to 32 bits, most of them of 16 to 24 bits as in
/// the Internet's tables. Longer prefixes have higher priorities. At most 2²² of them.
pub fn routes(count: usize, seed: u64) -> Vec<Filter> {
    let mut rng = Rng::new(seed);
    let mut seen = std::collections::BTreeSet::new();
    let mut routes = Vec::with_capacity(count);
    while routes.len() < count.min(1 << 22) {
        // Per 100: 1 of 8–15 bits, 10 of 16, 30 of 17–21, 57 of 22–24, 2 of 25–32.
        let len = match rng.below(100) {
            0 => 8 + rng.below(8),
            1..=10 => 16,
            11..=40 => 17 + rng.below(5),
            41..=97 => 22 + rng.below(3),
            _ => 25 + rng.below(8),
        } as u32;
        let address = unicast(&mut rng);
        let mask = u32::MAX << (32 - len);
        if seen.insert((len, address & mask)) {
            routes.push((len as u16, ipv4(&[prefix(Field::Ipv4Dst, address & mask, len)])));
        }
    }
    routes
}

/// Generates five-tuple filters over IPv4 with descending priorities, as an access list has. At
/// most 65 535 of them.
pub fn filters(count: usize, seed: u64) -> Vec<Filter> {
    let mut rng = Rng::new(seed);
    let networks: Vec<u32> = (0..count / 40 + 4).map(|_| unicast(&mut rng)).collect();
    let mut seen = std::collections::BTreeSet::new();
    let mut filters: Vec<Match> = Vec::with_capacity(count);
    while filters.len() < count.min(65_535) {
        let matching = filter(&mut rng, &networks);
        if seen.insert(matching.clone()) {
            filters.push(matching);
        }
    }
    // Specific rules first, with some disorder, as in lists that have grown.
    let fixed = |m: &Match| m.terms().iter().map(|term| term.mask.count_ones()).sum::<u32>();
    filters.sort_by_cached_key(|m| u32::MAX - fixed(m) - rng.below(6) as u32);
    let priorities = (1..=u16::MAX).rev();
    priorities.zip(filters).collect()
}

fn filter(rng: &mut Rng, networks: &[u32]) -> Match {
    let address = |rng: &mut Rng, wild: u64| -> (u32, u32) {
        let network = networks[rng.below(networks.len() as u64) as usize];
        let len = match rng.below(100) {
            draw if draw < wild => return (0, 0),
            draw if draw < wild + 15 => 16 + rng.below(8) as u32,
            draw if draw < wild + 40 => 24 + rng.below(8) as u32,
            _ => 32,
        };
        // Hosts and subnets of the network's /16, near each other.
        let host = rng.below(1 << 12) as u32;
        ((network & 0xffff_0000 | network.wrapping_add(host) & 0xffff) & u32::MAX << (32 - len), len)
    };
    let (src, src_len) = address(rng, 8);
    let (dst, dst_len) = address(rng, 3);
    let mut fields = Vec::new();
    for (field, value, len) in [(Field::Ipv4Src, src, src_len), (Field::Ipv4Dst, dst, dst_len)] {
        if len > 0 {
            fields.push(prefix(field, value, len));
        }
    }
    let (protocol, ports) = match rng.below(100) {
        0..70 => (6, Some((Field::TcpSrc, Field::TcpDst))),
        70..88 => (17, Some((Field::UdpSrc, Field::UdpDst))),
        88..93 => (1, None),
        _ => return ipv4(&fields),
    };
    fields.push(FieldMatch::exact(Field::IpProto, protocol));
    let Some((src_port, dst_port)) = ports else { return ipv4(&fields) };
    match rng.below(100) {
        0..55 => {
            let known = [80, 443, 53, 22, 25, 110, 143, 161, 389, 1521, 3306, 3389, 5060, 8080, 123, 21];
            fields.push(FieldMatch::exact(dst_port, known[rng.below(16) as usize]));
        }
        55..75 => fields.push(FieldMatch::exact(dst_port, u128::from(1024 + rng.below(64_000)))),
        75..85 => {
            // A range, as prefixes of ports express it.
            let len = 4 + rng.below(8);
            let mask = 0xffff & (0xffff_u128 << (16 - len));
            fields.push(FieldMatch::masked(dst_port, u128::from(rng.below(65_536)) & mask, mask));
        }
        85..88 => fields.push(FieldMatch::exact(src_port, u128::from(rng.below(1024)))),
        _ => {}
    }
    ipv4(&fields)
}

/// Generates a MAC table: distinct destination addresses.
pub fn macs(count: usize, seed: u64) -> Vec<Filter> {
    let mut rng = Rng::new(seed);
    let base = u128::from(rng.below(1 << 20)) << 24 | 0x0200_0000_0000;
    let mac = |i: usize| Match::new(&[FieldMatch::exact(Field::EthDst, base + i as u128)]);
    (0..count).filter_map(|i| Some((1, mac(i).ok()?))).collect()
}

/// Generates keys of TCP packets between uniformly random IPv4 addresses and ports.
pub fn random_keys(count: usize, seed: u64) -> Vec<Key> {
    let mut rng = Rng::new(seed);
    let mut key = || {
        let mut key = Key::EMPTY;
        let draws = [rng.next_u64(), rng.next_u64(), rng.next_u64()].map(u128::from);
        let fields = [
            (Field::InPort, 1),
            (Field::InPhyPort, 1),
            (Field::Metadata, 0),
            (Field::TunnelId, 0),
            (Field::EthDst, draws[2]),
            (Field::EthSrc, draws[2] >> 16),
            (Field::EthType, 0x0800),
            (Field::VlanVid, 0),
            (Field::IpDscp, 0),
            (Field::IpEcn, 0),
            (Field::IpProto, 6),
            (Field::Ipv4Src, draws[0]),
            (Field::Ipv4Dst, draws[0] >> 32),
            (Field::TcpSrc, draws[1]),
            (Field::TcpDst, draws[1] >> 16),
        ];
        fields.iter().for_each(|(field, value)| key.put(*field, *value));
        key
    };
    (0..count).map(|_| key()).collect()
}

/// Generates keys that follow rules: each matches a rule drawn uniformly, and is random in the bits
/// that the rule leaves open.
pub fn matching_keys(filters: &[Filter], count: usize, seed: u64) -> Vec<Key> {
    let mut rng = Rng::new(seed ^ 0x6b65_7973);
    let mut keys = random_keys(count, seed);
    for key in &mut keys {
        let Some(last) = (filters.len() as u64).checked_sub(1) else { break };
        let (_, matching) = &filters[rng.below(last + 1) as usize];
        let mut words = *key.words();
        for term in matching.terms() {
            let word = &mut words[usize::from(term.word)];
            *word = *word & !term.mask | term.value;
        }
        *key = Key::from_words(words);
    }
    keys
}

/// Draws a sequence of `count` of the `keys` by Zipf's law with exponent 1: the first is the most
/// frequent.
pub fn zipf(keys: &[Key], count: usize, seed: u64) -> Vec<Key> {
    let mut rng = Rng::new(seed);
    // Integer weights, so that every machine draws the same.
    let weights = (1..=keys.len() as u64).map(|rank| (1 << 32) / rank);
    let sums: Vec<u64> = weights
        .scan(0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        })
        .collect();
    let Some(total) = sums.last() else { return Vec::new() };
    let mut draw = || {
        let point = rng.below(*total);
        keys[sums.partition_point(|sum| *sum <= point)]
    };
    (0..count).map(|_| draw()).collect()
}

/// Returns an address whose first byte is 1 to 223, as unicast has.
fn unicast(rng: &mut Rng) -> u32 {
    let first = (1 + rng.below(223)) << 24;
    (first | rng.below(1 << 24)) as u32
}

fn prefix(field: Field, value: u32, len: u32) -> FieldMatch {
    FieldMatch::masked(field, value.into(), (u32::MAX << (32 - len)).into())
}

/// Returns the match of IPv4 packets with these fields, all of which are possible.
fn ipv4(more: &[FieldMatch]) -> Match {
    let mut fields = vec![FieldMatch::exact(Field::EthType, 0x0800)];
    fields.extend(more);
    Match::new(&fields).unwrap_or_else(|refusal| panic!("generated {more:?}: {refusal}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_rules_are_distinct_and_of_the_requested_number() {
        for rules in [routes(2000, 1), filters(2000, 1), macs(2000, 1)] {
            let distinct: std::collections::BTreeSet<_> = rules.iter().collect();
            assert_eq!((rules.len(), distinct.len()), (2000, 2000));
        }
    }

    #[test]
    fn keys_follow_their_rules_and_zipf_prefers_the_first() {
        let rules = filters(50, 3);
        let keys = matching_keys(&rules, 200, 4);
        assert!(keys.iter().all(|key| rules.iter().any(|(_, matching)| matching.matches(key))));
        let drawn = zipf(&keys[..10], 29_290, 5);
        let firsts = drawn.iter().filter(|key| **key == keys[0]).count();
        // 1/H(10) = 0.3414 of them: 10 000, standard deviation 81. A deviation of five standard
        // deviations occurs once in 2 million seeds.
        assert!((9_595..10_405).contains(&firsts), "{firsts}");
    }
}
