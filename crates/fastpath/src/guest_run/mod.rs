//! Commands of this program in the virtual time of a guest: the same command, as if it had been
//! typed in a machine whose clock stands still while programs compute.
//!
//! ```text
//!  lab run SPEC --time virtual -- CMD ─▶ VirtualRun ─▶ a guest: fastpath lab run SPEC -- CMD
//!                                            │                     │
//!                          run.json ◀─ GuestOrigin ◀─ what was read, what came out
//! ```

mod place;

use crate::{Error, Result};
pub use place::RecordPlace;
pub(crate) use place::cache;

pub use fastpath_guest::RECORD;
use fastpath_guest::{Ended, Guest, Job, Kernel, RunError, Stuck, sums};
use fastpath_measure::this_machine;
use fastpath_record::{GuestOrigin, Sums};
use fastpath_spec::{HostOrigin, Node, NodeKind, Topology};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The file of a record that also says when and where it was made.
const HEAD: &str = "run.json";

/// Variables of a session, which would make the same command another one.
const OF_THE_SESSION: [&str; 14] = [
    "COLUMNS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LINES",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "TERM",
    "WAYLAND_DISPLAY",
    "WINDOWID",
    "XDG_RUNTIME_DIR",
    "_",
];
/// What the names of such variables begin with.
const SESSION_PREFIXES: [&str; 4] = ["FASTPATH_", "SSH_", "XDG_SESSION_", "TMUX"];

/// A command of this program that runs in a guest.
#[derive(Clone, PartialEq, Debug)]
pub struct VirtualRun {
    /// The arguments of this program.
    pub arguments: Vec<String>,
    /// The working directory: what is new in it comes back.
    pub directory: PathBuf,
    /// Further files and directories that come back, and where to.
    pub outputs: Vec<(PathBuf, PathBuf)>,
    /// What is not there in the guest.
    pub hidden: Vec<PathBuf>,
    /// The seed of all entropy.
    pub seed: u64,
    /// Memory of the guest, bytes; `None`: the default.
    pub memory: Option<u64>,
    /// A directory of the machine for the record of the run: [`RECORD`] in the guest. What was read
    /// and what came out is summed then.
    pub record: Option<PathBuf>,
}

/// What a run in virtual time leaves in its record beside the series: a capture of all links with
/// what they drop, and the log of every packet on every link.
pub const PACKETS: &str = "packets.pcapng";
/// See [`PACKETS`].
pub const LOG: &str = "log.pcapng";

/// What came out of a run.
#[derive(Clone, Debug)]
pub struct VirtualResult {
    /// The exit code of the command.
    pub exit_code: u8,
    /// Virtual time from the start of the guest's kernel.
    pub virtual_time: std::time::Duration,
    /// Where it comes from, if it is recorded.
    pub origin: Option<GuestOrigin>,
}

impl VirtualRun {
    /// Runs the command. What it prints is passed on as it comes. `tell` is called once if no
    /// virtual time passes for long.
    ///
    /// # Errors
    /// There is no kernel for guests, or the guest did not come to its end.
    pub fn run(
        &self,
        outputs: [&mut dyn Write; 2],
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&Stuck),
    ) -> Result<VirtualResult, RunError> {
        let kernel = Kernel::find()?;
        let kept = self.record.as_deref().map(files_of).transpose()?.unwrap_or_default();
        let program = env::current_exe().map_err(|source| RunError::File { path: "".into(), source })?;
        let environment = environment();
        let job = Job {
            command: [vec![program.display().to_string()], self.arguments.clone()].concat(),
            environment: environment.clone(),
            directory: self.directory.clone(),
            outputs: self.outputs.clone(),
            hidden: self.hidden.clone(),
            record: self.record.clone(),
        };
        let mut guest = Guest::new(&kernel);
        guest.seed = self.seed;
        guest.memory = self.memory.unwrap_or(guest.memory);
        let [stdout, stderr] = outputs;
        let (mut stdout, mut stderr) = (Hashed::new(stdout), Hashed::new(stderr));
        let ended = guest.run(&job, [&mut stdout, &mut stderr], stop, tell)?;
        let printed = [("standard output", stdout.sum()), ("standard error", stderr.sum())];
        let origin = self.record.as_deref().map(|record| {
            let mut origin = self.origin(&guest, (&kernel, &program), &environment, &ended, printed);
            let has_come = |name: &str| ended.came.iter().any(|came| came.outside == record.join(name));
            let names = files_of(record)?.into_iter();
            let names = names.filter(|name| !kept.contains(name) && name != HEAD && !has_come(name));
            let sum = |name: String| (format!("{RECORD}/{name}"), sums::of_file(&record.join(name)).ok());
            origin.results.extend(names.map(sum));
            Ok::<_, RunError>(origin)
        });
        let origin = origin.transpose()?;
        Ok(VirtualResult { exit_code: ended.exit_code, virtual_time: ended.virtual_time, origin })
    }

    fn origin(
        &self,
        guest: &Guest<'_>,
        (kernel, program): (&Kernel, &Path),
        environment: &[(String, String)],
        ended: &Ended,
        printed: [(&str, String); 2],
    ) -> GuestOrigin {
        let sum = |path: &Path| sums::of_file(path).ok();
        let name = |path: &Path| path.display().to_string();
        let mut results: Sums = printed.map(|(name, sum)| (name.to_owned(), Some(sum))).into();
        let is_head = |path: &Path| path.file_name().is_some_and(|name| name == HEAD);
        let came = ended.came.iter().filter(|came| !is_head(&came.inside) && !came.outside.is_dir());
        results.extend(came.map(|came| (name(&came.inside), sum(&came.outside))));
        let new = ended.came.iter().filter(|came| came.is_new).map(|came| came.inside.clone());
        GuestOrigin {
            kernel: kernel.version.clone(),
            kernel_sha256: kernel.sha256.clone(),
            program_sha256: sum(program).unwrap_or_default(),
            processor: this_machine().cpu,
            seed: guest.seed,
            memory: guest.memory,
            arguments: self.arguments.clone(),
            directory: self.directory.clone(),
            environment: sums_of(environment),
            files: ended.opened.iter().map(|path| (name(path), sum(path))).collect(),
            results,
            new: new.chain(self.hidden.clone()).collect(),
            exit_code: ended.exit_code,
            virtual_s: ended.virtual_time.as_secs_f64(),
        }
    }
}

/// Returns the environment of programs in a guest: that of this process without what belongs to a
/// session.
fn environment() -> Vec<(String, String)> {
    let is_of_session = |name: &str| {
        OF_THE_SESSION.contains(&name) || SESSION_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    let all: BTreeMap<String, String> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    all.into_iter().filter(|(name, _)| !is_of_session(name)).collect()
}

fn sums_of(environment: &[(String, String)]) -> Sums {
    environment.iter().map(|(name, value)| (name.clone(), Some(sums::of_bytes(value.as_bytes())))).collect()
}

/// Returns the names of the files of a directory, in order.
fn files_of(directory: &Path) -> Result<Vec<String>, RunError> {
    let wrong = |source| RunError::File { path: directory.to_owned(), source };
    let entries = fs::read_dir(directory).map_err(wrong)?.collect::<io::Result<Vec<_>>>().map_err(wrong)?;
    let files = entries.iter().filter(|entry| entry.path().is_file());
    let mut names: Vec<String> =
        files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    Ok(names)
}

/// Whether this process runs in a guest, where time is virtual already.
pub fn is_inside() -> bool {
    fastpath_guest::is_inside()
}

/// Says what differs from when a run was made: kernel, program, processor, environment, files.
pub fn differences(origin: &GuestOrigin) -> Result<Vec<String>, RunError> {
    let kernel = Kernel::find()?;
    let mut found = Vec::new();
    if kernel.sha256 != origin.kernel_sha256 {
        found.push(format!(
            "the kernel is {}, and was {} (or another build of it)",
            kernel.version, origin.kernel
        ));
    }
    let program = env::current_exe().ok().and_then(|path| sums::of_file(&path).ok());
    if program.as_ref() != Some(&origin.program_sha256) {
        found.push("fastpath is another build".to_owned());
    }
    let processor = this_machine().cpu;
    if processor != origin.processor {
        found.push(format!("the processor is {processor}, and was {}", origin.processor));
    }
    let environment = sums_of(&environment());
    let names = environment
        .keys()
        .chain(origin.environment.keys())
        .filter(|name| environment.get(*name) != origin.environment.get(*name));
    let names: std::collections::BTreeSet<&String> = names.collect();
    found.extend(names.iter().map(|name| format!("the variable {name} has another value")));
    let is_changed = |path: &&String| {
        let is_new = origin.new.iter().any(|new| new == Path::new(path));
        path.starts_with('/') && !path.starts_with(RECORD) && !is_new
    };
    let changed = origin.results.keys().filter(is_changed);
    found.extend(
        changed.map(|path| format!("{path} was changed by the run; now it begins with what it left")),
    );
    for (path, sum) in &origin.files {
        let now = sums::of_file(Path::new(path)).ok();
        if now != *sum && !origin.results.contains_key(path) {
            found.push(match now {
                Some(_) => format!("{path} has another content"),
                None => format!("{path} cannot be read"),
            });
        }
    }
    Ok(found)
}

/// Says why a network cannot run in virtual time, if so.
///
/// # Errors
/// It has a part outside of the guest: what, and what to write instead.
pub fn check(topology: &Topology) -> Result<()> {
    let outside = |node: &Node| -> Option<&'static str> {
        match &node.kind {
            NodeKind::Uplink { .. } => Some("is an uplink to the network of this machine"),
            kind if kind.port_name().is_some() => Some("is an interface of this machine"),
            kind => match kind.host_settings()?.origin {
                HostOrigin::Attached(_) => Some("is a namespace that runs already"),
                HostOrigin::Image(_) => Some("is a container of Podman, which a guest does not have"),
                _ => None,
            },
        }
    };
    for node in &topology.nodes {
        if let Some(what) = outside(node) {
            return Err(Error::Argument(format!(
                "{} {what}: it has no virtual time; leave --time virtual out, or the node (rootfs works)",
                node.name
            )));
        }
    }
    Ok(())
}

/// Passes bytes on and sums them.
struct Hashed<'a> {
    to: &'a mut dyn Write,
    sum: sums::Sum,
}

impl<'a> Hashed<'a> {
    fn new(to: &'a mut dyn Write) -> Hashed<'a> {
        Hashed { to, sum: sums::Sum::default() }
    }

    fn sum(self) -> String {
        self.sum.finish()
    }
}

impl Write for Hashed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sum.add(bytes);
        // A reader that has gone does not change the sum.
        let _ = self.to.write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
