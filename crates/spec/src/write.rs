//! The values of a pipe in the words of a spec: what [`pipe::read`](super::pipe::read) reads,
//! written. A value that is the default is left out, and what a spec cannot say (a table with too
//! many entries, opportunities) is a text about it.

use crate::queue;
use fastpath_link::{
    Chance, CorruptSpec, Duplication, Ecn, FourState, Framing, GilbertElliott, JitterCorrelation, JitterLaw,
    JitterSpec, LinkState, LossPlan, LossSpec, Outage, PipeSpec, QueueSpec, Reorder, ReorderSpec, SlotSpec,
    SlotWait,
};
use fastpath_units::{Duration, Probability};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Display;

/// Lists with more entries are described, not written out.
const ENTRIES_MAX: usize = 1000;

/// The values of `pipe` that are not the default, by their keys.
pub fn values(pipe: &PipeSpec) -> BTreeMap<&'static str, Value> {
    // Every field is named, so that a new one is not forgotten here.
    let PipeSpec { rate, overhead, delay, loss, queue, egress_loss, jitter, reorder, .. } = pipe;
    let PipeSpec { duplicate, corrupt, framing, slots, loss_ecn, state, opportunities: _, paused: _, .. } =
        pipe;
    let overhead = match framing {
        Some(framing) => Some(of_framing(*framing)),
        None => (*overhead > 0).then(|| json!(overhead)),
    };
    let values = [
        ("rate", rate.as_ref().map(text)),
        ("overhead", overhead),
        ("delay", (!delay.is_zero()).then(|| text(delay))),
        ("loss", of_losses(loss, *loss_ecn, egress_loss)),
        ("queue", (*queue != QueueSpec::default()).then(|| queue::write(queue))),
        ("jitter", jitter.as_deref().map(of_jitter)),
        ("reorder", reorder.as_ref().map(of_reorder)),
        ("duplicate", (*duplicate != Duplication::default()).then(|| of_duplication(duplicate))),
        ("corrupt", corrupt.as_ref().map(of_corruption)),
        ("slots", slots.as_deref().map(of_slots)),
        ("state", (*state == LinkState::Down).then(|| json!("down"))),
    ];
    values.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

/// A value as an inline value of TOML, which differs from JSON by its tables.
pub fn inline(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let bare = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let key = |key: &String| match bare(key) && !key.is_empty() {
                true => key.clone(),
                false => json!(key).to_string(),
            };
            let entries = table.iter().map(|(name, value)| format!("{} = {}", key(name), inline(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(inline).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

pub(crate) fn text(quantity: impl Display) -> Value {
    Value::String(quantity.to_string())
}

/// `"1%"`, or a number where that would not be exact.
pub(crate) fn of_probability(p: Probability) -> Value {
    let text = p.to_string();
    if text.parse() == Ok(p) { Value::String(text) } else { json!(p.get()) }
}

pub(crate) fn table<'k>(entries: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
    Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}

/// A list, or its length if that is too much.
fn list<T>(entries: &[T], one: impl Fn(&T) -> Value) -> Value {
    match entries.len() <= ENTRIES_MAX {
        true => entries.iter().map(one).collect(),
        false => Value::String(format!("{} values", entries.len())),
    }
}

fn of_framing(Framing { packet, cells }: Framing) -> Value {
    match cells {
        None => json!(packet),
        Some(cells) => json!({ "bytes": packet, "cell": cells.payload, "cell_overhead": cells.overhead }),
    }
}

/// Of both places; that at the egress is always a table.
fn of_losses(ingress: &LossSpec, ecn: Ecn, egress: &LossSpec) -> Option<Value> {
    let before = (!ingress.is_never()).then(|| match (of_loss(ingress), ecn) {
        (loss, Ecn::Off) => loss,
        (loss, Ecn::Mark) => extended(loss, "ecn", json!(true)),
    });
    let behind = (!egress.is_never()).then(|| extended(of_loss(egress), "at", json!("egress")));
    match (before, behind) {
        (Some(before), Some(behind)) => Some(Value::Array(vec![before, behind])),
        (one, other) => one.or(other),
    }
}

/// A table with one more entry; a bare probability becomes a table.
fn extended(loss: Value, key: &str, value: Value) -> Value {
    let mut table = match loss {
        Value::Object(table) => table,
        probability => Map::from_iter([("probability".to_owned(), probability)]),
    };
    table.insert(key.to_owned(), value);
    Value::Object(table)
}

fn of_loss(loss: &LossSpec) -> Value {
    match loss {
        LossSpec::Never => json!("0%"),
        LossSpec::Uniform(p) => of_probability(*p),
        LossSpec::Correlated(Chance { probability, correlation }) => table([
            ("kind", json!("uniform")),
            ("probability", of_probability(*probability)),
            ("correlation", of_probability(*correlation)),
        ]),
        LossSpec::GilbertElliott(GilbertElliott { to_bad, to_good, loss_in_bad, loss_in_good }) => {
            let parts = [
                ("to_bad", to_bad),
                ("to_good", to_good),
                ("loss_in_bad", loss_in_bad),
                ("loss_in_good", loss_in_good),
            ];
            of_kind("gilbert-elliott", parts.map(|(key, p)| (key, of_probability(*p))))
        }
        LossSpec::FourState(FourState { p13, p31, p32, p23, p14 }) => {
            let parts = [("p13", p13), ("p31", p31), ("p32", p32), ("p23", p23), ("p14", p14)];
            of_kind("four-state", parts.map(|(key, p)| (key, of_probability(*p))))
        }
        LossSpec::Runs(runs) => {
            let [passed, lost] = [&runs.passed, &runs.lost].map(|runs| list(runs, |run| json!(run)));
            of_kind("runs", [("passed", passed), ("lost", lost)])
        }
        LossSpec::Plan(LossPlan::Numbers(numbers)) => {
            of_kind("packets", [("numbers", list(numbers, |number| json!(number)))])
        }
        LossSpec::Plan(LossPlan::Bytes(offsets)) => {
            of_kind("bytes", [("offsets", list(offsets, |offset| json!(offset)))])
        }
        LossSpec::Plan(LossPlan::Outage(Outage { at, span, every })) => {
            let every = every.map(|every| ("every", text(every)));
            of_kind("outage", [("start", text(at)), ("for", text(span))].into_iter().chain(every))
        }
    }
}

pub(crate) fn of_kind<'k>(kind: &str, entries: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
    table(std::iter::once(("kind", json!(kind))).chain(entries))
}

fn of_jitter(JitterSpec { law, correlation, order }: &JitterSpec) -> Value {
    let correlation = match correlation {
        JitterCorrelation::None => None,
        JitterCorrelation::HalfLife(time) => Some(("half_life", text(time))),
        JitterCorrelation::PerPacket(correlation) => Some(("correlation", of_probability(*correlation))),
    };
    let order = match order {
        Reorder::Never => None,
        Reorder::Allow => Some(("reorder", json!("allow"))),
        Reorder::Drop => Some(("reorder", json!("drop"))),
    };
    table(of_law(law).into_iter().chain(correlation).chain(order))
}

fn of_law(law: &JitterLaw) -> Vec<(&'static str, Value)> {
    let (name, parts) = match law {
        JitterLaw::Uniform { half_width } => ("uniform", vec![("half_width", text(half_width))]),
        JitterLaw::Normal { sd } => ("normal", vec![("sd", text(sd))]),
        JitterLaw::Lognormal { mean, sd } => ("lognormal", vec![("mean", text(mean)), ("sd", text(sd))]),
        JitterLaw::Pareto { mean, shape } => ("pareto", vec![("mean", text(mean)), ("shape", json!(shape))]),
        JitterLaw::Exponential { mean } => ("exponential", vec![("mean", text(mean))]),
        JitterLaw::Table(values) => ("table", vec![("values", list(values, |ps| text(Signed(*ps))))]),
        JitterLaw::Trace(values) => ("trace", vec![("values", list(values, |delay| text(delay)))]),
    };
    std::iter::once(("law", json!(name))).chain(parts).collect()
}

/// A time that may be negative, in picoseconds: tables of `tc` have such, a spec has not.
struct Signed(i64);

impl Display for Signed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}", Duration::from_ps(self.0.unsigned_abs()))
    }
}

fn of_chance(Chance { probability, correlation }: Chance) -> Vec<(&'static str, Value)> {
    let correlated = !correlation.is_never();
    let correlation = correlated.then(|| ("correlation", of_probability(correlation)));
    std::iter::once(("probability", of_probability(probability))).chain(correlation).collect()
}

/// `"1%"` where there is nothing beside the probability, else a table.
fn short(entries: Vec<(&'static str, Value)>) -> Value {
    match entries.as_slice() {
        [(_, probability)] => probability.clone(),
        _ => table(entries),
    }
}

fn of_reorder(ReorderSpec { chance, gap }: &ReorderSpec) -> Value {
    let gap = (*gap != 1).then(|| ("gap", json!(gap)));
    short(of_chance(*chance).into_iter().chain(gap).collect())
}

fn of_duplication(Duplication { chance, later }: &Duplication) -> Value {
    let later = (!later.is_zero()).then(|| ("later", text(later)));
    short(of_chance(*chance).into_iter().chain(later).collect())
}

fn of_corruption(corrupt: &CorruptSpec) -> Value {
    match corrupt {
        CorruptSpec::Packets(chance) => short(of_chance(*chance)),
        CorruptSpec::Bits(p) => table([("bits", of_probability(*p))]),
    }
}

fn of_slots(SlotSpec { wait, packets, bytes }: &SlotSpec) -> Value {
    let wait = match wait {
        SlotWait::Between(least, most) if least == most && packets.is_none() && bytes.is_none() => {
            return text(least);
        }
        SlotWait::Between(least, most) => vec![("min", text(least)), ("max", text(most))],
        SlotWait::Law(mean, law) => vec![("mean", text(mean)), ("law", table(of_law(law)))],
    };
    let packets = packets.map(|packets| ("packets", json!(packets)));
    let bytes = bytes.map(|bytes| ("bytes", text(bytes)));
    table(wait.into_iter().chain(packets).chain(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{assignment, parse_change};
    use fastpath_link::Opportunities;

    /// A pipe with these values and no others.
    fn pipe(values: &[(&str, String)]) -> PipeSpec {
        let lines: Vec<String> = values.iter().map(|(key, value)| assignment(key, value)).collect();
        let change =
            parse_change(&lines.join("\n")).unwrap_or_else(|mistakes| panic!("{lines:?}: {mistakes:?}"));
        let mut spec = PipeSpec::default();
        change.apply_to(&mut spec);
        spec
    }

    #[test]
    fn what_is_written_reads_back_as_the_same_pipe() {
        for (key, value) in [
            ("rate", "1.000001Mbit"),
            ("overhead", "ethernet"),
            ("overhead", "-14"),
            ("overhead", "{ bytes = 8, cell = 48, cell_overhead = 5 }"),
            ("delay", "1.5ms"),
            ("loss", "0.0001%"),
            ("loss", "{ probability = 0.123456789, at = 'egress' }"),
            ("loss", "{ probability = '1%', ecn = true }"),
            ("loss", "{ kind = 'uniform', probability = '1%', correlation = '25%' }"),
            ("loss", "{ kind = 'gilbert-elliott', to_bad = '1%', to_good = '30%', loss_in_bad = '90%' }"),
            (
                "loss",
                "{ kind = 'four-state', p13 = '1%', p31 = '30%', p32 = '2%', p23 = '40%', p14 = '0.1%' }",
            ),
            ("loss", "{ kind = 'runs', passed = [99, 7], lost = [1, 2] }"),
            ("loss", "{ kind = 'packets', numbers = [3, 17] }"),
            ("loss", "{ kind = 'bytes', offsets = [1000, 90000] }"),
            ("loss", "{ kind = 'outage', start = '1s', for = '200ms', every = '5s' }"),
            (
                "loss",
                "[{ kind = 'packets', numbers = [1] }, { kind = 'packets', numbers = [2], at = 'egress' }]",
            ),
            ("queue", "50p"),
            ("queue", "64KiB"),
            ("queue", "20ms"),
            ("queue", "{ kind = 'drop-tail', limit = '20ms' }"),
            ("queue", "{ kind = 'drop-head', limit = '9p' }"),
            ("queue", "{ kind = 'red', limit = '50p', min = '5p', max = '15p', ecn = true }"),
            ("queue", "{ kind = 'red', limit = '64KiB', min = '5KiB', max = '15KiB', gentle = false }"),
            ("queue", "{ kind = 'ared', limit = '50p', min = '5p', max = '15p' }"),
            ("queue", "{ kind = 'ared', limit = '50p', target = '5ms' }"),
            ("queue", "{ kind = 'codel', target = '1ms', ecn = true }"),
            ("queue", "{ kind = 'fq-codel', flows = 16 }"),
            ("queue", "{ kind = 'pie', alpha = 0.1, ecn = true }"),
            ("queue", "{ kind = 'dualpi2' }"),
            ("queue", "{ kind = 'dualpi2', classic_share = 10 }"),
            ("queue", "{ kind = 'token-bucket', rate = '1Mbit', burst = '10KiB', limit = '100p' }"),
            (
                "queue",
                "{ kind = 'token-bucket', rate = '1Mbit', burst = '10KiB', limit = '100p', peak = '2Mbit', peak_burst = '2KiB' }",
            ),
            ("queue", "{ kind = 'prio', bands = [{ dscp = ['EF'], limit = '10p' }, { limit = '100p' }] }"),
            (
                "queue",
                "{ kind = 'drr', classes = [{ dscp = [46, 8], quantum = '3KiB', limit = '10p' }, { quantum = '1KiB', limit = '20p' }] }",
            ),
            ("jitter", "{ law = 'uniform', half_width = '1ms', reorder = 'allow' }"),
            ("jitter", "{ law = 'normal', sd = '1ms', half_life = '50ms' }"),
            (
                "jitter",
                "{ law = 'lognormal', mean = '1ms', sd = '3ms', correlation = '25%', reorder = 'drop' }",
            ),
            ("jitter", "{ law = 'pareto', mean = '2ms', shape = 2.5 }"),
            ("jitter", "{ law = 'exponential', mean = '2ms' }"),
            ("jitter", "{ law = 'table', values = ['1ms', '2.5ms'] }"),
            ("jitter", "{ law = 'trace', values = ['1ms', '2.5ms'] }"),
            ("reorder", "25%"),
            ("reorder", "{ probability = '25%', correlation = '50%', gap = 5 }"),
            ("duplicate", "1%"),
            ("duplicate", "{ probability = '1%', later = '5ms' }"),
            ("corrupt", "0.1%"),
            ("corrupt", "{ probability = '0.1%', correlation = '10%' }"),
            ("corrupt", "{ bits = 1e-6 }"),
            ("slots", "2ms"),
            ("slots", "{ min = '1ms', max = '3ms', packets = 10, bytes = '15KiB' }"),
            ("slots", "{ mean = '2ms', law = { law = 'exponential', mean = '1ms' } }"),
            ("state", "down"),
        ] {
            let asked = pipe(&[(key, value.to_owned())]);
            assert_ne!(asked, PipeSpec::default(), "{value} asks for something");
            let written = values(&asked);
            assert_eq!(written.keys().collect::<Vec<_>>(), [&key], "{value}");
            // As JSON for the control interface, which takes text without its quotes.
            let read: Vec<(&str, String)> = written
                .iter()
                .map(|(key, value)| (*key, value.as_str().map_or_else(|| inline(value), str::to_owned)))
                .collect();
            assert_eq!(pipe(&read), asked, "{value} was written as {read:?}");
        }
    }

    #[test]
    fn a_pipe_says_nothing_of_defaults_and_little_of_what_is_long() {
        assert!(values(&PipeSpec::default()).is_empty());
        let numbers = vec![1; ENTRIES_MAX + 1].into();
        let loss = LossSpec::Plan(LossPlan::Numbers(numbers));
        let said = &values(&PipeSpec { loss, ..PipeSpec::default() })["loss"];
        assert_eq!(said["numbers"], "1001 values");
        let times = Opportunities::new([Duration::from_ms(1)]).ok();
        assert!(values(&PipeSpec { opportunities: times, ..PipeSpec::default() }).is_empty());
    }
}
