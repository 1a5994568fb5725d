//! The executor that `fastpath switch` runs.

use fastpath_switch::{Executor, Planned, Switch};

/// The best executor there is for a switch.
pub(super) fn executor(switch: &mut Switch) -> Box<dyn Executor> {
    Box::new(Planned::new(switch))
}
