//! `fastpath shell` and `fastpath netem` on the real kernel, in a network namespace of their own (unshare(1)).

use std::process::{Command, Output};

/// Runs a script with `$F` as the program where nothing else is; `None`, said visibly, where that is not permitted.
fn alone(test: &str, script: &str) -> Option<Output> {
    let permitted = Command::new("unshare").args(["-n", "sh", "-c", "test -w /dev/net/tun"]).output();
    if !permitted.is_ok_and(|output| output.status.success()) {
        let line = format!("SKIPPED: {test}: no network namespaces or TAPs here\n");
        eprint!("{line}");
        if let Some(log) = std::env::var_os("FASTPATH_SKIP_LOG") {
            use std::io::Write;
            let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
            file.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
        }
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", script]).env("F", env!("CARGO_BIN_EXE_fastpath"));
    Some(command.output().unwrap())
}

#[test]
fn shells_nest_and_their_exit_code_is_the_programs() {
    let script = "$F shell --delay 1ms -- $F shell --rate 10Mbit -- sh -c 'cat /proc/net/route; exit 7'";
    let Some(output) = alone("shells_nest", script) else { return };
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let routes = String::from_utf8(output.stdout).unwrap();
    // The default route goes to 100.68.64.1, the end of the inner link; /proc writes addresses backwards.
    assert!(routes.contains("eth0\t00000000\t01404464"), "{routes}");
}

#[test]
fn netem_refuses_what_tc_refuses_and_interfaces_that_are_not_there() {
    let script = "$F netem dev lo delay 1ms bogus; echo $?; $F netem dev nope0 delay 1ms; echo $?";
    let Some(output) = alone("netem_refuses", script) else { return };
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("what is 'bogus'?") && said.contains("port nope0: no such interface"), "{said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "2\n2\n");
}
