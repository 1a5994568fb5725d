//! An uplink as a user: pasta or slirp4netns, whichever is there, carries packets between the
//! namespace of the uplink and sockets of its own. It runs in the scope of the lab, so it ends with
//! it at the latest.

use super::{INTERFACE, Transfer, UplinkError, failed, has_program};
use crate::host::first::Inside;
use crate::host::mounts::View;
use crate::kernel::namespace::Namespace;
use crate::programs::scope::Boundary;
use fastpath_sys::child::before;
use nix::mount::{MsFlags, mount};
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;

/// The files in the directory, followed by the name of the uplink: over this one the namespace is
/// mounted, for the program only.
const NAMESPACE: &str = "uplink-namespace";
/// What the program says.
const LOG: &str = "uplink-log";

/// A namespace that is joined to the network of this machine.
pub(super) struct UserParts<'p> {
    /// Its name in errors.
    pub(super) name: &'p str,
    pub(super) namespace: &'p Namespace,
    /// Where the files of the program are.
    pub(super) directory: &'p Path,
    /// The scope of the program.
    pub(super) boundary: &'p Boundary,
    pub(super) loopback: Loopback,
}

impl UserParts<'_> {
    /// Returns the path of a file of this uplink.
    fn file(&self, kind: &str) -> PathBuf {
        self.directory.join(format!("{kind}-{}", self.name))
    }
}

/// Whether servers of this machine that listen on its loopback interface are reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Loopback {
    Hidden,
    /// By the address of the next router.
    Reached,
}

/// The program of an uplink that runs. It ends on drop.
#[derive(Debug)]
pub(crate) struct UserProgram {
    /// Its scope.
    boundary: Boundary,
    /// An argument that it alone has.
    namespace: PathBuf,
}

impl Drop for UserProgram {
    fn drop(&mut self) {
        self.boundary.end_with_argument(self.namespace.as_os_str().as_bytes());
    }
}

/// Starts the program and waits until it has made the interface. The calling thread is in the
/// network namespace of this machine.
pub(super) fn join(parts: &UserParts, families: [bool; 2]) -> Result<(UserProgram, Transfer), UplinkError> {
    let name = parts.name;
    // pasta takes the interface of the default route as its model.
    let program = match (has_program("pasta"), has_program("slirp4netns"), families) {
        (true, _, [true, _] | [_, true]) => "pasta",
        (_, true, _) => "slirp4netns",
        (true, false, _) => "pasta",
        (false, false, _) => {
            let (program, package) = ("pasta or slirp4netns", "passt or slirp4netns");
            return Err(UplinkError::Missing { uplink: name.to_owned(), program, package });
        }
    };
    let arguments = if program == "pasta" { pasta } else { slirp4netns };
    let (arguments, transfer) = arguments(families, parts.loopback);
    let namespace = parts.file(NAMESPACE);
    let mut command = Command::new(program);
    command.args(arguments).arg(if program == "pasta" { "--netns" } else { "--netns-type=path" });
    command.arg(&namespace);
    if program == "slirp4netns" {
        command.arg(INTERFACE);
    }
    let log = File::create(parts.file(LOG)).map_err(failed(name, "its log"))?;
    let (ready, ready_to) = io::pipe().map_err(failed(name, "a pipe"))?;
    let copy = log.try_clone().map_err(failed(name, "its log"))?;
    command.current_dir("/").stdin(ready_to).stdout(copy).stderr(log);
    let refused = |text| UplinkError::Program { uplink: name.to_owned(), program, text };
    let mut child = spawn(parts, command).map_err(|source| refused(source.to_string()))?;
    let running = UserProgram { boundary: parts.boundary.clone(), namespace };
    let ended = if program == "pasta" { child.wait().map(Some) } else { until_ready(&mut child, ready) };
    match ended.map_err(failed(name, "waiting for its program"))? {
        Some(status) if !status.success() => {
            let said = fs::read_to_string(parts.file(LOG)).unwrap_or_default();
            Err(refused(format!("{status}: {}", said.trim().replace('\n', "; "))))
        }
        Some(_) => Ok((running, transfer)),
        None => {
            // The first process of a PID namespace ends after the others were waited for.
            thread::spawn(move || child.wait());
            Ok((running, transfer))
        }
    }
}

/// pasta goes to the background when it is ready.
fn pasta(families: [bool; 2], loopback: Loopback) -> (Vec<String>, Transfer) {
    let mut words = vec!["--quiet", "--netns-only", "--config-net", "--ns-ifname", INTERFACE];
    // It ends with its scope. The file of the namespace may be removed earlier.
    words.push("--no-netns-quit");
    if loopback == Loopback::Hidden {
        words.push("--no-map-gw");
    }
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
    let router = families[0].then_some(Ipv4Addr::new(198, 18, 0, 1));
    (words.into_iter().map(str::to_owned).collect(), Transfer { v4: None, v6: None, router })
}

/// slirp4netns writes to a pipe, its standard input, when it is ready. It has addresses of its own;
/// that of IPv6 would come by a router advertisement, which hosts of a lab do not take.
fn slirp4netns(families: [bool; 2], loopback: Loopback) -> (Vec<String>, Transfer) {
    let mut words = vec!["--configure", "--mtu=1500", "--disable-dns"];
    if loopback == Loopback::Hidden {
        words.push("--disable-host-loopback");
    }
    words.extend(["--cidr=198.18.0.0/24", "--ready-fd=0"]);
    if families[1] {
        words.push("--enable-ipv6");
    }
    let v6 = ("fd00::64/64".parse().expect("an address"), "fd00::2".parse().expect("an address"));
    let router = Some(Ipv4Addr::new(198, 18, 0, 2));
    let transfer = Transfer { v4: None, v6: families[1].then_some(v6), router };
    (words.into_iter().map(str::to_owned).collect(), transfer)
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
fn spawn(parts: &UserParts, mut command: Command) -> io::Result<Child> {
    let path = parts.file(NAMESPACE);
    File::create(&path)?;
    let inside = Inside::View(View::default());
    before(&mut command, parts.boundary.entry(&inside)?);
    let source = format!("/proc/thread-self/fd/{}", parts.namespace.raw_fd());
    let start = || -> io::Result<Child> {
        parts.boundary.enter(&inside, None)?;
        mount(Some(&*source), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
        command.spawn()
    };
    // A new thread is in the network namespace of this one. To join it by setns(2) would need
    // rights on the machine.
    thread::scope(|scope| scope.spawn(start).join().expect("no panic"))
}
