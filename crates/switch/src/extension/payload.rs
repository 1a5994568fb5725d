//! Changes of the payload of TCP that a helper of connection tracking asks for: bytes of another
//! length, and the numbers of segments behind them.

use super::track::{IpView, ip_of};
use crate::key::be;
use fastpath_conntrack::{PayloadEdit, SegmentShift};
use fastpath_wire::checksum::{self, Sum};
use fastpath_wire::{Headers, NetworkLayer};

/// Where the numbers and the checksum stand in a header of TCP, and where its options begin.
const SEQ: usize = 4;
const ACK: usize = 8;
const CHECKSUM: usize = 16;
const OPTIONS: usize = 20;
/// The flag of the acknowledgement number.
const HAS_ACK: u8 = 16;
/// The option of selective acknowledgements (RFC 2018).
const SACK: u8 = 5;

/// Changes the payload of a whole segment, its numbers and its lengths. Checksums that were wrong
/// stay wrong.
pub(super) fn edit_payload(frame: &mut Vec<u8>, edit: &PayloadEdit) {
    let headers = Headers::parse(frame);
    let Some(IpView { start, mut end, .. }) = ip_of(&headers) else { return };
    if end < start + OPTIONS {
        return;
    }
    let old = sum(frame, start, end);
    shift(&mut frame[start..end], &edit.shift);
    if let Some((place, text)) = &edit.change {
        let payload = start + usize::from(frame[start + 12] >> 4) * 4;
        let (from, to) = (payload + place.start, payload + place.end);
        let longer = end + text.len() - place.len();
        // Without room for the text, the numbers still move, and so does the checksum.
        if to <= end && set_len(frame, &headers, longer) {
            frame.splice(from..to, text.bytes());
            end = longer;
        }
    }
    let at = start + CHECKSUM;
    let before = u16::from_be_bytes([frame[at], frame[at + 1]]);
    let after = checksum::update(before, old, sum(frame, start, end));
    frame[at..at + 2].copy_from_slice(&after.to_be_bytes());
}

/// Returns the sum of a segment and its length, without addresses.
fn sum(frame: &[u8], start: usize, end: usize) -> u16 {
    Sum::ZERO.word32((end - start) as u32).bytes(&frame[start..end]).folded()
}

/// Writes the length of an IP packet that ends elsewhere. Returns whether there is one so long.
fn set_len(frame: &mut [u8], headers: &Headers, end: usize) -> bool {
    let (at, base, sum_at) = match headers.network {
        NetworkLayer::Ipv4(ip) => (ip.offset + 2, ip.offset, Some(ip.offset + 10)),
        NetworkLayer::Ipv6(ip) => (ip.offset + 4, ip.offset + 40, None),
        _ => return false,
    };
    let Ok(len) = u16::try_from(end - base) else { return false };
    let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let new = sum_at.map(|sum_at| (sum_at, checksum::update(word(sum_at), word(at), len)));
    frame[at..at + 2].copy_from_slice(&len.to_be_bytes());
    if let Some((sum_at, sum)) = new {
        frame[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    true
}

/// Moves the numbers of a segment.
fn shift(segment: &mut [u8], by: &SegmentShift) {
    if by.is_none() {
        return;
    }
    let number = |segment: &[u8], at| be(segment, at, 4).unwrap_or(0) as u32;
    let seq = number(segment, SEQ).wrapping_add_signed(by.seq);
    segment[SEQ..SEQ + 4].copy_from_slice(&seq.to_be_bytes());
    if segment[13] & HAS_ACK == 0 {
        return;
    }
    let ack = by.ack(number(segment, ACK));
    segment[ACK..ACK + 4].copy_from_slice(&ack.to_be_bytes());
    let end = (usize::from(segment[12] >> 4) * 4).min(segment.len());
    let mut at = OPTIONS;
    while at + 1 < end && segment[at] != 0 {
        let len = if segment[at] == 1 { 1 } else { usize::from(segment[at + 1]).max(2) };
        if segment[at] == SACK && at + len <= end {
            for edge in segment[at + 2..at + len].chunks_exact_mut(4) {
                let moved = by.ack(number(edge, 0));
                edge.copy_from_slice(&moved.to_be_bytes());
            }
        }
        at += len;
    }
}
