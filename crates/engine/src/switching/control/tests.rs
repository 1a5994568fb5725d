//! What controlling threads and workers may expect of each other.

use super::*;
use fastpath_switch::{
    Band, BandKind, FlowMod, Instructions, Limits, Match, Meter, MeterCommand, MeterMod, Port,
};

/// An executor with a copy of meter 1, as executors have that count for themselves.
struct Copying(Meter);

impl Executor for Copying {
    fn update(&mut self, switch: &mut Switch) {
        self.0 = switch.meter(1).unwrap().clone();
    }

    fn execute(&mut self, _: &mut Switch, now: Time, _: u32, _: &mut [u8], _: &mut Outbox) -> Verdict {
        self.0.apply(now, 60);
        Verdict::Done
    }

    fn credit(&mut self, switch: &mut Switch) {
        *switch.meter_mut(1).unwrap() = self.0.clone();
    }
}

#[test]
fn a_packet_out_passes_the_active_meters_whatever_max_len_it_gives() {
    for max_len in [0, 0xffe5, 0xffff] {
        let mut switch = Switch::new(Limits { tables: 1, ..Limits::default() });
        (1..=2).for_each(|number| switch.set_port(number, Port::up()));
        let bands = vec![Band { kind: BandKind::Drop, rate: 1, burst: 0 }];
        let meter = MeterMod { command: MeterCommand::Add, id: 1, flags: 2, bands };
        switch.meter_mod(Time::ZERO, &meter).unwrap();
        let what = Instructions { meter: Some(1), ..Instructions::apply([Action::output(2)]) };
        switch.flow_mod(Time::ZERO, &FlowMod::add(0, 1, Match::any(), what)).unwrap();
        let executor = Box::new(Copying(switch.meter(1).unwrap().clone()));
        let control = Control::new(switch, executor, PacketInLimit::default(), || ()).unwrap();
        let judged = || control.read(|switch, _| switch.meter(1).unwrap().counters.packets);
        let arrive = || {
            let mut core = control.lock();
            core.execute(Time::ZERO, 1, &mut [0; 60], &mut Outbox::default());
        };
        let out = || control.packet_out(1, &[Action::Output { port: port::TABLE, max_len }], &[0; 60]);
        arrive();
        out().unwrap();
        arrive();
        assert_eq!(judged(), 3, "{max_len:#x}");
        control.change(|switch, _| switch.set_port(3, Port::up()));
        out().unwrap();
        arrive();
        assert_eq!(judged(), 5, "{max_len:#x}");
    }
}

/// An executor whose forwarder sends everything to port 2.
struct Free;

impl Executor for Free {
    fn update(&mut self, _: &mut Switch) {}

    fn execute(&mut self, _: &mut Switch, _: Time, _: u32, _: &mut [u8], _: &mut Outbox) -> Verdict {
        unreachable!("the forwarder executes packets")
    }

    fn forwarder(&mut self) -> Option<Box<dyn Forwarder>> {
        Some(Box::new(Free))
    }
}

impl Forwarder for Free {
    fn begin(&mut self, _: Time) {}

    fn execute(&mut self, _: u32, _: &mut [u8], _: &mut Outbox) -> Verdict {
        Verdict::Forward { port: 2, queue: 0 }
    }
}

#[test]
fn frames_pass_while_the_switch_is_locked_and_a_barrier_waits_for_those_on_their_way() {
    let mut switch = Switch::new(Limits { tables: 1, ..Limits::default() });
    let (mut ports, mut ends) = (Vec::new(), Vec::new());
    for number in 1..=2 {
        let (port, end) = crate::port::Memory::new("p", 1 << 16);
        ports.push((number, Box::new(port) as Box<dyn crate::port::Port>));
        ends.push(end);
        switch.set_port(number, Port::up());
    }
    let control = Control::new(switch, Box::new(Free), PacketInLimit::default(), || ()).unwrap();
    let memory = std::num::NonZeroUsize::new(1 << 16).unwrap();
    let mut datapath = crate::switching::Datapath::new(&control, ports, memory, crate::Notice::none());
    let (done, has_passed) = std::sync::mpsc::channel();
    let worker = control.change(|_, _| {
        ends[0].send([&[0; 60][..]]);
        let worker = std::thread::spawn(move || {
            let moved = datapath.iterate();
            let _ = done.send(moved);
        });
        // Long enough for any machine; reached only where the frame waits for the lock.
        assert_eq!(has_passed.recv_timeout(Duration::from_secs(60)), Ok(true));
        worker
    });
    worker.join().unwrap();
    assert_eq!(ends[1].recv(usize::MAX, |_| ()), 1);

    // Nothing is under way.
    control.wait_for_burst();
    control.shared.workers.begin_turn(0);
    let (waiting, waits) = std::sync::mpsc::channel();
    let other = control.clone();
    let barrier = std::thread::spawn(move || {
        waiting.send(()).unwrap();
        other.wait_for_burst();
    });
    waits.recv().unwrap();
    std::thread::yield_now();
    assert!(!barrier.is_finished());
    control.shared.workers.end_turn(0);
    barrier.join().unwrap();
}
