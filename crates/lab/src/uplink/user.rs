//! An uplink as a user: pasta or slirp4netns, whichever is there, carries packets between the
//! namespace of the uplink and sockets of its own. It runs in the scope of the lab, so it ends with
//! it.

use super::{INTERFACE, Transfer, UplinkError, UplinkParts, failed, has_program};
use crate::host::first::Inside;
use crate::host::mounts::View;
use crate::kernel::namespace::Namespace;
use fastpath_sys::child::before;
use nix::mount::{MsFlags, mount};
use std::fs::{self, File};
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus};

/// The file in the state directory over which the namespace is mounted, for the program only.
const NAMESPACE: &str = "uplink-namespace";
/// The file with what the program says.
const LOG: &str = "uplink-log";

/// Starts the program and waits until it has made the interface.
pub(super) fn join(parts: &UplinkParts, families: [bool; 2]) -> Result<Transfer, UplinkError> {
    let name = &parts.host.name;
    // pasta takes the interface of the default route as its model.
    let program = match (has_program("pasta"), has_program("slirp4netns"), families) {
        (true, _, [true, _] | [_, true]) => "pasta",
        (_, true, _) => "slirp4netns",
        (true, false, _) => "pasta",
        (false, false, _) => {
            let (program, package) = ("pasta or slirp4netns", "passt or slirp4netns");
            return Err(UplinkError::Missing { uplink: name.clone(), program, package });
        }
    };
    let (arguments, transfer) = if program == "pasta" { pasta(families) } else { slirp4netns(families) };
    let namespace = parts.directory.join(NAMESPACE);
    let mut command = Command::new(program);
    command.args(arguments).arg(if program == "pasta" { "--netns" } else { "--netns-type=path" });
    command.arg(&namespace);
    if program == "slirp4netns" {
        command.arg(INTERFACE);
    }
    let log = File::create(parts.directory.join(LOG)).map_err(failed(name, "its log"))?;
    let (ready, ready_to) = io::pipe().map_err(failed(name, "a pipe"))?;
    let copy = log.try_clone().map_err(failed(name, "its log"))?;
    command.current_dir("/").stdin(ready_to).stdout(copy).stderr(log);
    let mut child = spawn(parts, command).map_err(|source| UplinkError::Program {
        uplink: name.clone(),
        program,
        text: source.to_string(),
    })?;
    let ended = if program == "pasta" { child.wait().map(Some) } else { until_ready(&mut child, ready) };
    match ended.map_err(failed(name, "waiting for its program"))? {
        Some(status) if !status.success() => {
            let said = fs::read_to_string(parts.directory.join(LOG)).unwrap_or_default();
            let text = format!("{status}: {}", said.trim().replace('\n', "; "));
            Err(UplinkError::Program { uplink: name.clone(), program, text })
        }
        _ => Ok(transfer),
    }
}

/// pasta goes to the background when it is ready.
fn pasta(families: [bool; 2]) -> (Vec<String>, Transfer) {
    let mut words = vec!["--quiet", "--netns-only", "--config-net", "--no-map-gw", "--ns-ifname", INTERFACE];
    words.extend(["-m", "1500", "-t", "none", "-u", "none", "-T", "none", "-U", "none"]);
    match families {
        [true, false] => words.push("-4"),
        [false, true] => words.push("-6"),
        _ => {}
    }
    // Its own addresses, so that the lab may have the subnet of the machine.
    if families[0] {
        words.extend(["-a", "198.18.0.2", "-n", "30", "-g", "198.18.0.1"]);
    }
    (words.into_iter().map(str::to_owned).collect(), Transfer { v4: None, v6: None })
}

/// slirp4netns writes to a pipe, its standard input, when it is ready. It has addresses of its own;
/// that of IPv6 would come by a router advertisement, which hosts of a lab do not take.
fn slirp4netns(families: [bool; 2]) -> (Vec<String>, Transfer) {
    let mut words = vec!["--configure", "--mtu=1500", "--disable-host-loopback", "--disable-dns"];
    words.extend(["--cidr=198.18.0.0/24", "--ready-fd=0"]);
    if families[1] {
        words.push("--enable-ipv6");
    }
    let v6 = ("fd00::64/64".parse().expect("an address"), "fd00::2".parse().expect("an address"));
    (words.into_iter().map(str::to_owned).collect(), Transfer { v4: None, v6: families[1].then_some(v6) })
}

/// Waits until a program has written to a pipe, or returns how it ended.
fn until_ready(child: &mut Child, mut ready: io::PipeReader) -> io::Result<Option<ExitStatus>> {
    match ready.read(&mut [0]) {
        Ok(1) => Ok(None),
        _ => child.wait().map(Some),
    }
}

/// Starts the program in the network namespace of this machine and in the scope of the lab. The
/// program sees the namespace of the uplink at a path: a path through another process would need
/// the privileges of that process, which pasta gives up.
fn spawn(parts: &UplinkParts, mut command: Command) -> io::Result<Child> {
    let path = parts.directory.join(NAMESPACE);
    File::create(&path)?;
    let machine = Namespace::of_process(std::process::id()).map_err(io::Error::other)?;
    let inside = Inside::View(View::default());
    before(&mut command, parts.boundary.entry(&inside)?);
    let source = format!("/proc/thread-self/fd/{}", parts.namespace()?.raw_fd());
    machine.within(|| {
        parts.boundary.enter(&inside, None)?;
        mount(Some(&*source), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
        command.spawn()
    })?
}
