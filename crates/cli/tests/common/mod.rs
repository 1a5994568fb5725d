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

/// Returns a command prefix that runs a program as a user with no rights on this machine; the
/// reason if that cannot be done. A device of the user's own covers /dev/net/tun, which some
/// machines close to users.
pub(crate) fn user_without_rights() -> Result<Vec<&'static str>, String> {
    const AS_USER: &str = "d=$(mktemp -d) && mount -t tmpfs none \"$d\" && mknod -m 666 \"$d/tun\" c 10 200 \
        && mount --bind \"$d/tun\" /dev/net/tun && umount -l \"$d\" && rmdir \"$d\" \
        && exec setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all \"$@\"";
    let words = vec!["unshare", "-m", "sh", "-c", AS_USER, "sh"];
    // It may make namespaces and read the programs of the tests.
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let look = "test -x \"$0\" || { echo \"a user cannot run $0\" >&2; exit 1; }; exec unshare -Urn true";
    let output = Command::new(words[0]).args(&words[1..]).args(["sh", "-c", look]).arg(own).output();
    let output = output.map_err(|error| format!("unshare: {error}"))?;
    match output.status.success() {
        true => Ok(words),
        false => Err(format!("no user without rights: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
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
