//! Rules that are valid and have no effect: a port or a table that is not there, a rule that
//! another one hides, a group that no rule uses.
//!
//! A controller may add what is missing later, so fewer of them are named beside one.

use crate::{FileRule, MISTAKES_MAX, RuleLine};
use fastpath_switch::Extension;
use fastpath_switch::action::Action;
use fastpath_switch::field::Field;
use fastpath_switch::flow::{FlowMod, Rank};
use fastpath_switch::group::GroupMod;
use fastpath_switch::port;
use std::collections::{BTreeMap, BTreeSet};

/// A table with more flows is not searched for flows that hide others: that takes time by the
/// square of their number.
const HIDING_MAX: usize = 1000;

/// A rule, or a word of it, without effect. Prints as `LINE: what`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Doubt {
    /// The line, counted from 1.
    pub line: usize,
    /// The word and why it has no effect.
    pub what: String,
}

/// What is known of the switch of the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchShape {
    /// Its ports have the numbers from 1 to this.
    pub ports: u32,
    /// Whether controllers add rules.
    pub has_controller: bool,
}

/// Returns the rules without effect, in the order of lines; at most 1000.
pub fn doubts(lines: &[RuleLine], shape: SwitchShape) -> Vec<Doubt> {
    let flows: Vec<(usize, &FlowMod)> =
        lines.iter().filter_map(|line| Some((line.number, flow(line)?))).collect();
    let extensions: Vec<&Extension> = lines.iter().flat_map(extensions).collect();
    let sets_port = extensions.iter().any(|extension| sets_port_of_entry(extension));
    let mut said = Said { shape, sets_port, found: Vec::new() };
    let learned = extensions.iter().filter_map(|extension| match extension {
        Extension::Learn(learn) => Some(learn.table),
        _ => None,
    });
    let tables: BTreeSet<u8> = flows.iter().map(|(_, flow)| flow.table_id).chain(learned).collect();
    for &(line, flow) in &flows {
        said.of_flow(line, flow, &tables);
    }
    for line in lines {
        if let FileRule::Group(group) = &line.rule {
            said.of_group(line.number, group);
        }
    }
    said.replaced(&flows);
    said.hidden(&flows);
    if !shape.has_controller {
        said.unreached(lines, &flows);
        said.unused(lines, &flows);
    }
    said.found.sort();
    said.found.dedup_by_key(|doubt| doubt.line);
    said.found.truncate(MISTAKES_MAX);
    said.found
}

fn flow(line: &RuleLine) -> Option<&FlowMod> {
    if let FileRule::Flow(flow) = &line.rule { Some(flow) } else { None }
}

/// Returns all actions of a rule, those inside others too.
fn actions(line: &RuleLine) -> Vec<&Action> {
    match &line.rule {
        FileRule::Flow(flow) => flow.instructions.actions().flat_map(Action::all).collect(),
        FileRule::Group(group) => {
            group.buckets.iter().flat_map(|bucket| &bucket.actions).flat_map(Action::all).collect()
        }
        FileRule::Meter(_) => Vec::new(),
    }
}

/// Returns the actions of Open vSwitch of a rule.
fn extensions(line: &RuleLine) -> Vec<&Extension> {
    let mut found = Vec::new();
    for action in actions(line) {
        if let Action::Extension(extension) = action {
            found.push(&**extension);
        }
    }
    found
}

/// Returns whether the port of entry in a lookup may be another than the one a packet came by.
fn sets_port_of_entry(extension: &Extension) -> bool {
    match extension {
        Extension::Resubmit { in_port, .. } => in_port.is_some(),
        Extension::Set { field, .. } => *field == Field::InPort,
        Extension::Move { to, .. } | Extension::Pop(to) => to.field == Field::InPort,
        _ => false,
    }
}

/// The port that every packet of the flow has entered by.
fn in_port(flow: &FlowMod) -> Option<u32> {
    let entered = flow.matching.field(Field::InPort)?;
    u32::try_from(entered.value).ok()
}

/// What was said so far.
struct Said {
    shape: SwitchShape,
    /// Whether some action makes another port that of entry.
    sets_port: bool,
    found: Vec<Doubt>,
}

impl Said {
    fn say(&mut self, line: usize, what: impl Into<String>) {
        self.found.push(Doubt { line, what: what.into() });
    }

    /// Whether an ordinary port is not there.
    fn is_absent(&self, port: u32) -> bool {
        port <= port::MAX && !(1..=self.shape.ports).contains(&port)
    }

    fn ports(&self) -> String {
        match self.shape.ports {
            0 => "the switch has no ports".to_owned(),
            1 => "the switch has port 1 only".to_owned(),
            ports => format!("the switch has ports 1 to {ports}"),
        }
    }

    fn of_flow(&mut self, line: usize, flow: &FlowMod, tables: &BTreeSet<u8>) {
        let entered = in_port(flow).filter(|_| !self.sets_port);
        if let Some(port) = entered.filter(|port| self.is_absent(*port)) {
            return self.say(line, format!("in_port={port} matches no frame: {}", self.ports()));
        }
        let instructions = &flow.instructions;
        self.of_outputs(line, instructions.apply.iter().chain(&instructions.write), entered);
        if let Some(table) = instructions.goto
            && !tables.contains(&table)
            && !self.shape.has_controller
        {
            self.say(line, format!("goto_table:{table} drops the packets: table {table} has no rules"));
        }
        // Written actions of an earlier table may send the packet later.
        let is_sent_later =
            instructions.goto.is_some() || !instructions.write.is_empty() || flow.table_id > 0;
        // What Open vSwitch has beyond the specification may send, or go on elsewhere.
        let is_output = |action: &Action| {
            matches!(action, Action::Output { .. } | Action::Group(_) | Action::Extension(_))
        };
        if let Some(last) = instructions.apply.iter().rposition(is_output)
            && let Some(action) = instructions.apply.get(last + 1)
            && !is_sent_later
        {
            let name = action.info().name;
            self.say(line, format!("{name} stands after the last output, so no packet has it"));
        }
    }

    fn of_outputs<'a>(
        &mut self,
        line: usize,
        actions: impl Iterator<Item = &'a Action>,
        entered: Option<u32>,
    ) {
        for action in actions {
            let port = match action {
                Action::Output { port, .. } => *port,
                Action::Extension(extension) => {
                    if let Extension::Sample { .. } = **extension {
                        self.say(line, "sample reports nothing: there is no collector here");
                    }
                    continue;
                }
                _ => continue,
            };
            if self.is_absent(port) {
                self.say(line, format!("output:{port} sends nothing: {}", self.ports()));
            } else if entered == Some(port) {
                // §5.12: the port of entry needs its reserved number.
                self.say(
                    line,
                    format!("output:{port} sends nothing back by the port of entry; write IN_PORT"),
                );
            }
        }
    }

    fn of_group(&mut self, line: usize, group: &GroupMod) {
        for (number, bucket) in group.buckets.iter().enumerate() {
            self.of_outputs(line, bucket.actions.iter(), None);
            if self.is_absent(bucket.watch_port) {
                let port = bucket.watch_port;
                self.say(
                    line,
                    format!("bucket {number} watches port {port} and is never used: {}", self.ports()),
                );
            }
        }
    }

    /// Names the flows that a later line replaces.
    fn replaced(&mut self, flows: &[(usize, &FlowMod)]) {
        let mut last: BTreeMap<(u8, Rank), usize> = BTreeMap::new();
        for &(line, flow) in flows {
            let rank = Rank::new(flow.priority, flow.matching.clone());
            if let Some(before) = last.insert((flow.table_id, rank), line) {
                self.say(
                    before,
                    format!("the rule of line {line} has the same match and priority and replaces it"),
                );
            }
        }
    }

    /// Names the flows that match only packets that another flow takes first.
    fn hidden(&mut self, flows: &[(usize, &FlowMod)]) {
        let mut by_table: BTreeMap<u8, Vec<(Rank, usize, &FlowMod)>> = BTreeMap::new();
        for &(line, flow) in flows {
            let rank = Rank::new(flow.priority, flow.matching.clone());
            by_table.entry(flow.table_id).or_default().push((rank, line, flow));
        }
        for mut table in by_table.into_values().filter(|table| table.len() <= HIDING_MAX) {
            table.sort_by(|a, b| a.0.cmp(&b.0));
            for (place, (rank, line, flow)) in table.iter().enumerate() {
                let stays = |other: &FlowMod| other.idle_timeout == 0 && other.hard_timeout == 0;
                let hides = |(other, _, by): &&(Rank, usize, &FlowMod)| {
                    other != rank
                        && stays(by)
                        && !by.instructions.is_clause()
                        && flow.matching.is_within(&by.matching)
                };
                if let Some((_, by, _)) = table[..place].iter().find(hides) {
                    self.say(*line, format!("it matches no packet: the rule of line {by} takes them first"));
                }
            }
        }
    }

    /// Names the flows of tables that no packet gets to.
    fn unreached(&mut self, lines: &[RuleLine], flows: &[(usize, &FlowMod)]) {
        let mut reached = BTreeSet::from([0]);
        loop {
            let before = reached.len();
            for line in lines {
                let table = flow(line).map(|flow| flow.table_id);
                // Packets of every table may get to a group.
                if table.is_none_or(|table| reached.contains(&table)) {
                    reached.extend(flow(line).and_then(|flow| flow.instructions.goto));
                    reached.extend(extensions(line).into_iter().filter_map(resubmitted));
                }
            }
            if reached.len() == before {
                break;
            }
        }
        for (line, flow) in flows.iter().filter(|(_, flow)| !reached.contains(&flow.table_id)) {
            let table = flow.table_id;
            self.say(*line, format!("it matches no packet: no rule leads to table {table}"));
        }
    }

    /// Names the groups and meters that nothing uses.
    fn unused(&mut self, lines: &[RuleLine], flows: &[(usize, &FlowMod)]) {
        let groups_of = |actions: &[Action]| actions.iter().flat_map(Action::groups).collect::<Vec<u32>>();
        let (mut groups, mut meters) = (BTreeSet::new(), BTreeSet::new());
        for (_, flow) in flows {
            groups.extend(groups_of(&flow.instructions.apply));
            groups.extend(groups_of(&flow.instructions.write));
            meters.extend(flow.instructions.meter);
        }
        for line in lines {
            if let FileRule::Group(group) = &line.rule {
                groups.extend(group.buckets.iter().flat_map(|bucket| groups_of(&bucket.actions)));
            }
        }
        for line in lines {
            match &line.rule {
                FileRule::Group(group) if !groups.contains(&group.id) => {
                    self.say(line.number, format!("no rule sends packets to group {}", group.id));
                }
                FileRule::Meter(meter) if !meters.contains(&meter.id) => {
                    self.say(line.number, format!("no rule uses meter {}", meter.id));
                }
                _ => {}
            }
        }
    }
}

/// The table that an action sends packets to.
fn resubmitted(extension: &Extension) -> Option<u8> {
    match extension {
        Extension::Resubmit { table, .. } => *table,
        Extension::Ct(ct) => ct.table,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PortNames, parse};

    fn said(rules: &str, has_controller: bool) -> Vec<String> {
        let lines = parse(rules, &PortNames::new()).expect("valid rules");
        let doubts = doubts(&lines, SwitchShape { ports: 2, has_controller });
        doubts.into_iter().map(|doubt| format!("{}: {}", doubt.line, doubt.what)).collect()
    }

    #[test]
    fn a_rule_without_effect_is_named() {
        for (rules, expected) in [
            ("actions=output:77", "1: output:77 sends nothing: the switch has ports 1 to 2"),
            ("actions=write_actions(output:3)", "1: output:3 sends nothing"),
            ("in_port=9,actions=output:1", "1: in_port=9 matches no frame"),
            ("in_port=1,actions=output:1,output:2", "1: output:1 sends nothing back"),
            ("actions=goto_table:9", "1: goto_table:9 drops the packets: table 9 has no rules"),
            (
                "actions=output:1\ntable=4,actions=output:2",
                "2: it matches no packet: no rule leads to table 4",
            ),
            ("group_id=1,type=all,bucket=output:77\nactions=group:1", "1: output:77 sends nothing"),
            (
                "group_id=1,type=ff,bucket=watch_port:7,output:1\nactions=group:1",
                "1: bucket 0 watches port 7",
            ),
            ("group_id=1,type=all,bucket=output:1\nactions=output:1", "1: no rule sends packets to group 1"),
            ("meter=1,kbps,bands=type=drop,rate=9\nactions=output:1", "1: no rule uses meter 1"),
            ("ip,actions=output:1\nip,actions=output:2", "1: the rule of line 2 has the same match"),
            (
                "priority=5,ip,actions=drop\npriority=1,tcp,actions=output:1",
                "2: it matches no packet: the rule of line 1",
            ),
            ("actions=output:1,dec_ttl", "1: dec_ttl stands after the last output"),
            (
                "actions=resubmit(,1)\ntable=1,actions=output:1\ntable=2,actions=output:1",
                "3: it matches no packet: no rule leads to table 2",
            ),
            ("actions=sample(probability=9),output:1", "1: sample reports nothing"),
        ] {
            let said = said(rules, false);
            assert!(said.len() == 1 && said[0].starts_with(expected), "{rules}: {said:#?}");
        }
    }

    #[test]
    fn a_rule_with_an_effect_is_not_named() {
        for rules in [
            "in_port=1,actions=output:2\nin_port=2,actions=IN_PORT\npriority=0,actions=FLOOD",
            "actions=goto_table:3\ntable=3,actions=goto_table:9\ntable=9,actions=NORMAL",
            "group_id=1,type=all,bucket=output:1\ngroup_id=2,type=all,bucket=group:1\nactions=group:2",
            // The first one goes after a while.
            "priority=5,ip,hard_timeout=3,actions=drop\npriority=1,tcp,actions=output:1",
            "priority=1,ip,actions=drop\npriority=5,tcp,actions=output:1",
            "actions=output:1,dec_ttl,goto_table:1\ntable=1,actions=output:2",
            "actions=LOCAL",
            "actions=resubmit(9,5)\ntable=5,in_port=9,actions=clone(resubmit(,2))\ntable=2,actions=output:1",
            "actions=output:1,load:1->NXM_NX_REG0[],resubmit(,2)\ntable=2,reg0=1,actions=output:2",
            "actions=goto_table:1\npriority=40000,arp,actions=learn(table=1,NXM_OF_ETH_DST[])",
            "priority=9,ip,actions=conjunction(1,1/2)\npriority=9,in_port=1,actions=conjunction(1,2/2)\n\
             ip,conj_id=1,actions=output:2\npriority=1,tcp,actions=output:1",
        ] {
            assert_eq!(said(rules, false), [""; 0], "{rules}");
        }
        // A controller adds rules; it adds no ports.
        assert_eq!(said("actions=goto_table:9\ntable=4,actions=output:2", true), [""; 0]);
        assert_eq!(said("actions=output:7", true).len(), 1);
    }
}
