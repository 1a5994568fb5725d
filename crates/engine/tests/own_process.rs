//! A running engine shown, changed and captured by the process that runs it, with typed values.
#![cfg(target_os = "linux")]

mod common;

use common::{finish, options, two_hosts};
use fastpath_engine::port::{Memory, MemoryEnd, Port};
use fastpath_engine::{CaptureError, CaptureFilter, ChangeError, Idle, Running, start};
use fastpath_link::{Change, PipeSpec};
use fastpath_net::EdgeId;
use fastpath_spec::{Direction, LinkId};
use fastpath_units::{Duration, Time};
use fastpath_wire::pcap::CaptureReader;
use serde_json::json;
use std::time::Instant;

const MS: Duration = Duration::from_ms(1);

fn run() -> (Running, [MemoryEnd; 2]) {
    let [(a, end_a), (b, end_b)] = ["a", "b"].map(|name| Memory::new(name, 1 << 20));
    let ports: Vec<(EdgeId, Box<dyn Port>)> = vec![(EdgeId(0), Box::new(a)), (EdgeId(1), Box::new(b))];
    let pipe = PipeSpec { delay: MS, ..PipeSpec::default() };
    (start(two_hosts(pipe, [None, None]), ports, options(Idle::Save)).unwrap(), [end_a, end_b])
}

fn delay(ms: u64) -> Change {
    Change { delay: Some(Duration::from_ms(ms)), ..Change::default() }
}

#[test]
fn a_change_applies_to_its_direction_and_is_listed_as_a_request_would_be() {
    let (running, _ends) = run();
    let at = running.change(None, vec![(LinkId(0), Direction::Backward, delay(20))]).unwrap();
    let [there, back] = running.pipes(LinkId(0)).unwrap();
    assert_eq!((there.delay, back.delay), (MS, MS * 20));
    let listed = &running.changes()["changes"][0];
    assert_eq!((&listed["link"], &listed["from"]), (&json!("a-b"), &json!("b")));
    assert_eq!(listed["set"], json!({ "delay": "20ms" }));
    assert_eq!(listed["at_s"], json!(at.as_secs_f64()));
    finish(running);
}

#[test]
fn a_change_in_the_past_is_refused_and_changes_nothing() {
    let (running, _ends) = run();
    let refused = running.change(Some(Time::ZERO), vec![(LinkId(0), Direction::Both, delay(20))]);
    assert!(matches!(refused, Err(ChangeError::Past { .. })), "{refused:?}");
    assert_eq!(running.pipes(LinkId(0)).unwrap().map(|pipe| pipe.delay), [MS, MS]);
    assert_eq!(running.changes()["changes"], json!([]));
    finish(running);
}

#[test]
fn frames_of_one_direction_are_captured_until_the_capture_ends() {
    let (running, [a, b]) = run();
    let filter = CaptureFilter { from: Some("a".to_owned()), ..CaptureFilter::default() };
    let mut capture = running.capture(&filter).unwrap();
    a.send([[1; 60].as_slice(), [2; 70].as_slice()]);
    b.send([[3; 60].as_slice()]);
    let (mut received, began) = (0, Instant::now());
    while received < 2 && began.elapsed().as_secs() < 10 {
        received += b.recv(2, |_| {});
    }
    let mut file = capture.read(std::time::Duration::ZERO).expect("the engine runs");
    assert_eq!(capture.missed(), 0);
    file.extend(capture.end());
    let mut reader = CaptureReader::new(file.as_slice()).unwrap();
    let mut lengths = Vec::new();
    while let Some(packet) = reader.read_packet().unwrap() {
        lengths.push(packet.data.len());
    }
    assert_eq!(lengths, [60, 70]);
    let nowhere = CaptureFilter { from: Some("x".to_owned()), ..CaptureFilter::default() };
    assert_eq!(running.capture(&nowhere).err(), Some(CaptureError::NoDirection("x".to_owned())));
    finish(running);
}
