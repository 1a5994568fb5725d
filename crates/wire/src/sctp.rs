//! The checksum of SCTP (RFC 9260 §6.8): a CRC32c of the whole packet.

/// The position of the checksum in the packet.
pub const CHECKSUM: std::ops::Range<usize> = 8..12;

/// Returns the checksum of a packet, in the byte order of the checksum field. `packet` starts with
/// the common header. The current content of the checksum field counts as zero.
#[inline]
pub fn checksum(packet: &[u8]) -> [u8; 4] {
    let crc = packet.iter().enumerate().fold(u32::MAX, |crc, (i, byte)| {
        let byte = if CHECKSUM.contains(&i) { 0 } else { *byte };
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ if crc & 1 != 0 { 0x82f6_3b78 } else { 0 })
    });
    (!crc).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_crc32c() {
        // RFC 3720 §B.4: 32 bytes of zeros.
        assert_eq!(checksum(&[0; 32]), 0x8a91_36aa_u32.to_le_bytes());
        let mut packet: Vec<u8> = (0..50).collect();
        let sum = checksum(&packet);
        packet[CHECKSUM].copy_from_slice(&sum);
        assert_eq!(checksum(&packet), sum, "the content of the field does not count");
    }
}
