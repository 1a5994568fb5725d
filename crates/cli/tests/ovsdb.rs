//! Tests `fastpath switch --ovsdb` with Debian's ovsdb-server and ovs-vsctl, in network namespaces.
//! `cargo xtask test` gets the programs. A test is skipped if one is missing.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a script after `database.sh`, in a network namespace in which it can create further ones.
/// They all end with their processes.
fn in_namespaces(test: &str, script: &str) {
    let unpacked = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../openvswitch/usr");
    let Some(unpacked) = unpacked.canonicalize().ok().filter(|path| path.join("bin/ovs-vsctl").exists())
    else {
        return common::skip(test, "no ovs-vsctl (cargo xtask test gets it)");
    };
    for program in ["/usr/sbin/ovsdb-server", "/usr/bin/ovsdb-tool", "/usr/bin/ovs-ofctl", "/dev/net/tun"] {
        if !Path::new(program).exists() {
            return common::skip(test, &format!("no {program}"));
        }
    }
    // The directory of `ip netns`; the script mounts a private one there.
    fs::create_dir_all("/run/netns").unwrap_or_default();
    // The path of a socket has at most 107 bytes.
    let directory = std::env::temp_dir().join(format!("fp-{test}-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let _guard = Removed(directory.clone());
    let script = [include_str!("ovsdb/database.sh"), script].concat();
    let output = Command::new("unshare")
        .args(["-n", "-m", "--propagation", "private", "sh", "-c", &script])
        .env("FASTPATH", env!("CARGO_BIN_EXE_fastpath"))
        .env("DIRECTORY", &directory)
        .env("OVS", &unpacked)
        .output();
    let text = |output: &std::process::Output| {
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
    };
    match output {
        Ok(output) if text(&output).contains("unshare failed") => {
            common::skip(test, "namespaces are not permitted here");
        }
        Ok(output) => assert!(output.status.success(), "{}", text(&output)),
        Err(error) => common::skip(test, &format!("unshare: {error}")),
    }
}

/// A directory that is removed at the end of a test.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn bridges_ports_and_controllers_come_and_go() {
    in_namespaces("ovsdb-bridges", include_str!("ovsdb/bridges.sh"));
}

#[test]
fn the_data_path_goes_on_without_the_database() {
    in_namespaces("ovsdb-away", include_str!("ovsdb/away.sh"));
}

#[test]
fn nonsense_is_refused_where_the_database_has_a_place_for_it() {
    in_namespaces("ovsdb-nonsense", include_str!("ovsdb/nonsense.sh"));
}

#[test]
fn ports_carry_their_vlans() {
    in_namespaces("ovsdb-vlans", include_str!("ovsdb/vlans.sh"));
}

#[test]
fn mirrors_copy_packets() {
    in_namespaces("ovsdb-mirrors", include_str!("ovsdb/mirrors.sh"));
}

#[cfg(feature = "tls")]
#[test]
fn databases_and_controllers_are_reached_by_tls_with_certificates_of_openssl() {
    in_namespaces("ovsdb-ssl", include_str!("ovsdb/ssl.sh"));
}

#[test]
fn a_host_of_a_lab_is_a_switch_with_a_database_of_its_own() {
    in_namespaces("ovsdb-lab", include_str!("ovsdb/lab.sh"));
}

#[test]
fn queues_have_their_rates_and_bridges_listen_for_ovs_ofctl() {
    in_namespaces("ovsdb-queues", include_str!("ovsdb/queues.sh"));
}
