//! The distribution programs that some tests drive through an emulated network, and how to get
//! them.
//!
//! `fastpath` itself needs none of them: they are real applications whose traffic the tests emulate
//! links for.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each program, by name or path, with its Debian package.
const PROGRAMS: &[(&str, &str)] = &[
    ("/usr/lib/frr/zebra", "frr"),
    ("/usr/share/doc/busybox-static", "busybox-static"),
    ("bird", "bird2"),
    ("chromium", "chromium"),
    ("crun", "crun"),
    ("curl", "curl"),
    ("ip", "iproute2"),
    ("iperf3", "iperf3"),
    ("nft", "nftables"),
    ("ovs-ofctl", "openvswitch-common"),
    ("passt", "passt"),
    ("ping", "iputils-ping"),
    ("podman", "podman"),
    ("slirp4netns", "slirp4netns"),
    ("tcpdump", "tcpdump"),
    ("traceroute", "traceroute"),
];

/// Installs missing programs where that is possible, and prints what it does.
pub(crate) fn install_missing() {
    install(PROGRAMS);
    unpack("openvswitch", "usr/bin/ovs-vsctl", "openvswitch-switch");
    install_controller("osken", "apps/rest_router.py", "os-ken (160 MB)", install_os_ken);
    install_controller("faucet", "bin/faucet", "Faucet (160 MB)", |venv| pip(venv, &[FAUCET]));
    install_controller("playwright", "bin/playwright", "Playwright (200 MB)", |venv| {
        pip(venv, &[PLAYWRIGHT])
    });
}

/// Unpacks a Debian package below the target directory, unless `file` of it is there: its programs
/// are wanted, and its services are not. Without apt-get or network access the tests of its
/// programs are skipped.
fn unpack(directory: &str, file: &str, package: &str) {
    let to = target_directory().join(directory);
    if to.join(file).exists() || !on_path("apt-get") || !on_path("dpkg") {
        return;
    }
    println!("xtask: some tests run {file} of {package}: unpacking it into {}", to.display());
    let is_deb = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "deb");
    let unpacked = || {
        fs::create_dir_all(&to).ok()?;
        let mut download = Command::new("apt-get");
        download.args(["download", "-qq", package]).current_dir(&to);
        download.status().ok().filter(|status| status.success())?;
        let deb = fs::read_dir(&to).ok()?.filter_map(|entry| Some(entry.ok()?.path())).find(is_deb)?;
        let status = Command::new("dpkg").arg("-x").arg(&deb).arg(&to).status().ok()?;
        fs::remove_file(deb).ok()?;
        status.success().then_some(())
    };
    if unpacked().is_none() {
        println!("xtask: {package} is not here; what needs it is skipped");
    }
}

fn target_directory() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from)
}

/// The release that still contains os-ken's applications; newer releases omit them.
const APPLICATIONS_FROM: &str = "os-ken==1.3.0";
/// The release that the tests drive the switch with.
const OS_KEN: &str = "os-ken==3.1.1";
/// A further dependency of the applications.
const RPC: &str = "tinyrpc==1.1.7";
/// The other controller.
const FAUCET: &str = "faucet==1.10.12";
/// What drives a browser that shows the dashboard.
const PLAYWRIGHT: &str = "playwright==1.65.2";

/// Installs a controller from PyPI into a virtual environment under the target directory, unless
/// `file` exists. Without Python or network access the tests of the controller are skipped.
fn install_controller(directory: &str, file: &str, name: &str, install: fn(&Path) -> bool) {
    let venv = target_directory().join(directory);
    if venv.join(file).exists() || !on_path("python3") {
        return;
    }
    println!("xtask: some tests drive {name}: installing it from PyPI into {}", venv.display());
    let made = Command::new("python3").args(["-m", "venv"]).arg(&venv).status();
    if !made.is_ok_and(|status| status.success()) || !install(&venv) {
        println!("xtask: {name} is not here; its tests are skipped");
    }
}

fn pip(venv: &Path, packages: &[&str]) -> bool {
    let mut command = Command::new(venv.join("bin/pip"));
    command.args(["--quiet", "install"]).args(packages).status().is_ok_and(|status| status.success())
}

fn install_os_ken(venv: &Path) -> bool {
    let older = venv.join("older");
    let applications = venv.join("apps");
    let copy = |name: &str, to: &Path| fs::copy(older.join("os_ken/app").join(name), to.join(name)).is_ok();
    pip(venv, &[OS_KEN, RPC])
        && pip(venv, &["--no-deps", "--target", &older.to_string_lossy(), APPLICATIONS_FROM])
        && fs::create_dir_all(&applications).is_ok()
        && packages_of(venv).is_some_and(|packages| copy("wsgi.py", &packages.join("os_ken/app")))
        && copy("simple_switch_13.py", &applications)
        && copy("rest_router.py", &applications)
}

/// The package directory of a virtual environment.
fn packages_of(venv: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(venv.join("lib")).ok()?.filter_map(Result::ok);
    versions.map(|version| version.path().join("site-packages")).find(|packages| packages.is_dir())
}

/// Installs the Debian packages of missing programs; needs root.
pub(crate) fn install(programs: &[(&'static str, &'static str)]) {
    let missing: Vec<_> = programs.iter().copied().filter(|(program, _)| !on_path(program)).collect();
    if missing.is_empty() || !cfg!(target_os = "linux") {
        return;
    }
    let packages: Vec<&str> = missing.iter().map(|&(_, package)| package).collect();
    if !is_root() || !on_path("apt-get") {
        println!(
            "xtask: not here: {}; what needs them is skipped (install them to run all)",
            packages.join(" ")
        );
        return;
    }
    println!(
        "xtask: some tests or tasks run programs of the distribution: apt-get install {}",
        packages.join(" ")
    );
    if !apt_get(&["update", "-qq"]) || !apt_get(&[&["install", "-y", "-qq"], &packages[..]].concat()) {
        println!("xtask: apt-get failed; what needs these programs is skipped");
    }
}

fn on_path(program: &str) -> bool {
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).chain(system).any(|directory| directory.join(program).exists())
}

/// Asks id(1): no crate of this workspace outside `sys` directories calls libc.
fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

/// Runs apt-get without questions, and without starting the services it installs; false when it
/// failed.
fn apt_get(arguments: &[&str]) -> bool {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1").env("SYSTEMD_OFFLINE", "1");
    command.args(["-o", "APT::Install-Recommends=false"]);
    command.args(arguments).status().is_ok_and(|status| status.success())
}
