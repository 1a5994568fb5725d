//! Corruption: flipped bits. The pipe decides which bits. The owner of the bytes flips them and
//! leaves all checksums as they are. But of a changed byte in the payload of a UDP datagram it
//! repairs the checksum, so that the receiver gets the datagram.

use super::bounded::{Bounded, BoundedState};
use super::chance::{Chance, ChanceState};
use crate::content::{PacketContent, PacketFilter};
use fastpath_units::{Probability, Rng, math};
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// Which packets are corrupted, and how.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CorruptSpec {
    /// One bit of each selected packet is flipped, as in netem.
    Packets(Chance),
    /// One bit of each selected packet is flipped, with a bound on packets in a row or a filter.
    Bounded(Bounded),
    /// One of the first bytes of the payload of each selected UDP datagram gets another value. QUIC
    /// Version Negotiation passes and ends a row: a client ignores a packet that names its own
    /// version (RFC 9000 §6.2), so a corrupted one says nothing. The filter is that of UDP.
    UdpPayload(Bounded),
    /// Every bit is flipped with this probability, independently.
    Bits(Probability),
}

impl CorruptSpec {
    /// Returns true if the law depends on [`Packet::content`](crate::Packet::content).
    pub(crate) fn reads_headers(&self) -> bool {
        match self {
            CorruptSpec::Packets(_) | CorruptSpec::Bits(_) => false,
            CorruptSpec::Bounded(law) => law.of != PacketFilter::All,
            CorruptSpec::UdpPayload(_) => true,
        }
    }
}

/// The bits flipped in one packet: their number, and the seed that selects them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Corruption {
    flips: NonZeroU32,
    seed: u32,
    place: CorruptionPlace,
}

/// Where bits are flipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CorruptionPlace {
    Frame,
    /// In one byte of the payload of a UDP datagram.
    UdpPayload,
}

/// Another value of one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteChange {
    /// The place of the byte in the payload, from 0.
    pub offset: usize,
    /// The bits that are flipped in it, at least one.
    pub flips: u8,
}

/// The number of first bytes of a payload of which one is changed: the header of QUIC is there.
const PAYLOAD_BYTES: usize = 50;

impl Corruption {
    /// A flipped bit, of which only that is known.
    pub fn of_one_bit() -> Corruption {
        Corruption { flips: NonZeroU32::MIN, seed: 0, place: CorruptionPlace::Frame }
    }

    /// Returns whether a byte of the payload of a UDP datagram is changed:
    /// [`payload_byte`](Corruption::payload_byte) says which. Otherwise see
    /// [`apply`](Corruption::apply).
    pub fn is_of_payload(&self) -> bool {
        self.place == CorruptionPlace::UdpPayload
    }

    /// Returns the change of a payload of `len` bytes: one of its first 50 bytes, all equally
    /// likely, gets another value, all equally likely. `None` without a byte.
    pub fn payload_byte(&self, len: usize) -> Option<ByteChange> {
        let mut rng = Rng::new(u64::from(self.seed));
        let among = len.min(PAYLOAD_BYTES) as u64;
        let offset = (among > 0).then(|| rng.below(among) as usize)?;
        Some(ByteChange { offset, flips: 1 + rng.below(255) as u8 })
    }

    /// Returns the number of bits.
    pub fn flips(&self) -> u32 {
        self.flips.get()
    }

    /// Flips that many different bits of `bytes`, all equally likely; all bits if there are fewer.
    /// The selection depends only on the corruption and the length.
    pub fn apply(&self, bytes: &mut [u8]) {
        let bits = bytes.len() as u64 * 8;
        let mut rng = Rng::new(u64::from(self.seed));
        let mut chosen = BTreeSet::new();
        // R. Floyd's sampling: each of bits − flips … bits − 1 adds one new bit.
        for last in bits.saturating_sub(u64::from(self.flips.get()))..bits {
            let bit = rng.below(last + 1);
            let bit = if chosen.insert(bit) { bit } else { last };
            chosen.insert(bit);
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
    }
}

/// The state of a corruption law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Corruptor {
    spec: CorruptSpec,
    law: Law,
}

#[derive(Clone, Copy, Debug)]
enum Law {
    Packets(ChanceState),
    Bounded(BoundedState),
    UdpPayload(BoundedState),
    /// Correct bits before the next error; `None` before the first draw.
    Bits(Option<u64>),
}

impl Corruptor {
    pub(crate) fn new(spec: CorruptSpec) -> Corruptor {
        let law = match spec {
            CorruptSpec::Packets(chance) => Law::Packets(ChanceState::new(chance)),
            CorruptSpec::Bounded(law) => Law::Bounded(BoundedState::new(law)),
            CorruptSpec::UdpPayload(law) => {
                Law::UdpPayload(BoundedState::new(Bounded { of: PacketFilter::Udp, ..law }))
            }
            CorruptSpec::Bits(_) => Law::Bits(None),
        };
        Corruptor { spec, law }
    }

    pub(crate) fn spec(&self) -> CorruptSpec {
        self.spec
    }

    /// Draws the corruption of a packet of `len` bytes with this content.
    pub(crate) fn draw(&mut self, len: u32, content: PacketContent, rng: &mut Rng) -> Option<Corruption> {
        let mut place = CorruptionPlace::Frame;
        let flips = match (&mut self.law, self.spec) {
            (Law::Packets(chance), _) => u32::from(chance.draw(rng)),
            (Law::Bounded(law), _) => u32::from(law.draw(content, rng)),
            (Law::UdpPayload(law), _) if content == PacketContent::VersionNegotiation => {
                law.pass();
                0
            }
            (Law::UdpPayload(law), _) => {
                place = CorruptionPlace::UdpPayload;
                u32::from(law.draw(content, rng))
            }
            (Law::Bits(before), CorruptSpec::Bits(p)) => errors(before, u64::from(len) * 8, p, rng),
            (Law::Bits(_), _) => 0,
        };
        NonZeroU32::new(flips).map(|flips| Corruption { flips, seed: rng.next_u64() as u32, place })
    }
}

/// Returns the number of errors in the next `bits` of a stream with the bit error ratio `p`: one
/// draw per error.
fn errors(before: &mut Option<u64>, bits: u64, p: Probability, rng: &mut Rng) -> u32 {
    let mut found = 0;
    let mut left = bits;
    let mut gap = before.take().unwrap_or_else(|| good_bits(p, rng));
    while gap < left {
        found += 1;
        left -= gap + 1;
        gap = good_bits(p, rng);
    }
    *before = Some(gap - left);
    found
}

/// Draws the number of correct bits before the next error: geometric, ⌊ln U / ln(1 − p)⌋.
fn good_bits(p: Probability, rng: &mut Rng) -> u64 {
    let p = p.get();
    if p <= 0.0 {
        return u64::MAX;
    }
    if p >= 1.0 {
        return 0;
    }
    // 1 − p loses digits of a small p. There ln(1 − p) is −p − p²/2 to all digits.
    let log = if p < 1e-6 { -p - p * p / 2.0 } else { math::ln(1.0 - p) };
    (math::ln(1.0 - rng.unit_f64()) / log) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(p: f64) -> Probability {
        Probability::new(p).expect("a probability")
    }

    #[test]
    fn the_requested_number_of_different_bits_is_flipped() {
        for flips in [1, 2, 7, 79, 80, 100] {
            let corruption = Corruption {
                flips: NonZeroU32::new(flips).expect("above 0"),
                seed: flips,
                place: CorruptionPlace::Frame,
            };
            let mut bytes = [0u8; 10];
            corruption.apply(&mut bytes);
            assert_eq!(bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), flips.min(80));
            let mut again = [0u8; 10];
            corruption.apply(&mut again);
            assert_eq!(again, bytes);
            corruption.apply(&mut []);
        }
    }

    #[test]
    fn every_bit_is_hit_equally_often() {
        // 40 000 single flips over 80 bits: χ² with 79 degrees of freedom, 99.9 % quantile 124.8.
        let mut corruptor = Corruptor::new(CorruptSpec::Packets(p(1.0).into()));
        let mut rng = Rng::new(2);
        let mut hits = [0f64; 80];
        for _ in 0..40_000 {
            let mut bytes = [0u8; 10];
            corruptor.draw(10, PacketContent::Other, &mut rng).expect("always").apply(&mut bytes);
            let bit = bytes
                .iter()
                .enumerate()
                .map(|(i, byte)| i * 8 + byte.trailing_zeros() as usize * usize::from(*byte > 0));
            let index = bytes.iter().position(|byte| *byte > 0).expect("one bit");
            hits[bit.clone().nth(index).expect("it is there")] += 1.0;
        }
        let chi2: f64 = hits.iter().map(|n| (n - 500.0).powi(2) / 500.0).sum();
        assert!(chi2 < 124.8, "{chi2}");
    }

    #[test]
    fn bit_errors_come_at_their_rate_over_packets_of_any_length() {
        for (seed, ber) in [(1, 1e-5), (2, 1e-3), (3, 0.2)] {
            let mut corruptor = Corruptor::new(CorruptSpec::Bits(p(ber)));
            let mut rng = Rng::new(seed);
            let (mut bits, mut errors) = (0.0, 0.0);
            for i in 0..20_000 {
                let len = [64, 1500, 1][i % 3];
                bits += f64::from(len) * 8.0;
                errors += corruptor
                    .draw(len, PacketContent::Other, &mut rng)
                    .map_or(0.0, |hit| f64::from(hit.flips()));
            }
            // ± 3.291 σ of the binomial.
            assert!(
                (errors - bits * ber).abs() <= 3.291 * (bits * ber * (1.0 - ber)).sqrt(),
                "{ber}: {errors}"
            );
        }
    }

    #[test]
    fn no_errors_and_only_errors_are_exact() {
        let mut rng = Rng::new(1);
        let mut draw =
            |ber, len| Corruptor::new(CorruptSpec::Bits(p(ber))).draw(len, PacketContent::Other, &mut rng);
        assert_eq!(draw(0.0, u32::MAX), None);
        assert_eq!(draw(1.0, 3).map(|hit| hit.flips()), Some(24));
    }

    #[test]
    fn every_early_byte_of_a_payload_gets_every_other_value() {
        let law = Bounded { probability: p(1.0), burst_max: None, of: PacketFilter::Udp };
        let mut corruptor = Corruptor::new(CorruptSpec::UdpPayload(law));
        let mut rng = Rng::new(4);
        let (mut offsets, mut flips) = ([0f64; PAYLOAD_BYTES], [0f64; 256]);
        for _ in 0..51_000 {
            let corruption = corruptor.draw(1200, PacketContent::Udp, &mut rng).expect("always");
            assert!(corruption.is_of_payload() && corruption.payload_byte(0).is_none());
            assert_eq!(corruption.payload_byte(1).expect("a byte").offset, 0);
            let change = corruption.payload_byte(1172).expect("a byte");
            offsets[change.offset] += 1.0;
            flips[usize::from(change.flips)] += 1.0;
        }
        let chi2 = |counts: &[f64]| {
            let mean = counts.iter().sum::<f64>() / counts.len() as f64;
            counts.iter().map(|n| (n - mean).powi(2) / mean).sum::<f64>()
        };
        // The 99.9 % quantiles of χ² with 49 and with 254 degrees of freedom.
        assert!(flips[0] == 0.0 && chi2(&offsets) < 85.4 && chi2(&flips[1..]) < 330.6);
    }

    #[test]
    fn version_negotiation_and_other_packets_keep_their_payload() {
        let burst_max = NonZeroU32::new(2);
        let law = Bounded { probability: p(1.0), burst_max, of: PacketFilter::All };
        let mut corruptor = Corruptor::new(CorruptSpec::UdpPayload(law));
        let mut rng = Rng::new(1);
        let (udp, other) = (PacketContent::Udp, PacketContent::Other);
        // Version Negotiation ends a row, another packet does not.
        let contents = [udp, PacketContent::VersionNegotiation, udp, other, udp, udp, udp];
        let hit = contents.map(|content| corruptor.draw(100, content, &mut rng).is_some());
        assert_eq!(hit, [true, false, true, false, true, false, true]);
    }
}
