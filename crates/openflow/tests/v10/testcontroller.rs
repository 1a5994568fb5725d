//! `ovs-testcontroller` of Open vSwitch, which is also Mininet's default controller, and the agent.

use super::ofctl::Ends;
use crate::common::{Harness, until};
use crate::stations;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Stdio};

/// Starts the controller on a free port, and returns the port; `None` if it is not installed.
fn start(options: &[&str]) -> Option<(Ends, u16)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut command = Command::new("ovs-testcontroller");
    command
        .arg("--unixctl=none")
        .args(options)
        .arg(format!("ptcp:{port}:127.0.0.1"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match command.spawn() {
        // The switch dials until it answers.
        Ok(child) => Some((Ends(child), port)),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => panic!("ovs-testcontroller: {error}"),
    }
}

#[test]
fn ovs_testcontroller_makes_a_learning_switch() {
    for options in [&[][..], &["-O", "OpenFlow10"], &["-O", "OpenFlow13"]] {
        let Some((_controller, port)) = start(options) else {
            eprintln!(
                "SKIPPED: ovs_testcontroller_makes_a_learning_switch: ovs-testcontroller is not installed"
            );
            return;
        };
        let harness = Harness::dialling_to(port);
        // Until the controller is there, packets are dropped.
        let first = harness.send_until(1, &stations(1, 9), 2);
        assert_eq!(first, stations(1, 9));
        // The answer goes where the controller has seen its destination, by a flow.
        harness.send(2, &stations(2, 1));
        until(|| (harness.receive(1) == stations(2, 1)).then_some(()));
        until(|| (harness.flow_count() >= 2).then_some(()));
        harness.send(2, &stations(2, 1));
        assert_eq!(harness.receive(1), stations(2, 1));
        let accounting = harness.stop();
        assert!(accounting.balances(), "{accounting:?}");
    }
}
