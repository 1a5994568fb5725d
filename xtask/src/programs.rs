//! The distribution programs that some tests drive through an emulated network, and how to get them.
//!
//! Nothing here is needed by `fastpath` itself: the programs are real applications to be emulated for.

use std::env;
use std::process::Command;

/// Program and the Debian package it is in.
const PROGRAMS: &[(&str, &str)] = &[
    ("curl", "curl"),
    ("ip", "iproute2"),
    ("iperf3", "iperf3"),
    ("ping", "iputils-ping"),
    ("tcpdump", "tcpdump"),
    ("traceroute", "traceroute"),
];

/// Installs what is missing where that is possible (root, apt-get), and says what it does.
pub(crate) fn install_missing() {
    let missing = missing();
    if missing.is_empty() || !cfg!(target_os = "linux") {
        return;
    }
    let packages: Vec<&str> = missing.iter().map(|&(_, package)| package).collect();
    if !is_root() || !on_path("apt-get") {
        println!(
            "xtask: not here: {}; their tests are skipped (install them to run all)",
            packages.join(" ")
        );
        return;
    }
    println!("xtask: some tests drive programs of the distribution: apt-get install {}", packages.join(" "));
    if !apt_get(&["update", "-qq"]) || !apt_get(&[&["install", "-y", "-qq"], &packages[..]].concat()) {
        println!("xtask: apt-get failed; the tests of these programs are skipped");
    }
}

fn missing() -> Vec<(&'static str, &'static str)> {
    PROGRAMS.iter().copied().filter(|(program, _)| !on_path(program)).collect()
}

fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Asks id(1): no crate of this workspace outside `sys` directories calls libc.
fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

/// Runs apt-get without questions; false when it failed.
fn apt_get(arguments: &[&str]) -> bool {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["-o", "APT::Install-Recommends=false"]);
    command.args(arguments).status().is_ok_and(|status| status.success())
}
