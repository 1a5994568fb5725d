//! Measures lookups in one table, by three methods and with three kinds of traffic.
//!
//! A key is changed in place in the first-level cache, where a parser would leave it. The cost of
//! the loop around the lookups is measured separately and subtracted.

use super::{ByTraffic, Lookups, Made, SwitchQuestion};
use crate::Effort;
use fastpath_jit::{CompileError, Finder};
use fastpath_plan::Base;
use fastpath_plan::TablePlan;
use fastpath_switch::{Key, Match, workload};
use fastpath_units::stats::median;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Number of keys for each kind of traffic.
const KEYS: usize = 65_536;
/// Maximum number of flows of the Zipf traffic.
const ZIPF_FLOWS: usize = 1000;
/// Lookups between two readings of the clock.
const BATCH: usize = 64;

pub(super) fn measure(question: &SwitchQuestion, made: &Made) -> Result<Lookups, CompileError> {
    let plan = TablePlan::new(&made.switch.tables()[usize::from(made.largest)]);
    let matches: Vec<Match> = plan.rules().iter().map(|rule| rule.rank.matching().clone()).collect();
    let flows = &made.follow[..made.follow.len().min(ZIPF_FLOWS)];
    let traffic = Traffic {
        one: vec![made.follow[0]; KEYS],
        zipf: workload::zipf(flows, KEYS, question.seed + 2),
        random: workload::random_keys(KEYS, question.seed + 3),
        span: Duration::from_millis(if question.effort == Effort::Quick { 50 } else { 400 }),
    };
    let finder = Finder::new(&plan)?;
    let hashes = Base::hash_per_mask(matches.iter());
    Ok(Lookups {
        compiled: traffic.time(|key| finder.find(key).number()),
        interpreted: traffic
            .time(|key| matches.iter().position(|matching| matching.matches(key)).unwrap_or(0) as u32),
        hash_per_mask: traffic.time(|key| hashes.lookup(key).unwrap_or(0)),
    })
}

struct Traffic {
    one: Vec<Key>,
    zipf: Vec<Key>,
    random: Vec<Key>,
    span: Duration,
}

impl Traffic {
    fn time(&self, mut find: impl FnMut(&Key) -> u32) -> ByTraffic {
        let mut ns = |keys: &[Key]| {
            let loop_ns = self.median_ns(keys, |key| key.words()[6] as u32);
            (self.median_ns(keys, &mut find) - loop_ns).max(0.0)
        };
        ByTraffic { one_flow: ns(&self.one), zipf: ns(&self.zipf), random: ns(&self.random) }
    }

    /// Returns the median over batches, ns. At least one pass over all keys is made, unless it
    /// takes more than ten times the time span.
    fn median_ns(&self, keys: &[Key], mut find: impl FnMut(&Key) -> u32) -> f64 {
        const CHANGING: [usize; 7] = [0, 1, 2, 4, 5, 6, 7];
        let changing: Vec<[u64; 7]> = keys.iter().map(|key| CHANGING.map(|word| key.words()[word])).collect();
        let mut key = keys[0];
        let mut pass = |times: &mut Vec<f64>, end: Instant| {
            for batch in changing.chunks_exact(BATCH) {
                let start = Instant::now();
                for values in batch {
                    let words = key.words_mut();
                    CHANGING.iter().zip(values).for_each(|(word, value)| words[*word] = *value);
                    black_box(find(black_box(&key)));
                }
                times.push(start.elapsed().as_secs_f64() * 1e9 / BATCH as f64);
                if start > end {
                    return;
                }
            }
        };
        // Warm up, for at most the time span.
        pass(&mut Vec::new(), Instant::now() + self.span);
        let mut times = Vec::new();
        let begin = Instant::now();
        while begin.elapsed() < self.span {
            pass(&mut times, begin + 10 * self.span);
        }
        median(times)
    }
}
