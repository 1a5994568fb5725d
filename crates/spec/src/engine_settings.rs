//! `[engine]`: the settings of a run in real time: the lateness tolerance, and the threads. A run
//! in virtual time ignores them. The command line overrides them.
//!
//! ```toml
//! [engine]
//! # a frame released later breaks the run: it exits with 1 and names the links
//! tolerance = "1ms"
//! late      = "deliver"   # or "drop": what becomes of such a frame
//! idle      = "save"      # or "busy": poll instead of sleeping; "sleep": never poll
//! workers   = "auto"      # or a number of threads, or the cores they run on: [1, 3]
//! memory    = "256MiB"    # the most for frames in the network; absent: 1GiB, or half of the cgroup's limit
//! data_path = "auto"      # or "kernel", "user": where links and switches run that hold no frame
//! ```

use crate::fields::{Field, Fields};
use crate::mistake::{Remarks, nearest};
use crate::schema_parts;
use crate::tree::Tree;
use crate::write::text;
use fastpath_units::{Bytes, Duration};
use serde_json::{Map, Value, json};
use std::num::NonZeroUsize;

/// The `[engine]` table of a spec. The engine has a default for each key that is not given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EngineSettings {
    /// The lateness with which a frame may be released. A run with later frames fails.
    pub tolerance: Option<Duration>,
    /// The action on later frames.
    pub late: Option<Late>,
    /// What a worker does when nothing is due.
    pub idle: Option<Idle>,
    /// How many workers, and where.
    pub workers: Option<Workers>,
    /// The most memory for frames in the network, bytes.
    pub memory: Option<NonZeroUsize>,
    /// Where links and switches run that hold no frame.
    pub data_path: Option<DataPathChoice>,
}

/// Where links and switches of a lab run that hold no frame: no rate, no delay, no queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DataPathChoice {
    /// In the kernel where that changes nothing that programs or counters show, and where this
    /// process may program the kernel.
    #[default]
    Auto,
    /// In the kernel; what acts on single segments then makes the interfaces send no super-packets.
    Kernel,
    /// In the engine, as everything else.
    User,
}

impl DataPathChoice {
    /// The words of descriptions and of the command line.
    pub const WORDS: [(&str, DataPathChoice); 3] =
        [("auto", DataPathChoice::Auto), ("kernel", DataPathChoice::Kernel), ("user", DataPathChoice::User)];

    /// Returns its word.
    pub fn word(self) -> &'static str {
        DataPathChoice::WORDS[self as usize].0
    }
}

/// The action on a frame that is released later than tolerated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Late {
    /// The frame is sent late and counted.
    #[default]
    Deliver,
    /// The frame is dropped and counted as `late`.
    Drop,
}

/// What a worker does when nothing is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Idle {
    /// Polls without sleeping: lowest lateness, one full core per worker.
    Busy,
    /// Sleeps until frames arrive or until shortly before the next frame is due, then polls.
    #[default]
    Save,
    /// Sleeps until frames arrive or the next frame is due: least power, and a frame is as late as
    /// the sleep of the kernel. `Save` becomes this in virtual time, where sleeps end exactly on
    /// time.
    Sleep,
}

/// The words of descriptions.
const IDLE: [(&str, Idle); 3] = [("busy", Idle::Busy), ("save", Idle::Save), ("sleep", Idle::Sleep)];

/// How many threads share the work, and on which cores they run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Workers {
    /// As many as pay off, at most half as many as there are cores: one for each part of the
    /// network that exchanges no frames with the rest, or for each part of a network that is cut at
    /// links with a delay; a lab, which may change, is cut only on request. The system places
    /// them.
    #[default]
    Auto,
    /// At most this many, each on its own core while there are enough cores.
    Count(NonZeroUsize),
    /// One on each of these cores.
    Cores(Vec<u32>),
}

impl Workers {
    /// Returns the number of workers, if it is given.
    pub fn asked(&self) -> Option<usize> {
        match self {
            Workers::Auto => None,
            Workers::Count(count) => Some(count.get()),
            Workers::Cores(cores) => Some(cores.len()),
        }
    }
}

/// Each size of frames takes 64 KiB at a time.
const MEMORY_MIN: Bytes = Bytes(4 << 20);
/// More workers than any machine has cores.
const WORKERS_MAX: u64 = 1024;

pub(crate) fn read(mut fields: Fields, remarks: &mut Remarks) -> EngineSettings {
    let tolerance = fields.get("tolerance").and_then(|field| tolerance(&field, remarks));
    let late = fields
        .get("late")
        .and_then(|field| word(&field, [("deliver", Late::Deliver), ("drop", Late::Drop)], remarks));
    let idle = fields.get("idle").and_then(|field| word(&field, IDLE, remarks));
    let workers = fields.get("workers").and_then(|field| workers(&field, remarks));
    let memory = fields.get("memory").and_then(|field| {
        let read = memory(field.text("256MiB", remarks)?);
        read.map_err(|(what, instead)| remarks.mistake(field.at, what, instead)).ok()
    });
    let data_path = fields.get("data_path").and_then(|field| word(&field, DataPathChoice::WORDS, remarks));
    fields.finish(remarks);
    EngineSettings { tolerance, late, idle, workers, memory, data_path }
}

/// Reads the most memory for frames.
///
/// # Errors
/// What is wrong, and what to write.
pub fn memory(text: &str) -> Result<NonZeroUsize, (String, String)> {
    let instead = || format!("write at least {MEMORY_MIN}, for example \"256MiB\"");
    let bytes: Bytes = text.parse().map_err(|_| (format!("'{text}' is not a size in bytes"), instead()))?;
    let memory = usize::try_from(bytes.0).ok().and_then(NonZeroUsize::new);
    let memory = memory.filter(|memory| memory.get() as u64 >= MEMORY_MIN.0);
    memory.ok_or_else(|| (format!("{bytes} of memory is too little for frames"), instead()))
}

fn tolerance(field: &Field, remarks: &mut Remarks) -> Option<Duration> {
    let tolerance: Duration = field.quantity("1ms", remarks)?;
    if tolerance == Duration::ZERO {
        remarks.mistake(field.at, "a tolerance of 0 cannot be held", "write tolerance = \"1ms\"");
        return None;
    }
    Some(tolerance)
}

fn word<T: Copy, const N: usize>(field: &Field, words: [(&str, T); N], remarks: &mut Remarks) -> Option<T> {
    let text = field.text(words[0].0, remarks)?;
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    if found.is_none() {
        let names = words.map(|(word, _)| word);
        let meant = nearest(text, names.iter().copied()).map(|meant| format!("write \"{meant}\""));
        let all = || format!("write \"{}\"", names.join("\" or \""));
        remarks.mistake(
            field.at,
            format!("'{text}' is not a value of {}", field.key),
            meant.unwrap_or_else(all),
        );
    }
    found
}

fn workers(field: &Field, remarks: &mut Remarks) -> Option<Workers> {
    if let Some(elements) = field.elements() {
        let cores: Vec<u32> = elements
            .iter()
            .filter_map(|core| core.whole(0..=WORKERS_MAX, remarks))
            .map(|core| core as u32)
            .collect();
        if cores.is_empty() {
            remarks.mistake(field.at, "workers is an empty list", "write workers = [0], or \"auto\"");
            return None;
        }
        return Some(Workers::Cores(cores));
    }
    if matches!(field.value, Tree::Text(_)) {
        return word(field, [("auto", ())], remarks).map(|()| Workers::Auto);
    }
    let count = field.whole(1..=WORKERS_MAX, remarks)?;
    NonZeroUsize::new(count as usize).map(Workers::Count)
}

impl EngineSettings {
    /// Writes the settings that are given.
    pub(crate) fn write(&self) -> Value {
        let mut table = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                table.insert(key.to_owned(), value);
            }
        };
        put("tolerance", self.tolerance.as_ref().map(text));
        put("late", self.late.map(|late| json!(if late == Late::Drop { "drop" } else { "deliver" })));
        let idle = self.idle.and_then(|idle| IDLE.iter().find(|(_, known)| *known == idle));
        put("idle", idle.map(|(word, _)| json!(word)));
        put(
            "workers",
            self.workers.as_ref().map(|workers| match workers {
                Workers::Auto => json!("auto"),
                Workers::Count(count) => json!(count),
                Workers::Cores(cores) => json!(cores),
            }),
        );
        put("memory", self.memory.map(|memory| json!(Bytes(memory.get() as u64).to_string())));
        put("data_path", self.data_path.map(|choice| json!(choice.word())));
        Value::Object(table)
    }
}

/// The schema of the engine's settings.
pub(crate) fn schema() -> Value {
    let cores = json!({ "type": "array", "items": { "type": "integer", "minimum": 0 }, "minItems": 1 });
    let count = json!({ "type": "integer", "minimum": 1, "maximum": WORKERS_MAX });
    let all = schema_parts::properties([
        ("tolerance", "How late a frame may be released.", schema_parts::reference("duration")),
        ("late", "The action on frames that are released later.", json!({ "enum": ["deliver", "drop"] })),
        ("idle", "What a worker does when nothing is due.", json!({ "enum": IDLE.map(|(word, _)| word) })),
        (
            "workers",
            "How many threads, or their cores.",
            json!({ "anyOf": [{ "const": "auto" }, count, cores] }),
        ),
        ("memory", "The most memory for frames in the network.", json!({ "type": "string" })),
        (
            "data_path",
            "Where links and switches of a lab run that hold no frame.",
            json!({ "enum": DataPathChoice::WORDS.map(|(word, _)| word) }),
        ),
    ]);
    schema_parts::table(all, &[])
}
