//! `delete_learned`: learned flows go with the last flow that teaches them.

use crate::action::{Action, Extension};
use crate::extension::Learn;
use crate::flow::{FlowCommand, FlowMod, Instructions, flags};
use crate::{Field, FieldMatch, Limits, Match, Switch};
use fastpath_units::{Duration, Time};
use std::sync::Arc;

fn teaching(table: u8, cookie: u64) -> Instructions {
    let learn = Learn {
        table,
        priority: 1,
        cookie,
        idle_timeout: 0,
        hard_timeout: 0,
        send_flow_rem: false,
        delete_learned: true,
        fin_idle_timeout: 0,
        fin_hard_timeout: 0,
        limit: 0,
        result: None,
        specs: Vec::new(),
    };
    Instructions::apply([Action::Extension(Arc::new(Extension::Learn(learn)))])
}

fn of_mac(number: u64) -> Match {
    Match::new(&[FieldMatch::exact(Field::EthDst, number.into())]).unwrap()
}

/// A switch in which flow 1 of table 0 teaches table 1 with cookie 7, of which the flows teach
/// table 2 with cookie 8; and others.
fn switch() -> Switch {
    let mut switch = Switch::new(Limits { tables: 3, ..Limits::default() });
    let mut add = |table, mac, cookie, instructions| {
        let flow = FlowMod::add(table, 1, of_mac(mac), instructions);
        switch.flow_mod(Time::ZERO, &FlowMod { cookie, ..flow }).unwrap();
    };
    add(0, 1, 0, teaching(1, 7));
    add(0, 2, 0, teaching(1, 7));
    add(1, 3, 7, teaching(2, 8));
    add(1, 4, 9, Instructions::default());
    add(2, 5, 8, Instructions::default());
    add(2, 6, 9, Instructions::default());
    switch
}

fn counts(switch: &Switch) -> Vec<usize> {
    switch.tables().iter().map(crate::table::Table::len).collect()
}

fn strict(command: FlowCommand, mac: u64, instructions: Instructions) -> FlowMod {
    FlowMod { command, ..FlowMod::add(0, 1, of_mac(mac), instructions) }
}

#[test]
fn learned_flows_go_with_the_last_flow_that_teaches_them_and_so_on() {
    let mut switch = switch();
    let delete = |mac| strict(FlowCommand::DeleteStrict, mac, Instructions::default());
    assert_eq!(switch.flow_mod(Time::ZERO, &delete(1)).unwrap().len(), 1);
    assert_eq!(counts(&switch), [1, 2, 2], "flow 2 teaches the same");
    let gone = switch.flow_mod(Time::ZERO, &delete(2)).unwrap();
    assert_eq!(gone.iter().map(|one| one.table_id).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(counts(&switch), [0, 1, 1]);
    assert!(!switch.has_learners());
}

#[test]
fn what_a_modification_or_a_replacement_still_teaches_stays() {
    for command in [FlowCommand::ModifyStrict, FlowCommand::Add] {
        let mut switch = switch();
        for mac in [1, 2] {
            switch.flow_mod(Time::ZERO, &strict(command, mac, teaching(1, 7))).unwrap();
        }
        assert_eq!(counts(&switch), [2, 2, 2], "{command:?}");
        switch.flow_mod(Time::ZERO, &strict(command, 1, Instructions::default())).unwrap();
        assert_eq!(counts(&switch), [2, 2, 2], "{command:?}");
        let gone = switch.flow_mod(Time::ZERO, &strict(command, 2, teaching(1, 6))).unwrap();
        assert_eq!((gone.len(), counts(&switch)), (2, vec![2, 1, 1]), "{command:?}");
    }
}

#[test]
fn learned_flows_go_with_one_that_times_out_or_is_cleared() {
    let mut switch = switch();
    for mac in [1, 2] {
        let request = strict(FlowCommand::Add, mac, teaching(1, 7));
        let request = FlowMod { hard_timeout: 5, flags: flags::SEND_FLOW_REM, ..request };
        switch.flow_mod(Time::ZERO, &request).unwrap();
    }
    assert_eq!(switch.expire(Time::ZERO + Duration::from_secs(5)).len(), 4);
    assert_eq!(counts(&switch), [0, 1, 1]);

    let mut switch = self::switch();
    let all_of_0 = FlowMod { table_id: 0, ..FlowMod::delete_all() };
    assert_eq!(switch.clear(&all_of_0).len(), 0, "a table that teaches is not emptied at once");
    assert_eq!(switch.flow_mod(Time::ZERO, &all_of_0).unwrap().len(), 4);
    assert_eq!(counts(&switch), [0, 1, 1]);
}
