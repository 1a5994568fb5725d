//! Tests of the worker loop.

use super::*;
use crate::command::CommandSender;
use crate::open_ports::PortsLater;
use crate::port::{Memory, MemoryEnd};
use fastpath_sys::heap::{self, CountingAllocator};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
use fastpath_link::{Change, Limit, PipeSpec, QueueSpec};
use fastpath_net::Options;
use fastpath_spec::{Direction, NodeKind, Topology};
use fastpath_units::{Probability, Rate};

/// Links with every stage in use between memory ports, and the far ends of the ports.
fn worker(links: usize) -> (Worker<()>, Vec<MemoryEnd>) {
    let pipe = PipeSpec {
        rate: Rate::from_bps(10_000_000_000),
        delay: Duration::from_us(20),
        loss: Probability::new(0.01).unwrap().into(),
        queue: QueueSpec::DropTail(Limit::Packets(100)),
        ..PipeSpec::default()
    };
    let mut topology = Topology::default();
    let (mut ports, mut ends): (Vec<Box<dyn Port>>, _) = (Vec::new(), Vec::new());
    for i in 0..links {
        let [a, b] = ["a", "b"].map(|end| topology.add_node(format!("{end}{i}"), NodeKind::host()));
        topology.connect(format!("l{i}"), a, b, [pipe.clone(), pipe.clone()]);
        for _ in [a, b] {
            let (port, end) = Memory::new("memory", 1 << 20);
            ports.push(Box::new(port));
            ends.push(end);
        }
    }
    let options = Options::default();
    let open_ports = Arc::new(OpenPorts::new(ports.len(), PortsLater::Never));
    let (_, commands) = CommandSender::new().unwrap();
    let policy = LatenessPolicy { tolerance: Duration::from_secs(1), is_stated: false, late: Late::Deliver };
    let (clock, idle) = (Clock::start(), Idle::Busy);
    let config = WorkerConfig {
        clock,
        ports,
        idle,
        policy,
        commands,
        notice: Notice::none(),
        core: None,
        open_ports,
        switches: Vec::new(),
        cut: None,
    };
    let network = Network::observed(topology, options, ((), Watchers::default()));
    (Worker::new(network, config).unwrap(), ends)
}

#[test]
fn a_quiet_worker_returns_the_memory_of_the_frames_that_have_gone() {
    let (mut worker, ends) = worker(1);
    let frame = [0x5a; 1000];
    let pass = |worker: &mut Worker<()>| {
        assert_eq!(ends[0].send([&frame[..]]), 1);
        while ends[1].recv(usize::MAX, |_| ()) == 0 {
            worker.iterate();
        }
        worker.network.pool().reserved()
    };
    assert!(pass(&mut worker) > 0 && !worker.has_released);
    worker.release_memory();
    assert_eq!((worker.network.pool().reserved(), worker.has_released), (0, true));
    assert!(pass(&mut worker) > 0 && !worker.has_released);
}

#[test]
fn a_worker_that_has_seen_its_load_allocates_no_memory() {
    for links in [1, 40] {
        let (mut worker, ends) = worker(links);
        let frame = [0x5a; 1000];
        let send = || {
            for end in ends.iter().step_by(2) {
                assert_eq!(end.send([frame.as_slice(); BURST]), BURST);
            }
        };
        // How much of a burst is held at once depends on the speed of the machine. So the links
        // first hold everything until they hold twice a burst, and then send all of it at once:
        // no later burst needs more.
        let set_rate = |worker: &mut Worker<()>, bps: u64| {
            let change = Change { rate: Some(Rate::from_bps(bps)), ..Change::default() };
            let now = worker.clock.now();
            for link in 0..links as u32 {
                worker.network.apply(now, LinkId(link), Direction::Both, &change);
            }
        };
        set_rate(&mut worker, 1);
        for _ in 0..2 {
            send();
            worker.iterate();
        }
        set_rate(&mut worker, 10_000_000_000);
        while worker.iterate_and_check() {}
        for end in &ends {
            end.recv(usize::MAX, |_| {});
        }
        let mut bursts = |count: usize| {
            let mut came = 0;
            for _ in 0..count {
                send();
                while worker.iterate_and_check() {}
                came += ends.iter().map(|end| end.recv(usize::MAX, |_| {})).sum::<usize>();
            }
            came
        };
        bursts(50);
        let before = heap::requests();
        let came = bursts(200);
        assert_eq!(heap::requests() - before, 0, "{links} links");
        // 1 % is lost: 6 standard deviations.
        let sent = (200 * BURST * links) as f64;
        assert!((came as f64 - 0.99 * sent).abs() < 6.0 * (sent * 0.01 * 0.99).sqrt(), "{came} of {sent}");
    }
}

#[test]
fn a_frame_is_stamped_neither_before_the_poll_that_found_it_nor_long_before_its_end() {
    let us = |us: u64| Time::ZERO + Duration::from_us(us);
    assert_eq!(stamp(us(100), us(103), 1), us(100));
    assert_eq!(stamp(us(100), us(120), 1), us(100));
    // The host stalled.
    assert_eq!(stamp(us(100), us(8100), 1), us(8080));
    assert_eq!(stamp(us(100), us(103), 2), us(103));
    assert_eq!(stamp(us(0), us(3), 1), us(0));
}

impl Worker<()> {
    /// Runs an iteration. Returns true as long as frames are inside.
    fn iterate_and_check(&mut self) -> bool {
        self.iterate();
        !self.network.is_quiescent() || !self.waiting.is_empty()
    }
}
