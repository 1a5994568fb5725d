//! Memory from the kernel: mappings of descriptors, and large anonymous mappings on huge pages
//! where available.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// The size of a huge page on x86-64 and most others; anonymous mappings begin at multiples of it.
pub(super) const HUGE: usize = 2 << 20;
/// The size of a small page.
const PAGE: usize = 4096;

/// A mapping, removed when it is dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread. The types that hold it decide which
// thread reads and writes it.
unsafe impl Send for Mapping {}
// SAFETY: as above: a shared reference gives nothing but the address and the length.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of zeroes, rounded up to whole huge pages, which the kernel is advised to
    /// use.
    pub fn anonymous(len: usize) -> io::Result<Mapping> {
        Mapping::huge_as_filled(len.next_multiple_of(HUGE))
    }

    /// Maps `len` bytes of zeroes. The kernel is advised to use a huge page for every whole one in
    /// it.
    pub(super) fn huge_as_filled(len: usize) -> io::Result<Mapping> {
        // More than needed, to cut out a part that starts at a huge page.
        let (protection, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let len = len.checked_next_multiple_of(PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let more = len.checked_add(HUGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let all = Mapping::map(more, protection, kind, -1, 0)?;
        let skip = all.start.as_ptr().align_offset(HUGE);
        // SAFETY: `skip < HUGE`, so the part lies inside.
        let start = unsafe { all.start.add(skip) };
        let part = Mapping { start, len };
        // SAFETY: `skip + len <= len + HUGE`, so the end of the part lies inside or at the end.
        let behind = unsafe { start.add(len) };
        // The memory before and behind the part is unmapped.
        for (start, len) in [(all.start, skip), (behind, HUGE - skip)] {
            drop(Mapping { start, len });
        }
        std::mem::forget(all);
        part.advise_huge_pages();
        Ok(part)
    }

    /// Advises the kernel to use huge pages. Where it does not, pages are small.
    fn advise_huge_pages(&self) {
        // SAFETY: the range is this mapping.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.len / HUGE * HUGE, libc::MADV_HUGEPAGE) };
    }

    /// Moves the memory to another address with another length. Pages are moved, not copied. Gives
    /// the mapping back unchanged if the kernel has no memory.
    pub(super) fn moved(self, len: usize) -> Result<Mapping, Mapping> {
        self.moved_by(len, |from, to, kept| {
            // SAFETY: both ranges are `kept` bytes of mappings that this function owns, and nothing
            // refers to the target.
            unsafe { libc::mremap(from, kept, kept, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, to) }
        })
    }

    /// As [`Mapping::moved`], with `remap` in place of mremap(2).
    fn moved_by(
        self,
        len: usize,
        remap: impl FnOnce(*mut libc::c_void, *mut libc::c_void, usize) -> *mut libc::c_void,
    ) -> Result<Mapping, Mapping> {
        let Ok(target) = Mapping::huge_as_filled(len) else { return Err(self) };
        // A shorter target cuts the memory off here. New memory of a longer one stays a mapping of
        // its own, so that it keeps the advice about huge pages.
        let kept = self.len.min(target.len);
        if remap(self.start.as_ptr().cast(), target.start.as_ptr().cast(), kept) == libc::MAP_FAILED {
            // The kernel unmaps the target before it moves the pages (mremap_to in mm/mremap.c). If
            // it fails after that, another thread may have mapped the range in the meantime, and
            // unmapping it would take that thread's memory. Whether it got that far cannot be
            // known, so the range is given up: it holds no pages, only addresses.
            std::mem::forget(target);
            return Err(self);
        }
        // SAFETY: `kept` is no more than the length.
        let rest = unsafe { self.start.add(kept) };
        drop(Mapping { start: rest, len: self.len - kept });
        std::mem::forget(self);
        target.advise_huge_pages();
        Ok(target)
    }

    /// Gives up the mapping and returns its address.
    pub(super) fn into_raw(self) -> *mut u8 {
        let start = self.start.as_ptr();
        std::mem::forget(self);
        start
    }

    /// Returns the mapping of `len` bytes, rounded up to pages, at an address.
    ///
    /// The address is from [`Mapping::into_raw`] of such a mapping, and is passed once.
    pub(super) unsafe fn from_raw(start: *mut u8, len: usize) -> Mapping {
        let start = NonNull::new(start).expect("a mapping is never at address 0");
        Mapping { start, len: len.next_multiple_of(PAGE) }
    }

    /// Maps `len` bytes of a descriptor, shared with the kernel.
    pub fn shared(fd: BorrowedFd<'_>, len: usize, offset: libc::off_t) -> io::Result<Mapping> {
        let (protection, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        Mapping::map(len, protection, kind, fd.as_raw_fd(), offset)
    }

    /// As [`Mapping::shared`], of what may only be read.
    pub(super) fn shared_to_read(fd: BorrowedFd<'_>, len: usize, offset: libc::off_t) -> io::Result<Mapping> {
        Mapping::map(len, libc::PROT_READ, libc::MAP_SHARED, fd.as_raw_fd(), offset)
    }

    fn map(len: usize, protection: i32, kind: i32, fd: i32, offset: libc::off_t) -> io::Result<Mapping> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, kind, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { start: NonNull::new(start.cast()).expect("a mapping is never at address 0"), len })
    }

    /// Returns the start of the mapping.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the length of the mapping.
    pub fn len_bytes(&self) -> usize {
        self.len
    }

    /// Returns how many of its bytes lie on huge pages; 0 if the kernel does not report it.
    pub fn huge(&self) -> usize {
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
        // A neighbouring mapping may share the kernel's record.
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
        assert_eq!((memory.start().as_ptr() as usize % HUGE, memory.len_bytes()), (0, 4 << 20));
        // SAFETY: the mapping is this long, and nothing writes to it.
        let bytes = unsafe { std::slice::from_raw_parts(memory.start().as_ptr(), memory.len_bytes()) };
        assert!(bytes.iter().all(|&byte| byte == 0));
        assert!(memory.huge() <= memory.len_bytes());
    }

    #[test]
    fn a_move_that_fails_after_the_target_was_unmapped_leaves_other_memory_alone() {
        let memory = Mapping::anonymous(HUGE).unwrap();
        let mut other = None;
        let failed = memory.moved_by(2 * HUGE, |_, to, kept| {
            // As the kernel does before it fails, and as another thread may do right after.
            let (protection, kind) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: nothing refers to the target.
            let start = unsafe {
                libc::munmap(to, kept);
                libc::mmap(to, kept, protection, kind | libc::MAP_FIXED_NOREPLACE, -1, 0)
            };
            assert_eq!(start, to);
            let start = NonNull::new(start.cast::<u8>()).unwrap();
            // SAFETY: the range was just mapped.
            unsafe { start.write(7) };
            other = Some(Mapping { start, len: kept });
            libc::MAP_FAILED
        });
        let (memory, other) = (failed.unwrap_err(), other.unwrap());
        let mut resident = [0];
        // SAFETY: one page of the range, for which one byte is written. ENOMEM if it is not mapped.
        let found = unsafe { libc::mincore(other.start.as_ptr().cast(), PAGE, resident.as_mut_ptr()) };
        assert_eq!(found, 0, "the other memory was unmapped");
        // SAFETY: both mappings are there.
        unsafe {
            assert_eq!(other.start.read(), 7);
            assert_eq!(memory.start.read(), 0);
        }
    }
}
