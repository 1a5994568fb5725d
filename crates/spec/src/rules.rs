//! The rules of OpenFlow nodes: parsed and checked against the ports of their node.
//!
//! Interface `i` is port `i + 1`. A rule may also call a port by the name of the node at the other
//! end of its link.

use crate::node_kind::NodeKind;
use crate::topology::{NodeId, Topology};
use fastpath_ofctl::{self as ofctl, Mistakes, PortNames};
use fastpath_switch::{Limits, Port, Switch};
use fastpath_units::Time;

impl Topology {
    /// Sets the rules of an OpenFlow node, in the syntax of ovs-ofctl.
    ///
    /// # Errors
    /// Every mistake in the rules. The node keeps its rules then.
    pub fn set_rules(&mut self, node: NodeId, text: &str) -> Result<(), Mistakes> {
        let interfaces = &self.node(node).interfaces;
        let named = (1..).zip(interfaces).map(|(number, interface)| {
            let (far, _) = self.peer(interface);
            (self.node(far).name.clone(), number)
        });
        let names: PortNames = named.collect();
        let parsed = ofctl::parse(text, &names)?;
        let count = interfaces.len();
        ofctl::load(&mut switch(count), Time::ZERO, &parsed)?;
        if let NodeKind::OpenFlow { rules, lines, .. } = &mut self.nodes[node.0 as usize].kind {
            (*rules, *lines) = (text.to_owned(), parsed);
        }
        Ok(())
    }
}

/// Returns a switch with ports 1 to `ports`, all up, and no rules.
pub fn switch(ports: usize) -> Switch {
    let mut switch = Switch::new(Limits::default());
    (1..=ports as u32).for_each(|number| switch.set_port(number, Port::up()));
    switch
}
