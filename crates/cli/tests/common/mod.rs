//! Helpers shared by the tests of the program: visible skips, and prefixes that run a command with
//! fewer privileges.
#![allow(dead_code)] // each test program uses only some helpers

use std::process::Command;

/// Reports visibly that a test could not run here.
pub(crate) fn skip(test: &str, why: &str) {
    let line = format!("SKIPPED: {test}: {why}\n");
    eprint!("{line}");
    if let Some(log) = std::env::var_os("FASTPATH_SKIP_LOG") {
        use std::io::Write;
        let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("writing the log of skipped tests");
    }
}

/// Returns a command prefix that runs a program as an ordinary user without capabilities; `None` if
/// unshare(1) cannot.
pub(crate) fn as_ordinary_user() -> Option<Vec<&'static str>> {
    usable(vec!["unshare", "-U", "--map-user=1000", "--map-group=1000"])
}

/// Returns a command prefix that runs a program where network namespaces cannot be created; `None`
/// if such an environment is unavailable.
pub(crate) fn without_namespaces() -> Option<Vec<&'static str>> {
    let none = "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$@\"";
    usable(vec!["unshare", "-Ur", "sh", "-c", none, "sh"])
}

fn usable(words: Vec<&'static str>) -> Option<Vec<&'static str>> {
    let output = Command::new(words[0]).args(&words[1..]).arg("true").output();
    output.is_ok_and(|output| output.status.success()).then_some(words)
}
