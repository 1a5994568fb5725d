//! Keys that hide nothing. They leave packets as they are, and fill the tag of 16 bytes from a hash
//! of the packet, its number and a secret. A packet that was changed on the way, or that is of
//! another connection, is refused as with a real AEAD. This protects from accidents, not from
//! attackers.

use bytes::BytesMut;
use quinn_proto::Side;
use quinn_proto::crypto::{
    AeadKey, CryptoError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair, Keys, PacketKey,
};

/// Bytes of a tag, and of the sample for header protection (RFC 9001 §5.3, §5.4.2).
pub(crate) const TAG: usize = 16;
/// Limits of AES-128-GCM (RFC 9001 §6.6).
const CONFIDENTIALITY_LIMIT: u64 = 1 << 23;
const INTEGRITY_LIMIT: u64 = 1 << 52;

/// What both ends of a connection know, and others do not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Secret(u64);

/// A header key that masks nothing.
struct ClearHeader;

impl Secret {
    /// The secret of some bytes.
    pub(crate) fn of(bytes: &[u8]) -> Secret {
        Secret(0x243f_6a88_85a3_08d3).with(bytes)
    }

    /// The secret of what this one is of, and more bytes.
    pub(crate) fn with(self, bytes: &[u8]) -> Secret {
        // Odd multipliers are bijections, so no change of one word is lost.
        let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let (words, rest) = bytes.as_chunks::<8>();
        let hash = words.iter().fold(self.0, |hash, word| step(hash, u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        Secret(step(step(hash, u64::from_le_bytes(last)), bytes.len() as u64))
    }

    /// The secret that follows.
    pub(crate) fn next(self) -> Secret {
        self.with(b"next")
    }

    /// Fills bytes from this secret.
    pub(crate) fn fill(self, bytes: &mut [u8]) {
        let mut secret = self;
        for part in bytes.chunks_mut(8) {
            secret = secret.next();
            part.copy_from_slice(&secret.0.to_be_bytes()[..part.len()]);
        }
    }

    fn tag(self, number: u64, parts: [&[u8]; 2]) -> [u8; TAG] {
        let mut tag = [0; TAG];
        let secret = self.with(&number.to_be_bytes());
        parts.iter().fold(secret, |secret, part| secret.with(part)).fill(&mut tag);
        tag
    }

    /// The secret of packets from an end.
    fn of_side(self, side: Side) -> Secret {
        self.with(if side.is_client() { b"client" } else { b"server" })
    }

    /// The keys of the packets of a space, at an end.
    pub(crate) fn keys(self, side: Side) -> Keys {
        Keys {
            header: KeyPair { local: Box::new(ClearHeader), remote: Box::new(ClearHeader) },
            packet: self.packet_keys(side),
        }
    }

    /// The keys of packets of both ends, at an end.
    pub(crate) fn packet_keys(self, side: Side) -> KeyPair<Box<dyn PacketKey>> {
        KeyPair { local: Box::new(self.of_side(side)), remote: Box::new(self.of_side(!side)) }
    }
}

impl PacketKey for Secret {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        let (packet_bytes, tag) = buf.split_at_mut(buf.len() - TAG);
        let (header, payload) = packet_bytes.split_at(header_len);
        tag.copy_from_slice(&Secret::tag(*self, packet, [header, payload]));
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let len = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        if payload[len..] != Secret::tag(*self, packet, [header, &payload[..len]]) {
            return Err(CryptoError);
        }
        payload.truncate(len);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        CONFIDENTIALITY_LIMIT
    }

    fn integrity_limit(&self) -> u64 {
        INTEGRITY_LIMIT
    }
}

impl HeaderKey for ClearHeader {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

/// Of stateless reset tokens.
impl HmacKey for Secret {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        self.with(data).fill(signature_out);
    }

    fn signature_len(&self) -> usize {
        2 * TAG
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = [0; 2 * TAG];
        self.sign(data, &mut expected);
        if signature == expected { Ok(()) } else { Err(CryptoError) }
    }
}

/// Of address validation tokens.
impl HandshakeTokenKey for Secret {
    fn aead_from_hkdf(&self, random_bytes: &[u8]) -> Box<dyn AeadKey> {
        Box::new(self.with(random_bytes))
    }
}

impl AeadKey for Secret {
    fn seal(&self, data: &mut Vec<u8>, additional_data: &[u8]) -> Result<(), CryptoError> {
        let tag = Secret::tag(*self, 0, [additional_data, data]);
        data.extend_from_slice(&tag);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], additional_data: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let len = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        let (content, tag) = data.split_at_mut(len);
        if *tag == Secret::tag(*self, 0, [additional_data, content]) { Ok(content) } else { Err(CryptoError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_packet_another_number_and_another_end_are_refused() {
        let secret = Secret::of(b"connection");
        let [client, server] = [Side::Client, Side::Server].map(|side| secret.packet_keys(side));
        let mut packet: Vec<u8> = (0..100).collect();
        client.local.encrypt(7, &mut packet, 20);
        let open = |key: &dyn PacketKey, number, packet: &[u8]| {
            let mut payload = BytesMut::from(&packet[20..]);
            key.decrypt(number, &packet[..20], &mut payload).is_ok().then_some(payload)
        };
        assert_eq!(open(&*server.remote, 7, &packet).unwrap()[..], (20..84).collect::<Vec<u8>>()[..]);
        assert!(open(&*server.remote, 8, &packet).is_none());
        assert!(open(&*server.local, 7, &packet).is_none());
        for bit in 0..packet.len() * 8 {
            let mut changed = packet.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&*server.remote, 7, &changed).is_none(), "{bit}");
        }
    }

    #[test]
    fn tokens_open_with_their_key_alone() {
        let key = Secret::of(b"tokens");
        let mut token = b"address".to_vec();
        key.aead_from_hkdf(b"nonce").seal(&mut token, b"more").unwrap();
        assert_eq!(token.len(), 7 + TAG);
        assert_eq!(key.aead_from_hkdf(b"nonce").open(&mut token.clone(), b"more").unwrap(), b"address");
        assert!(key.aead_from_hkdf(b"other").open(&mut token.clone(), b"more").is_err());
        assert!(key.aead_from_hkdf(b"nonce").open(&mut token, b"less").is_err());
        let mut signature = [0; 32];
        key.sign(b"id", &mut signature);
        assert!(key.verify(b"id", &signature).is_ok() && key.verify(b"other", &signature).is_err());
    }
}
