//! `fastpath switch explain`: the structures made from tables, and the path of one packet.

use super::rules::SwitchArgs;
use crate::{Answer, view};
use anyhow::ensure;
use clap::Args;
use fastpath::ofctl::PortNames;
use fastpath::switching::{explain, number_ports};

/// Show the machine code of tables, and the path of a packet.
#[derive(Args)]
pub(super) struct Explain {
    #[command(flatten)]
    switch: SwitchArgs,
    /// Show the path of this packet: fields as in a rule (in_port=1,tcp,nw_dst=10.0.0.1,tp_dst=80),
    /// or a frame in hexadecimal.
    #[arg(long, alias = "trace", value_name = "PACKET")]
    packet: Option<String>,
    /// Declare a port that rules and packets name, as for `fastpath switch`. May be repeated. The
    /// order decides the numbers.
    #[arg(long = "port", value_name = "NAME")]
    ports: Vec<String>,
    /// Number of the port on which a frame in hexadecimal arrives.
    #[arg(long, value_name = "N", default_value_t = 1)]
    in_port: u32,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        ensure!(self.switch.rules.is_some(), "nothing to explain: give --rules FILE");
        let mut switch = self.switch.switch();
        let names =
            self.ports.iter().map(|port| port.split_once('=').map_or(port.as_str(), |(name, _)| name));
        let numbers = number_ports(names)?;
        let names: PortNames = numbers.into_iter().map(|(number, name)| (name.to_owned(), number)).collect();
        self.switch.load(&mut switch, &names)?;
        let explanation = explain(&mut switch, &names, self.packet.as_deref(), self.in_port)?;
        view::print(&explanation, self.json)?;
        Ok(Answer::Yes)
    }
}
