//! Loads OpenFlow rules and shows the path of one packet through them.

use fastpath::ofctl::{self, PortNames};
use fastpath::switch::{Limits, Switch};
use fastpath::switching::{explain, number_ports};
use fastpath::units::Time;

const RULES: &str = "
priority=10,tcp,tp_dst=80,actions=dec_ttl,output:p2
priority=0,actions=drop
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers = number_ports(["p1", "p2"])?;
    let names: PortNames = numbers.into_iter().map(|(number, name)| (name.to_owned(), number)).collect();
    let mut switch = Switch::new(Limits::default());
    let rules = ofctl::parse(RULES, &names)?;
    ofctl::load(&mut switch, Time::ZERO, &rules)?;
    let packet = "in_port=1,tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_dst=80";
    println!("{}", explain(&mut switch, &names, Some(packet), 1)?);
    Ok(())
}
