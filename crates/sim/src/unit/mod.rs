//! The types of units that a machine can be built of, one file each.
//!
//! A file `NAME.rs` has the description of a `[[NAME]]` in a machine file with its check
//! ([`UnitType`]), and its behaviour in a run ([`UnitModel`]). A new type is such a file and a line
//! in the list below. Append the line: the trace hash numbers units by the order of this list.

mod behaviour;
mod threads;

use crate::environment::{Environment, What};
use crate::keys;
use crate::outcome::Use;
use crate::queue::Full;
use behaviour::UnitModel;
pub(crate) use behaviour::{Setup, Surroundings, UnitType};
use fastpath_text::fields::Fields;
use fastpath_text::mistake::Remarks;
use fastpath_units::Time;

/// Makes modules, enums and calls of the list of types. A call goes through a `match`, so that the
/// path of an event has no dynamic dispatch.
macro_rules! unit_types {
    ($($key:ident: $Model:ident,)*) => {
        $(mod $key;)*

        /// A unit as a machine file describes it.
        #[derive(Clone, Debug)]
        pub(crate) enum UnitSpec {
            $($Model(<$key::$Model as UnitModel>::Spec),)*
        }

        impl UnitSpec {
            /// The description, whatever the type.
            pub(crate) fn get(&self) -> &dyn UnitType {
                match self { $(UnitSpec::$Model(spec) => spec,)* }
            }

            /// Returns the description of the unit, to be changed.
            pub(crate) fn get_mut(&mut self) -> &mut dyn UnitType {
                match self { $(UnitSpec::$Model(spec) => spec,)* }
            }

            /// The key of the type in a machine file.
            pub(crate) fn type_name(&self) -> &'static str {
                match self { $(UnitSpec::$Model(_) => stringify!($key),)* }
            }

            /// Calls `check` with the description of each type.
            #[cfg(test)]
            pub(crate) fn with_types(check: &mut crate::describe::tests::UnitCheck) {
                $(check.table::<<$key::$Model as UnitModel>::Spec>(stringify!($key));)*
            }

            /// The unit for a run.
            pub(crate) fn build(&self, setup: &Setup) -> Unit {
                match self { $(UnitSpec::$Model(spec) => Unit::$Model(UnitModel::new(spec, setup)),)* }
            }
        }

        /// Reads the units of a machine file, by type.
        pub(crate) fn read_units(fields: &mut Fields, remarks: &mut Remarks) -> Vec<UnitSpec> {
            let mut units = Vec::new();
            $(units.extend(keys::list(fields, stringify!($key), remarks).into_iter().map(UnitSpec::$Model));)*
            units
        }

        /// A unit in a run.
        #[allow(clippy::large_enum_variant)] // A machine has few units, and they are not moved.
        pub(crate) enum Unit {
            $($Model($key::$Model),)*
        }

        impl Unit {
            /// See [`UnitModel::offer`].
            pub(crate) fn offer(&mut self, env: &mut Environment, packet: u32) -> bool {
                match self { $(Unit::$Model(unit) => unit.offer(env, packet),)* }
            }

            /// See [`UnitModel::handle`].
            pub(crate) fn handle(&mut self, env: &mut Environment, what: What, server: u32) {
                match self { $(Unit::$Model(unit) => unit.handle(env, what, server),)* }
            }

            /// See [`UnitModel::release`].
            pub(crate) fn release(&mut self, env: &mut Environment, server: u32) {
                match self { $(Unit::$Model(unit) => unit.release(env, server),)* }
            }

            /// See [`UnitModel::full`].
            pub(crate) fn full(&self) -> Full {
                match self { $(Unit::$Model(unit) => unit.full(),)* }
            }

            /// See [`UnitModel::usage`].
            pub(crate) fn usage(&self, end: Time) -> Use {
                match self { $(Unit::$Model(unit) => unit.usage(end),)* }
            }

            /// See [`UnitModel::stranded`].
            pub(crate) fn stranded(&self, name: &str) -> Vec<String> {
                match self { $(Unit::$Model(unit) => unit.stranded(name),)* }
            }
        }
    };
}

unit_types! {
    station: Station,
    cores: Cores,
    microengine: Microengine,
    egress: Egress,
    line: Line,
    link: EmulatedLink,
    delay: DelayLine,
    nic: Nic,
    pcie: Pcie,
}
