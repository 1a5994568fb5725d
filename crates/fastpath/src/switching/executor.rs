//! The executor of switches and of OpenFlow nodes in networks.

use fastpath_jit::Compiled;
use fastpath_net::Executors;
use fastpath_plan::Planned;
use fastpath_switch::{Executor, Switch};
use std::num::NonZeroUsize;

/// Returns machine code for the tables of a switch. Where none can be made, `notice` is called with
/// the reason and the interpreter runs the same plans.
pub fn executor(switch: &mut Switch, notice: &dyn Fn(&str)) -> Box<dyn Executor> {
    executor_for(switch, NonZeroUsize::MIN, notice)
}

/// Returns what [`executor`] does, for a data path of several workers. They interpret one at a time.
pub fn executor_for(switch: &mut Switch, workers: NonZeroUsize, notice: &dyn Fn(&str)) -> Box<dyn Executor> {
    match Compiled::for_workers(switch, workers) {
        Ok(compiled) => Box::new(compiled),
        Err(error) => {
            notice(&format!("{error}; continuing with the interpreter"));
            Box::new(Planned::new(switch))
        }
    }
}

/// Machine code for the tables of every OpenFlow node of a network; see [`executor`].
pub fn compiled(notice: impl Fn(&str) + Send + Sync + 'static) -> Executors {
    Executors::new(move |_, switch| executor(switch, &notice))
}
