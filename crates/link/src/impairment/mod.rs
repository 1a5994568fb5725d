//! Impairments: what a link does to packets besides queueing, sending and delaying them. One impairment,
//! one file, each with its `…Spec` (what is asked for) and, where it needs one, its state.

mod loss;

pub use loss::LossSpec;
