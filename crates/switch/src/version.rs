//! The versions of OpenFlow whose rules requests follow.

/// A version of OpenFlow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Version {
    /// OpenFlow 1.0.
    V10 = 1,
    /// OpenFlow 1.3.
    #[default]
    V13 = 4,
    /// OpenFlow 1.4.
    V14 = 5,
    /// OpenFlow 1.5.
    V15 = 6,
}

impl Version {
    /// All versions, lowest first.
    pub const ALL: [Version; 4] = [Version::V10, Version::V13, Version::V14, Version::V15];

    /// Returns the number in the header of messages.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the version with this number in the header of messages.
    pub fn from_number(number: u8) -> Option<Version> {
        Version::ALL.into_iter().find(|version| version.number() == number)
    }

    /// Returns the name as people write it: `1.0`.
    pub const fn name(self) -> &'static str {
        match self {
            Version::V10 => "1.0",
            Version::V13 => "1.3",
            Version::V14 => "1.4",
            Version::V15 => "1.5",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::ALL_TABLES;
    use crate::{
        Action, Counters, Field, FieldMatch, FlowCommand, FlowMod, Instructions, Limits, Match,
        PacketOutcome, Port, Refusal, Switch, interp,
    };
    use fastpath_units::Time;

    fn switch() -> Switch {
        let mut switch = Switch::new(Limits { tables: 3, ..Limits::default() });
        (1..=2).for_each(|number| switch.set_port(number, Port::up()));
        switch
    }

    fn of_10(request: FlowMod) -> FlowMod {
        FlowMod { version: Version::V10, ..request }
    }

    fn out(to: u32) -> Instructions {
        Instructions::apply([Action::output(to)])
    }

    fn from_port(number: u128) -> Match {
        Match::new(&[FieldMatch::exact(Field::InPort, number)]).unwrap()
    }

    #[test]
    fn a_modification_of_openflow_10_adds_a_flow_where_there_is_none_and_sets_cookies() {
        let mut switch = switch();
        let add = FlowMod { cookie: 7, ..FlowMod::add(ALL_TABLES, 5, from_port(1), out(2)) };
        let modify = of_10(FlowMod { command: FlowCommand::Modify, ..add });
        let of_13 = FlowMod { version: Version::V13, ..modify.clone() };
        assert_eq!(switch.flow_mod(Time::ZERO, &of_13), Err(Refusal::FlowBadTable(ALL_TABLES)));
        for kept in
            [FlowMod { cookie: u64::MAX, ..modify.clone() }, FlowMod { cookie_mask: 1, ..modify.clone() }]
        {
            switch.flow_mod(Time::ZERO, &kept).unwrap();
            assert!(switch.tables()[0].is_empty());
        }
        switch.flow_mod(Time::ZERO, &modify).unwrap();
        switch.flow_mod(Time::ZERO, &FlowMod::add(2, 9, from_port(1), out(1))).unwrap();
        let flow = |switch: &Switch, table: usize| {
            let (_, flow) = switch.tables()[table].flows().next().unwrap();
            (flow.cookie, (*flow.instructions).clone())
        };
        assert_eq!(flow(&switch, 0), (7, out(2)));
        let other = FlowMod { cookie: 8, instructions: out(1), ..modify.clone() };
        switch.flow_mod(Time::ZERO, &other).unwrap();
        assert_eq!((flow(&switch, 0), flow(&switch, 2)), ((8, out(1)), (8, out(1))));
        let kept = FlowMod { cookie: u64::MAX, ..modify.clone() };
        switch.flow_mod(Time::ZERO, &kept).unwrap();
        assert_eq!(flow(&switch, 0), (8, out(2)));
        let strict = FlowMod { command: FlowCommand::ModifyStrict, priority: 6, ..modify };
        switch.flow_mod(Time::ZERO, &strict).unwrap();
        assert_eq!(switch.tables()[0].len(), 2);
    }

    #[test]
    fn an_addition_of_openflow_10_resets_the_counters() {
        let mut switch = switch();
        let add = FlowMod::add(0, 5, from_port(1), out(2));
        switch.flow_mod(Time::ZERO, &add).unwrap();
        interp(&mut switch, Time::ZERO, 1, &[0; 60]);
        let counters = |switch: &Switch| switch.tables()[0].flows().next().unwrap().1.counters;
        switch.flow_mod(Time::ZERO, &add).unwrap();
        assert_eq!(counters(&switch).packets, 1);
        switch.flow_mod(Time::ZERO, &of_10(add)).unwrap();
        assert_eq!(counters(&switch), Counters::default());
    }

    #[test]
    fn an_action_of_openflow_10_needs_no_match_and_does_nothing_without_its_header() {
        let mut switch = switch();
        let actions = [Action::SetField(Field::UdpDst, 9), Action::output(2)];
        let add = FlowMod::add(0, 5, from_port(1), Instructions::apply(actions));
        assert_eq!(switch.flow_mod(Time::ZERO, &add).unwrap_err().numbers(), (2, 10));
        switch.flow_mod(Time::ZERO, &of_10(add)).unwrap();
        let outcomes = interp(&mut switch, Time::ZERO, 1, &[0; 60]);
        assert!(
            matches!(&outcomes[..], [PacketOutcome::Output { port: 2, frame, .. }] if frame[..] == [0; 60])
        );
    }

    #[test]
    fn a_tag_is_changed_or_pushed_as_the_packet_needs_it() {
        let mut switch = switch();
        let untagged = [&[2; 12][..], &[0x88, 0xb5], &[7; 46]].concat();
        let tagged = [&[2; 12][..], &[0x88, 0xa8, 0xa0, 0x05], &untagged[12..]].concat();
        let mut sent = |action: Action, frame: &[u8]| {
            let add = FlowMod::add(0, 5, Match::any(), Instructions::apply([action, Action::output(2)]));
            switch.flow_mod(Time::ZERO, &add).unwrap();
            match &interp(&mut switch, Time::ZERO, 1, frame)[..] {
                [PacketOutcome::Output { frame, .. }] => frame[12..18].to_vec(),
                other => panic!("{other:?}"),
            }
        };
        let (vid, pcp) = (Action::ModVlanVid(0x123), Action::ModVlanPcp(3));
        assert_eq!(sent(vid.clone(), &untagged), [0x81, 0, 0x01, 0x23, 0x88, 0xb5]);
        assert_eq!(sent(vid, &tagged), [0x88, 0xa8, 0xa1, 0x23, 0x88, 0xb5]);
        assert_eq!(sent(pcp.clone(), &untagged), [0x81, 0, 0x60, 0, 0x88, 0xb5]);
        assert_eq!(sent(pcp, &tagged), [0x88, 0xa8, 0x60, 0x05, 0x88, 0xb5]);
        for wrong in [Action::ModVlanVid(0x1000), Action::ModVlanPcp(8)] {
            let add = FlowMod::add(0, 5, Match::any(), Instructions::apply([wrong]));
            assert_eq!(switch.flow_mod(Time::ZERO, &add).unwrap_err().numbers(), (2, 5));
        }
    }
}
