//! Impairments: what a link does to packets besides queueing, sending and delaying them. One impairment,
//! one file, each with what is asked for and, where it needs one, its state.

mod four_state;
mod gilbert_elliott;
mod loss;

pub use four_state::FourState;
pub use gilbert_elliott::GilbertElliott;
pub(crate) use loss::Loss;
pub use loss::LossSpec;
