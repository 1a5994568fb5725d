//! Reads the file of an experiment (TOML): every mistake is reported with its place.

use super::axis::Factor;
use super::braces::{self, OWN_WORDS};
use super::expect::{Expectation, Known};
use super::metric::Metric;
use super::plan::Experiment;
use super::step::{LinkValue, ReplayInputs, RunKind, RunStep, StepAction};
use fastpath_spec::{change_of_json, keys};
use fastpath_text::document;
use fastpath_text::fields::{Field, Fields, Name};
use fastpath_text::mistake::{Remarks, choice};
use fastpath_units::Duration;
use serde_json::Map;
use std::path::Path;

/// Most runs of an experiment.
const RUNS_MAX: u64 = 1_000_000;
/// Most tries of a run.
const ATTEMPTS_MAX: u64 = 1000;
/// How long a command may take if its step does not say.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(600);
/// What to write where the file is not TOML.
const START: &str = "write TOML: spec = \"FILE\", then [matrix], [[step]] or [replay], [metric.NAME]";

/// Reads the text of the file at `path`. Returns the experiment, and whether its networks are
/// known: that the description and the matrix are without mistakes. `None`: the text is not TOML.
pub(super) fn experiment(text: &str, path: &Path, remarks: &mut Remarks) -> Option<(Experiment, bool)> {
    let document = document::toml(text, "an experiment", START, remarks)?;
    let mut top = Fields::new("the experiment", 0, &document);
    let name = top.get("name").and_then(|field| field.text("queues", remarks)).map(str::to_owned);
    let spec = top.get("spec").and_then(|field| field.name("net.toml", remarks));
    let seeds_at = top.get("seeds").map_or(0, |field| field.at);
    let seeds = top.get("seeds").map_or_else(|| vec![1], |field| seeds(&field, remarks));
    let axes = axes(&mut top, remarks);
    check_size(&axes, &seeds, seeds_at, remarks);
    check_spec(spec.as_ref(), top.peek("spec").is_some(), &axes, remarks);
    let are_networks_known = remarks.is_clean();
    let lab = LabKeys::read(&mut top, remarks);
    let mut words = Words { axes: &axes, used: vec![false; axes.len()] };
    let before = remarks.offsets().len();
    let mode = mode(&mut top, &mut words, remarks);
    // The words of a step with a mistake may not have been read.
    if remarks.offsets().len() == before {
        words.finish(remarks);
    }
    lab.check(&mode, &axes, remarks);
    let tables = metric_tables(&mut top, remarks);
    let names: Vec<String> = tables.iter().map(|(name, _)| name.clone()).collect();
    let mut metrics: Vec<Metric> =
        tables.into_iter().filter_map(|(name, fields)| Metric::read(name, fields, &mode, remarks)).collect();
    metrics.sort_by(|a, b| a.name.cmp(&b.name));
    let known = Known { names: &names, metrics: &metrics, axes: &axes };
    let expectations = top.tables("expect", "expect", remarks);
    let expectations =
        expectations.into_iter().filter_map(|fields| Expectation::read(fields, &known, remarks)).collect();
    top.finish(remarks);
    let plan = Experiment {
        name: name.unwrap_or_else(|| fastpath::name_of(path)),
        warnings: Vec::new(),
        axes,
        seeds,
        attempts: lab.attempts,
        tolerance: lab.tolerance,
        late_share: lab.late_share,
        is_virtual: lab.is_virtual,
        audit: lab.audit,
        keeps_packets: lab.keeps_packets,
        mode,
        metrics,
        expectations,
        spec,
        base: path.parent().unwrap_or(Path::new("")).to_owned(),
        path: path.to_owned(),
        text: text.to_owned(),
    };
    Some((plan, are_networks_known))
}

/// How a machine may disturb runs in labs.
struct LabKeys {
    attempts: u32,
    tolerance: Option<Duration>,
    late_share: f64,
    audit: bool,
    /// `keep_packets`, and its place.
    keeps_packets: bool,
    packets_at: Option<usize>,
    /// `time = "virtual"`, and its place.
    is_virtual: bool,
    time_at: Option<usize>,
    /// The keys that are there, with their places.
    given: Vec<(usize, &'static str)>,
}

impl LabKeys {
    fn read(top: &mut Fields, remarks: &mut Remarks) -> LabKeys {
        let place = |key| top.get(key).map(|field| (field.at, key));
        let given = ["attempts", "tolerance", "late_share", "audit"].into_iter().filter_map(place).collect();
        let (time, packets) = (top.get("time"), top.get("keep_packets"));
        let word =
            time.as_ref().and_then(|field| field.word("a kind of time", &["real", "virtual"], remarks));
        let is_virtual = word == Some(1);
        let attempts = top.get("attempts").and_then(|field| field.whole(1..=ATTEMPTS_MAX, remarks));
        LabKeys {
            attempts: attempts.unwrap_or(3) as u32,
            tolerance: top.get("tolerance").and_then(|field| field.quantity("10ms", remarks)),
            late_share: top.get("late_share").and_then(|field| share(&field, remarks)).unwrap_or(0.01),
            audit: top.get("audit").and_then(|field| field.switch(remarks)).unwrap_or(false),
            keeps_packets: packets.as_ref().and_then(|field| field.switch(remarks)).unwrap_or(false),
            packets_at: packets.map(|field| field.at),
            is_virtual,
            time_at: time.map(|field| field.at),
            given,
        }
    }

    /// Reports what has no effect: all in virtual time, which no machine disturbs.
    fn check(&self, mode: &RunKind, axes: &[Factor], remarks: &mut Remarks) {
        let mut engine = axes.iter().filter(|axis| axis.name.starts_with("engine."));
        if let (RunKind::Replay(_), Some(at)) = (mode, self.time_at) {
            let what = "time has no effect beside [replay], which is in virtual time";
            remarks.mistake(at, what, "remove it, or write [[step]] for a lab");
        }
        if let Some(at) = self.packets_at.filter(|_| !self.is_virtual) {
            let what = "keep_packets has no effect but in labs in virtual time";
            remarks.mistake(at, what, "remove it, or write [[step]] and time = \"virtual\"");
        }
        if matches!(mode, RunKind::Replay(_)) || self.is_virtual {
            let instead = match mode {
                RunKind::Replay(_) => "remove it, or write [[step]] for a lab",
                RunKind::Lab(_) => "remove it, or time = \"virtual\"",
            };
            let engine = engine.map(|axis| (axis.at, axis.name.as_str()));
            for (at, key) in self.given.iter().copied().chain(engine) {
                let what = format!("{key} has no effect in virtual time");
                remarks.mistake(at, what, instead);
            }
        } else if let Some(axis) = engine.find(|axis| axis.name == "engine.tolerance")
            && self.tolerance.is_some()
        {
            let what = "engine.tolerance has no effect beside tolerance, which is that of every run";
            remarks.mistake(axis.at, what, "remove one of them");
        }
    }
}

/// `seeds = 5` (1 to 5) or `seeds = [7, 11]`.
fn seeds(field: &Field, remarks: &mut Remarks) -> Vec<u64> {
    let Some(elements) = field.elements() else {
        let count = field.whole(1..=u64::MAX, remarks).unwrap_or(1);
        return (1..=count.min(RUNS_MAX + 1)).collect();
    };
    if elements.is_empty() {
        remarks.mistake(field.at, "seeds has no seed", "write a number of repetitions, such as seeds = 5");
    }
    let mut seeds: Vec<u64> = Vec::new();
    for element in &elements {
        let Some(seed) = element.whole(0..=u64::MAX, remarks) else { continue };
        if seeds.contains(&seed) {
            remarks.mistake(element.at, format!("the seed {seed} is given twice"), "write each seed once");
        }
        seeds.push(seed);
    }
    seeds
}

fn share(field: &Field, remarks: &mut Remarks) -> Option<f64> {
    let share = field.number("0.01", remarks)?;
    if !(0.0..=1.0).contains(&share) {
        let what = format!("late_share = {share} is not a share");
        remarks.mistake(field.at, what, "write a number from 0 to 1, such as 0.01");
        return None;
    }
    Some(share)
}

/// The axes of `[matrix]`, in the order of their names.
fn axes(top: &mut Fields, remarks: &mut Remarks) -> Vec<Factor> {
    let field = top.get("matrix");
    let example = "{ \"link.a-b.rate\" = [\"8Mbit\", \"16Mbit\"] }";
    let Some(mut table) = field.and_then(|field| field.table("matrix", example, remarks)) else {
        return Vec::new();
    };
    let mut axes: Vec<Factor> =
        table.all().into_iter().map(|(at, field)| Factor::read(at, &field, remarks)).collect();
    axes.sort_by(|a, b| a.name.cmp(&b.name));
    axes
}

fn check_size(axes: &[Factor], seeds: &[u64], seeds_at: usize, remarks: &mut Remarks) {
    let sizes = axes.iter().map(|axis| axis.values.len() as u64);
    let runs = sizes.chain([seeds.len() as u64]).try_fold(1_u64, u64::checked_mul);
    if runs.is_none_or(|runs| runs > RUNS_MAX) {
        let at = axes.first().map_or(seeds_at, |axis| axis.at);
        let runs = runs.map_or("more than 10^19".to_owned(), |runs| runs.to_string());
        remarks.mistake(at, format!("{runs} runs; the limit is {RUNS_MAX}"), "write fewer values or seeds");
    }
}

fn check_spec(spec: Option<&Name>, is_given: bool, axes: &[Factor], remarks: &mut Remarks) {
    let axis = axes.iter().find(|axis| axis.is_spec());
    match (spec, axis) {
        (None, None) if !is_given => {
            remarks.mistake(0, "the experiment has no network", "write spec = \"FILE\"");
        }
        (Some(_), Some(axis)) => {
            remarks.mistake(axis.at, "spec is also an axis of [matrix]", "write it once");
        }
        _ => {}
    }
}

/// The tables of `[metric.NAME]`, with their names.
fn metric_tables<'d>(top: &mut Fields<'d>, remarks: &mut Remarks) -> Vec<(String, Fields<'d>)> {
    let example = "{ of = \"STEP\", json = \"PATH\" }";
    let field = top.get("metric");
    let Some(mut tables) = field.and_then(|field| field.table("metric", example, remarks)) else {
        return Vec::new();
    };
    let mut read = |(at, field): (usize, Field<'d>)| {
        let mut fields = field.table(format!("metric {}", field.key), example, remarks)?;
        fields.at = at;
        Some((field.key, fields))
    };
    tables.all().into_iter().filter_map(&mut read).collect()
}

/// The axes whose values are words of commands, and which of them a command uses.
struct Words<'a> {
    axes: &'a [Factor],
    used: Vec<bool>,
}

impl Words<'_> {
    /// Notes the words in braces in a text, and reports those that nothing defines.
    fn read(&mut self, text: &str, at: usize, remarks: &mut Remarks) {
        let axis = |word: &str| self.axes.iter().position(|axis| axis.is_word() && axis.name == word);
        let is_known = |word: &str| OWN_WORDS.contains(&word) || axis(word).is_some();
        let (known, unknown) = braces::words(text, &is_known);
        for word in unknown {
            let names = self.axes.iter().filter(|axis| axis.is_word()).map(|axis| axis.name.as_str());
            let what = format!("nothing defines the word {{{word}}}");
            let instead = format!(
                "{}, or {{{{{word}}}}} for braces that the command keeps",
                choice(word, names.chain(OWN_WORDS))
            );
            remarks.mistake(at, what, instead);
        }
        for axis in known.into_iter().filter_map(axis).collect::<Vec<_>>() {
            self.used[axis] = true;
        }
    }

    /// Reports the axes that no command uses.
    fn finish(self, remarks: &mut Remarks) {
        let unused = self.axes.iter().zip(self.used).filter(|(axis, used)| axis.is_word() && !used);
        for (axis, _) in unused {
            let Factor { name, at, .. } = axis;
            let instead = format!(
                "write {{{name}}} in a command, or the name of a value of the description, such as \"link.a-b.rate\""
            );
            remarks.mistake(*at, format!("nothing uses the axis {name}"), instead);
        }
    }
}

/// What runs do: `[[step]]` or `[replay]`.
fn mode(top: &mut Fields, words: &mut Words, remarks: &mut Remarks) -> RunKind {
    let has_steps = top.peek("step").is_some();
    let steps = steps(top, words, remarks);
    let Some(field) = top.get("replay") else {
        if !has_steps {
            let instead = "write [[step]] for a lab, or [replay] for virtual time";
            remarks.mistake(0, "the experiment does nothing", instead);
        }
        return RunKind::Lab(steps);
    };
    if has_steps {
        let what = "steps need a lab, and replay is virtual time";
        remarks.mistake(field.at, what, "write [replay] or [[step]], not both");
    }
    match field.table("replay", "{ in = { a = \"in.pcap\" } }", remarks) {
        Some(fields) if !has_steps => RunKind::Replay(replay(fields, remarks)),
        _ => RunKind::Lab(steps),
    }
}

fn replay(mut fields: Fields, remarks: &mut Remarks) -> ReplayInputs {
    let mut replay = ReplayInputs::default();
    if let Some(field) = fields.get("in")
        && let Some(mut hosts) = field.table("in", "{ a = \"in.pcap\" }", remarks)
    {
        for (at, field) in hosts.all() {
            let host = Name { text: field.key.clone(), at };
            replay.inputs.extend(field.name("in.pcap", remarks).map(|file| (host, file)));
        }
    }
    replay.inputs.sort();
    if let Some(field) = fields.get("out") {
        let hosts = field.texts("b", remarks).into_iter();
        replay.outputs = hosts.map(|(at, text)| Name { text: text.to_owned(), at }).collect();
        for (index, host) in replay.outputs.iter().enumerate() {
            if replay.outputs[..index].iter().any(|other| other.text == host.text) {
                remarks.mistake(host.at, format!("out has {host} twice"), "write each host once");
            }
        }
    }
    replay.until = fields.get("until").and_then(|field| field.quantity("30s", remarks));
    fields.finish(remarks);
    replay
}

fn steps(top: &mut Fields, words: &mut Words, remarks: &mut Remarks) -> Vec<RunStep> {
    let mut steps: Vec<RunStep> = Vec::new();
    for (number, fields) in (1..).zip(top.tables("step", "step", remarks)) {
        let at = fields.at;
        let Some(step) = step(number, fields, words, remarks) else { continue };
        if steps.iter().any(|other| other.name == step.name) {
            remarks.mistake(at, format!("another step has the name {}", step.name), "write another name");
        }
        steps.push(step);
    }
    steps
}

/// The keys of which a step has one.
const ACTIONS: [&str; 5] = ["run", "wait", "set", "start", "collect"];

fn step(number: usize, mut fields: Fields, words: &mut Words, remarks: &mut Remarks) -> Option<RunStep> {
    let name = match fields.get("name") {
        Some(field) => step_name(&field, remarks),
        None => Some(number.to_string()),
    };
    fields.what = format!("step {}", name.as_deref().unwrap_or(&number.to_string()));
    let given: Vec<&str> = ACTIONS.into_iter().filter(|action| fields.peek(action).is_some()).collect();
    let [action] = given[..] else {
        ACTIONS.iter().for_each(|action| drop(fields.get(action)));
        fields.allow(|key| matches!(key, "on" | "background" | "limit" | "may_fail"));
        let what = match given.is_empty() {
            true => format!("{} does nothing", fields.what),
            false => format!("{} has {}", fields.what, given.join(" and ")),
        };
        remarks.mistake(fields.at, what, "write exactly one of run, wait, set, start and collect");
        fields.finish(remarks);
        return None;
    };
    for key in ["on", "background", "limit", "may_fail"] {
        let of = if key == "on" { "run or collect" } else { "run" };
        if of.split(" or ").all(|of| of != action)
            && let Some(field) = fields.get(key)
        {
            let what = format!("{key} has no effect beside {action}");
            remarks.mistake(field.at, what, format!("write it beside {of}"));
        }
    }
    let field = fields.get(action)?;
    let action = match action {
        "run" => run(&field, &mut fields, words, remarks),
        "wait" => field.quantity("5s", remarks).map(|time: Duration| StepAction::Wait(time.to_std())),
        "set" => set(&field, remarks),
        "start" => field.name("cell", remarks).map(StepAction::Start),
        _ => field.text("/var/log/x", remarks).map(|file| {
            words.read(file, field.at, remarks);
            let on = fields.get("on").and_then(|field| field.name("a", remarks));
            StepAction::Collect { file: file.to_owned(), on }
        }),
    };
    ACTIONS.iter().for_each(|action| drop(fields.get(action)));
    fields.finish(remarks);
    Some(RunStep { name: name?, action: action? })
}

/// A name of a step, which is that of a file.
fn step_name(field: &Field, remarks: &mut Remarks) -> Option<String> {
    let name = field.text("transfer", remarks)?;
    let is_file = !name.is_empty()
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !is_file {
        let what = format!("'{name}' cannot be the name of a file");
        remarks.mistake(field.at, what, "write letters, digits, - and _");
        return None;
    }
    Some(name.to_owned())
}

/// A command: a list of its words, or a text for the shell.
fn run(field: &Field, fields: &mut Fields, words: &mut Words, remarks: &mut Remarks) -> Option<StepAction> {
    let is_shell = field.elements().is_none();
    let parts = field.texts("ping -c 10 b", remarks);
    parts.iter().for_each(|(at, text)| words.read(text, *at, remarks));
    let own = parts.iter().map(|(_, text)| (*text).to_owned());
    let command: Vec<String> = match is_shell {
        true => ["sh", "-c"].map(str::to_owned).into_iter().chain(own).collect(),
        false => own.collect(),
    };
    if parts.iter().all(|(_, text)| text.trim().is_empty()) {
        remarks.mistake(field.at, "run has no command", "write for example run = \"ping -c 10 b\"");
    }
    let on = fields.get("on").and_then(|field| field.name("a", remarks));
    let background = fields.get("background").and_then(|field| field.switch(remarks)).unwrap_or(false);
    let may_fail = fields.get("may_fail").and_then(|field| field.switch(remarks)).unwrap_or(false);
    let limit = fields.get("limit").and_then(|field| field.quantity("60s", remarks));
    for field in ["limit", "may_fail"].into_iter().filter_map(|key| fields.get(key)).filter(|_| background) {
        let what =
            format!("{} has no effect on a command in the background, which ends with the run", field.key);
        remarks.mistake(field.at, what, "remove it, or background");
    }
    let limit = limit.map_or(LIMIT, Duration::to_std);
    Some(StepAction::Run { command, on, background, limit, may_fail })
}

/// New values of links.
fn set(field: &Field, remarks: &mut Remarks) -> Option<StepAction> {
    let mut table = field.table("set", "{ \"a-b.delay\" = \"50ms\" }", remarks)?;
    let mut values = Vec::new();
    let all = table.all();
    if all.is_empty() {
        remarks.mistake(field.at, "set changes nothing", "write set = { \"a-b.delay\" = \"50ms\" }");
    }
    for (at, field) in all {
        let Some((link, key)) = field.key.rsplit_once('.') else {
            let what = format!("{} does not name a value of a link", field.key);
            remarks.mistake(at, what, "write \"LINK.KEY\" = VALUE, such as \"a-b.delay\" = \"50ms\"");
            continue;
        };
        let Some(value) = field.json("\"50ms\"", remarks) else { continue };
        let value = LinkValue { link: Name { text: link.to_owned(), at }, key: key.to_owned(), value };
        check_value(&value, field.at, remarks);
        values.push(value);
    }
    values.sort_by(|a, b| (&a.link.text, &a.key).cmp(&(&b.link.text, &b.key)));
    Some(StepAction::Set(values))
}

/// Reports a key that links do not have, and a value that the key does not take.
fn check_value(set: &LinkValue, at: usize, remarks: &mut Remarks) {
    let LinkValue { link, key, value } = set;
    if !keys().contains(&key.as_str()) {
        let instead = choice(key, keys().iter().copied());
        remarks.mistake(link.at, format!("a link has no value '{key}'"), instead);
        return;
    }
    let values = Map::from_iter([(key.clone(), value.clone())]);
    for mistake in change_of_json(&values).err().into_iter().flatten() {
        remarks.mistake(at, mistake.what, mistake.instead);
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
