//! Memory from the kernel: mappings of descriptors, and large anonymous ones on huge pages where there are some.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// The size of a huge page on the machines we know; anonymous mappings begin and end at multiples of it.
const HUGE: usize = 2 << 20;

/// A mapping, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread; who reads and writes it is up to the types that hold it.
unsafe impl Send for Mapping {}
// SAFETY: as above: a shared reference gives nothing but the address and the length.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `len` bytes of zeroes, rounded up to whole huge pages, which the kernel is asked to use.
    pub(crate) fn anonymous(len: usize) -> io::Result<Mapping> {
        let len = len.next_multiple_of(HUGE);
        // More than needed, to cut out a part that starts at a huge page.
        let (protection, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let all = Mapping::map(len + HUGE, protection, kind, -1, 0)?;
        let skip = all.start.as_ptr().align_offset(HUGE);
        // SAFETY: `skip < HUGE`, so the part lies inside.
        let start = unsafe { all.start.add(skip) };
        let part = Mapping { start, len };
        // The rest goes back: what is before the part, and what is behind it.
        // SAFETY: `skip + len` is within the mapping, as above.
        let behind = unsafe { start.add(len) };
        for (start, len) in [(all.start, skip), (behind, HUGE - skip)] {
            drop(Mapping { start, len });
        }
        std::mem::forget(all);
        // SAFETY: the range is this mapping. It is advice: where it is not taken pages are small.
        unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
        Ok(part)
    }

    /// `len` bytes that a descriptor shares with us.
    pub(crate) fn shared(fd: BorrowedFd<'_>, len: usize, offset: libc::off_t) -> io::Result<Mapping> {
        let (protection, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        Mapping::map(len, protection, kind, fd.as_raw_fd(), offset)
    }

    fn map(len: usize, protection: i32, kind: i32, fd: i32, offset: libc::off_t) -> io::Result<Mapping> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, kind, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { start: NonNull::new(start.cast()).expect("a mapping is never at address 0"), len })
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Bytes in it.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How much of it lies on huge pages; 0 if the kernel does not tell.
    pub(crate) fn huge(&self) -> usize {
        let text = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let (from, to) = (self.start.as_ptr() as usize, self.start.as_ptr() as usize + self.len);
        let mut is_ours = false;
        let mut found = 0;
        for line in text.lines() {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            if let Some((start, end)) = range {
                let number = |text| usize::from_str_radix(text, 16).unwrap_or(0);
                is_ours = number(start) < to && number(end) > from;
            } else if let (true, Some(rest)) = (is_ours, line.strip_prefix("AnonHugePages:")) {
                let kib: usize = rest.trim().trim_end_matches(" kB").parse().unwrap_or(0);
                found += kib << 10;
            }
        }
        // A neighbour may share the kernel's record of ours.
        found.min(self.len)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: the range was mapped for this value, and nothing borrows from it any more.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_memory_starts_at_a_huge_page_and_is_zero() {
        let memory = Mapping::anonymous(3 << 20).unwrap();
        assert_eq!((memory.start().as_ptr() as usize % HUGE, memory.len()), (0, 4 << 20));
        // SAFETY: the mapping is this long, and nobody writes to it.
        let bytes = unsafe { std::slice::from_raw_parts(memory.start().as_ptr(), memory.len()) };
        assert!(bytes.iter().all(|&byte| byte == 0));
        assert!(memory.huge() <= memory.len());
    }
}
