//! The arguments of `tc qdisc add dev X root netem …`, parsed as tc parses them. Keywords may be
//! abbreviated, numbers follow C's `strtod`, and a later argument overrides an earlier one.
//! Arguments that tc refuses are refused with a reason.
//!
//! ```text
//!  delay 100ms 20ms 25% distribution normal loss gemodel 1% 10% rate 10mbit
//!        └────────────────── Arguments ──────────────────┘
//!                                │ pipe()
//!                             PipeSpec
//! ```
//!
//! Read first: netem(8). The reference is iproute2's `tc/q_netem.c`. [`Arguments::pipe`] lists the
//! differences between a pipe and the kernel's netem.

#![forbid(unsafe_code)]

mod pipe;
mod quantity;

use fastpath_units::{Duration, Probability, Rate};
use std::sync::Arc;

/// The parsed arguments, each value as tc passes it to the kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Arguments {
    /// The packets that the queue holds. The default is netem's 1000.
    pub limit: u32,
    /// True if the limit was written.
    pub limit_given: bool,
    /// Mean delay.
    pub delay: Duration,
    /// The variation of the delay: half the width of the uniform law, or the factor of the values
    /// of a table.
    pub jitter: Duration,
    /// The correlation of each delay with the previous one.
    pub delay_correlation: Probability,
    /// The table of the jitter; uniform if `None`.
    pub distribution: Option<Distribution>,
    /// The loss model.
    pub loss: Option<LossModel>,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// The share of packets sent twice.
    pub duplicate: Chance,
    /// The share of packets with a flipped bit.
    pub corrupt: Chance,
    /// The share of packets that skip the delay.
    pub reorder: Chance,
    /// One of this many packets may skip the delay. 0 without reordering.
    pub gap: u32,
    /// The rate, bits per second.
    pub rate: Option<Rate>,
    /// Bytes per packet on the wire beyond the frame; may be negative.
    pub packet_overhead: i32,
    /// Payload of a cell in bytes; 0 is no cells.
    pub cell_size: u32,
    /// Bytes of a cell beyond its payload; may be negative.
    pub cell_overhead: i32,
    /// Delivery in slots.
    pub slot: Option<SlotArguments>,
    /// The seed of the random generator.
    pub seed: Option<u64>,
}

/// A probability, and the correlation of successive draws.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Chance {
    /// The probability.
    pub probability: Probability,
    /// From 0 (independent) to 1 (always as before).
    pub correlation: Probability,
}

/// The distributions of the delay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Distribution {
    /// Uniform, as without a table.
    Uniform,
    /// N(0, 1), cut at four standard deviations.
    Normal,
    /// Pareto with exponent 3, moved to mean 0 and scaled to deviation 1.
    Pareto,
    /// A quarter normal, three quarters Pareto.
    ParetoNormal,
    /// The values of a file, in units of a deviation of 8192, in ascending order.
    Table(Arc<[i16]>),
}

/// A model of loss.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LossModel {
    /// Each with the same probability.
    Random(Chance),
    /// The four states of Salsano, Ludovici and Ordine: transition probabilities.
    State {
        /// Good to burst.
        p13: Probability,
        /// Burst to good.
        p31: Probability,
        /// Burst to gap within a burst.
        p32: Probability,
        /// Gap within a burst to burst.
        p23: Probability,
        /// Good to a single loss.
        p14: Probability,
    },
    /// Gilbert and Elliott's two states.
    GilbertElliott {
        /// Good to bad.
        p: Probability,
        /// Bad to good.
        r: Probability,
        /// Loss in the bad state, `1-h`.
        bad: Probability,
        /// Loss in the good state, `1-k`.
        good: Probability,
    },
}

/// Delivery in slots: arrived packets are held until the next slot.
#[derive(Clone, PartialEq, Debug)]
pub struct SlotArguments {
    /// From one slot to the next.
    pub wait: SlotWait,
    /// Most packets in a slot; 0 is any number.
    pub packets: u32,
    /// Most bytes in a slot; 0 is any number.
    pub bytes: u32,
}

/// The time from one slot to the next.
#[derive(Clone, PartialEq, Debug)]
pub enum SlotWait {
    /// Uniform between two.
    Between(Duration, Duration),
    /// By a table: mean, and what its values are multiplied with.
    By(Distribution, Duration, Duration),
}

/// Why arguments are refused, as tc refuses them.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// An unknown keyword.
    #[error(
        "what is '{word}'? write one of limit, delay, loss, duplicate, corrupt, reorder, gap, rate, slot, ecn, seed, distribution"
    )]
    UnknownWord {
        /// The argument.
        word: String,
    },
    /// A keyword without its value.
    #[error("'{word}' needs a value: write for example {example}")]
    NoValue {
        /// The keyword.
        word: &'static str,
        /// A complete example.
        example: &'static str,
    },
    /// An invalid value.
    #[error("{word}: '{text}' is not {wanted}: write for example {example}")]
    BadValue {
        /// The keyword before it.
        word: &'static str,
        /// The text of the argument.
        text: String,
        /// The expected kind of value.
        wanted: &'static str,
        /// An example.
        example: &'static str,
    },
    /// Two models of loss.
    #[error("loss is given twice: write one of loss random, loss state, loss gemodel")]
    LossTwice,
    /// An unknown model.
    #[error("loss: '{word}' is not a model: write a percentage, random, state or gemodel")]
    UnknownLoss {
        /// The argument.
        word: String,
    },
    /// Reordering without a delay.
    #[error("reorder lets packets skip the delay, and delay is missing: write delay 10ms before it")]
    ReorderWithoutDelay,
    /// A gap without reordering.
    #[error("gap is the distance between reordered packets, and reorder is missing: write reorder 25% gap 5")]
    GapWithoutReorder,
    /// ECN without a loss.
    #[error("ecn marks packets instead of losing them, and loss is missing: write loss 1% ecn")]
    EcnWithoutLoss,
    /// A distribution without a jitter to which it applies.
    #[error(
        "distribution {name}: {why}: write uniform, normal, pareto, paretonormal, or the name of a table"
    )]
    BadTable {
        /// The text of the argument.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A distribution without a jitter to which it applies.
    #[error(
        "distribution is that of the jitter, and jitter is missing: write delay 100ms 20ms distribution normal"
    )]
    DistributionWithoutJitter,
}

/// The defaults of netem: every probability and every time is 0.
impl Default for Arguments {
    fn default() -> Arguments {
        Arguments {
            limit: 1000,
            limit_given: false,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            delay_correlation: Probability::NEVER,
            distribution: None,
            loss: None,
            ecn: false,
            duplicate: Chance::default(),
            corrupt: Chance::default(),
            reorder: Chance::default(),
            gap: 0,
            rate: None,
            packet_overhead: 0,
            cell_size: 0,
            cell_overhead: 0,
            slot: None,
            seed: None,
        }
    }
}

/// Nanoseconds in a number without a unit: tc(8) says microseconds …
const BARE_DELAY: f64 = 1e3;
/// … but takes nanoseconds for slots.
const BARE_SLOT: f64 = 1.0;

/// Most values of a table that is not tc's own (`MAX_DIST`).
const TABLE_MAX: usize = 16 * 1024;

/// Returns the text of the table of a distribution by its name, or why it cannot be read.
pub type Tables<'t> = dyn Fn(&str) -> Result<String, String> + 't;

/// Parses the arguments after `netem`, with only the distributions that tc ships.
pub fn parse(words: &[String]) -> Result<Arguments, ArgumentError> {
    parse_with(words, &|_| Err("there is no such distribution".to_owned()))
}

/// Parses the arguments after `netem`. `tables` returns the distributions that tc does not ship.
pub fn parse_with(words: &[String], tables: &Tables) -> Result<Arguments, ArgumentError> {
    let mut words = ArgumentReader { rest: words, tables };
    let mut arguments = Arguments::default();
    while let Some(word) = words.take() {
        arguments.read(word, &mut words)?;
    }
    arguments.check()
}

impl Arguments {
    fn read(&mut self, word: &str, words: &mut ArgumentReader) -> Result<(), ArgumentError> {
        // The order is tc's: it decides what an abbreviation stands for.
        const WORDS: [&str; 13] = [
            "limit",
            "latency",
            "delay",
            "loss",
            "drop",
            "seed",
            "ecn",
            "reorder",
            "corrupt",
            "gap",
            "duplicate",
            "distribution",
            "rate",
        ];
        let whole =
            WORDS.into_iter().chain(["slot"]).find(|whole| !word.is_empty() && whole.starts_with(word));
        match whole {
            Some("limit") => {
                self.limit = words.value("limit", "limit 1000", "a number of packets", quantity::size)?;
                self.limit_given = true;
            }
            Some("latency" | "delay") => self.read_delay(words)?,
            Some("loss" | "drop") => self.read_loss(words)?,
            Some("seed") => {
                let number = |text: &str| text.parse().ok();
                self.seed = Some(words.value("seed", "seed 7", "a number", number)?);
            }
            Some("ecn") => self.ecn = true,
            Some("reorder") => self.reorder = words.chance("reorder", "reorder 25% 50%")?,
            Some("corrupt") => self.corrupt = words.chance("corrupt", "corrupt 0.1%")?,
            Some("duplicate") => self.duplicate = words.chance("duplicate", "duplicate 1%")?,
            Some("gap") => self.gap = words.value("gap", "gap 5", "a number of packets", unsigned)?,
            Some("distribution") => self.distribution = Some(words.distribution("distribution")?),
            Some("rate") => self.read_rate(words)?,
            Some("slot") => self.slot = Some(words.slot()?),
            _ => return Err(ArgumentError::UnknownWord { word: word.to_owned() }),
        }
        Ok(())
    }

    fn read_delay(&mut self, words: &mut ArgumentReader) -> Result<(), ArgumentError> {
        let time = |text: &str| quantity::time(text, BARE_DELAY);
        self.delay = words.value("delay", "delay 100ms", "a time", time)?;
        if let Some(jitter) = words.next_number("delay", "delay 100ms 20ms", "a time", time)? {
            self.jitter = jitter;
            let correlation =
                words.next_number("delay", "delay 100ms 20ms 25%", PERCENTAGE, quantity::percent)?;
            self.delay_correlation = correlation.unwrap_or(self.delay_correlation);
        }
        Ok(())
    }

    fn read_loss(&mut self, words: &mut ArgumentReader) -> Result<(), ArgumentError> {
        // A probability of 0 does not enable loss, as in tc.
        let nothing =
            |loss: LossModel| matches!(loss, LossModel::Random(chance) if chance.probability.is_never());
        if self.loss.is_some_and(|loss| !nothing(loss)) {
            return Err(ArgumentError::LossTwice);
        }
        let next = words.rest.first().map_or("", String::as_str);
        let mut steps = |count: usize, example: &'static str| -> Result<Vec<Probability>, ArgumentError> {
            words.take();
            let mut values = vec![words.value("loss", example, PERCENTAGE, quantity::percent)?];
            while values.len() < count {
                match words.next_number("loss", example, PERCENTAGE, quantity::percent)? {
                    Some(value) => values.push(value),
                    None => break,
                }
            }
            Ok(values)
        };
        self.loss = Some(match next {
            "state" => {
                let given = steps(5, "loss state 1% 10%")?;
                let or = |index: usize, default| given.get(index).copied().unwrap_or(default);
                LossModel::State {
                    p13: given[0],
                    p31: or(1, complement(given[0])),
                    p32: or(2, Probability::NEVER),
                    p23: or(3, Probability::ALWAYS),
                    p14: or(4, Probability::NEVER),
                }
            }
            "gemodel" => {
                let given = steps(4, "loss gemodel 1% 10% 70% 0.1%")?;
                let or = |index: usize, default| given.get(index).copied().unwrap_or(default);
                LossModel::GilbertElliott {
                    p: given[0],
                    r: or(1, complement(given[0])),
                    bad: or(2, Probability::ALWAYS),
                    good: or(3, Probability::NEVER),
                }
            }
            "random" => {
                words.take();
                LossModel::Random(words.chance("loss", "loss random 1%")?)
            }
            digit if digit.starts_with(|c: char| c.is_ascii_digit()) => {
                LossModel::Random(words.chance("loss", "loss 1%")?)
            }
            "" => return Err(ArgumentError::NoValue { word: "loss", example: "loss 1%" }),
            other => return Err(ArgumentError::UnknownLoss { word: other.to_owned() }),
        });
        Ok(())
    }

    fn read_rate(&mut self, words: &mut ArgumentReader) -> Result<(), ArgumentError> {
        const EXAMPLE: &str = "rate 10mbit 20 48 5";
        self.rate = words.value("rate", "rate 10mbit", "a rate", quantity::rate)?;
        let bytes = "a number of bytes";
        if let Some(overhead) = words.next_signed("rate", EXAMPLE, bytes)? {
            self.packet_overhead = overhead;
        }
        if let Some(size) = words.next_number("rate", EXAMPLE, bytes, unsigned)? {
            self.cell_size = size;
        }
        if let Some(overhead) = words.next_signed("rate", EXAMPLE, bytes)? {
            self.cell_overhead = overhead;
        }
        Ok(())
    }

    /// The checks that tc makes after parsing.
    fn check(mut self) -> Result<Arguments, ArgumentError> {
        if !self.reorder.probability.is_never() {
            if self.delay.is_zero() {
                return Err(ArgumentError::ReorderWithoutDelay);
            }
            self.gap = self.gap.max(1);
        } else if self.gap > 0 {
            return Err(ArgumentError::GapWithoutReorder);
        }
        let loses =
            self.loss.is_some_and(|loss| !matches!(loss, LossModel::Random(c) if c.probability.is_never()));
        if self.ecn && !loses {
            return Err(ArgumentError::EcnWithoutLoss);
        }
        if self.distribution.is_some() && (self.delay.is_zero() || self.jitter.is_zero()) {
            return Err(ArgumentError::DistributionWithoutJitter);
        }
        Ok(self)
    }
}

/// A table as tc reads it: whole numbers of 16 bits, lines with `#` before them are comments.
fn table(text: &str) -> Result<Arc<[i16]>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let number = |word: &str| word.parse::<i16>().map_err(|_| format!("'{word}' is not a 16-bit number"));
    let mut values: Vec<i16> =
        lines.flat_map(str::split_whitespace).map(number).take(TABLE_MAX + 1).collect::<Result<_, _>>()?;
    if !(1..=TABLE_MAX).contains(&values.len()) {
        return Err(format!("a table has from 1 to {TABLE_MAX} numbers"));
    }
    values.sort_unstable();
    Ok(values.into())
}

const PERCENTAGE: &str = "a percentage from 0 to 100";

/// The arguments that are not parsed yet.
struct ArgumentReader<'a> {
    rest: &'a [String],
    tables: &'a Tables<'a>,
}

impl<'a> ArgumentReader<'a> {
    fn take(&mut self) -> Option<&'a str> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// Returns the next argument, which must be a value.
    fn value<T>(
        &mut self,
        word: &'static str,
        example: &'static str,
        wanted: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ArgumentError> {
        let text = self.take().ok_or(ArgumentError::NoValue { word, example })?;
        read(text).ok_or_else(|| ArgumentError::BadValue { word, text: text.to_owned(), wanted, example })
    }

    /// Returns the next argument if it begins with a digit.
    fn next_number<T>(
        &mut self,
        word: &'static str,
        example: &'static str,
        wanted: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, ArgumentError> {
        let digit = |text: &String| text.starts_with(|c: char| c.is_ascii_digit());
        if self.rest.first().is_some_and(digit) {
            self.value(word, example, wanted, read).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Returns the next argument if it begins with a digit or a sign.
    fn next_signed(
        &mut self,
        word: &'static str,
        example: &'static str,
        wanted: &'static str,
    ) -> Result<Option<i32>, ArgumentError> {
        let signed = |text: &String| text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let read = |text: &str| quantity::whole(text).and_then(|value| i32::try_from(value).ok());
        if self.rest.first().is_some_and(signed) {
            self.value(word, example, wanted, read).map(Some)
        } else {
            Ok(None)
        }
    }

    fn chance(&mut self, word: &'static str, example: &'static str) -> Result<Chance, ArgumentError> {
        let probability = self.value(word, example, PERCENTAGE, quantity::percent)?;
        let correlation = self.next_number(word, example, PERCENTAGE, quantity::percent)?;
        Ok(Chance { probability, correlation: correlation.unwrap_or_default() })
    }

    fn distribution(&mut self, word: &'static str) -> Result<Distribution, ArgumentError> {
        const EXAMPLE: &str = "distribution normal";
        match self.take().ok_or(ArgumentError::NoValue { word, example: EXAMPLE })? {
            "uniform" => Ok(Distribution::Uniform),
            "normal" => Ok(Distribution::Normal),
            "pareto" => Ok(Distribution::Pareto),
            "paretonormal" => Ok(Distribution::ParetoNormal),
            name => {
                let read = (self.tables)(name).and_then(|text| table(&text));
                let bad = |why| ArgumentError::BadTable { name: name.to_owned(), why };
                read.map(Distribution::Table).map_err(bad)
            }
        }
    }

    fn slot(&mut self) -> Result<SlotArguments, ArgumentError> {
        const EXAMPLE: &str = "slot 800us 1ms packets 32";
        let time = |text: &str| quantity::time(text, BARE_SLOT);
        let wait = match self.next_number("slot", EXAMPLE, "a time", time)? {
            Some(least) => {
                let no_less = |text: &str| time(text).filter(|most| *most >= least);
                let most = self.next_number("slot", EXAMPLE, "a time no shorter than the first", no_less)?;
                SlotWait::Between(least, most.unwrap_or(least))
            }
            None => {
                let word = |text: &str| (text == "distribution").then_some(());
                self.value("slot", EXAMPLE, "a time, or distribution", word)?;
                let law = self.distribution("slot")?;
                let mean = self.value("slot", "slot distribution normal 1ms 100us", "a time", time)?;
                let positive = |text: &str| time(text).filter(|time| !time.is_zero());
                let jitter =
                    self.value("slot", "slot distribution normal 1ms 100us", "a time above 0", positive)?;
                SlotWait::By(law, mean, jitter)
            }
        };
        let mut slot = SlotArguments { wait, packets: 0, bytes: 0 };
        if self.next_is("packets") {
            self.take();
            slot.packets = self.value("slot packets", EXAMPLE, "a number of packets", unsigned)?;
        }
        if self.next_is("bytes") {
            self.take();
            slot.bytes = self.value("slot bytes", "slot 800us bytes 16k", "a size", quantity::size)?;
        }
        Ok(slot)
    }

    /// Returns whether the next argument is `whole` or an abbreviation of it.
    fn next_is(&self, whole: &str) -> bool {
        self.rest.first().is_some_and(|word| !word.is_empty() && whole.starts_with(word.as_str()))
    }
}

fn unsigned(text: &str) -> Option<u32> {
    quantity::whole(text).and_then(|value| u32::try_from(value).ok())
}

fn complement(p: Probability) -> Probability {
    Probability::new(1.0 - p.get()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
