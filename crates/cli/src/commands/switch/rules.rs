//! The arguments that describe the switch, however it runs.

use clap::Args;
use fastpath::ofctl::PortNames;
use fastpath::switch::{Limits, Switch};
use std::path::PathBuf;

/// Rules and sizes of the switch.
#[derive(Args)]
pub(super) struct SwitchArgs {
    /// Read flows, groups and meters from this file, one per line, in ovs-ofctl syntax.
    #[arg(long, value_name = "FILE")]
    pub(super) rules: Option<PathBuf>,
    /// Number of tables, 1 to 254.
    #[arg(long, value_name = "N", default_value_t = 254, value_parser = clap::value_parser!(u8).range(1..=254))]
    tables: u8,
    /// Maximum number of flows in a table. Further flows are refused.
    #[arg(long, value_name = "N", default_value_t = Limits::default().flows)]
    flows: usize,
}

impl SwitchArgs {
    /// A switch without ports and rules.
    pub(super) fn switch(&self) -> Switch {
        Switch::new(Limits { tables: self.tables, flows: self.flows, ..Limits::default() })
    }

    /// Loads the rules, if there are any.
    pub(super) fn load(&self, switch: &mut Switch, names: &PortNames) -> anyhow::Result<()> {
        let Some(path) = &self.rules else { return Ok(()) };
        Ok(fastpath::switching::load_rules(switch, path, names)?)
    }
}
