//! Reads the file of an experiment (TOML).

use super::axis::Factor;
use super::expect::Expectation;
use super::metric::Metric;
use super::plan::Experiment;
use super::step::{ReplayInputs, RunKind, RunStep, StepAction};
use fastpath::{Error, Result};
use fastpath_units::Duration;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

/// Most runs of an experiment.
const RUNS_MAX: u64 = 1_000_000;
/// How long a command may take if its step does not say.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(600);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExperimentFile {
    name: Option<String>,
    spec: Option<String>,
    seeds: Option<Seeds>,
    attempts: Option<u32>,
    tolerance: Option<String>,
    late_share: Option<f64>,
    #[serde(default)]
    matrix: BTreeMap<String, Vec<toml::Value>>,
    #[serde(default)]
    step: Vec<StepFile>,
    replay: Option<ReplayInputs>,
    #[serde(default)]
    metric: BTreeMap<String, toml::Table>,
    #[serde(default)]
    expect: Vec<toml::Table>,
}

/// `seeds = 5` (1 to 5) or `seeds = [7, 11]`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Seeds {
    Count(u64),
    List(Vec<u64>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepFile {
    name: Option<String>,
    run: Option<Words>,
    wait: Option<String>,
    set: Option<BTreeMap<String, Value>>,
    start: Option<String>,
    collect: Option<String>,
    on: Option<String>,
    #[serde(default)]
    background: bool,
    limit: Option<String>,
    #[serde(default)]
    may_fail: bool,
}

/// A command: a list of its words, or a text for the shell.
#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    Shell(String),
    List(Vec<String>),
}

impl Experiment {
    /// Reads the file of an experiment. Values are checked, the files that it names are not.
    ///
    /// # Errors
    /// [`Error::Mistakes`] with every mistake; [`Error::File`] if the file cannot be read.
    pub fn read(path: &Path) -> Result<Experiment> {
        let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
        Experiment::parse(&text, path)
    }

    /// Reads the text of the file at `path`.
    pub(super) fn parse(text: &str, path: &Path) -> Result<Experiment> {
        let file: ExperimentFile = toml::from_str(text).map_err(|error| {
            let (line, column) = error.span().map_or((1, 1), |span| place(text, span.start));
            let what = error.message().trim_end().replace('\n', " ");
            Error::Mistakes(vec![format!("{}:{line}:{column}: {what}", path.display())])
        })?;
        let mut mistakes = Vec::new();
        let plan = file.plan(text, path, &mut mistakes);
        if mistakes.is_empty() {
            return Ok(plan);
        }
        let at = |mistake| format!("{}: {mistake}", path.display());
        Err(Error::Mistakes(mistakes.into_iter().map(at).collect()))
    }
}

impl ExperimentFile {
    fn plan(self, text: &str, path: &Path, mistakes: &mut Vec<String>) -> Experiment {
        let seeds = match self.seeds.unwrap_or(Seeds::Count(1)) {
            Seeds::Count(count) => (1..=count.min(RUNS_MAX + 1)).collect(),
            Seeds::List(seeds) => seeds,
        };
        if seeds.is_empty() {
            mistakes
                .push("seeds: there is none; write a number of repetitions, such as seeds = 5".to_owned());
        }
        let mut numbers = seeds.clone();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.len() < seeds.len() {
            mistakes.push("seeds: a seed stands twice; write each once".to_owned());
        }
        let axes: Vec<Factor> =
            self.matrix.into_iter().map(|(name, values)| Factor::new(name, values, mistakes)).collect();
        let sizes = axes.iter().map(|axis| axis.values.len() as u64);
        let runs = sizes.chain([seeds.len() as u64]).try_fold(1_u64, u64::checked_mul);
        if runs.is_none_or(|runs| runs > RUNS_MAX) {
            let runs = runs.map_or("more than 10^19".to_owned(), |runs| runs.to_string());
            mistakes
                .push(format!("matrix: {runs} runs; the limit is {RUNS_MAX}: write fewer values or seeds"));
        }
        let has_spec_axis = axes.iter().any(Factor::is_spec);
        match (&self.spec, has_spec_axis) {
            (None, false) => mistakes.push("spec: missing; write spec = \"FILE\"".to_owned()),
            (Some(_), true) => mistakes.push("spec: also in [matrix]; write it once".to_owned()),
            _ => {}
        }
        let tolerance = self.tolerance.as_deref().unwrap_or("1ms").parse().unwrap_or_else(|_| {
            mistakes.push("tolerance: not a time; write for example \"10ms\"".to_owned());
            Duration::from_ms(1)
        });
        let late_share = self.late_share.unwrap_or(0.01);
        if !(0.0..=1.0).contains(&late_share) {
            mistakes.push("late_share: outside 0 to 1; write for example 0.01".to_owned());
        }
        let steps: Vec<RunStep> = self
            .step
            .into_iter()
            .enumerate()
            .filter_map(|(index, step)| step.step(index + 1, mistakes))
            .collect();
        for (index, step) in steps.iter().enumerate() {
            if steps[..index].iter().any(|other| other.name == step.name) {
                mistakes.push(format!(
                    "step {}: another step has the name {}; write another",
                    index + 1,
                    step.name
                ));
            }
        }
        if self.replay.as_ref().is_some_and(|replay| replay.until.is_some() && replay.end().is_none()) {
            mistakes.push("replay: until is not a time; write for example until = \"30s\"".to_owned());
        }
        let mode = match (self.replay, steps.is_empty()) {
            (Some(replay), true) => RunKind::Replay(replay),
            (None, false) => RunKind::Lab(steps),
            (Some(_), false) => {
                mistakes.push("replay: steps need a lab; write [replay] or [[step]], not both".to_owned());
                RunKind::Lab(steps)
            }
            (None, true) => {
                mistakes
                    .push("nothing to do; write [[step]] for a lab, or [replay] for virtual time".to_owned());
                RunKind::Lab(steps)
            }
        };
        let metrics: Vec<Metric> = self
            .metric
            .into_iter()
            .filter_map(|(name, table)| Metric::read(name, table, &mode, mistakes))
            .collect();
        let expectations = self
            .expect
            .into_iter()
            .enumerate()
            .filter_map(|(index, table)| Expectation::read(index + 1, table, &metrics, &axes, mistakes))
            .collect();
        let attempts = self.attempts.unwrap_or(3);
        if attempts == 0 {
            mistakes.push("attempts: 0; write at least 1".to_owned());
        }
        Experiment {
            name: self.name.unwrap_or_else(|| fastpath::name_of(path)),
            axes,
            seeds,
            attempts,
            tolerance,
            late_share,
            mode,
            metrics,
            expectations,
            spec: self.spec,
            base: path.parent().unwrap_or(Path::new("")).to_owned(),
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }
}

impl StepFile {
    fn step(self, number: usize, mistakes: &mut Vec<String>) -> Option<RunStep> {
        let name = self.name.clone().unwrap_or_else(|| number.to_string());
        let mut fail = |what: &str| {
            mistakes.push(format!("step {number}: {what}"));
            None
        };
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) || name.starts_with('.') {
            return fail("the name is that of a file; write letters, digits, - and _");
        }
        let actions = [
            self.run.is_some(),
            self.wait.is_some(),
            self.set.is_some(),
            self.start.is_some(),
            self.collect.is_some(),
        ];
        if actions.iter().filter(|is| **is).count() != 1 {
            return fail("write exactly one of run, wait, set, start and collect");
        }
        if self.run.is_none() && (self.background || self.may_fail || self.limit.is_some()) {
            return fail("background, may_fail and limit are of a command; write them beside run");
        }
        if self.on.is_some() && self.run.is_none() && self.collect.is_none() {
            return fail("on is of a command or a file; write it beside run or collect");
        }
        let action = if let Some(words) = self.run {
            let command = match words {
                Words::Shell(text) => ["sh", "-c", &text].map(str::to_owned).to_vec(),
                Words::List(words) => words,
            };
            if command.is_empty() {
                return fail("run: no command; write for example run = \"ping -c 10 b\"");
            }
            let limit = match self.limit {
                None => LIMIT,
                Some(text) => match std_time(&text) {
                    Some(limit) => limit,
                    None => return fail("limit: not a time; write for example limit = \"60s\""),
                },
            };
            StepAction::Run {
                command,
                on: self.on,
                background: self.background,
                limit,
                may_fail: self.may_fail,
            }
        } else if let Some(text) = self.wait {
            match std_time(&text) {
                Some(time) => StepAction::Wait(time),
                None => return fail("wait: not a time; write for example wait = \"5s\""),
            }
        } else if let Some(values) = self.set {
            if let Some(key) = values.keys().find(|key| !key.contains('.')) {
                return fail(&format!(
                    "set: {key} names no value; write \"LINK.KEY\" = VALUE, such as \"a-b.delay\""
                ));
            }
            StepAction::Set(values)
        } else if let Some(group) = self.start {
            StepAction::Start(group)
        } else {
            StepAction::Collect { file: self.collect.expect("one of five"), on: self.on }
        };
        Some(RunStep { name, action })
    }
}

fn std_time(text: &str) -> Option<std::time::Duration> {
    Duration::from_str(text).ok().map(Duration::to_std)
}

/// Line and column of a byte of a text, from 1.
fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..byte.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}
