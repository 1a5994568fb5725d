//! Actions of flows and buckets, parsed and printed. In ovs-ofctl's syntax the list of a flow also
//! holds its instructions.

use crate::extension;
use crate::fields::{Meaning, RESERVED, port_number};
use crate::syntax::{name_and_rest, no_argument, split};
use crate::{PortNames, Wrong, value, wrong};
use fastpath_switch::action::{ACTIONS, Action, ActionInfo, Argument};
use fastpath_switch::field::{Field, VLAN_PRESENT};
use fastpath_switch::flow::{ClearActions, Instructions, WriteMetadata};
use fastpath_switch::port;

/// The EtherType of the tag that mod_vlan_vid pushes.
const ETHERTYPE_VLAN: u16 = 0x8100;

/// The instructions, in the order in which they are executed and written (OpenFlow 1.3.5 §5.9).
const INSTRUCTIONS: [&str; 6] =
    ["meter", "apply_actions", "clear_actions", "write_actions", "write_metadata", "goto_table"];
/// The place of actions without an instruction.
const APPLY: usize = 1;

/// Parses `ACTION,…`, where some may be instructions. As in ovs-ofctl, each instruction stands
/// once, in the order of their execution.
pub(crate) fn parse_instructions(
    text: &str,
    ports: &PortNames,
    meaning: Meaning,
) -> Result<Instructions, Wrong> {
    let mut instructions = Instructions::default();
    let mut apply = ActionList { ports, meaning, actions: Vec::new() };
    let mut last = (0, "");
    for item in items(text)? {
        let (name, argument) = name_and_rest(item)?;
        let place = INSTRUCTIONS.iter().position(|known| *known == name).unwrap_or(APPLY);
        check_order(last, (place, name))?;
        last = (place, name);
        match name {
            "meter" => instructions.meter = Some(value::number(name, argument, 0xffff_0000)? as u32),
            "goto_table" => instructions.goto = Some(value::number(name, argument, 254)? as u8),
            "clear_actions" => {
                no_argument(name, argument)?;
                instructions.clear = ClearActions::Clear;
            }
            "write_metadata" => {
                let (value, mask) = value::masked(name, Field::Metadata, argument)?;
                instructions.metadata = Some(WriteMetadata { value: value as u64, mask: mask as u64 });
            }
            "write_actions" => instructions.write = parse_actions(argument, ports, meaning)?,
            "apply_actions" => {
                items(argument)?.into_iter().try_for_each(|item| apply.parse(item))?;
            }
            _ => apply.parse(item)?,
        }
    }
    instructions.apply = apply.actions;
    Ok(instructions)
}

/// Checks that an instruction may follow another. Both have their place in [`INSTRUCTIONS`].
fn check_order((before, previous): (usize, &str), (place, name): (usize, &str)) -> Result<(), Wrong> {
    if previous.is_empty() || place > before || (place == before && place == APPLY) {
        return Ok(());
    }
    match place == before {
        true => wrong(format!("{name} is given twice"), "write it once"),
        false => wrong(format!("{name} stands after {previous}"), format!("write it before {previous}")),
    }
}

/// Parses `ACTION,…` without instructions.
pub(crate) fn parse_actions(text: &str, ports: &PortNames, meaning: Meaning) -> Result<Vec<Action>, Wrong> {
    let mut list = ActionList { ports, meaning, actions: Vec::new() };
    items(text)?.into_iter().try_for_each(|item| list.parse(item))?;
    Ok(list.actions)
}

/// Actions that are being parsed.
struct ActionList<'a> {
    ports: &'a PortNames,
    /// What is known of the packet: by the match, and by the actions so far.
    meaning: Meaning,
    actions: Vec<Action>,
}

impl ActionList<'_> {
    fn parse(&mut self, item: &str) -> Result<(), Wrong> {
        let (name, argument) = name_and_rest(item)?;
        let (field, present, max) = match name.to_ascii_lowercase().as_str() {
            "mod_vlan_vid" => (Field::VlanVid, u128::from(VLAN_PRESENT), 4095),
            "mod_vlan_pcp" => (Field::VlanPcp, 0, 7),
            _ => {
                let action = parse_action(item, self.ports, self.meaning)?;
                match action {
                    Some(Action::PushVlan(_)) => self.meaning.is_tagged = Some(true),
                    // There may be another tag below.
                    Some(Action::PopVlan) => self.meaning.is_tagged = None,
                    _ => {}
                }
                self.actions.extend(action);
                return Ok(());
            }
        };
        // Both change the tag of a packet, or give it one.
        let value = u128::from(value::number(name, argument, max)?) | present;
        match self.meaning.is_tagged {
            Some(true) => {}
            Some(false) => self.actions.push(Action::PushVlan(ETHERTYPE_VLAN)),
            None => {
                self.meaning.is_tagged = Some(true);
                self.actions.push(match field {
                    Field::VlanVid => Action::ModVlanVid(value as u16 & 0xfff),
                    _ => Action::ModVlanPcp(value as u8),
                });
                return Ok(());
            }
        }
        self.meaning.is_tagged = Some(true);
        self.actions.push(Action::SetField(field, value));
        Ok(())
    }
}

/// Splits a list into its items. `drop` stands alone, as in ovs-ofctl.
fn items(text: &str) -> Result<Vec<&str>, Wrong> {
    let items: Vec<&str> = split(text).collect();
    if items.len() > 1 && items.iter().any(|item| item.eq_ignore_ascii_case("drop")) {
        let others: Vec<&str> = items.into_iter().filter(|item| !item.eq_ignore_ascii_case("drop")).collect();
        return wrong(
            format!("drop stands beside {}", others.join(",")),
            "write drop alone, or only the other actions",
        );
    }
    Ok(items)
}

/// Prints instructions; `drop` if there are none.
pub fn print_instructions(instructions: &Instructions) -> String {
    let mut words = Vec::new();
    words.extend(instructions.meter.map(|id| format!("meter:{id}")));
    words.extend(instructions.apply.iter().map(print_action));
    if instructions.clear == ClearActions::Clear {
        words.push("clear_actions".to_owned());
    }
    if !instructions.write.is_empty() {
        words.push(format!("write_actions({})", print_action_list(&instructions.write)));
    }
    if let Some(write) = instructions.metadata {
        let mask = value::show_mask(Field::Metadata, write.mask.into());
        words.push(format!("write_metadata:{:#x}{mask}", write.value));
    }
    words.extend(instructions.goto.map(|table| format!("goto_table:{table}")));
    if words.is_empty() { "drop".to_owned() } else { words.join(",") }
}

/// Prints actions; `drop` if there are none.
pub(crate) fn print_action_list(actions: &[Action]) -> String {
    let words: Vec<String> = actions.iter().map(print_action).collect();
    if words.is_empty() { "drop".to_owned() } else { words.join(",") }
}

/// Parses one action; returns `None` for `drop`.
fn parse_action(item: &str, ports: &PortNames, meaning: Meaning) -> Result<Option<Action>, Wrong> {
    let (name, argument) = name_and_rest(item)?;
    let number = |max: u64| value::number(name, argument, max);
    let set = |field: Field| Ok(Action::SetField(field, value::bits(name, field, argument)?));
    let lower = name.to_ascii_lowercase();
    // Further names that ovs-ofctl accepts.
    let usual = match lower.as_str() {
        "strip_vlan" => "pop_vlan",
        "set_nw_ttl" => "mod_nw_ttl",
        "dec_nw_ttl" => "dec_ttl",
        other => other,
    };
    if let Some(action) = extension::parse(usual, argument, (ports, meaning), parse_actions)? {
        return Ok(Some(action));
    }
    if let Some(info) = ACTIONS.iter().find(|info| info.name == usual) {
        match &info.argument {
            Argument::None(action) => return no_argument(name, argument).map(|()| Some(action.clone())),
            Argument::Ttl(make) => return Ok(Some(make(number(255)? as u8))),
            Argument::EtherType(make) => return Ok(Some(make(number(0xffff)? as u16))),
            Argument::Number { max, make } => return Ok(Some(make(number((*max).into())? as u32))),
            Argument::Own => {}
        }
    }
    let action = match usual {
        "drop" => return no_argument(name, argument).map(|()| None),
        "output" => Action::output(port_number(argument, ports)?),
        "controller" => Action::Output { port: port::CONTROLLER, max_len: controller_len(argument)? },
        "mod_dl_src" => set(Field::EthSrc)?,
        "mod_dl_dst" => set(Field::EthDst)?,
        "mod_nw_src" => set(Field::Ipv4Src)?,
        "mod_nw_dst" => set(Field::Ipv4Dst)?,
        "set_vlan_vid" => Action::SetField(Field::VlanVid, (number(4095)? | 0x1000).into()),
        "set_vlan_pcp" => Action::SetField(Field::VlanPcp, number(7)?.into()),
        "set_tunnel" | "set_tunnel64" => Action::SetField(Field::TunnelId, number(u64::MAX)?.into()),
        "set_mpls_label" => Action::SetField(Field::MplsLabel, number(0xf_ffff)?.into()),
        "set_mpls_tc" => Action::SetField(Field::MplsTc, number(7)?.into()),
        "mod_nw_ecn" => Action::SetField(Field::IpEcn, number(3)?.into()),
        "mod_nw_tos" => Action::SetField(Field::IpDscp, value::dscp_of_tos(name, argument)?),
        "mod_tp_src" => set(meaning.field("tp_src")?)?,
        "mod_tp_dst" => set(meaning.field("tp_dst")?)?,
        // A port alone is an output.
        _ if argument.is_empty() => match port_number(name, ports) {
            Ok(to) => Action::output(to),
            Err(_) => {
                return wrong(
                    format!("unknown action '{item}'"),
                    "write output:PORT, drop, group:N, set_field:VALUE->FIELD, …",
                );
            }
        },
        _ => {
            return wrong(
                format!("unknown action '{name}'"),
                "write output:PORT, group:N, set_field:VALUE->FIELD, …",
            );
        }
    };
    Ok(Some(action))
}

fn print_action(action: &Action) -> String {
    let ActionInfo { name, argument, .. } = action.info();
    let (_, number) = action.parts();
    match (action, argument) {
        (Action::Output { port: port::CONTROLLER, max_len }, _) => format!("CONTROLLER:{max_len}"),
        (Action::Output { port, .. }, _) => match RESERVED.iter().find(|(_, number)| number == port) {
            Some((name, _)) => name.to_ascii_uppercase(),
            None => format!("output:{port}"),
        },
        (Action::SetField(field, value), _) => {
            format!("set_field:{}->{}", value::show(*field, *value), field.name())
        }
        (Action::Extension(extension), _) => extension::print(extension, print_action_list),
        (_, Argument::EtherType(_)) => format!("{name}:{number:#06x}"),
        (_, Argument::Ttl(_) | Argument::Number { .. }) => format!("{name}:{number}"),
        (_, Argument::None(_) | Argument::Own) => (*name).to_owned(),
    }
}

/// Parses `N`, `max_len=N`, or nothing.
fn controller_len(argument: &str) -> Result<u16, Wrong> {
    match argument.strip_prefix("max_len=").unwrap_or(argument) {
        "" => Ok(port::NO_BUFFER),
        text => value::number("max_len", text, 0xffff).map(|len| len as u16),
    }
}
