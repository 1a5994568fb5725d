//! From netem's arguments to a pipe.

use super::{Arguments, Distribution, LossModel, SlotArguments, SlotWait};
use fastpath_link::{
    Cells, Chance, CorruptSpec, Ecn, FourState, Framing, GilbertElliott, JitterCorrelation, JitterLaw,
    JitterSpec, Limit, LossSpec, PipeSpec, QueueSpec, Reorder, ReorderSpec, SlotSpec,
};
use fastpath_spec::{NodeKind, Topology};
use fastpath_units::{Bytes, Duration};
use std::num::NonZeroU32;

impl Arguments {
    /// Returns the pipe that treats packets as netem does with these arguments. The differences:
    ///
    /// - The delay follows the transmission, as on a wire. In the kernel's netem the delay of a
    ///   packet that waits for the rate runs while it waits.
    /// - `limit` bounds the packets that wait for the rate. In the kernel those under delay count
    ///   too, so a long delay at a high rate drops packets there that pass here.
    /// - A duplicate leaves with its packet. In the kernel it is queued and delayed by itself.
    /// - The correlation of the delay leaves its law as it is; see
    ///   [`JitterCorrelation::PerPacket`].
    /// - The jitter follows the slot. In the kernel packets that jitter has delayed still leave in
    ///   slots.
    pub fn pipe(&self) -> PipeSpec {
        let corrupt = chance(self.corrupt);
        let reorder = ReorderSpec { chance: chance(self.reorder), gap: self.gap };
        let cells = NonZeroU32::new(self.cell_size);
        let framing = Framing {
            packet: self.packet_overhead,
            cells: cells.map(|payload| Cells { payload, overhead: self.cell_overhead }),
        };
        let plain = framing.cells.is_none().then(|| u32::try_from(framing.packet).ok()).flatten();
        PipeSpec {
            rate: self.rate,
            overhead: plain.unwrap_or(0),
            framing: plain.is_none().then_some(framing),
            delay: self.delay,
            loss: self.loss(),
            queue: QueueSpec::DropTail(Limit::Packets(self.limit)),
            jitter: self.jitter(),
            reorder: (!reorder.chance.probability.is_never()).then_some(reorder),
            duplicate: chance(self.duplicate).into(),
            corrupt: (!corrupt.probability.is_never()).then_some(CorruptSpec::Packets(corrupt)),
            slots: self.slot.as_ref().map(|slot| Box::new(slots(slot))),
            loss_ecn: if self.ecn { Ecn::Mark } else { Ecn::Off },
            ..PipeSpec::default()
        }
    }

    /// Returns a topology of two hosts, the machine and the wire, with [`Arguments::pipe`] between
    /// them.
    pub fn topology(&self) -> Topology {
        let mut topology = Topology { seed: self.seed, ..Topology::default() };
        let [machine, wire] = ["machine", "wire"].map(|name| topology.add_node(name, NodeKind::host()));
        topology.connect("netem", machine, wire, [self.pipe(), PipeSpec::default()]);
        topology
    }

    fn loss(&self) -> LossSpec {
        match self.loss {
            None => LossSpec::Never,
            Some(LossModel::Random(loss)) if loss.correlation.is_never() => loss.probability.into(),
            Some(LossModel::Random(loss)) => LossSpec::Correlated(chance(loss)),
            Some(LossModel::State { p13, p31, p32, p23, p14 }) => {
                LossSpec::FourState(FourState { p13, p31, p32, p23, p14 })
            }
            Some(LossModel::GilbertElliott { p, r, bad, good }) => LossSpec::GilbertElliott(GilbertElliott {
                to_bad: p,
                to_good: r,
                loss_in_bad: bad,
                loss_in_good: good,
            }),
        }
    }

    /// Packets overtake each other under netem's jitter.
    fn jitter(&self) -> Option<Box<JitterSpec>> {
        let jitter = self.jitter;
        if jitter.is_zero() {
            return None;
        }
        let law = law(self.distribution.as_ref().unwrap_or(&Distribution::Uniform), jitter);
        let correlation = match self.delay_correlation {
            none if none.is_never() => JitterCorrelation::None,
            correlation => JitterCorrelation::PerPacket(correlation),
        };
        Some(Box::new(JitterSpec { law, correlation, order: Reorder::Allow }))
    }
}

fn law(distribution: &Distribution, jitter: Duration) -> JitterLaw {
    match distribution {
        Distribution::Uniform => JitterLaw::Uniform { half_width: jitter },
        Distribution::Normal => JitterLaw::Normal { sd: jitter },
        Distribution::Pareto => table(jitter, TABLE_LEN, pareto),
        Distribution::ParetoNormal => {
            let normal = normal_table();
            table(jitter, TABLE_LEN, |i| (normal[i] + 3.0 * pareto(i)) / 4.0)
        }
        Distribution::Table(values) => table(jitter, values.len(), |i| f64::from(values[i]) / SCALE),
    }
}

fn slots(slot: &SlotArguments) -> SlotSpec {
    SlotSpec {
        wait: match &slot.wait {
            SlotWait::Between(least, most) => fastpath_link::SlotWait::Between(*least, *most),
            SlotWait::By(distribution, mean, jitter) => {
                fastpath_link::SlotWait::Law(*mean, law(distribution, *jitter))
            }
        },
        packets: (slot.packets > 0).then_some(slot.packets),
        bytes: (slot.bytes > 0).then_some(Bytes(slot.bytes.into())),
    }
}

fn chance(chance: super::Chance) -> Chance {
    Chance { probability: chance.probability, correlation: chance.correlation }
}

/// Values of a table of netem.
const TABLE_LEN: usize = 4096;
/// The value in a table that stands for a deviation of 1 (`NETEM_DIST_SCALE`).
const SCALE: f64 = 8192.0;

/// The law of a table of values in units of `jitter`.
fn table(jitter: Duration, len: usize, value: impl Fn(usize) -> f64) -> JitterLaw {
    let values = (0..len).map(|i| (value(i) * jitter.as_ps() as f64).round() as i64);
    let mut values: Vec<i64> = values.collect();
    values.sort_unstable();
    JitterLaw::Table(values.into())
}

/// The i-th value of iproute2's `pareto.dist`: Pareto with exponent 3, as far as 16 bits go.
fn pareto(i: usize) -> f64 {
    let share = 1.0 - i as f64 / TABLE_LEN as f64;
    let value = (share.powf(-1.0 / 3.0) - 1.5) * (4.0 / 3.0) * SCALE;
    value.min(f64::from(i16::MAX)).round() / SCALE
}

/// The values of iproute2's `normal.dist`: quantiles of N(0, 1) an eighth of a step above i / 4096.
/// Found by adding up the density.
fn normal_table() -> Vec<f64> {
    const STEP: f64 = 1.0 / 4096.0;
    let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let (mut x, mut below) = (-8.0, 0.0);
    let mut values = Vec::with_capacity(TABLE_LEN);
    for i in 0..TABLE_LEN {
        while below < (i as f64 + 0.125) / TABLE_LEN as f64 {
            below += density(x + STEP / 2.0) * STEP;
            x += STEP;
        }
        values.push(x);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_units::Probability;

    fn pipe(text: &str) -> PipeSpec {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        crate::parse(&words).expect("arguments of netem").pipe()
    }

    #[test]
    fn the_tables_are_those_of_iproute2() {
        // Lines of its pareto.dist and paretonormal.dist, by index, in units of a deviation of
        // 8192.
        let tables = [
            (0, -5461.0, -12305.0),
            (1, -5460.0, -11171.0),
            (1000, -4393.0, -4714.0),
            (2048, -2622.0, -1966.0),
            (2999, 561.0, 1689.0),
            (4094, 32767.0, 31365.0),
            (4095, 32767.0, 31789.0),
        ];
        let normal = normal_table();
        for (i, value, mixed) in tables {
            assert!((pareto(i) * SCALE - value).abs() <= 1.0, "pareto {i}: {}", pareto(i) * SCALE);
            let found = (normal[i] + 3.0 * pareto(i)) / 4.0 * SCALE;
            assert!((found - mixed).abs() <= 3.0, "paretonormal {i}: {found}");
        }
    }

    #[test]
    fn every_word_becomes_what_a_pipe_calls_it() {
        let p = |percent: f64| Probability::new(percent / 100.0).unwrap();
        let words = "limit 7 delay 10ms 2ms distribution normal loss 1% 25% duplicate 2% corrupt 3% 50% reorder 4% gap 5 rate 1mbit 24";
        let found = pipe(words);
        let jitter = JitterSpec {
            law: JitterLaw::Normal { sd: Duration::from_ms(2) },
            correlation: JitterCorrelation::None,
            order: Reorder::Allow,
        };
        let expected = PipeSpec {
            rate: "1Mbit".parse().ok(),
            overhead: 24,
            delay: Duration::from_ms(10),
            loss: LossSpec::Correlated(Chance { probability: p(1.0), correlation: p(25.0) }),
            queue: QueueSpec::DropTail(Limit::Packets(7)),
            jitter: Some(Box::new(jitter)),
            reorder: Some(ReorderSpec { chance: p(4.0).into(), gap: 5 }),
            duplicate: p(2.0).into(),
            corrupt: Some(CorruptSpec::Packets(Chance { probability: p(3.0), correlation: p(50.0) })),
            ..PipeSpec::default()
        };
        assert_eq!(found, expected);
        assert_eq!(
            pipe(""),
            PipeSpec { queue: QueueSpec::DropTail(Limit::Packets(1000)), ..PipeSpec::default() }
        );
    }

    #[test]
    fn words_of_modern_kernels_are_understood_too() {
        let cells = NonZeroU32::new(48).map(|payload| Cells { payload, overhead: 5 });
        let ms = Duration::from_ms;
        let jitter = |p: f64| JitterSpec {
            law: JitterLaw::Uniform { half_width: ms(1) },
            correlation: JitterCorrelation::PerPacket(Probability::new(p).unwrap()),
            order: Reorder::Allow,
        };
        let slots = |wait, packets, bytes: Option<u64>| {
            Some(Box::new(SlotSpec { wait, packets, bytes: bytes.map(Bytes) }))
        };
        use fastpath_link::SlotWait::{Between, Law};
        let normal = JitterLaw::Normal { sd: ms(2) };
        assert_eq!(pipe("delay 10ms 1ms 25%").jitter, Some(Box::new(jitter(0.25))));
        assert_eq!(pipe("loss 1% ecn").loss_ecn, Ecn::Mark);
        let strips = pipe("rate 1mbit -14");
        assert_eq!((strips.overhead, strips.framing), (0, Some(Framing { packet: -14, cells: None })));
        assert_eq!(pipe("rate 1mbit 8 48 5").framing, Some(Framing { packet: 8, cells }));
        assert_eq!(pipe("slot 1ms").slots, slots(Between(ms(1), ms(1)), None, None));
        let all = pipe("slot 1ms 4ms packets 3 bytes 4k").slots;
        assert_eq!(all, slots(Between(ms(1), ms(4)), Some(3), Some(4096)));
        let law = pipe("slot distribution normal 8ms 2ms").slots;
        assert_eq!(law, slots(Law(ms(8), normal), None, None));
    }
}
