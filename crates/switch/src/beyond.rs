//! Ranks that need not be looked at: in the order of ranks, those within a match are often
//! together.

use crate::flow::Rank;
use crate::matching::{Match, Term};

impl Rank {
    /// For a rank that is not within `wider`: a later one before which no rank within it comes.
    /// `None` if nothing is known but the next one.
    ///
    /// The result is a place in the order. Its match may be one that no flow can have.
    pub fn beyond(&self, wider: &Match) -> Option<Rank> {
        let terms = self.matching().terms();
        let is_met = |wanted: &&Term| terms.iter().any(|term| term.is_within(wanted));
        let wanted = wider.terms().iter().find(|wanted| !is_met(wanted))?;
        let position = terms.partition_point(|term| term.word < wanted.word);
        let front = &terms[..position];
        // Other words may still come between those of `terms` and the wanted one.
        let term = terms.get(position)?;
        let next = if term.word != wanted.word {
            // All that begins like this lacks the wanted word.
            return after_all_with(front).map_or_else(
                || Some(Rank::new(self.priority().checked_sub(1)?, Match::any())),
                |terms| Some(self.with(terms)),
            );
        } else if term.mask & wanted.mask != wanted.mask {
            smaller_mask(term)
        } else {
            // The values of a mask are ordered as their wanted bits are, if these are the highest.
            let others = term.mask & !wanted.mask;
            if others > wanted.mask & wanted.mask.wrapping_neg() {
                return None;
            }
            let value = wanted.value;
            if term.value & wanted.mask < value { Term { value, ..*term } } else { smaller_mask(term) }
        };
        Some(self.with(front.iter().copied().chain([next]).collect()))
    }

    fn with(&self, terms: Vec<Term>) -> Rank {
        Rank::new(self.priority(), Match::of_terms(terms))
    }
}

/// Returns the first place of terms of the same word with a smaller mask.
fn smaller_mask(term: &Term) -> Term {
    Term { mask: term.mask - 1, value: 0, ..*term }
}

/// Returns the place after all matches that begin with these terms; `None` if that is every match.
fn after_all_with(front: &[Term]) -> Option<Vec<Term>> {
    let (last, before) = front.split_last()?;
    let next = match last.value.checked_add(1) {
        Some(value) => Term { value, ..*last },
        None => smaller_mask(last),
    };
    Some(before.iter().copied().chain([next]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Matches of up to three words, with few bits in each at both ends.
    fn draw(random: &mut fastpath_units::Rng) -> Match {
        let masks = [1, 3, 2, 7, 1 << 63, 3 << 62, 3 << 62 | 1, u64::MAX, 1 << 40];
        let words = (1..4).filter(|_| random.below(3) > 0).collect::<Vec<u8>>();
        let terms = words.into_iter().map(|word| {
            let mask = masks[random.below(masks.len() as u64) as usize];
            let values = [0, u64::MAX, 1, 2, 1 << 63, 1 << 62];
            Term { word, mask, value: values[random.below(6) as usize] & mask }
        });
        Match::of_terms(terms.collect())
    }

    #[test]
    fn no_rank_within_a_match_is_skipped() {
        let mut random = fastpath_units::Rng::new(11);
        let ranks: BTreeSet<Rank> = (0..600).map(|number| Rank::new(number % 3, draw(&mut random))).collect();
        let (mut known, mut skipped) = (0, 0);
        for _ in 0..300 {
            let wider = draw(&mut random);
            for rank in ranks.iter().filter(|rank| !rank.matching().is_within(&wider)) {
                let Some(next) = rank.beyond(&wider) else { continue };
                assert!(next > *rank, "{rank:?} {wider:?}");
                let between = ranks.range(rank..&next);
                known += 1;
                for other in between {
                    assert!(!other.matching().is_within(&wider), "{rank:?} {wider:?} {other:?}");
                    skipped += 1;
                }
            }
        }
        assert!(known > 10_000 && skipped > 5 * known, "{known} {skipped}");
    }
}
