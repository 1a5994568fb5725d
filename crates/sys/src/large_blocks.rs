//! A global allocator that puts large blocks on huge pages. With a million links or prefixes a
//! packet misses the cache anyway. On small pages it also misses the TLB, which costs more in a
//! virtual machine.

use super::memory::{HUGE, Mapping};
use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, except that blocks of 2 MiB and more are mappings of their own, on huge
/// pages as far as they fill them. Untouched memory is still not resident, and the end of a block
/// beyond its last whole huge page lies on small pages.
///
/// ```
/// #[global_allocator]
/// static HEAP: fastpath_sys::large_blocks::LargeBlocks = fastpath_sys::large_blocks::LargeBlocks;
/// # fn main() {}
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LargeBlocks;

fn is_large(layout: Layout) -> bool {
    layout.size() >= HUGE && layout.align() <= HUGE
}

/// Maps a block; null if there is no memory.
fn map(size: usize) -> *mut u8 {
    Mapping::huge_as_filled(size).map_or(std::ptr::null_mut(), Mapping::into_raw)
}

// SAFETY: a block is the system's, or a mapping of at least its size that starts at a huge page and
// is therefore aligned. The layout alone decides which, so a block returns to its origin. Nothing
// here panics or allocates.
unsafe impl GlobalAlloc for LargeBlocks {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return map(layout.size());
        }
        // SAFETY: the caller meets the conditions of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return map(layout.size());
        }
        // SAFETY: the caller meets the conditions of the system's allocator.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: the block was made by `map` with this size and is not used any more.
            drop(unsafe { Mapping::from_raw(memory, layout.size()) });
            return;
        }
        // SAFETY: the caller meets the conditions of the system's allocator.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller has promised that `size` is good for this alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (is_large(layout), is_large(wanted)) {
            (false, false) => {
                // SAFETY: the caller meets the conditions of the system's allocator.
                unsafe { System.realloc(memory, layout, size) }
            }
            (true, true) => {
                // SAFETY: the block was made by `map` with this size.
                let block = unsafe { Mapping::from_raw(memory, layout.size()) };
                match block.moved(size) {
                    Ok(block) => block.into_raw(),
                    Err(block) => {
                        // The caller keeps the block.
                        block.into_raw();
                        std::ptr::null_mut()
                    }
                }
            }
            _ => {
                // SAFETY: the layout is as promised above.
                let other = unsafe { self.alloc(wanted) };
                if !other.is_null() {
                    // SAFETY: both blocks are at least so long, and they are different ones.
                    unsafe { std::ptr::copy_nonoverlapping(memory, other, size.min(layout.size())) };
                    // SAFETY: the caller has given the block up.
                    unsafe { self.dealloc(memory, layout) };
                }
                other
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Grows and shrinks a block through sizes on both sides of the limit.
    #[test]
    fn blocks_keep_their_content_while_they_grow_and_shrink() {
        let sizes = [1 << 10, HUGE - 1, HUGE, 3 * HUGE + 5, 3 * HUGE, 9 * HUGE, HUGE + 1, 100, 2 * HUGE];
        let mut size = 64;
        let layout = |size| Layout::from_size_align(size, 64).unwrap();
        // SAFETY: the layout is not empty.
        let mut block = unsafe { LargeBlocks.alloc(layout(size)) };
        let mut kept = 0;
        for next in sizes {
            // SAFETY: the block is `size` long and ours; the part beyond `kept` is written before
            // it is read.
            let bytes = unsafe {
                std::ptr::write_bytes(block.add(kept), 0x5a, size - kept);
                std::slice::from_raw_parts(block, size)
            };
            assert!(bytes.iter().all(|&byte| byte == 0x5a), "{size} bytes");
            // SAFETY: the block has this layout, and `next` is not 0.
            block = unsafe { LargeBlocks.realloc(block, layout(size), next) };
            assert_eq!(block as usize % 64, 0);
            (kept, size) = (size.min(next), next);
        }
        // SAFETY: it is not used any more.
        unsafe { LargeBlocks.dealloc(block, layout(size)) };
    }

    #[test]
    fn zeroed_memory_is_zero() {
        for size in [100, HUGE + 100] {
            let layout = Layout::from_size_align(size, 8).unwrap();
            // SAFETY: the layout is not empty; the block is as long and is given back once.
            unsafe {
                let block = LargeBlocks.alloc_zeroed(layout);
                assert!(std::slice::from_raw_parts(block, size).iter().all(|&byte| byte == 0));
                LargeBlocks.dealloc(block, layout);
            }
        }
    }
}
