//! The machines and programs that come with the crate: each file of `machines/` and `programs/`,
//! under its name. The files document their numbers.

use crate::machine::Machine;
use crate::parameter::Text;
use crate::program::Program;

// MACHINES and PROGRAMS, made by build.rs of the files.
include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// Returns the file of the machine `name`, if there is one. `ixp1200-egress2` is `ixp1200` with a
/// second egress microengine.
pub fn machine_text(name: &str) -> Option<Text> {
    if name == "ixp1200-egress2" {
        return machine_text("ixp1200")?.set("egress.engines", "2").ok();
    }
    let (name, text) = MACHINES.iter().find(|(n, _)| *n == name)?;
    Some(Text::new(format!("machines/{name}.toml"), *text))
}

/// Returns the file of the program `name`, if there is one.
pub fn program_text(name: &str) -> Option<Text> {
    let (name, text) = PROGRAMS.iter().find(|(n, _)| *n == name)?;
    Some(Text::new(format!("programs/{name}.toml"), *text))
}

/// Returns the machine `name`, if there is one.
pub fn machine(name: &str) -> Option<Machine> {
    Some(machine_text(name)?.machine().expect("shipped files are tested"))
}

/// Returns the program `name`, if there is one.
pub fn program(name: &str) -> Option<Program> {
    Some(program_text(name)?.program().expect("shipped files are tested"))
}
