//! Impairments: what a link does to packets besides queueing, sending and delaying them. Each
//! impairment is one file with its parameters and its state.

mod bounded;
mod chance;
mod corrupt;
mod duplicate;
mod four_state;
mod gilbert_elliott;
mod jitter;
mod loss;
mod loss_plan;
mod reorder;
mod runs;

pub use bounded::Bounded;
pub(crate) use bounded::BoundedState;
pub use chance::Chance;
pub(crate) use chance::ChanceState;
pub(crate) use corrupt::Corruptor;
pub use corrupt::{ByteChange, CorruptSpec, Corruption};
pub use duplicate::Duplication;
pub(crate) use duplicate::Duplicator;
pub use four_state::FourState;
pub use gilbert_elliott::GilbertElliott;
pub(crate) use jitter::Jitter;
pub use jitter::{JitterCorrelation, JitterLaw, JitterSpec, Reorder};
pub(crate) use loss::Loss;
pub use loss::LossSpec;
pub use loss_plan::{LossPlan, Outage};
pub use reorder::ReorderSpec;
pub(crate) use reorder::Reorderer;
pub use runs::Runs;
