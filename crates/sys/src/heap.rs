//! Counts the allocations of a thread, for tests of code that must not allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator with a counter per thread. A test program declares it as its
/// `#[global_allocator]`.
#[derive(Debug)]
pub struct CountingAllocator;

thread_local! {
    static REQUESTS: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of allocations and growths of this thread so far: 0 if the program does not
/// use the [`CountingAllocator`].
pub fn requests() -> u64 {
    REQUESTS.get()
}

fn count() {
    // A thread that ends may allocate after its counter is gone.
    let _ = REQUESTS.try_with(|requests| requests.set(requests.get() + 1));
}

// SAFETY: the system's allocator does all the work. Counting neither allocates nor panics.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller meets the conditions of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller meets the conditions of the system's allocator.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller meets the conditions of the system's allocator.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: CountingAllocator = CountingAllocator;

    #[test]
    fn every_allocation_is_counted() {
        let before = requests();
        let mut bytes = std::hint::black_box(Vec::<u8>::with_capacity(1));
        bytes.reserve(1000);
        assert_eq!(requests() - before, 2);
    }
}
