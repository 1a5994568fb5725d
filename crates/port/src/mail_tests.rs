//! Tests of `mail.rs`.

use super::*;
use fastpath_net::{EdgeId, Network, Options, Partition};
use fastpath_units::Duration;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicUsize;

const TEXT: &str = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\ndelay = '1ms'\n";

/// The part of host a, with a frame of 60 bytes for the other part, due after a millisecond.
fn sender() -> Network {
    let (topology, _) = fastpath_spec::parse(TEXT).expect("a valid spec");
    let partition = Partition::new(&topology, NonZeroUsize::new(2).expect("2"));
    let mut network = Network::new(topology, Options::default());
    network.cut(&partition, 0);
    add(&mut network);
    network
}

fn add(network: &mut Network) {
    let frame = network.pool_mut().insert(&[7; 60]).expect("there is memory");
    network.push(Time::ZERO, EdgeId(0), frame);
    assert!(network.hand_over(Time::ZERO));
}

/// The posts of two workers, and how often the second was woken.
fn posts(bytes_max: usize) -> (Post, Post, Arc<AtomicUsize>) {
    let woken = Arc::new(AtomicUsize::new(0));
    let copy = Arc::clone(&woken);
    let wake = move || {
        copy.fetch_add(1, Ordering::Relaxed);
    };
    let room = Arc::new(MailRoom::new(vec![Box::new(|| ()), Box::new(wake)], bytes_max));
    (Post::new(Arc::clone(&room), 0), Post::new(room, 1), woken)
}

fn at(us: u64) -> Time {
    Time::ZERO + Duration::from_us(us)
}

#[test]
fn a_receiver_is_woken_only_if_it_would_sleep_past_the_first_frame() {
    for (until, wakes) in [(999, 0), (1000, 0), (1001, 1)] {
        let (from, to, woken) = posts(1 << 20);
        assert!(to.fall_asleep(at(until)));
        assert_eq!(from.send(1, sender().crossings_mut(1)), Posted::Sent);
        assert_eq!(woken.load(Ordering::Relaxed), wakes, "{until}");
        assert_eq!(from.send(1, sender().crossings_mut(1)), Posted::Sent);
        assert_eq!(woken.load(Ordering::Relaxed), wakes, "once");
        assert!(!to.fall_asleep(at(until)), "there is mail");
        let mut mail = Crossings::default();
        assert_eq!((to.take(0, &mut mail), mail.len()), (Some(false), 2));
        assert!(to.fall_asleep(at(until)));
    }
}

#[test]
fn frames_stay_with_their_sender_while_the_mailbox_is_full_or_has_other_numbers() {
    let (mut from, mut to, _) = posts(60);
    let mut network = sender();
    assert_eq!(from.send(1, network.crossings_mut(1)), Posted::Sent);
    add(&mut network);
    assert_eq!(from.send(1, network.crossings_mut(1)), Posted::Sent, "60 bytes are not too many");
    add(&mut network);
    assert_eq!(from.send(1, network.crossings_mut(1)), Posted::Full);
    from.follow_change();
    assert_eq!((from.send(1, network.crossings_mut(1)), network.crossings_mut(1).len()), (Posted::Later, 1));
    let mut mail = Crossings::default();
    assert_eq!((to.take(0, &mut mail), mail.len()), (Some(false), 2));
    assert_eq!(from.send(1, network.crossings_mut(1)), Posted::Sent);
    let mut mail = Crossings::default();
    assert_eq!(to.take(0, &mut mail), None, "of a topology that is still to come");
    to.follow_change();
    assert_eq!((to.take(0, &mut mail), mail.len()), (Some(false), 1));
    add(&mut network);
    assert_eq!(from.send(1, network.crossings_mut(1)), Posted::Sent);
    to.follow_change();
    assert_eq!(to.take(0, &mut Crossings::default()), Some(true), "of the topology before");
}

#[test]
fn nobody_waits_for_a_mailbox_in_use() {
    let (from, to, _) = posts(1 << 20);
    let mut network = sender();
    let room = Arc::clone(&from.room);
    let in_use = room.boxes[1].mail.lock().unwrap();
    assert_eq!(from.send(1, network.crossings_mut(1)), Posted::Later);
    room.boxes[1].has_mail.store(true, Ordering::Relaxed);
    assert_eq!(to.take(0, &mut Crossings::default()), None);
    drop(in_use);
    assert_eq!(from.send(1, network.crossings_mut(1)), Posted::Sent);
}
