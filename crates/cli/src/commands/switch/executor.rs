//! The executor that `fastpath switch` runs, and OpenFlow nodes of networks too.

use fastpath_jit::Compiled;
use fastpath_switch::{Executor, Planned, Switch};

/// Machine code of the tables; where none can be made, said on standard error, the interpreter with
/// the same plans.
pub(crate) fn executor(switch: &mut Switch) -> Box<dyn Executor> {
    match Compiled::new(switch) {
        Ok(compiled) => Box::new(compiled),
        Err(error) => {
            eprintln!("fastpath: {error}; going on with the interpreter");
            Box::new(Planned::new(switch))
        }
    }
}
