//! The specification of a pipe, executable: slow, obvious, and written independently of the pipes.
//!
//! Every departure is a separate event. Times are exact fractions, computed from d = max(d of the
//! frame before, arrival) + bits/rate. The queue and the delay line are lists. Each discipline
//! follows the pseudocode of its RFC or paper line by line, in a file of its own. Tests compare the
//! fast code with this.
//!
//! [`Oracle`] covers the disciplines that decide at arrival, with changes of parameters. [`run()`]
//! covers those that decide at dequeue.

mod cross;
mod discipline;
mod exact;
mod pipe;
mod run;

use crate::qdisc::QueueSpec;

pub use cross::cross_arrivals;
pub use pipe::Oracle;
pub use run::run;

macro_rules! define_oracles {
    ($($module:ident: $Variant:ident($Spec:ident) => $Place:ident<$Queue:ident>, $doc:literal;)*) => {
        $(mod $module;)*

        /// Returns the oracle of a discipline.
        fn discipline_oracle(spec: &QueueSpec) -> discipline::DisciplineOracle {
            match spec {
                $(QueueSpec::$Variant(spec) => $module::oracle(spec),)*
            }
        }
    };
}

for_each_discipline!(define_oracles);
