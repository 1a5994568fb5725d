//! The distribution programs that some tests drive through an emulated network, and how to get them.
//!
//! Nothing here is needed by `fastpath` itself: the programs are real applications to be emulated for.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Program and the Debian package it is in.
const PROGRAMS: &[(&str, &str)] = &[
    ("curl", "curl"),
    ("ip", "iproute2"),
    ("iperf3", "iperf3"),
    ("ovs-ofctl", "openvswitch-common"),
    ("ping", "iputils-ping"),
    ("tcpdump", "tcpdump"),
    ("traceroute", "traceroute"),
];

/// What is missing is installed where that is possible, and what is done is said.
pub(crate) fn install_missing() {
    install_packages();
    install_os_ken();
}

/// os-ken's applications, which its newer releases leave out, from this one.
const APPLICATIONS_FROM: &str = "os-ken==1.0.0";
/// The release that the tests drive the switch with.
const OS_KEN: &str = "os-ken==3.1.1";

/// Puts os-ken (a controller) into a virtual environment under the target directory, from PyPI. Without Python or the
/// network its tests are skipped.
fn install_os_ken() {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let venv = target.join("osken");
    let applications = venv.join("apps");
    if applications.join("simple_switch_13.py").exists() || !on_path("python3") {
        return;
    }
    println!("xtask: some tests drive a controller: pip install {OS_KEN} into {}", venv.display());
    let run = |program: &Path, arguments: &[&str]| {
        let arguments = arguments.iter().map(OsStr::new).chain([venv.as_os_str()]);
        Command::new(program).args(arguments).status().is_ok_and(|status| status.success())
    };
    let pip = |arguments: &[&str]| {
        let mut command = Command::new(venv.join("bin/pip"));
        command.args(["--quiet", "install"]).args(arguments).status().is_ok_and(|status| status.success())
    };
    let older = venv.join("older");
    let done = run(Path::new("python3"), &["-m", "venv"])
        && pip(&[OS_KEN])
        && pip(&["--no-deps", "--target", &older.to_string_lossy(), APPLICATIONS_FROM])
        && fs::create_dir_all(&applications).is_ok()
        && fs::copy(older.join("os_ken/app/simple_switch_13.py"), applications.join("simple_switch_13.py"))
            .is_ok();
    if !done {
        println!("xtask: os-ken is not here; its tests are skipped");
    }
}

/// Debian's packages, for root.
fn install_packages() {
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
