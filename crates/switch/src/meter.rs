//! Meters: token buckets that drop or remark the packets above a rate, exact in integer
//! picoseconds.
//!
//! Each band has a bucket that fills at its rate up to its burst. A packet takes its cost from
//! every bucket that holds enough. Of the bands whose bucket does not, the one with the highest
//! rate applies (§5.7.1: the highest rate below the measured one).
//!
//! Read first: OpenFlow 1.3.5 §5.7, §7.3.4.4.

use crate::flow::Counters;
use fastpath_units::Time;

/// Highest number of a meter (OFPM_MAX).
pub const MAX: u32 = 0xffff_0000;
/// Every meter, in deletions (OFPM_ALL).
pub const ALL: u32 = 0xffff_ffff;

/// Bits of [`Meter::flags`] (OFPMF_).
pub mod flags {
    /// Rates are in kilobits (10³) per second.
    pub const KBPS: u16 = 1 << 0;
    /// Rates are in packets per second.
    pub const PKTPS: u16 = 1 << 1;
    /// Bands have a burst of their own.
    pub const BURST: u16 = 1 << 2;
    /// Collect statistics, which always happens.
    pub const STATS: u16 = 1 << 3;
}

/// Picoseconds in a second. Tokens are counted in units of 1/this, so that filling needs no
/// division.
const PS_PER_S: u128 = 1_000_000_000_000;

/// A band of a meter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Band {
    /// The effect on packets above its rate.
    pub kind: BandKind,
    /// The rate in kbit/s or packets/s.
    pub rate: u32,
    /// The burst in kilobits or packets; used only with [`flags::BURST`].
    pub burst: u32,
}

/// The effect of a band on packets above its rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BandKind {
    /// Drops them.
    Drop,
    /// Raises their drop precedence by this number of levels.
    DscpRemark(u8),
}

/// A meter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meter {
    /// Bits of [`flags`].
    pub flags: u16,
    /// Packets that it processed.
    pub counters: Counters,
    /// The time at which it was added.
    pub added: Time,
    bands: Vec<Gauge>,
}

/// A band and its token bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Gauge {
    band: Band,
    /// Tokens (bits or packets) × [`PS_PER_S`].
    tokens: u128,
    filled_at: Time,
    counters: Counters,
}

/// The decision of a meter on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MeterResult {
    /// Pass it: no band's rate is exceeded.
    Pass,
    /// Raise its drop precedence.
    Remark(u8),
    /// Drop it.
    Drop,
}

/// A request to change meters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MeterMod {
    /// The command.
    pub command: MeterCommand,
    /// The meter; [`ALL`] in deletions.
    pub id: u32,
    /// Bits of [`flags`].
    pub flags: u16,
    /// The bands.
    pub bands: Vec<Band>,
}

/// The command of a meter request (OFPMC_).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MeterCommand {
    /// Adds the meter.
    Add,
    /// Replaces the bands.
    Modify,
    /// Deletes the meter and the flows that use it.
    Delete,
}

impl Meter {
    /// Returns a meter with full buckets.
    pub fn new(flags: u16, bands: &[Band], now: Time) -> Meter {
        let gauge = |band: &Band| Gauge {
            band: *band,
            tokens: depth(flags, band),
            filled_at: now,
            counters: Counters::default(),
        };
        Meter { flags, counters: Counters::default(), added: now, bands: bands.iter().map(gauge).collect() }
    }

    /// Returns the bands, and the packets to which each applied.
    pub fn bands(&self) -> impl ExactSizeIterator<Item = (&Band, &Counters)> {
        self.bands.iter().map(|gauge| (&gauge.band, &gauge.counters))
    }

    /// Applies the meter to a frame of `len` bytes.
    pub fn apply(&mut self, now: Time, len: usize) -> MeterResult {
        self.counters.count(len);
        let flags = self.flags;
        let cost = if flags & flags::PKTPS != 0 { 1 } else { len as u128 * 8 } * PS_PER_S;
        let mut exceeded: Option<&mut Gauge> = None;
        for gauge in &mut self.bands {
            gauge.fill(flags, now);
            match gauge.tokens.checked_sub(cost) {
                Some(rest) => gauge.tokens = rest,
                None if exceeded.as_ref().is_none_or(|other| other.band.rate < gauge.band.rate) => {
                    exceeded = Some(gauge);
                }
                None => {}
            }
        }
        let Some(gauge) = exceeded else { return MeterResult::Pass };
        gauge.counters.count(len);
        match gauge.band.kind {
            BandKind::Drop => MeterResult::Drop,
            BandKind::DscpRemark(levels) => MeterResult::Remark(levels),
        }
    }
}

impl Gauge {
    fn fill(&mut self, flags: u16, now: Time) {
        let elapsed = u128::from(now.since(self.filled_at).as_ps());
        let filled = self.tokens + elapsed * u128::from(self.band.rate) * unit(flags);
        self.tokens = filled.min(depth(flags, &self.band));
        self.filled_at = self.filled_at.max(now);
    }
}

/// Returns the tokens in one unit of the rate and burst fields.
fn unit(flags: u16) -> u128 {
    if flags & flags::PKTPS != 0 { 1 } else { 1000 }
}

/// Returns the capacity of a bucket: the configured burst, or else what the rate gives in 100 ms,
/// but at least ten packets (of 1250 bytes), so that a slow meter still passes whole frames.
fn depth(flags: u16, band: &Band) -> u128 {
    let least = if flags & flags::PKTPS != 0 { 10 } else { 100_000 };
    let tokens = match flags & flags::BURST {
        0 => (u128::from(band.rate) * unit(flags) / 10).max(least),
        _ => u128::from(band.burst) * unit(flags),
    };
    tokens * PS_PER_S
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_units::Duration;
    use proptest::prelude::*;

    fn drop_band(rate: u32, burst: u32) -> Band {
        Band { kind: BandKind::Drop, rate, burst }
    }

    #[test]
    fn a_packet_meter_passes_its_burst_and_then_its_rate_exactly() {
        let mut meter = Meter::new(flags::PKTPS | flags::BURST, &[drop_band(3, 2)], Time::ZERO);
        let third = Duration::from_ps(333_333_333_334);
        let apply = |meter: &mut Meter, at| meter.apply(at, 1500);
        assert_eq!(
            [(); 3].map(|()| apply(&mut meter, Time::ZERO)),
            [MeterResult::Pass, MeterResult::Pass, MeterResult::Drop]
        );
        assert_eq!(
            apply(&mut meter, Time::ZERO + third - Duration::from_ps(1)),
            MeterResult::Drop,
            "1 ps early"
        );
        assert_eq!(apply(&mut meter, Time::ZERO + third), MeterResult::Pass);
        assert_eq!(meter.bands().next().unwrap().1.packets, 2);
    }

    #[test]
    fn the_highest_exceeded_band_applies() {
        let bands = [Band { kind: BandKind::DscpRemark(1), rate: 8, burst: 8 }, drop_band(16, 16)];
        let mut meter = Meter::new(flags::KBPS | flags::BURST, &bands, Time::ZERO);
        let found = [(); 3].map(|()| meter.apply(Time::ZERO, 1000));
        assert_eq!(found, [MeterResult::Pass, MeterResult::Remark(1), MeterResult::Drop]);
    }

    #[test]
    fn ten_seconds_at_one_megabit_pass_ten_megabits_and_the_burst() {
        let mut meter = Meter::new(flags::KBPS, &[drop_band(1000, 0)], Time::ZERO);
        let step = Duration::from_us(5714);
        let mut passed = 0;
        for i in 0..1750 {
            if meter.apply(Time::ZERO + step * i, 1500) == MeterResult::Pass {
                passed += 1;
            }
        }
        assert_eq!(passed, (10_000_000 + 100_000) / 12_000, "10 s at 1 Mbit/s and 100 ms of burst");
    }

    proptest! {
        /// For every arrival pattern, at most burst + rate × time passes.
        #[test]
        fn a_meter_never_passes_more_than_its_rate(rate in 1u32..100_000, burst in 12u32..1000,
                gaps in prop::collection::vec((0u64..2_000_000_000, 64usize..1500), 1..100)) {
            let mut meter = Meter::new(flags::KBPS | flags::BURST, &[drop_band(rate, burst)], Time::ZERO);
            let (mut now, mut bits) = (Time::ZERO, 0u128);
            for (gap, len) in gaps {
                now += Duration::from_ps(gap);
                if meter.apply(now, len) == MeterResult::Pass {
                    bits += len as u128 * 8;
                }
                let allowed = u128::from(burst) * 1000 * PS_PER_S + u128::from(rate) * 1000 * u128::from(now.as_ps());
                prop_assert!(bits * PS_PER_S <= allowed);
            }
        }
    }
}
