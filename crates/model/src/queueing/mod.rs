//! Queues in steady state: described, solved by formula, and simulated.
//!
//! ```text
//! Queueing (system.rs) ─┬─▶ solve     formula.rs, finite.rs, priority.rs, closed.rs, percentile.rs
//!                       └─▶ simulate  simulate/: a seeded event simulation, with 95 % intervals
//! ```
//!
//! The formulas can be used alone: they are oracles for simulators and first estimates. Read
//! first: `formula.rs`, then `system.rs`.

pub mod closed;
pub mod finite;
mod formula;
mod percentile;
pub mod priority;
mod simulate;
mod solve;
mod spread;
mod system;
pub mod text;

pub use formula::{
    CUSTOMERS_MAX, Closed, QueueError, SERVERS_MAX, Steady, buzen, erlang_b, erlang_c, gm1, md1, mg1, mm1,
    mmc, mva, tandem,
};
pub use simulate::{SimulationOptions, simulate};
pub use solve::solve;
pub use spread::{LawSpread, Times};
pub use system::{
    Evidence, Percentile, PriorityClass, QueueAnswer, QueueFigures, QueueOutput, QueuePart, Queueing,
    ServerGroup,
};
