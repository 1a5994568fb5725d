//! Several packets read from a descriptor, or written to it, in one system call: io_uring
//! (`io_uring_enter(2)`), for devices such as a TAP where each call moves one packet.
//!
//! ```text
//!   slot 0 │ slot 1 │ slot 2 │ …      registered with the kernel once, of one thread
//!     ▲ read     ▼ write               all operations of a call end before it returns
//! ```
//!
//! Needs Linux 6.1. Containers often forbid io_uring; then [`PacketBatch::new`] fails.

use io_uring::{IoUring, opcode, squeue, types};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Operations of a descriptor in batches. Belongs to the thread that created it.
pub struct PacketBatch {
    ring: ManuallyDrop<IoUring>,
    /// The slots, one after the other. The kernel writes to them during calls only.
    memory: ManuallyDrop<Box<[u8]>>,
    /// Bytes in each slot: of what was read, or of what is to be written.
    filled: Vec<usize>,
    /// The result of each operation of a call.
    results: Vec<i32>,
    /// Operations that the kernel has not answered: their memory must stay.
    in_flight: usize,
}

/// Lines of cache by which slots are shifted, so that their beginnings lie in different sets.
const SHIFT: usize = 14 * 64;

impl PacketBatch {
    /// Most packets of one call.
    pub const MAX: usize = 32;
    /// The longest packet, in bytes: a super-packet with its headers.
    pub const PACKET_MAX: usize = 65_536 + 256;

    const STRIDE: usize = Self::PACKET_MAX + SHIFT;

    /// Sets up a ring for this thread, with 2 MiB of memory that stays in place.
    ///
    /// # Errors
    /// Those of `io_uring_setup(2)` and `io_uring_register(2)`: `EPERM` where io_uring is
    /// forbidden, `ENOSYS` and `EINVAL` on older kernels, `ENOMEM` beyond `RLIMIT_MEMLOCK`.
    pub fn new() -> io::Result<PacketBatch> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_coop_taskrun()
            .setup_defer_taskrun()
            .build(PacketBatch::MAX as u32)?;
        let mut memory = vec![0; PacketBatch::MAX * PacketBatch::STRIDE].into_boxed_slice();
        let part = |slot: &mut [u8]| libc::iovec {
            iov_base: slot.as_mut_ptr().cast(),
            iov_len: PacketBatch::PACKET_MAX,
        };
        let slots: Vec<libc::iovec> = memory.chunks_exact_mut(PacketBatch::STRIDE).map(part).collect();
        // SAFETY: the memory lives as long as the ring, or for ever.
        unsafe { ring.submitter().register_buffers(&slots)? };
        Ok(PacketBatch {
            ring: ManuallyDrop::new(ring),
            memory: ManuallyDrop::new(memory),
            filled: Vec::with_capacity(PacketBatch::MAX),
            results: Vec::with_capacity(PacketBatch::MAX),
            in_flight: 0,
        })
    }

    /// Reads up to `count` packets that are there, each into its slot. Returns how many there were,
    /// and an error if there were fewer: `WouldBlock` if no more was there.
    ///
    /// # Errors
    /// The ring refused; nothing was read.
    pub fn read(&mut self, fd: BorrowedFd<'_>, count: usize) -> io::Result<(usize, io::Result<()>)> {
        self.filled.clear();
        self.filled.resize(count.min(PacketBatch::MAX), PacketBatch::PACKET_MAX);
        self.run(fd, false)?;
        // A packet may arrive just after an operation has found none: later ones have it.
        let read = self.results.iter().filter(|result| **result >= 0).count();
        let failed = self.results.iter().find(|result| **result < 0);
        let end = failed.map_or(Ok(()), |result| Err(io::Error::from_raw_os_error(-result)));
        Ok((read, end))
    }

    /// Returns the packets of the last [`PacketBatch::read`], in order of arrival.
    pub fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let lens = self.results.iter().map(|result| usize::try_from(*result).ok());
        let slots = self.memory.chunks_exact(PacketBatch::STRIDE);
        slots.zip(lens).filter_map(|(slot, len)| Some(&slot[..len?]))
    }

    /// Forgets what was read or staged.
    pub fn clear(&mut self) {
        self.filled.clear();
    }

    /// Adds a packet, given in parts, to those of the next [`PacketBatch::write`]. Returns false if
    /// there is no slot for it.
    pub fn stage(&mut self, parts: [&[u8]; 2]) -> bool {
        let [head, rest] = parts;
        let (slot, len) = (self.filled.len(), head.len() + rest.len());
        if slot == PacketBatch::MAX || len > PacketBatch::PACKET_MAX {
            return false;
        }
        let room = &mut self.memory[slot * PacketBatch::STRIDE..][..len];
        let (to_head, to_rest) = room.split_at_mut(head.len());
        to_head.copy_from_slice(head);
        to_rest.copy_from_slice(rest);
        self.filled.push(len);
        true
    }

    /// Returns the number of staged packets.
    pub fn staged(&self) -> usize {
        self.filled.len()
    }

    /// Writes the staged packets in order, without waiting. Returns the result of each. None is
    /// staged afterwards.
    ///
    /// # Errors
    /// The ring refused all of them; nothing was written.
    pub fn write(&mut self, fd: BorrowedFd<'_>) -> io::Result<impl ExactSizeIterator<Item = io::Result<()>>> {
        let run = self.run(fd, true);
        self.filled.clear();
        run?;
        let result = |&result: &i32| match result {
            0.. => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        };
        Ok(self.results.iter().map(result))
    }

    /// Runs one operation for each filled slot, to its end. None of them waits (`RWF_NOWAIT`).
    fn run(&mut self, fd: BorrowedFd<'_>, writes: bool) -> io::Result<()> {
        if self.in_flight > 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.results.clear();
        self.results.resize(self.filled.len(), -libc::ECANCELED);
        for (slot, len) in self.filled.iter().enumerate() {
            let operation = Self::operation(fd, &mut self.memory, (slot, *len), writes);
            // SAFETY: the slot is memory of this ring, which stays until the operation has ended:
            // `drop` leaves it where one has not.
            let pushed = unsafe { self.ring.submission().push(&operation) };
            pushed.map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
        }
        self.in_flight = self.filled.len();
        while self.in_flight > 0 {
            match self.ring.submit_and_wait(self.in_flight) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for answer in self.ring.completion() {
                self.in_flight -= 1;
                self.results[answer.user_data() as usize] = answer.result();
            }
        }
        Ok(())
    }

    fn operation(
        fd: BorrowedFd<'_>,
        memory: &mut [u8],
        (slot, len): (usize, usize),
        writes: bool,
    ) -> squeue::Entry {
        let at = memory[slot * PacketBatch::STRIDE..].as_mut_ptr();
        let (fd, len, index) = (types::Fd(fd.as_raw_fd()), len as u32, slot as u16);
        let entry = match writes {
            true => opcode::WriteFixed::new(fd, at, len, index).rw_flags(libc::RWF_NOWAIT).build(),
            false => opcode::ReadFixed::new(fd, at, len, index).rw_flags(libc::RWF_NOWAIT).build(),
        };
        entry.user_data(slot as u64)
    }
}

impl Drop for PacketBatch {
    fn drop(&mut self) {
        // With an operation in flight the kernel may still write to the memory.
        if self.in_flight == 0 {
            // SAFETY: neither is used again; first the ring, then what is registered with it.
            unsafe {
                ManuallyDrop::drop(&mut self.ring);
                ManuallyDrop::drop(&mut self.memory);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    /// A datagram socket keeps the boundaries of packets, as a TAP does.
    fn pair() -> [UnixDatagram; 2] {
        let (a, b) = UnixDatagram::pair().unwrap();
        [a, b].map(|socket| {
            socket.set_nonblocking(true).unwrap();
            socket
        })
    }

    #[test]
    fn packets_are_written_and_read_in_order_and_the_end_is_told() {
        let Ok(mut batch) = PacketBatch::new() else {
            eprintln!("skipped: io_uring is not available");
            return;
        };
        let [a, b] = pair();
        let mut expected: Vec<Vec<u8>> = Vec::new();
        for number in 0..200usize {
            let body = vec![number as u8; number * 7 % 400 + 1];
            assert!(batch.stage([&[1, 2], &body]));
            expected.push([&[1, 2], &body[..]].concat());
            if batch.staged() > number % 9 {
                let results: Vec<io::Result<()>> = batch.write(a.as_fd()).unwrap().collect();
                assert!(results.iter().all(Result::is_ok), "{results:?}");
                let mut found = Vec::new();
                loop {
                    let (count, end) = batch.read(b.as_fd(), 4).unwrap();
                    found.extend(batch.packets().map(<[u8]>::to_vec));
                    match end {
                        Ok(()) => assert_eq!(count, 4),
                        Err(error) => {
                            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                            break;
                        }
                    }
                }
                batch.clear();
                assert_eq!(found, std::mem::take(&mut expected));
            }
        }
    }

    #[test]
    fn what_arrives_while_a_batch_is_read_is_not_lost() {
        let Ok(mut batch) = PacketBatch::new() else {
            eprintln!("skipped: io_uring is not available");
            return;
        };
        const COUNT: u32 = 50_000;
        let [a, b] = pair();
        a.set_nonblocking(false).unwrap();
        let writer = std::thread::spawn(move || {
            for number in 0..COUNT {
                assert_eq!(a.send(&number.to_be_bytes()).unwrap(), 4);
            }
        });
        let mut found = Vec::new();
        while found.len() < COUNT as usize {
            let (count, end) = batch.read(b.as_fd(), 8).unwrap();
            let before = found.len();
            found.extend(batch.packets().map(|packet| u32::from_be_bytes(packet.try_into().unwrap())));
            assert_eq!(found.len() - before, count);
            assert!(count == 8 || end.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock));
            assert!(found[before..].iter().copied().eq(before as u32..found.len() as u32), "{before}");
        }
        writer.join().unwrap();
    }

    #[test]
    fn what_fails_is_told_for_each_packet_and_the_ring_goes_on() {
        let Ok(mut batch) = PacketBatch::new() else {
            eprintln!("skipped: io_uring is not available");
            return;
        };
        let [a, b] = pair();
        drop(b);
        (0..3).for_each(|_| assert!(batch.stage([&[1], &[2]])));
        let results: Vec<_> = batch.write(a.as_fd()).unwrap().collect();
        assert!(results.len() == 3 && results.iter().all(Result::is_err), "{results:?}");
        let [c, _d] = pair();
        let (count, end) = batch.read(c.as_fd(), 2).unwrap();
        assert_eq!((count, end.unwrap_err().kind()), (0, io::ErrorKind::WouldBlock));
        while batch.stage([&[0; 10], &[1; 100]]) {}
        assert_eq!(batch.staged(), PacketBatch::MAX);
        batch.clear();
        assert!(!batch.stage([&[0], &[0; PacketBatch::PACKET_MAX]]));
    }
}
