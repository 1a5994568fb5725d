//! Templates: the instructions of rules as lists of operations that many rules share, with operands
//! of each rule's own.
//!
//! ```text
//!  912 routes ─▶ one template: SetField eth_dst, SetField eth_src, DecNwTtl, output
//!                912 rows: [template, mac, mac, port]
//! ```
//!
//! Code is generated once per template. A rule is a row of numbers, so a rule of a known template
//! needs no new code. Instructions that no operation expresses, and templates beyond the limits on
//! number and length, are template 0: "execute the rule in Rust".

use fastpath_switch::flow::ClearActions;
use fastpath_switch::{Action, ActionSet, Field, Instructions, port};
use std::collections::BTreeMap;

/// The most operations of one template; longer lists are executed in Rust.
const OPS_MAX: usize = 24;
/// The most templates in one table's code, which bounds its size.
const TEMPLATES_MAX: usize = 32;
/// Ports with numbers below this have their counters in an array that generated code indexes.
pub(crate) const PORTS: u32 = 1024;
/// The template of rules that Rust executes.
pub(crate) const GENERIC: u32 = 0;

/// An operation. Its operands are the next ones of the rule's row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Op {
    /// Apply the meter of the rule.
    Meter,
    /// Set a field for which [`is_inline`] holds; operand: the value.
    Set(Field),
    /// Set the tunnel id; operand: the value.
    Tunnel,
    /// Decrement the IP TTL.
    DecNwTtl,
    /// Set the queue; operand: its number.
    Queue,
    /// Send a copy to a port, a group or the controllers. The frame stays as it is; operand: number
    /// of an action.
    Emit,
    /// Any other action; operand: number of an action.
    Act,
    /// Clear and write the action set as the rule says.
    Write,
    /// Write the metadata; operands: value and mask.
    Metadata,
}

/// The end of a template.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum TemplateEnd {
    /// Continue in a later table.
    Goto(u8),
    /// Send the frame out of an ordinary port: the last of the applied actions; operand: its
    /// number. There is no tail then.
    Output,
    /// Send the frame out of an ordinary port, which the written actions name; operand: its number.
    WrittenOutput,
    /// Nothing more.
    Nothing,
}

/// A list of operations.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Template {
    /// The instructions before the action set.
    pub(crate) ops: Vec<Op>,
    /// For rules that end the pipeline: the action set that they write, if it was empty before.
    pub(crate) tail: Vec<Op>,
    /// The end.
    pub(crate) end: TemplateEnd,
    /// Whether the action set that earlier tables wrote is executed.
    pub(crate) set: SetBefore,
}

/// The treatment of an action set that earlier tables wrote.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum SetBefore {
    /// It is executed at the end, by Rust.
    Counts,
    /// The rule clears it.
    Cleared,
}

/// The actions that rows name by number, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arena {
    pub(crate) actions: Vec<Action>,
    numbers: BTreeMap<Action, u64>,
}

/// The templates of one table. Number 0 is [`GENERIC`]; `list[n]` is number n + 1.
#[derive(Clone, Debug, Default)]
pub(crate) struct Templates {
    pub(crate) list: Vec<Template>,
    numbers: BTreeMap<Template, u32>,
}

impl Arena {
    /// Returns the action of a number.
    pub(crate) fn get(&self, number: u64) -> Option<Action> {
        self.actions.get(number as usize).cloned()
    }

    fn number(&mut self, action: Action) -> u64 {
        *self.numbers.entry(action.clone()).or_insert_with(|| {
            self.actions.push(action);
            self.actions.len() as u64 - 1
        })
    }
}

impl Templates {
    /// Returns the number of a template, which is added if there is room; else [`GENERIC`].
    pub(crate) fn add(&mut self, template: Template) -> u32 {
        if let Some(number) = self.numbers.get(&template) {
            return *number;
        }
        if self.list.len() == TEMPLATES_MAX {
            return GENERIC;
        }
        self.list.push(template.clone());
        let number = self.list.len() as u32;
        self.numbers.insert(template, number);
        number
    }
}

impl Template {
    /// Returns the template of instructions and their operands; `None` if there are too many for a
    /// template.
    pub(crate) fn of(instructions: &Instructions, arena: &mut Arena) -> Option<(Template, Vec<u64>)> {
        // Generated code has no registers and no stack.
        // A packet-in says whether the action set sent it.
        let is_packet_in = |action: &Action| matches!(action, Action::Output { port: port::CONTROLLER, .. });
        if !instructions.actions().all(Action::is_standard) || instructions.write.iter().any(is_packet_in) {
            return None;
        }
        let mut operands = Vec::new();
        let mut ops = Vec::new();
        if instructions.meter.is_some() {
            ops.push(Op::Meter);
        }
        let is_last = instructions.goto.is_none();
        let written: Vec<Action> = if is_last {
            ActionSet::of(&instructions.write).in_order().cloned().collect()
        } else {
            Vec::new()
        };
        let (apply, mut end) = match instructions.apply.split_last() {
            Some((last, rest)) if is_last && written.is_empty() && ordinary_port(last).is_some() => {
                (rest, ordinary_port(last))
            }
            _ => (&instructions.apply[..], None),
        };
        apply.iter().for_each(|action| ops.push(op(action, arena, &mut operands)));
        if !is_last && (instructions.clear == ClearActions::Clear || !instructions.write.is_empty()) {
            ops.push(Op::Write);
        }
        if let Some(write) = instructions.metadata {
            ops.push(Op::Metadata);
            operands.extend([write.value, write.mask]);
        }
        let mut output = TemplateEnd::Output;
        let written = match written.split_last() {
            Some((last, rest)) if ordinary_port(last).is_some() => {
                (end, output) = (ordinary_port(last), TemplateEnd::WrittenOutput);
                rest
            }
            _ => &written[..],
        };
        let tail: Vec<Op> = written.iter().map(|action| op(action, arena, &mut operands)).collect();
        operands.extend(end.map(u64::from));
        let end = match (instructions.goto, end) {
            (Some(table), _) => TemplateEnd::Goto(table),
            (None, Some(_)) => output,
            (None, None) => TemplateEnd::Nothing,
        };
        let set = match instructions.clear {
            ClearActions::Clear => SetBefore::Cleared,
            ClearActions::Keep => SetBefore::Counts,
        };
        let is_short = ops.len() + tail.len() <= OPS_MAX;
        is_short.then_some((Template { ops, tail, end, set }, operands))
    }

    /// Returns all operations.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Op> {
        self.ops.iter().chain(&self.tail)
    }
}

/// Returns whether generated code sets the field itself, in packets that it has parsed itself.
pub(crate) fn is_inline(field: Field) -> bool {
    matches!(
        field,
        Field::EthDst
            | Field::EthSrc
            | Field::Ipv4Src
            | Field::Ipv4Dst
            | Field::TcpSrc
            | Field::TcpDst
            | Field::UdpSrc
            | Field::UdpDst
    )
}

fn ordinary_port(action: &Action) -> Option<u32> {
    match action {
        Action::Output { port, .. } if *port < PORTS => Some(*port),
        _ => None,
    }
}

fn op(action: &Action, arena: &mut Arena, operands: &mut Vec<u64>) -> Op {
    let (op, operand) = match *action {
        Action::DecNwTtl => return Op::DecNwTtl,
        Action::SetField(Field::TunnelId, value) => (Op::Tunnel, value as u64),
        Action::SetField(field, value) if is_inline(field) => (Op::Set(field), value as u64),
        Action::SetQueue(queue) => (Op::Queue, queue.into()),
        Action::Output { .. } | Action::Group(_) => (Op::Emit, arena.number(action.clone())),
        _ => (Op::Act, arena.number(action.clone())),
    };
    operands.push(operand);
    op
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_to_many_next_hops_share_one_template() {
        let (mut arena, mut templates) = (Arena::default(), Templates::default());
        for hop in 0..100u32 {
            let apply =
                [Action::SetField(Field::EthDst, hop.into()), Action::DecNwTtl, Action::output(1 + hop % 4)];
            let (template, operands) = Template::of(&Instructions::apply(apply), &mut arena).unwrap();
            assert_eq!(operands, [u64::from(hop), u64::from(1 + hop % 4)]);
            assert_eq!(templates.add(template), 1);
        }
        assert!(arena.actions.is_empty());
    }

    #[test]
    fn a_copy_before_the_last_output_is_an_action_of_its_own() {
        let apply = [Action::output(1), Action::PushVlan(0x8100), Action::output(1)];
        let mut arena = Arena::default();
        let (template, operands) = Template::of(&Instructions::apply(apply), &mut arena).unwrap();
        assert_eq!(template.ops, [Op::Emit, Op::Act]);
        assert_eq!((template.end, operands), (TemplateEnd::Output, vec![0, 1, 1]));
    }

    #[test]
    fn templates_beyond_the_bound_are_executed_in_rust() {
        let mut templates = Templates::default();
        let numbers: Vec<u32> = (0..40)
            .map(|i| {
                let end = TemplateEnd::Goto(i);
                templates.add(Template { ops: Vec::new(), tail: Vec::new(), end, set: SetBefore::Counts })
            })
            .collect();
        assert_eq!((numbers[0], numbers[31], numbers[32]), (1, 32, GENERIC));
        let long = Instructions::apply(vec![Action::DecNwTtl; 25]);
        assert_eq!(Template::of(&long, &mut Arena::default()), None);
    }
}
