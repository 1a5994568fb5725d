//! Links of a lab, changed and captured by the process that brought it up.
#![cfg(target_os = "linux")]

mod common;

use common::{run, up_with};
use fastpath_engine::CaptureFilter;
use fastpath_lab::LinkError;
use fastpath_link::Change;
use fastpath_units::Duration;
use std::time::Instant;

const SPEC: &str = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\ndelay = '1ms'\n";

#[test]
fn a_ping_takes_the_delay_that_a_link_is_given() {
    let Some(lab) = up_with("changes by typed values", "ping", SPEC) else { return };
    let to = lab.host("b").unwrap().address().unwrap().to_string();
    let link = lab.link("a-b").unwrap();
    assert_eq!((link.name(), link.ends()), ("a-b", ["a", "b"]));
    let delay = |ms| Change { delay: Some(Duration::from_ms(ms)), ..Change::default() };
    link.set(delay(200)).unwrap();
    link.set_from("b", delay(300)).unwrap();
    assert_eq!(link.pipes().unwrap().map(|pipe| pipe.delay), [200, 300].map(Duration::from_ms));
    let capture = lab.capture(&CaptureFilter { links: vec![link.id()], ..CaptureFilter::default() }).unwrap();
    let began = Instant::now();
    assert!(run(&lab, "a", &["ping", "-n", "-c1", "-W9", &to]).0.status.success());
    assert!(began.elapsed().as_millis() >= 500, "{:?}", began.elapsed());
    assert!(link.report().unwrap().directions.iter().all(|pipe| pipe.frames_out > 0));
    // A capture begins with the block type of a section header (pcapng, §4.1).
    assert_eq!(capture.end()[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    assert_eq!(lab.links().map(|link| link.name()).collect::<Vec<_>>(), ["a-b"]);
    let unknown = lab.link("b-c").unwrap_err().to_string();
    assert_eq!(unknown, "no link is called 'b-c' (have: a-b)");
    assert!(matches!(link.set_from("c", delay(1)), Err(LinkError::NoDirection { .. })));
}
