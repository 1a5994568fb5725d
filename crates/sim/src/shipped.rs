//! The machines and programs that come with the crate. Their files are the documentation of their
//! numbers.

use crate::machine::Machine;
use crate::parameter::Text;
use crate::program::Program;

/// Name and text of each machine file.
pub const MACHINES: [(&str, &str); 7] = [
    ("cn6880", include_str!("../machines/cn6880.toml")),
    ("cn6880-pair", include_str!("../machines/cn6880-pair.toml")),
    ("ixp1200", include_str!("../machines/ixp1200.toml")),
    ("pc-850mhz-dummynet", include_str!("../machines/pc-850mhz-dummynet.toml")),
    ("xeon-e5-2687wv4", include_str!("../machines/xeon-e5-2687wv4.toml")),
    ("xeon-e5-2687wv4-smartnic", include_str!("../machines/xeon-e5-2687wv4-smartnic.toml")),
    ("xeon-e5-2699v3", include_str!("../machines/xeon-e5-2699v3.toml")),
];

/// Name and text of each program file.
pub const PROGRAMS: [(&str, &str); 9] = [
    ("cn-forward", include_str!("../programs/cn-forward.toml")),
    ("comm-latency", include_str!("../programs/comm-latency.toml")),
    ("dummynet", include_str!("../programs/dummynet.toml")),
    ("ixp-bridge", include_str!("../programs/ixp-bridge.toml")),
    ("l2-forward", include_str!("../programs/l2-forward.toml")),
    ("l3-forward", include_str!("../programs/l3-forward.toml")),
    ("linkem", include_str!("../programs/linkem.toml")),
    ("netcope", include_str!("../programs/netcope.toml")),
    ("netcope-offload", include_str!("../programs/netcope-offload.toml")),
];

/// The file of the machine called `name`, if there is one. `ixp1200-egress2` is `ixp1200` with a
/// second egress microengine.
pub fn machine_text(name: &str) -> Option<Text> {
    if name == "ixp1200-egress2" {
        return machine_text("ixp1200")?.set("egress.engines", "2").ok();
    }
    let (name, text) = MACHINES.iter().find(|(n, _)| *n == name)?;
    Some(Text::new(format!("machines/{name}.toml"), *text))
}

/// The file of the program called `name`, if there is one.
pub fn program_text(name: &str) -> Option<Text> {
    let (name, text) = PROGRAMS.iter().find(|(n, _)| *n == name)?;
    Some(Text::new(format!("programs/{name}.toml"), *text))
}

/// The machine called `name`, if there is one.
pub fn machine(name: &str) -> Option<Machine> {
    Some(machine_text(name)?.machine().expect("shipped files are tested"))
}

/// The program called `name`, if there is one.
pub fn program(name: &str) -> Option<Program> {
    Some(program_text(name)?.program().expect("shipped files are tested"))
}
