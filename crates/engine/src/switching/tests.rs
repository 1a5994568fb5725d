//! The loop of a worker, turn by turn.

use super::*;
use crate::port::{NullPort, PortCounters};
use crate::switching::PacketInLimit;
use fastpath_plan::Planned;
use fastpath_switch::port::LinkState;
use fastpath_switch::{Limits, Switch};

/// A port on a removed interface.
struct Gone;

impl Port for Gone {
    fn name(&self) -> &str {
        "gone"
    }

    fn rx_burst(&mut self, _: Time, _: &mut FramePool, _: &mut Burst) -> Result<(), PortError> {
        Err(PortError::Gone { name: self.name().to_owned() })
    }

    fn tx_burst(&mut self, _: Time, _: &mut FramePool, _: &mut VecDeque<Frame>) -> Result<(), PortError> {
        Ok(())
    }

    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }
}

#[test]
fn a_port_that_failed_is_reported_and_stays_down_whatever_its_interface_says() {
    let mut switch = Switch::new(Limits { tables: 1, ..Limits::default() });
    (1..=2).for_each(|number| switch.set_port(number, fastpath_switch::Port::up()));
    let executor = Box::new(Planned::new(&mut switch));
    let control = Control::new(switch, executor, PacketInLimit::default(), || ()).unwrap();
    let ports: Vec<(u32, Box<dyn Port>)> = vec![(1, Box::new(Gone)), (2, Box::new(NullPort::new("p2")))];
    let mut datapath = Datapath::new(&control, ports, NonZeroUsize::new(1 << 16).unwrap(), Notice::none());
    let links = || control.read(|switch, _| [1, 2].map(|number| switch.port(number).unwrap().link));
    let changes = || control.take_link_changes().into_iter().collect::<Vec<_>>();
    datapath.iterate();
    assert_eq!((links(), changes()), ([LinkState::Down, LinkState::Up], vec![1]));
    for link in [LinkState::Up, LinkState::Down, LinkState::Up] {
        control.set_link(1, link);
        control.set_link(2, link);
    }
    assert_eq!((links(), changes()), ([LinkState::Down, LinkState::Up], vec![2]));
    assert!(changes().is_empty());
}

#[test]
fn ports_come_and_go_while_frames_move_and_the_accounting_balances() {
    use crate::port::Memory;
    use fastpath_switch::{Action, FlowMod, Instructions, Match, port};
    let mut switch = Switch::new(Limits { tables: 1, ..Limits::default() });
    let flood = Instructions::apply([Action::output(port::FLOOD)]);
    switch.flow_mod(Time::ZERO, &FlowMod::add(0, 1, Match::any(), flood)).unwrap();
    let executor = Box::new(Planned::new(&mut switch));
    let control = Control::new(switch, executor, PacketInLimit::default(), || ()).unwrap();
    let mut datapath =
        Datapath::new(&control, Vec::new(), NonZeroUsize::new(1 << 16).unwrap(), Notice::none());
    let mut ends = Vec::new();
    for number in [1, 2, port::LOCAL] {
        let (port, end) = Memory::new("p", 1 << 16);
        ends.push(end);
        control.attach(number, Box::new(port));
    }
    datapath.iterate();
    ends[0].send([&[0; 60][..]]);
    datapath.iterate();
    assert_eq!([1, 2].map(|end: usize| ends[end].recv(9, |_| ())), [1, 0], "LOCAL is not flooded to");
    let leaves = std::thread::spawn({
        let control = control.clone();
        move || control.detach(2)
    });
    while !leaves.is_finished() {
        datapath.iterate();
    }
    assert!(leaves.join().unwrap().is_some());
    assert!(control.read(|switch, _| switch.port(2).is_none()));
    ends[0].send([&[0; 60][..]]);
    datapath.iterate();
    assert_eq!(ends[1].recv(9, |_| ()), 0);
    let (port, end) = Memory::new("p", 1 << 16);
    control.attach(2, Box::new(port));
    datapath.iterate();
    ends[0].send([&[0; 60][..]]);
    datapath.iterate();
    assert_eq!(end.recv(9, |_| ()), 1);
    let accounting = control.accounting();
    assert!(accounting.balances() && accounting.sent == 2, "{accounting:?}");
    control.stop();
    assert!(control.detach(1).is_none(), "the worker has ended");
}
