//! Values by number, in blocks of which each is as large as all before it: growth moves none of
//! them, and nearly all lie in blocks that are large enough for huge pages.

/// Values of the first block: a power of two.
const FIRST: u32 = 1 << 10;

/// Values by number. A number that is free again is used again.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    blocks: Vec<Vec<T>>,
    free: Vec<u32>,
    /// Numbers that have been given.
    count: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { blocks: Vec::new(), free: Vec::new(), count: 0 }
    }
}

/// Returns the block of a number, and the place in it.
fn place(id: u32) -> (usize, usize) {
    let number = id + FIRST;
    let block = number.ilog2() - FIRST.ilog2();
    // The first block begins at 0, the next ones at their length.
    (block as usize, (number - (FIRST << block)) as usize)
}

impl<T> Slab<T> {
    /// Returns how many are in use.
    pub(crate) fn len(&self) -> usize {
        self.count as usize - self.free.len()
    }

    /// Returns a value. One that has gone is as it was.
    pub(crate) fn get(&self, id: u32) -> &T {
        let (block, at) = place(id);
        &self.blocks[block][at]
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> &mut T {
        let (block, at) = place(id);
        &mut self.blocks[block][at]
    }

    /// Fetches a value into the cache.
    pub(crate) fn prefetch(&self, id: u32) {
        let (block, at) = place(id);
        if let Some(block) = self.blocks.get(block) {
            prefetch_index::prefetch_index(block, at);
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(id) = self.free.pop() {
            *self.get_mut(id) = value;
            return id;
        }
        let id = self.count;
        let (block, _) = place(id);
        if block == self.blocks.len() {
            self.blocks.push(Vec::with_capacity((FIRST << block) as usize));
        }
        self.blocks[block].push(value);
        self.count += 1;
        id
    }

    /// Frees a number that is in use.
    pub(crate) fn remove(&mut self, id: u32) {
        self.free.push(id);
    }

    /// Returns all by number, also those that have gone.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.blocks.iter().flatten().zip(0..).map(|(one, id)| (id, one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_and_lead_to_their_values() {
        let mut slab = Slab::default();
        let ids: Vec<u32> = (0..10_000u32).map(|value| slab.insert(value)).collect();
        assert!(ids.iter().all(|id| slab.get(*id) == id) && ids[9_999] == 9_999);
        slab.remove(4_000);
        assert_eq!((slab.len(), slab.insert(7), *slab.get(4_000), slab.len()), (9_999, 4_000, 7, 10_000));
        assert_eq!(slab.iter().filter(|(id, value)| id == *value).count(), 9_999);
        assert_eq!(slab.blocks.iter().map(Vec::len).collect::<Vec<_>>(), [1024, 1024 * 2, 1024 * 4, 2832]);
    }
}
