//! Shared by the tests with real programs: a lab that is removed afterwards, and visible skips.

use fastpath_lab::{Lab, UpError};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Brings `spec` up. Returns `None`, and reports a skip, where the system does not permit it.
pub(crate) fn up(test: &str, spec: &str) -> Option<Lab> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (topology, _) = fastpath_spec::parse(spec).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    let network = fastpath_net::Options::default();
    let name = format!("test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    match Lab::up(topology, &name, fastpath_engine::Options::new(network)) {
        Ok(lab) => Some(lab),
        Err(UpError::NotPermitted(why)) => skip(test, &why.to_string()),
        Err(other) => panic!("{test}: {other}"),
    }
}

/// As [`up`], for a test that needs a program that may not be installed.
#[allow(dead_code)] // not every test file needs one
pub(crate) fn up_with(test: &str, program: &str, spec: &str) -> Option<Lab> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let sbin = ["/usr/sbin", "/sbin"].map(Path::new).map(Path::to_owned);
    let installed =
        std::env::split_paths(&paths).chain(sbin).any(|directory| directory.join(program).is_file());
    if installed { up(test, spec) } else { skip(test, &format!("{program} is not installed")) }
}

/// Starts a program in a host.
pub(crate) fn start(lab: &Lab, host: &str, argv: &[&str]) -> Child {
    let mut command = Command::new(argv[0]);
    command.args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    lab.spawn(lab.host(host).unwrap(), &mut command).unwrap_or_else(|error| panic!("{argv:?}: {error}"))
}

/// Runs a program in a host to its end.
#[allow(dead_code)] // not every test file needs it
pub(crate) fn run(lab: &Lab, host: &str, argv: &[&str]) -> (Output, String) {
    let output = start(lab, host, argv).wait_with_output().unwrap();
    let text = [&output.stdout[..], &output.stderr].concat();
    (output, String::from_utf8_lossy(&text).into_owned())
}

/// Reports a skip.
#[allow(dead_code)] // not every test file needs it
pub(crate) fn skip_test(test: &str, why: &str) {
    let _: Option<()> = skip(test, why);
}

fn skip<T>(test: &str, why: &str) -> Option<T> {
    let line = format!("SKIPPED: {test}: {why}\n");
    eprint!("{line}");
    if let Some(log) = std::env::var_os("FASTPATH_SKIP_LOG") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("writing the log of skipped tests");
    }
    None
}
