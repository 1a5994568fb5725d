//! Controllers over TLS.

use super::common::Harness;
use super::{flow, frame, wire};

#[test]
fn tls_accepts_a_controller_with_a_valid_certificate_and_no_other() {
    if cfg!(not(feature = "tls")) {
        eprintln!(
            "SKIPPED: tls_accepts_a_controller_with_a_valid_certificate_and_no_other: no --features tls"
        );
        return;
    }
    let harness = Harness::tls();
    let mut controller = harness.tls_controller("controller").expect("the handshake succeeds");
    controller.greet();
    controller.say(&flow(wire(1, 2)));
    controller.barrier();
    harness.send(1, &frame(7));
    assert_eq!(harness.receive(2), frame(7));
    assert!(harness.tls_controller("stranger").is_none_or(|mut peer| peer.is_closed()));
}
