//! Changes of rules while a base is being built.

use fastpath_jit::{Fate, Live, Worker};
use fastpath_switch::group::BUCKET_FIRST;
use fastpath_switch::outcome::DropReason;
use fastpath_switch::{
    Action, Bucket, Field, FieldMatch, FlowCommand, FlowMod, GroupCommand, GroupKind, GroupMod, Instructions,
    Limits, Match, PacketOutcome, Port, Rank, Switch,
};
use fastpath_units::Time;

fn flow(address: u128) -> FlowMod {
    let matching = Match::new(&[FieldMatch::exact(Field::EthDst, address)]).unwrap();
    FlowMod::add(0, 1, matching, Instructions::apply([Action::output(2)]))
}

fn change(switch: &mut Switch, command: FlowCommand, addresses: impl IntoIterator<Item = u128>) {
    for address in addresses {
        switch.flow_mod(Time::ZERO, &FlowMod { command, ..flow(address) }).unwrap();
    }
}

/// Sends a frame to each address; all of them are known, or none.
fn send(worker: &mut Worker, addresses: impl IntoIterator<Item = u128>, are_known: bool) {
    worker.begin(Time::ZERO);
    for address in addresses {
        let mut frame = [0; 60];
        frame[..6].copy_from_slice(&address.to_be_bytes()[10..]);
        match worker.run(1, &mut frame) {
            Fate::Forward { port: 2, queue: 0 } => assert!(are_known, "{address}"),
            Fate::Drop(DropReason::TableMiss) => assert!(!are_known, "{address}"),
            // Rust executes rules that are not in the base.
            Fate::Done => {
                let outcomes = &worker.outcomes()[..];
                let is_sent = matches!(outcomes, [PacketOutcome::Output { port: 2, queue: 0, .. }]);
                assert!(are_known && is_sent, "{address}: {outcomes:?}");
            }
            other => panic!("{address}: {other:?}"),
        }
    }
}

#[test]
fn changes_are_in_force_and_counted_during_a_rebuild_and_must_wait_when_there_are_many() {
    let mut switch = Switch::new(Limits { tables: 1, ..Limits::default() });
    (1..=2).for_each(|number| switch.set_port(number, Port::up()));
    change(&mut switch, FlowCommand::Add, 0..1000);
    let mut live = Live::new(&mut switch, 1).unwrap();
    let mut worker = live.worker(0);
    change(&mut switch, FlowCommand::DeleteStrict, 0..100);
    live.update(&mut switch);
    let job = live.job().unwrap();
    let mut last = 1000;
    while !live.is_behind() {
        send(&mut worker, [last], false);
        change(&mut switch, FlowCommand::Add, last..last + 1024);
        live.update(&mut switch);
        send(&mut worker, [100, last, last + 1023], true);
        last += 1024;
    }
    assert!((131_072..135_000).contains(&last), "{last}");
    assert!(live.is_pressing());
    change(&mut switch, FlowCommand::DeleteStrict, 1000..1200);
    live.update(&mut switch);
    send(&mut worker, (0..100).chain(1000..1200), false);
    send(&mut worker, (100..1000).chain(1200..last), true);
    // The changes made meanwhile lie on top of the new base.
    let made = job.run().unwrap();
    change(&mut switch, FlowCommand::DeleteStrict, [1200]);
    live.update(&mut switch);
    send(&mut worker, [1200], false);
    live.finish(&mut switch, made);
    send(&mut worker, [1200], false);
    assert!(!live.is_behind());
    let kept = 1201;
    send(&mut worker, (0..100).chain(1000..kept), false);
    send(&mut worker, (100..1000).chain(kept..last), true);
    live.settle(&mut switch);
    let table = &switch.tables()[0];
    assert_eq!(table.len(), 900 + (last - kept) as usize);
    let expected = |address: u128| 2 + u64::from(address >= 1200 && matches!(address % 1024, 1000 | 999));
    for address in (101..1000).chain(kept..last) {
        let flow = table.flow(&Rank::new(1, flow(address).matching)).unwrap();
        assert_eq!(flow.counters.packets, expected(address), "{address}");
    }
    while live.tidy(&mut switch) {}
    let job = live.job().unwrap();
    let made = job.run().unwrap();
    live.finish(&mut switch, made);
    send(&mut worker, (100..1000).chain(kept..last), true);
    // A rule that changes keeps its counts, in the base and on top of it.
    for port in [3, 4] {
        let matching = flow(5000).matching;
        let what = Instructions::apply([Action::output(port)]);
        let modify = FlowMod { command: FlowCommand::ModifyStrict, ..FlowMod::add(0, 1, matching, what) };
        switch.flow_mod(Time::ZERO, &modify).unwrap();
        live.update(&mut switch);
        worker.begin(Time::ZERO);
        let mut frame = [0; 60];
        frame[..6].copy_from_slice(&5000u128.to_be_bytes()[10..]);
        worker.run(1, &mut frame);
    }
    live.settle(&mut switch);
    let changed = switch.tables()[0].flow(&Rank::new(1, flow(5000).matching)).unwrap();
    assert_eq!(changed.counters.packets, expected(5000) + 3);
}

#[test]
fn what_a_group_and_its_buckets_have_counted_outlives_a_change_of_the_group() {
    let mut switch = Switch::new(Limits { tables: 1, ..Limits::default() });
    (1..=2).for_each(|number| switch.set_port(number, Port::up()));
    let request = |command, ids: &[u32]| {
        let bucket = |id: &u32| Bucket { id: *id, ..Bucket::new([Action::output(2)]) };
        GroupMod { command, id: 1, kind: GroupKind::All, buckets: ids.iter().map(bucket).collect() }
    };
    switch.group_mod(Time::ZERO, &request(GroupCommand::Add, &[10, 20])).unwrap();
    let to_group = Instructions::apply([Action::Group(1)]);
    switch.flow_mod(Time::ZERO, &FlowMod::add(0, 1, Match::any(), to_group)).unwrap();
    let mut live = Live::new(&mut switch, 2).unwrap();
    let (mut quick, mut slow) = (live.worker(0), live.worker(1));
    let run = |worker: &mut Worker, packets: usize| {
        (0..packets).for_each(|_| assert_eq!(worker.run(1, &mut [0; 60]), Fate::Done));
    };
    let counted = |live: &mut Live, switch: &mut Switch| {
        live.settle(switch);
        let group = switch.group(1).unwrap();
        let buckets = group.bucket_counters.iter().map(|counters| counters.packets);
        (group.counters.packets, buckets.collect::<Vec<_>>())
    };
    [&mut quick, &mut slow].into_iter().for_each(|worker| worker.begin(Time::ZERO));
    run(&mut quick, 3);
    let insert = request(GroupCommand::InsertBuckets(BUCKET_FIRST), &[5]);
    switch.group_mod(Time::ZERO, &insert).unwrap();
    live.update(&mut switch);
    quick.begin(Time::ZERO);
    run(&mut quick, 2);
    // This worker is still with the group as it was.
    run(&mut slow, 4);
    assert_eq!(counted(&mut live, &mut switch), (9, vec![2, 9, 9]));
    run(&mut slow, 1);
    switch.group_mod(Time::ZERO, &request(GroupCommand::RemoveBuckets(10), &[])).unwrap();
    live.update(&mut switch);
    run(&mut slow, 1);
    [&mut quick, &mut slow].into_iter().for_each(|worker| worker.begin(Time::ZERO));
    assert_eq!(counted(&mut live, &mut switch), (11, vec![2, 11]));
    // A modification counts the buckets from zero, as the specification has it.
    run(&mut quick, 1);
    switch.group_mod(Time::ZERO, &request(GroupCommand::Modify, &[20])).unwrap();
    live.update(&mut switch);
    assert_eq!(counted(&mut live, &mut switch), (12, vec![0]));
}
