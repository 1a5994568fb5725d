//! Offers a load to a device in the device's own time (RFC 2544 §26.1). Packets arrive at a steady
//! rate, wait in a bounded queue and are served in bursts. A packet that finds the queue full is
//! lost.
//!
//! ```text
//!   arrivals due by now ──▶ queue ──▶ a burst to the device ──▶ now += what the device took
//!                             └─▶ lost: queue full
//! ```
//!
//! Only the device takes time; source and sink take none in this model. One core is therefore
//! enough, and no thread waits for a descheduled thread. A device simulated this way loses the
//! packets that a real one would lose at the same arrivals. A host stall within a burst is not the
//! device's fault: its time is left out, and the stall is counted and reported.

use super::search::Trial;
use std::time::Duration;

/// A burst that takes this much longer than [`SLOW`] times the usual time of its packets was
/// interrupted by a host stall.
const STALL_S: f64 = 50e-6;
/// Slowdown of the device or its core, as a factor, that still counts as its own time.
const SLOW: f64 = 4.0;

/// The way in which packets reach the device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Arrivals {
    /// Capacity of the queue, packets; arrivals beyond it are lost.
    pub(super) queue: u64,
    /// Maximum burst handed to the device, packets.
    pub(super) burst: u64,
    /// Usual time per packet, s; longer times reveal host stalls.
    pub(super) usual_s: f64,
}

/// Result of one burst.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Served {
    /// Time that the device took, s.
    pub(super) time_s: f64,
    /// Packets that left the device.
    pub(super) forwarded: u64,
}

impl Arrivals {
    /// Offers `load` packets/s for `time`. `serve(n)` hands `n` packets to the device; `serve(0)`
    /// collects the packets still in flight.
    pub(super) fn offer(&self, load: f64, time: Duration, mut serve: impl FnMut(u64) -> Served) -> Trial {
        let total = (load * time.as_secs_f64()).ceil().max(1.0) as u64;
        let mut trial = Trial { offered: total, ..Trial::default() };
        let (mut now_s, mut arrived, mut waiting) = (0.0f64, 0u64, 0u64);
        while arrived < total || waiting > 0 {
            // Packet i arrives at i/load.
            let due = ((now_s * load) as u64 + 1).min(total);
            waiting = (waiting + due.saturating_sub(arrived)).min(self.queue);
            arrived = arrived.max(due);
            if waiting == 0 {
                now_s = arrived as f64 / load;
                (arrived, waiting) = (arrived + 1, 1);
            }
            let given = waiting.min(self.burst);
            waiting -= given;
            let served = serve(given);
            let usual_s = given as f64 * self.usual_s;
            if served.time_s > SLOW * usual_s + STALL_S {
                trial.pauses += 1;
                now_s += usual_s;
            } else {
                now_s += served.time_s;
            }
            trial.forwarded += served.forwarded;
        }
        trial.forwarded += serve(0).forwarded;
        trial
    }
}

#[cfg(test)]
mod tests {
    use super::super::search::{Goal, search};
    use super::*;
    use fastpath_units::Rng;

    const QUEUE: u64 = 512;
    const BURST: u64 = 64;
    const TIME: Duration = Duration::from_millis(250);

    /// A device that takes `packet_s` per packet and `burst_s` per burst, and loses every `nth`
    /// packet.
    struct Simulated {
        packet_s: f64,
        burst_s: f64,
        nth: Option<u64>,
        seen: u64,
    }

    impl Simulated {
        fn serve(&mut self, packets: u64) -> Served {
            let lost = |seen: u64| self.nth.map_or(0, |nth| seen / nth);
            let forwarded = packets - (lost(self.seen + packets) - lost(self.seen));
            self.seen += packets;
            let time_s = if packets == 0 { 0.0 } else { self.burst_s + packets as f64 * self.packet_s };
            Served { time_s, forwarded }
        }

        /// Service rate with full bursts, packets/s.
        fn rate(&self) -> f64 {
            BURST as f64 / (self.burst_s + BURST as f64 * self.packet_s)
        }

        fn arrivals(&self) -> Arrivals {
            Arrivals { queue: QUEUE, burst: BURST, usual_s: 1.0 / self.rate() }
        }
    }

    fn device(rng: &mut Rng) -> Simulated {
        let packet_s = 1e-6 * (0.5 + 4.0 * rng.unit_f64());
        Simulated { packet_s, burst_s: 10.0 * packet_s * rng.unit_f64(), nth: None, seen: 0 }
    }

    /// The highest load at which a share `loss` of the packets of a trial is lost. The device
    /// serves `rate` throughout, and the packets queued at the end are served too.
    fn truth(rate: f64, loss: f64) -> f64 {
        let kept = rate * TIME.as_secs_f64() + QUEUE as f64;
        kept / TIME.as_secs_f64() / (1.0 - loss)
    }

    #[test]
    fn a_search_finds_the_rates_of_simulated_devices() {
        let mut rng = Rng::new(41);
        for _ in 0..40 {
            let mut device = device(&mut rng);
            let (arrivals, rate, width) = (device.arrivals(), device.rate(), 0.005);
            let goals = [0.0, 0.01, 0.1].map(|loss_ratio| Goal { loss_ratio });
            let found = search(&goals, (rate / 1000.0, rate * 1.5), width, TIME, |load, time| {
                arrivals.offer(load, time, |packets| device.serve(packets))
            });
            for found in found.expect("rates") {
                let truth = truth(rate, found.goal.loss_ratio);
                let upper = found.upper_pps.expect("a bound");
                let lower = found.lower_pps.expect("a bound");
                assert!(upper - lower <= width * upper * 1.001, "{found:?}");
                // Granularity of bursts: the last burst may be partly full, and arrivals wait for
                // the end of a burst.
                let granularity = 2.0 * BURST as f64 / TIME.as_secs_f64();
                assert!(lower <= truth + granularity && truth - granularity <= upper, "{found:?} {truth}");
            }
        }
    }

    #[test]
    fn a_device_that_loses_every_hundredth_packet_has_a_rate_for_goals_above_that() {
        let mut device = Simulated { nth: Some(100), ..device(&mut Rng::new(3)) };
        let (arrivals, rate) = (device.arrivals(), device.rate());
        let mut rate_within = |loss_ratio: f64| {
            search(&[Goal { loss_ratio }], (rate / 1000.0, rate * 1.5), 0.01, TIME, |load, time| {
                arrivals.offer(load, time, |packets| device.serve(packets))
            })
        };
        assert_eq!(rate_within(0.005).expect("an answer")[0].lower_pps, None);
        let found = &rate_within(0.05).expect("a rate")[0];
        let truth = truth(rate, 0.05 - 0.0095);
        assert!((found.lower_pps.expect("a rate") / truth - 1.0).abs() < 0.012, "{found:?} {truth}");
    }

    #[test]
    fn a_load_below_the_rate_loses_nothing_and_host_stalls_are_left_out() {
        let mut device = device(&mut Rng::new(5));
        let (arrivals, load) = (device.arrivals(), 0.9 * device.rate());
        let mut bursts = 0;
        let trial = arrivals.offer(load, TIME, |packets| {
            bursts += 1;
            let served = device.serve(packets);
            // A host stall of 20 ms at every thousandth burst.
            Served { time_s: served.time_s + if bursts % 1000 == 0 { 0.02 } else { 0.0 }, ..served }
        });
        assert_eq!(
            (trial.offered, trial.forwarded, trial.pauses),
            (trial.offered, trial.offered, bursts / 1000)
        );
        assert!(trial.pauses > 0);
    }

    /// A trial in real time with occasional host stalls of 20 ms. The trial cannot leave a stall
    /// out but marks itself as spoilt.
    fn in_real_time(device: &mut Simulated, rng: &mut Rng, load: f64, time: Duration) -> Trial {
        let arrivals = Arrivals { usual_s: 1.0, ..device.arrivals() };
        let (mut now_s, mut stall_s, mut spoilt) = (0.0, 0.33 * rng.unit_f64(), false);
        let trial = arrivals.offer(load, time, |packets| {
            let mut served = device.serve(packets);
            now_s += served.time_s;
            if packets > 0 && now_s > stall_s {
                served.time_s += 0.02;
                stall_s = now_s + 0.33 * rng.unit_f64();
                spoilt = true;
            }
            served
        });
        Trial { spoilt, ..trial }
    }

    #[test]
    fn with_host_stalls_in_most_trials_the_rate_without_loss_is_still_that_of_the_device() {
        let (mut rng, goals) = (Rng::new(17), [0.0, 0.01].map(|loss_ratio| Goal { loss_ratio }));
        let (mut far, mut spoilt) = (0, 0);
        for _ in 0..20 {
            let mut device = device(&mut rng);
            let (rate, width) = (device.rate(), 0.02);
            let mut hunt = |marks_spoilt: bool| {
                search(&goals, (rate / 1000.0, rate * 1.5), width, TIME, |load, time| {
                    let trial = in_real_time(&mut device, &mut rng, load, time);
                    Trial { spoilt: trial.spoilt && marks_spoilt, ..trial }
                })
                .expect("rates")
            };
            let (marked, unmarked) = (hunt(true), hunt(false));
            for found in &marked {
                let truth = truth(rate, found.goal.loss_ratio);
                let lower = found.lower_pps.expect("a bound");
                assert!((lower / truth - 1.0).abs() < 2.0 * width, "{found:?} {truth}");
            }
            spoilt += marked[0].spoilt;
            far += usize::from(unmarked[0].lower_pps.unwrap_or(0.0) < 0.9 * rate);
        }
        // The result for most of the same devices if spoilt trials counted.
        assert!(far > 10 && spoilt > 100, "{far} of 20, {spoilt}");
    }

    #[test]
    fn twice_the_rate_loses_half_of_the_packets_minus_the_queue_length() {
        let mut device = device(&mut Rng::new(9));
        let (arrivals, rate) = (device.arrivals(), device.rate());
        let trial = arrivals.offer(2.0 * rate, TIME, |packets| device.serve(packets));
        let expected = rate * TIME.as_secs_f64() + QUEUE as f64;
        assert!((trial.forwarded as f64 / expected - 1.0).abs() < 0.001, "{trial:?} {expected}");
        let one = arrivals.offer(1.0, Duration::from_millis(1), |packets| device.serve(packets));
        assert_eq!((one.offered, one.forwarded), (1, 1));
    }
}
