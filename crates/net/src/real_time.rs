//! What a spec asks of a run in real time (`[engine]`): how late is too late, and what the threads
//! do. Virtual time needs none of it. The command line wins over it.

use fastpath_units::Duration;
use std::num::NonZeroUsize;

/// The `[engine]` table of a spec; what is not given is up to the engine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RealTime {
    /// How late a frame may be released; later ones break the run's promise.
    pub tolerance: Option<Duration>,
    /// What becomes of frames that are later.
    pub late: Option<Late>,
    /// What a worker does when nothing is due.
    pub idle: Option<Idle>,
    /// How many workers, and where.
    pub workers: Option<Workers>,
}

/// What becomes of a frame that is released later than tolerated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Late {
    /// It goes out late, and is counted.
    #[default]
    Deliver,
    /// It is dropped, and counted as `late`.
    Drop,
}

/// What a worker does when nothing is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Idle {
    /// Looks again at once: the most exact where it has a core to itself, which it takes whole.
    Busy,
    /// Sleeps until frames arrive or shortly before the next is due, then looks again and again.
    #[default]
    Save,
}

/// How many threads share the work, and on which cores they run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Workers {
    /// One for each part of the network that exchanges no frames with the rest, on at most half of
    /// the cores; wherever the system puts them.
    #[default]
    Auto,
    /// This many at most, each on a core of its own while there are enough.
    Count(NonZeroUsize),
    /// One for each of these cores.
    Cores(Vec<u32>),
}

impl Workers {
    /// How many, where that is said.
    pub fn asked(&self) -> Option<usize> {
        match self {
            Workers::Auto => None,
            Workers::Count(count) => Some(count.get()),
            Workers::Cores(cores) => Some(cores.len()),
        }
    }
}
