//! What several tests of the program share: skips that can be seen, and users with less privilege
//! than the test's.
#![allow(dead_code)] // each test program uses a part

use std::process::Command;

/// Says visibly that a test could not run here.
pub(crate) fn skip(test: &str, why: &str) {
    let line = format!("SKIPPED: {test}: {why}\n");
    eprint!("{line}");
    if let Some(log) = std::env::var_os("FASTPATH_SKIP_LOG") {
        use std::io::Write;
        let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("writing the log of skipped tests");
    }
}

/// Words that run what follows them as an ordinary user, without any capability; `None` where
/// unshare(1) cannot.
pub(crate) fn as_ordinary_user() -> Option<Vec<&'static str>> {
    usable(vec!["unshare", "-U", "--map-user=1000", "--map-group=1000"])
}

/// Words that run what follows them where nobody may make network namespaces; `None` where that
/// cannot be had.
pub(crate) fn without_namespaces() -> Option<Vec<&'static str>> {
    let none = "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$@\"";
    usable(vec!["unshare", "-Ur", "sh", "-c", none, "sh"])
}

fn usable(words: Vec<&'static str>) -> Option<Vec<&'static str>> {
    let output = Command::new(words[0]).args(&words[1..]).arg("true").output();
    output.is_ok_and(|output| output.status.success()).then_some(words)
}
