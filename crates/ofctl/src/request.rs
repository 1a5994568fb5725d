//! The arguments of `ovs-ofctl mod-flows`, `del-flows` and `dump-flows`: flows that exist are
//! selected by match, table, cookie and output.

use crate::{Mistake, PortNames, Wrong, actions, fields, flow_setting, split_actions, value, words, wrong};
use fastpath_switch::Match;
use fastpath_switch::flow::{ALL_TABLES, FlowCommand, FlowMod, Instructions};

/// Parses the flows that `command` applies to, and for modifications their new actions. Without
/// `table`, the request names [`ALL_TABLES`].
///
/// # Errors
/// The first mistake in `line`, as one of line 1.
pub fn parse_request(line: &str, command: FlowCommand, ports: &PortNames) -> Result<FlowMod, Mistake> {
    parse(line, command, ports).map_err(|wrong| wrong.at(1))
}

fn parse(line: &str, command: FlowCommand, ports: &PortNames) -> Result<FlowMod, Wrong> {
    let changes = matches!(command, FlowCommand::Modify | FlowCommand::ModifyStrict);
    let (head, list) = match (split_actions(line), changes) {
        (Some((head, list)), true) => (head, Some(list)),
        (None, false) => (line, None),
        (None, true) => {
            return wrong("new actions are missing", "end with actions=ACTION,… or actions=drop");
        }
        (Some(_), false) => {
            return wrong("actions do not select flows", "leave actions=… out, or write out_port=PORT");
        }
    };
    let priority = crate::PRIORITY;
    let request = FlowMod::add(ALL_TABLES, priority, Match::any(), Instructions::default());
    let mut request = FlowMod { command, ..request };
    let mut fields = fields::Fields::new(ports);
    for word in words(head) {
        let (key, value) = word.split_once('=').map_or((word, None), |(key, value)| (key, Some(value)));
        let is_setting = selection(&mut request, key, value, ports)?
            || ((changes || key == "table") && flow_setting(&mut request, key, value)?);
        if !is_setting {
            fields.add(key, value)?;
        }
    }
    let (matching, meaning) = fields.finish()?;
    request.matching = matching;
    if let Some(list) = list {
        request.instructions = actions::parse_instructions(list, ports, meaning)?;
    }
    Ok(request)
}

/// Parses what selects flows beside their match. Returns false if the key does not.
fn selection(
    request: &mut FlowMod,
    key: &str,
    value: Option<&str>,
    ports: &PortNames,
) -> Result<bool, Wrong> {
    let text = value.unwrap_or_default();
    let is_strict = matches!(request.command, FlowCommand::ModifyStrict | FlowCommand::DeleteStrict);
    let is_delete = matches!(request.command, FlowCommand::Delete | FlowCommand::DeleteStrict);
    match key {
        "cookie" => {
            // A mask of -1 compares every bit.
            let (cookie, mask) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
            request.cookie = value::number(key, cookie, u64::MAX)?;
            request.cookie_mask = match mask {
                None if is_delete => return wrong("a cookie without a mask", "write cookie=N/-1"),
                None => 0,
                Some("-1") => u64::MAX,
                Some(mask) => value::number("a mask of cookie", mask, u64::MAX)?,
            };
        }
        "out_port" if is_delete => request.out_port = fields::port_number(text, ports)?,
        "out_group" if is_delete => request.out_group = value::number(key, text, 0xffff_ff00)? as u32,
        "priority" if is_delete && !is_strict => {
            return wrong("priority selects flows only with --strict", "write --strict, or leave it out");
        }
        "priority" if is_delete => request.priority = value::number(key, text, 0xffff)? as u16,
        _ => return Ok(false),
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_switch::port;

    fn parsed(line: &str, command: FlowCommand) -> Result<FlowMod, String> {
        parse_request(line, command, &PortNames::new()).map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn a_deletion_selects_by_match_table_cookie_and_output() {
        let all = parsed("", FlowCommand::Delete).unwrap();
        assert_eq!((all.table_id, all.cookie_mask, all.out_port), (ALL_TABLES, 0, port::ANY));
        assert!(all.matching.is_any());
        let some = parsed("cookie=0x7/-1,table=2,ip,out_port=3", FlowCommand::Delete).unwrap();
        assert_eq!((some.table_id, some.cookie, some.cookie_mask, some.out_port), (2, 7, u64::MAX, 3));
        assert!(!some.matching.is_any());
        let strict = parsed("priority=9,ip", FlowCommand::DeleteStrict).unwrap();
        assert_eq!(strict.priority, 9);
    }

    #[test]
    fn words_that_select_nothing_are_mistakes() {
        for (line, command, named) in [
            ("ip,actions=drop", FlowCommand::Delete, "actions do not select"),
            ("priority=9,ip", FlowCommand::Delete, "only with --strict"),
            ("cookie=1", FlowCommand::Delete, "write cookie=N/-1"),
            ("in_prt=1", FlowCommand::Delete, "unknown field 'in_prt'"),
            ("ip,idle_timeout=5", FlowCommand::Delete, "unknown field 'idle_timeout'"),
            ("ip,send_flow_rem", FlowCommand::Delete, "'send_flow_rem'"),
            ("in_port=1", FlowCommand::Modify, "new actions are missing"),
        ] {
            let mistake = parsed(line, command).unwrap_err();
            assert!(mistake.contains(named), "{line}: {mistake}");
        }
        let modified = parsed("in_port=1,actions=output:2", FlowCommand::Modify).unwrap();
        assert_eq!((modified.table_id, modified.instructions.apply.len()), (ALL_TABLES, 1));
    }
}
