//! The variables that a lab sets in the environment of its programs.

/// The environment variable with the name of the lab.
pub(crate) const LAB: &str = "FASTPATH_LAB";
/// The environment variable with the directory of the labs' state.
pub(crate) const DIRECTORY: &str = "FASTPATH_STATE_DIR";
