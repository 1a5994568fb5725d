//! The tables of a program, in chunks: a program in which one table is another one shares all other
//! chunks with the program before.

use std::sync::Arc;

/// Tables of a chunk.
const CHUNK: usize = 16;

/// Tables, by number.
#[derive(Clone, Debug)]
pub(crate) struct TableList<T> {
    chunks: Vec<Arc<[Arc<T>]>>,
}

impl<T> TableList<T> {
    pub(crate) fn new(tables: &[Arc<T>]) -> TableList<T> {
        TableList { chunks: tables.chunks(CHUNK).map(Arc::from).collect() }
    }

    /// Returns a table.
    #[inline]
    pub(crate) fn get(&self, id: usize) -> Option<&T> {
        self.chunks.get(id / CHUNK)?.get(id % CHUNK).map(|table| &**table)
    }

    /// Replaces a table.
    ///
    /// # Panics
    /// If there is no table of this number.
    pub(crate) fn set(&mut self, id: usize, table: Arc<T>) {
        Arc::make_mut(&mut self.chunks[id / CHUNK])[id % CHUNK] = table;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).map(|table| &**table)
    }
}
