//! Instructions that many flows have are kept in memory once.

use crate::flow::Instructions;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

/// The instructions that are remembered, a power of two. Those of most tables are fewer: a route
/// has one of some next hops.
const SLOTS: usize = 4096;

/// The instructions that flows got last. Others that hash to the same slot replace them.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownInstructions {
    /// None before the first.
    slots: Vec<Option<Arc<Instructions>>>,
}

impl KnownInstructions {
    /// Returns instructions equal to these, if possible those of an earlier flow.
    pub(crate) fn share(&mut self, instructions: &Instructions) -> Arc<Instructions> {
        if self.slots.is_empty() {
            self.slots = vec![None; SLOTS];
        }
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(instructions);
        let slot = &mut self.slots[hash as usize % SLOTS];
        match slot {
            Some(known) if **known == *instructions => Arc::clone(known),
            _ => Arc::clone(slot.insert(Arc::new(instructions.clone()))),
        }
    }

    /// Forgets all, when their flows have gone.
    pub(crate) fn clear(&mut self) {
        self.slots = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Action;

    #[test]
    fn equal_instructions_share_memory_and_others_never_do() {
        let mut known = KnownInstructions::default();
        let of = |number: u32| Instructions::apply([Action::output(number % 20_000 + 1)]);
        let made: Vec<_> = (0..60_000).map(|number| known.share(&of(number))).collect();
        for (number, made) in (0..).zip(&made) {
            assert_eq!(**made, of(number));
        }
        assert!((0..40_000).all(|at| made[at] == made[at + 20_000]));
        let mut known = KnownInstructions::default();
        let first = known.share(&of(7));
        assert!(Arc::ptr_eq(&first, &known.share(&of(7))) && !Arc::ptr_eq(&first, &known.share(&of(8))));
        known.clear();
        assert_eq!(Arc::strong_count(&first), 1);
    }
}
