//! Connections by number, in blocks: growth moves none of them.

use crate::connection::TrackedConnection;

const BLOCK: usize = 1024;

/// Connections by number. A number that is free again is used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slab {
    blocks: Vec<Vec<Option<TrackedConnection>>>,
    free: Vec<u32>,
    len: usize,
}

impl Slab {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, id: u32) -> Option<&TrackedConnection> {
        self.blocks.get(id as usize / BLOCK)?.get(id as usize % BLOCK)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut TrackedConnection> {
        self.blocks.get_mut(id as usize / BLOCK)?.get_mut(id as usize % BLOCK)?.as_mut()
    }

    pub(crate) fn insert(&mut self, connection: TrackedConnection) -> u32 {
        self.len += 1;
        if let Some(id) = self.free.pop()
            && let Some(place) = self.blocks[id as usize / BLOCK].get_mut(id as usize % BLOCK)
        {
            *place = Some(connection);
            return id;
        }
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let last = self.blocks.len() - 1;
        self.blocks[last].push(Some(connection));
        (last * BLOCK + self.blocks[last].len() - 1) as u32
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<TrackedConnection> {
        let gone = self.blocks.get_mut(id as usize / BLOCK)?.get_mut(id as usize % BLOCK)?.take()?;
        self.free.push(id);
        self.len -= 1;
        Some(gone)
    }

    /// Returns all, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &TrackedConnection)> {
        let all = self.blocks.iter().flatten().enumerate();
        all.filter_map(|(id, one)| Some((id as u32, one.as_ref()?)))
    }
}
