//! A list that grows at its end while other threads read it.

use std::sync::{Arc, OnceLock};

/// The items of a block.
const BLOCK: usize = 1024;
/// Rows of blocks; row `k` has 2^k. So there are at most 2^32 items.
const ROWS: usize = 22;

type Block<T> = Box<[OnceLock<T>]>;

/// Blocks, each made when it is first needed.
type BlockRow<T> = Box<[OnceLock<Block<T>>]>;

/// A list whose clones share their items. To add an item copies nothing: earlier clones do not see
/// it, because they are shorter. Only the first of several clones of a length that adds an item
/// shares it; the others copy the list then.
#[derive(Clone, Debug)]
pub struct Shelf<T> {
    rows: Arc<[OnceLock<BlockRow<T>>; ROWS]>,
    len: usize,
}

impl<T> Shelf<T> {
    /// Returns the item of an index.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index < self.len { self.get_any(index) } else { None }
    }

    /// Returns the item of an index, also one that a later clone has added.
    #[inline]
    pub(super) fn get_any(&self, index: usize) -> Option<&T> {
        let (row, block) = place(index);
        self.rows.get(row)?.get()?[block].get()?[index % BLOCK].get()
    }

    /// Adds an item at the end. `Err` returns the item: another clone has added one, and this list
    /// has to be copied before it can grow.
    pub(super) fn try_push(&mut self, item: T) -> Result<(), T> {
        let (row, block) = place(self.len);
        assert!(row < ROWS, "{} items", self.len);
        let row = self.rows[row].get_or_init(|| empty(1 << row));
        row[block].get_or_init(|| empty(BLOCK))[self.len % BLOCK].set(item)?;
        self.len += 1;
        Ok(())
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T: Clone> Shelf<T> {
    /// Adds an item at the end.
    pub fn push(&mut self, item: T) {
        if let Err(item) = self.try_push(item) {
            let mut copy = Shelf::default();
            for item in (0..self.len).filter_map(|index| self.get(index).cloned()).chain([item]) {
                if copy.try_push(item).is_err() {
                    unreachable!("there is no other clone of the copy");
                }
            }
            *self = copy;
        }
    }
}

impl<T> Default for Shelf<T> {
    fn default() -> Shelf<T> {
        Shelf { rows: Arc::new([const { OnceLock::new() }; ROWS]), len: 0 }
    }
}

/// Returns the row of an index and the block in it.
fn place(index: usize) -> (usize, usize) {
    let block = index / BLOCK + 1;
    let row = block.ilog2();
    (row as usize, block - (1 << row))
}

fn empty<T>(len: usize) -> Box<[OnceLock<T>]> {
    (0..len).map(|_| OnceLock::new()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_a_shelf_keep_their_items_when_it_grows() {
        let mut shelf = Shelf::default();
        let mut clones = Vec::new();
        for item in 0..5 * BLOCK + 7 {
            assert_eq!(shelf.len(), item);
            if item % 100 == 0 {
                clones.push((item, shelf.clone()));
            }
            shelf.push(item);
        }
        for (len, clone) in clones {
            assert_eq!(clone.len(), len);
            assert!((0..len + 2).all(|item| clone.get(item).copied() == (item < len).then_some(item)));
        }
    }

    #[test]
    fn clones_that_grow_apart_do_not_see_each_others_items() {
        let mut first = Shelf::default();
        (0..BLOCK + 3).for_each(|item| first.push(item));
        let (mut second, third) = (first.clone(), first.clone());
        first.push(1_000_000);
        second.push(2_000_000);
        second.push(3_000_000);
        let end = |shelf: &Shelf<usize>| (BLOCK + 2..shelf.len()).map(|at| shelf.get(at).copied()).collect();
        let ends: [Vec<Option<usize>>; 3] = [end(&first), end(&second), end(&third)];
        let last = Some(BLOCK + 2);
        assert_eq!(
            ends,
            [vec![last, Some(1_000_000)], vec![last, Some(2_000_000), Some(3_000_000)], vec![last]]
        );
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test is of two threads")]
    fn a_reader_sees_whole_items_while_the_list_grows() {
        let mut shelf = Shelf::default();
        let (sender, receiver) = std::sync::mpsc::channel::<Shelf<Vec<usize>>>();
        let reader = std::thread::spawn(move || {
            for clone in receiver {
                assert!(
                    (0..clone.len()).all(|at| clone.get(at).is_some_and(|item| item[..] == [at, at + 1]))
                );
            }
        });
        for item in 0..3 * BLOCK {
            shelf.push(vec![item, item + 1]);
            if item % 64 == 0 {
                sender.send(shelf.clone()).unwrap();
            }
        }
        drop(sender);
        reader.join().unwrap();
    }
}
