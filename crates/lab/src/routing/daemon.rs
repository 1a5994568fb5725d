//! The processes of routing daemons, and the files that they see.

use super::Speaker;
use crate::host::Host;
use crate::host::mounts::Placed;
use crate::programs::Programs;
use crate::state::lab_files::ROUTERS;
use fastpath_spec::segment::Segments;
use fastpath_spec::{DaemonProgram, Node, NodeId, NodeKind, RoutingDaemon, Topology};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// Where distributions put the daemons of FRR.
const FRR_PLACES: [&str; 4] = ["/usr/lib/frr", "/usr/libexec/frr", "/usr/lib64/frr", "/usr/local/sbin"];
/// Where programs may be that are not in the search path of every user.
const SYSTEM_PLACES: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];
/// The group whose members may use the sockets of FRR. Its daemons refuse a user outside it.
const FRR_GROUP: &str = "frrvty:";
/// Seconds for all daemons of a router to start.
const START_MAX: &str = "60";
/// The daemons of FRR, and the beginnings of the lines of a configuration that need them.
const FRR_DAEMONS: [(&str, &[&str]); 15] = [
    ("staticd", &["ip route ", "ipv6 route "]),
    ("ospfd", &["router ospf", "ip ospf "]),
    ("ospf6d", &["router ospf6", "ipv6 ospf6 "]),
    ("bgpd", &["router bgp "]),
    ("isisd", &["router isis "]),
    ("pimd", &["ip pim", "ip igmp"]),
    ("pim6d", &["ipv6 pim", "ipv6 mld"]),
    ("ripd", &["router rip"]),
    ("ripngd", &["router ripng"]),
    ("eigrpd", &["router eigrp "]),
    ("babeld", &["router babel"]),
    ("fabricd", &["router openfabric "]),
    ("ldpd", &["mpls ldp"]),
    ("bfdd", &["bfd", "neighbor bfd"]),
    ("vrrpd", &["vrrp "]),
];

/// Why the routing daemon of a router does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// A program is not installed.
    #[error(
        "router {router}: daemon = \"{daemon}\" needs {program}, which is not installed; install it with `apt install {package}`"
    )]
    Missing {
        /// The router.
        router: String,
        /// The word of the spec.
        daemon: &'static str,
        /// The program.
        program: String,
        /// The package of Debian that has it.
        package: &'static str,
    },
    /// The daemon refuses its configuration.
    #[error("router {router}: {program} refuses the configuration:\n{text}")]
    Config {
        /// The router.
        router: String,
        /// The program that refuses.
        program: &'static str,
        /// Its error output.
        text: String,
    },
    /// A daemon did not start.
    #[error("router {router}: {program} did not start:\n{text}")]
    Start {
        /// The router.
        router: String,
        /// The suite of daemons.
        program: &'static str,
        /// Its error output.
        text: String,
    },
    /// Its files could not be made.
    #[error("router {router}: the files of its daemon: {source}")]
    Files {
        /// The router.
        router: String,
        /// The reason.
        source: io::Error,
    },
}

fn daemon_of(node: &Node) -> Option<&RoutingDaemon> {
    // A container brings programs of its own.
    match &node.kind {
        NodeKind::KernelRouter { settings, host, .. } if !host.origin.is_container() => {
            settings.daemon.as_deref()
        }
        _ => None,
    }
}

/// Checks that the daemons of a topology are installed and take the author's configurations, before
/// anything is made.
///
/// # Errors
/// [`DaemonError::Missing`] or [`DaemonError::Config`].
pub(crate) fn require(topology: &Topology) -> Result<(), DaemonError> {
    let segments = Segments::of(topology);
    for id in (0..topology.nodes.len() as u32).map(NodeId) {
        let node = topology.node(id);
        let Some(daemon) = daemon_of(node) else { continue };
        let (word, router) = (daemon.program.word(), || node.name.clone());
        let speaker = Speaker::of(topology, &segments, id).expect("it has a daemon");
        let config = speaker.config();
        let package = if daemon.program == DaemonProgram::Frr { "frr" } else { "bird2" };
        let missing = |program: &str| DaemonError::Missing {
            router: router(),
            daemon: word,
            program: program.to_owned(),
            package,
        };
        let checker = match daemon.program {
            DaemonProgram::Frr => {
                frr_place().ok_or_else(|| missing("zebra"))?;
                for program in frr_daemons(&config) {
                    frr_place()
                        .filter(|place| place.join(program).is_file())
                        .ok_or_else(|| missing(program))?;
                }
                program("vtysh").ok_or_else(|| missing("vtysh"))?
            }
            DaemonProgram::Bird => program("bird").ok_or_else(|| missing("bird"))?,
        };
        if daemon.config.is_some() {
            check(daemon.program, &checker, &config).map_err(|error| match error {
                CheckError::Refused(text) => {
                    let program = if daemon.program == DaemonProgram::Frr { "vtysh" } else { "bird" };
                    DaemonError::Config { router: router(), program, text }
                }
                CheckError::Io(source) => DaemonError::Files { router: router(), source },
            })?;
        }
    }
    Ok(())
}

enum CheckError {
    Refused(String),
    Io(io::Error),
}

/// Lets the program check a configuration.
fn check(program: DaemonProgram, checker: &Path, config: &str) -> Result<(), CheckError> {
    let directory = tempdir().map_err(CheckError::Io)?;
    let result = (|| {
        let mut command = Command::new(checker);
        match program {
            DaemonProgram::Frr => {
                write_frr(&directory, config)?;
                command.arg("--config_dir").arg(&directory).arg("-C");
            }
            DaemonProgram::Bird => {
                fs::write(directory.join("bird.conf"), config)?;
                command.arg("-p").arg("-c").arg(directory.join("bird.conf"));
            }
        }
        command.stdin(Stdio::null()).output()
    })();
    // The directory is in that of temporary files; what remains harms nothing.
    let _ = fs::remove_dir_all(&directory);
    let output = result.map_err(CheckError::Io)?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).replace(&format!("{}/", directory.display()), "");
    Err(CheckError::Refused(text.trim_end().to_owned()))
}

fn tempdir() -> io::Result<PathBuf> {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("fastpath-check-{}-{number}", std::process::id()));
    DirBuilder::new().mode(0o700).create(&directory)?;
    Ok(directory)
}

fn write_frr(directory: &Path, config: &str) -> io::Result<()> {
    fs::write(directory.join("frr.conf"), config)?;
    fs::write(directory.join("vtysh.conf"), "service integrated-vtysh-config\n")
}

/// Returns a program of the search path or of the directories for administrators.
fn program(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&paths).chain(SYSTEM_PLACES.map(PathBuf::from));
    all.map(|directory| directory.join(name)).find(|path| path.is_file())
}

fn frr_place() -> Option<PathBuf> {
    FRR_PLACES.map(PathBuf::from).into_iter().find(|place| place.join("zebra").is_file())
}

/// Returns the daemons of FRR that a configuration needs, zebra apart.
fn frr_daemons(config: &str) -> Vec<&'static str> {
    let lines: Vec<&str> = config.lines().map(str::trim_start).collect();
    let needs = |word: &&str| {
        // "router ospf" is not "router ospf6".
        let is_it = |line: &str| {
            line.strip_prefix(*word)
                .is_some_and(|rest| word.ends_with(' ') || rest.is_empty() || rest.starts_with(' '))
        };
        lines.iter().any(|line| is_it(line))
    };
    FRR_DAEMONS.iter().filter(|(_, words)| words.iter().any(needs)).map(|(daemon, _)| *daemon).collect()
}

/// Returns the files and directories that programs in a router with a daemon see, and makes them.
pub(crate) fn places(lab: &Path, node: &Node) -> io::Result<Vec<Placed>> {
    let Some(daemon) = daemon_of(node) else { return Ok(Vec::new()) };
    let own = lab.join(ROUTERS).join(&node.name);
    let make = |name: &str| -> io::Result<PathBuf> {
        DirBuilder::new().recursive(true).mode(0o755).create(own.join(name))?;
        Ok(own.join(name))
    };
    let placed =
        |source: PathBuf, target: &str| Placed { source, target: target.into(), is_read_only: false };
    let mut all = over_run(&own, make("run")?, daemon.program.word())?;
    if daemon.program == DaemonProgram::Frr {
        fs::write(own.join("group"), with_root_in_group(&fs::read_to_string("/etc/group")?))?;
        all.push(placed(make("etc")?, "/etc/frr"));
        all.push(placed(own.join("group"), "/etc/group"));
        // FRR keeps crash logs below it.
        all.push(placed(make("tmp")?, "/var/tmp"));
    }
    Ok(all)
}

/// Places `source` at /run/NAME. If the machine has no such directory, /run becomes a directory
/// with it and everything that is in /run now.
fn over_run(own: &Path, source: PathBuf, name: &str) -> io::Result<Vec<Placed>> {
    let placed = |source: PathBuf, target: PathBuf| Placed { source, target, is_read_only: false };
    let target = Path::new("/run").join(name);
    if target.is_dir() {
        return Ok(vec![placed(source, target)]);
    }
    let all = own.join("all");
    DirBuilder::new().recursive(true).mode(0o755).create(all.join(name))?;
    let mut places = vec![placed(source, all.join(name))];
    for entry in fs::read_dir("/run")?.filter_map(Result::ok) {
        let here = all.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, here)?;
            continue;
        }
        if kind.is_dir() {
            fs::create_dir(&here)?
        } else {
            File::create(&here).map(drop)?
        }
        places.push(placed(entry.path(), here));
    }
    places.push(placed(all, "/run".into()));
    Ok(places)
}

/// Returns /etc/group with root in the group of FRR's sockets.
fn with_root_in_group(groups: &str) -> String {
    let line = |line: &str| match line.starts_with(FRR_GROUP) {
        true if line.ends_with(':') => format!("{line}root\n"),
        true => format!("{line},root\n"),
        false => format!("{line}\n"),
    };
    groups.lines().map(line).collect()
}

/// Writes the configurations of all daemons and starts them, all routers at once.
///
/// # Errors
/// The first router whose daemons do not start. The scope of the lab ends those that have.
pub(crate) fn start(
    topology: &Topology,
    programs: &Programs,
    hosts: &[Arc<Host>],
) -> Result<(), DaemonError> {
    if topology.nodes.iter().all(|node| daemon_of(node).is_none()) {
        return Ok(());
    }
    let segments = Segments::of(topology);
    let mut started: Vec<(&Node, DaemonProgram, PathBuf, Child)> = Vec::new();
    for host in hosts {
        let node = topology.node(host.node());
        let Some(daemon) = daemon_of(node) else { continue };
        let files = |source| DaemonError::Files { router: node.name.clone(), source };
        let speaker = Speaker::of(topology, &segments, host.node()).expect("it has a daemon");
        let own = programs.directory.join(ROUTERS).join(&node.name);
        let said = own.join("said");
        let child = start_one(programs, host, daemon.program, &speaker.config(), &own).map_err(files)?;
        started.push((node, daemon.program, said, child));
    }
    let mut failure = None;
    for (node, program, said, mut child) in started {
        let router = || node.name.clone();
        let status = child.wait().map_err(|source| DaemonError::Files { router: router(), source })?;
        if !status.success() && failure.is_none() {
            let text = fs::read(said).unwrap_or_default();
            let mut text = String::from_utf8_lossy(&text).trim_end().to_owned();
            if text.is_empty() {
                text = format!("{status}");
            }
            failure = Some(DaemonError::Start { router: router(), program: program.word(), text });
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Starts the daemons of a router. The child ends when they run.
fn start_one(
    programs: &Programs,
    host: &Host,
    program: DaemonProgram,
    config: &str,
    own: &Path,
) -> io::Result<Child> {
    let mut command = Command::new("timeout");
    command.args([START_MAX, "sh", "-c"]);
    match program {
        DaemonProgram::Frr => {
            write_frr(&own.join("etc"), config)?;
            // Each daemon returns when it accepts commands. They look for zebra as they start.
            const SCRIPT: &str = "for daemon; do
                \"$0/$daemon\" -d -u root -g root -P 0 --log file:/run/frr/log || exit
            done
            exec vtysh -b";
            command.arg(SCRIPT).arg(frr_place().unwrap_or_default()).arg("zebra").args(frr_daemons(config));
        }
        DaemonProgram::Bird => {
            fs::write(own.join("run/bird.conf"), config)?;
            const SCRIPT: &str = "exec bird -c /run/bird/bird.conf -P /run/bird/bird.pid";
            command.arg(SCRIPT);
        }
    }
    let said = File::create(own.join("said"))?;
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    SYSTEM_PLACES.iter().for_each(|place| path.push(format!(":{place}")));
    command.env("PATH", path).stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
    programs.spawn(host, &mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemons_of_a_configuration_are_those_of_its_lines() {
        assert_eq!(frr_daemons("router ospf\n ospf router-id 1.1.1.1\n"), ["ospfd"]);
        assert_eq!(frr_daemons("interface eth0\n ipv6 ospf6 area 0\nrouter ospf6\nexit\n"), ["ospf6d"]);
        let all = frr_daemons("ip route 10.0.0.0/8 blackhole\nrouter bgp 65001\ninterface eth1\n  ip pim\n");
        assert_eq!(all, ["staticd", "bgpd", "pimd"]);
        assert!(frr_daemons("hostname router\n! router ospf\n").is_empty());
    }

    #[test]
    fn root_joins_the_group_of_the_sockets() {
        let groups = "root:x:0:\nfrrvty:x:108:\nusers:x:100:frr\n";
        assert_eq!(with_root_in_group(groups), "root:x:0:\nfrrvty:x:108:root\nusers:x:100:frr\n");
        assert_eq!(with_root_in_group("frrvty:x:108:frr"), "frrvty:x:108:frr,root\n");
    }
}
