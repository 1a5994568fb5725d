//! What a run does: steps in a lab, or captures and traffic in virtual time.

use fastpath_text::fields::Name;
use fastpath_units::Duration;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How runs are carried out.
#[derive(Clone, Debug)]
pub(super) enum RunKind {
    /// With real programs in a lab.
    Lab(Vec<RunStep>),
    /// In virtual time.
    Replay(ReplayInputs),
}

/// What enters and leaves a network in virtual time.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplayInputs {
    /// The host at which a capture enters, and the capture, in the order of the hosts.
    pub(super) inputs: Vec<(Name, Name)>,
    /// The hosts whose arrivals are written to the directory of the run.
    pub(super) outputs: Vec<Name>,
    /// When traffic without a stop ends.
    pub(super) until: Option<Duration>,
}

/// A step of a run.
#[derive(Clone, Debug)]
pub(super) struct RunStep {
    /// The name of its output.
    pub(super) name: String,
    pub(super) action: StepAction,
}

#[derive(Clone, Debug)]
pub(super) enum StepAction {
    /// Runs a command to its end, or starts it and goes on.
    Run {
        command: Vec<String>,
        on: Option<Name>,
        background: bool,
        limit: std::time::Duration,
        may_fail: bool,
    },
    Wait(std::time::Duration),
    /// Sets values of links, all at one instant.
    Set(Vec<LinkValue>),
    /// Starts the traces of a group.
    Start(Name),
    /// Copies a file of a host to the directory of the run.
    Collect {
        file: String,
        on: Option<Name>,
    },
}

impl StepAction {
    /// The step as JSON; `fill` puts words in place of braces.
    pub(super) fn json(&self, fill: &dyn Fn(&str) -> String) -> Value {
        match self {
            StepAction::Run { command, on, background, limit, may_fail } => json!({
                "run": command.iter().map(|word| fill(word)).collect::<Vec<_>>(),
                "on": on.as_deref(),
                "background": background,
                "limit_s": limit.as_secs_f64(),
                "may_fail": may_fail,
            }),
            StepAction::Wait(time) => json!({ "wait_s": time.as_secs_f64() }),
            StepAction::Set(values) => {
                let value =
                    |LinkValue { link, key, value }: &LinkValue| (format!("{link}.{key}"), value.clone());
                json!({ "set": values.iter().map(value).collect::<BTreeMap<_, _>>() })
            }
            StepAction::Start(group) => json!({ "start": &**group }),
            StepAction::Collect { file, on } => json!({ "collect": fill(file), "on": on.as_deref() }),
        }
    }
}

impl ReplayInputs {
    /// As JSON: `in`, `out`, `until`.
    pub(super) fn json(&self) -> Value {
        let inputs: BTreeMap<&str, &str> =
            self.inputs.iter().map(|(host, file)| (&**host, &**file)).collect();
        let outputs: Vec<&str> = self.outputs.iter().map(|host| &**host).collect();
        json!({ "in": inputs, "out": outputs, "until": self.until.map(|end| end.to_string()) })
    }
}

/// A new value of a link: `"a-b.delay" = "50ms"`.
#[derive(Clone, Debug)]
pub(super) struct LinkValue {
    pub(super) link: Name,
    pub(super) key: String,
    pub(super) value: Value,
}
