//! Containers that a lab starts: the files of an image of Podman or of a directory, run by crun
//! (an OCI runtime) in the network namespace of a host.
//!
//! ```text
//!  podman image inspect ─▶ layers, variables, command ─┐
//!  rootfs = "directory" ───────────────────────────────┼─▶ overlay ─▶ crun ─▶ first process
//!  private, binds, /etc/hosts (`mounts.rs`) ───────────┘
//! ```
//!
//! What the programs write goes to memory (a tmpfs above the files) and ends with the container.
//! Images and directories stay as they are, and several hosts may use the same. Podman only says
//! where the files of an image are: it has no container of a lab, so none is left in its lists.
//! The overlay is mounted in a mount namespace of the container, and the processes are in the scope
//! of the lab (`scope.rs`): the kernel removes all with the last process, also after `kill -9`.
//!
//! As in containerlab the programs have all capabilities that the lab has: it is not a sandbox.

use crate::host::mounts::{View, own_mounts};
use crate::kernel::namespace::Privilege;
use fastpath_spec::{HostOrigin, HostSettings, Node};
use nix::mount::{MsFlags, mount};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

const NONE: Option<&str> = None;
/// The name of every container: each has a directory of its own.
const ID: &str = "host";
/// Search path where an image gives none (as in Docker).
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The longest part of a log in an error, bytes.
const SAID_MAX: usize = 1000;

/// What a container is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ContainerFiles {
    /// Directories, the uppermost first.
    layers: Vec<PathBuf>,
    /// `NAME=value`.
    env: Vec<String>,
    command: Vec<String>,
    directory: String,
    user: String,
}

/// Something that a container needs and that is missing: the key of the spec, what it is, and what
/// to do.
pub(crate) type Missing = (&'static str, String, String);

/// Finds the files of a host that is a container; `None` for other hosts. Nothing is started.
pub(crate) fn find(settings: &HostSettings) -> Result<Option<ContainerFiles>, Missing> {
    let (key, mut files) = match &settings.origin {
        HostOrigin::New | HostOrigin::Attached(_) => return Ok(None),
        HostOrigin::Image(image) => ("image", of_image(image)?),
        HostOrigin::RootFs(directory) => {
            if !Path::new(directory).is_dir() {
                let instead = "write the path of a directory with /bin, /etc and so on".to_owned();
                return Err(("rootfs", format!("{directory} is not a directory"), instead));
            }
            let files = ContainerFiles {
                layers: vec![directory.into()],
                env: Vec::new(),
                command: Vec::new(),
                directory: "/".to_owned(),
                user: String::new(),
            };
            ("rootfs", files)
        }
    };
    if !is_installed("crun") {
        let instead = "install it (Debian: apt install crun)".to_owned();
        return Err((key, "crun is not installed, which runs containers".to_owned(), instead));
    }
    if !settings.command.is_empty() {
        files.command.clone_from(&settings.command);
    }
    if files.command.is_empty() {
        files.command = vec!["/bin/sh".to_owned()];
    }
    if !files.env.iter().any(|variable| variable.starts_with("PATH=")) {
        files.env.push(PATH.to_owned());
    }
    files.env.extend(settings.env.iter().map(|(name, value)| format!("{name}={value}")));
    Ok(Some(files))
}

fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Asks Podman for an image.
fn of_image(image: &str) -> Result<ContainerFiles, Missing> {
    let missing = |what: String, instead: String| Err(("image", what, instead));
    let mut inspect = Command::new("podman");
    inspect.args(["image", "inspect", "--", image]).stdin(Stdio::null());
    let output = match inspect.output() {
        Ok(output) => output,
        Err(error) => {
            let instead = "install it (Debian: apt install podman), or write rootfs".to_owned();
            return missing(format!("podman, which has the images, does not start: {error}"), instead);
        }
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().last().unwrap_or_default().trim().to_owned();
        let instead = format!("get it with `podman pull {image}` or `podman build`");
        return missing(format!("podman has no image {image} ({said})"), instead);
    }
    let unreadable = || format!("podman image inspect {image} cannot be understood");
    let parsed: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    let Some(about) = parsed.as_ref().and_then(|list| list.get(0)) else {
        return missing(unreadable(), "write rootfs".to_owned());
    };
    let data = &about["GraphDriver"]["Data"];
    let layers: Vec<PathBuf> = ["UpperDir", "LowerDir"]
        .into_iter()
        .flat_map(|key| data[key].as_str().unwrap_or_default().split(':'))
        .filter(|layer| !layer.is_empty())
        .map(PathBuf::from)
        .collect();
    if layers.is_empty() {
        let driver = about["GraphDriver"]["Name"].as_str().unwrap_or("unknown");
        let instead = "use the driver overlay (storage.conf(5)), or write rootfs".to_owned();
        return missing(format!("podman stores images with the driver {driver}"), instead);
    }
    let config = &about["Config"];
    let texts = |key: &str| -> Vec<String> {
        let list = config[key].as_array().into_iter().flatten();
        list.filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let text = |key: &str| config[key].as_str().unwrap_or_default().to_owned();
    let directory = Some(text("WorkingDir")).filter(|directory| !directory.is_empty());
    Ok(ContainerFiles {
        layers,
        env: texts("Env"),
        command: [texts("Entrypoint"), texts("Cmd")].concat(),
        directory: directory.unwrap_or_else(|| "/".to_owned()),
        user: text("User"),
    })
}

impl ContainerFiles {
    /// Returns the variables of its programs.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let pairs = self.env.iter().filter_map(|variable| variable.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

/// A container that runs.
#[derive(Debug)]
pub(crate) struct Started {
    /// Its first process, as crun numbers it.
    pub(crate) pid: i32,
    /// The standard input of the first process: a shell there waits until it is closed.
    pub(crate) input: Option<ChildStdin>,
}

/// Starts a container. The calling thread is in the network namespace of the host; it is in a mount
/// namespace of its own afterwards. `prepare` makes a program one of the lab's. What
/// crun and the first process write is appended to the second of the paths.
pub(crate) fn start(
    node: &Node,
    files: &ContainerFiles,
    view: &View,
    (directory, log_path): (&Path, &Path),
    privilege: Privilege,
    prepare: impl Fn(&mut Command) -> io::Result<()>,
) -> io::Result<Started> {
    let config = serde_json::to_vec(&bundle(node, files, view, privilege)?)?;
    fs::write(directory.join("config.json"), config)?;
    let log = fs::OpenOptions::new().create(true).append(true).open(log_path)?;
    let crun = |arguments: &[&str]| {
        let mut command = Command::new("crun");
        command.arg("--root").arg(directory.join("state")).arg("--cgroup-manager=disabled").args(arguments);
        command.current_dir(directory).stderr(log.try_clone()?).stdout(log.try_clone()?);
        prepare(&mut command)?;
        io::Result::Ok(command)
    };
    // The cgroup of the lab is found before the mounts change.
    let mut create = crun(&["create", "--bundle", ".", "--pid-file", "pid", ID])?;
    let mut begin = crun(&["start", ID])?;
    own_mounts()?;
    unify_cgroups()?;
    overlay(&files.layers, directory, privilege)
        .map_err(|error| io::Error::new(error.kind(), format!("an overlay of its files: {error}")))?;
    let mut creating = create.stdin(Stdio::piped()).spawn().map_err(starting)?;
    let input = creating.stdin.take();
    let done = |success: bool| if success { Ok(()) } else { Err(said(log_path)) };
    done(creating.wait()?.success())?;
    done(begin.stdin(Stdio::null()).status().map_err(starting)?.success())?;
    let pid = fs::read_to_string(directory.join("pid"))?;
    Ok(Started { pid: pid.trim().parse().map_err(io::Error::other)?, input })
}

fn starting(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("starting crun: {error}"))
}

/// Returns what crun has written as an error.
fn said(log: &Path) -> io::Error {
    let text = fs::read_to_string(log).unwrap_or_default();
    let text = text.trim().replace('\n', "; ");
    let text = text.get(..SAID_MAX.min(text.len())).unwrap_or("crun failed");
    io::Error::other(if text.is_empty() { "crun failed" } else { text }.to_owned())
}

/// Makes cgroups of version 2 the only ones of the thread's mount namespace: crun refuses both
/// versions together, even if it shall use none.
fn unify_cgroups() -> io::Result<()> {
    const UNIFIED: &str = "/sys/fs/cgroup/unified";
    if Path::new(UNIFIED).join("cgroup.procs").exists() {
        mount(Some(UNIFIED), "/sys/fs/cgroup", NONE, MsFlags::MS_BIND, NONE)?;
    }
    Ok(())
}

/// Mounts the layers on `root` in `directory`, with a layer in memory above them.
fn overlay(layers: &[PathBuf], directory: &Path, privilege: Privilege) -> io::Result<()> {
    let (changes, root) = (directory.join("changes"), directory.join("root"));
    for directory in [&changes, &root] {
        fs::create_dir(directory)?;
    }
    mount(Some("tmpfs"), &changes, Some("tmpfs"), MsFlags::empty(), Some("mode=0755"))?;
    let (upper, work) = (changes.join("upper"), changes.join("work"));
    for directory in [&upper, &work] {
        fs::create_dir(directory)?;
    }
    // The options of mount(2) fit a page. Relative paths make room for more layers; the working
    // directory is that of this thread alone.
    let base = layers[0].parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    env::set_current_dir(base)?;
    let relative = |layer: &PathBuf| {
        let layer = layer.strip_prefix(base).unwrap_or(layer);
        // As overlayfs reads it (Documentation/filesystems/overlayfs.rst).
        layer.to_string_lossy().replace('\\', "\\\\").replace(':', "\\:").replace(',', "\\,")
    };
    let lower: Vec<String> = layers.iter().map(relative).collect();
    let mut options =
        format!("lowerdir={},upperdir={},workdir={}", lower.join(":"), upper.display(), work.display());
    if privilege == Privilege::UserNamespace {
        options.push_str(",userxattr");
    }
    Ok(mount(Some("overlay"), &root, Some("overlay"), MsFlags::empty(), Some(&*options))?)
}

/// Returns the configuration of an OCI bundle (Open Container Initiative, runtime specification
/// 1.0.2).
fn bundle(node: &Node, files: &ContainerFiles, view: &View, privilege: Privilege) -> io::Result<Value> {
    let (uid, gid) = user(files, privilege)?;
    let all = capabilities();
    let system = |place: &str, kind: &str, options: &[&str]| json!({ "destination": place, "type": kind, "source": kind, "options": options });
    let usual = ["nosuid", "noexec", "nodev"];
    let mut mounts = vec![
        system("/proc", "proc", &usual),
        system("/dev", "tmpfs", &["nosuid", "mode=755", "size=64m"]),
        system("/dev/pts", "devpts", &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]),
        system("/dev/shm", "tmpfs", &["nosuid", "noexec", "nodev", "mode=1777", "size=64m"]),
        system("/dev/mqueue", "mqueue", &usual),
        system("/sys", "sysfs", &["nosuid", "noexec", "nodev", "ro"]),
    ];
    mounts.extend(view.places.iter().map(|place| {
        let mode = if place.is_read_only { "ro" } else { "rw" };
        json!({
            "destination": place.target, "type": "bind", "source": place.source,
            "options": ["rbind", mode],
        })
    }));
    let namespaces = ["mount", "pid", "uts", "ipc"].map(|kind| json!({ "type": kind }));
    Ok(json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": { "uid": uid, "gid": gid },
            "args": files.command,
            "env": files.env,
            "cwd": files.directory,
            "capabilities": { "bounding": all, "effective": all, "permitted": all, "inheritable": all },
        },
        "root": { "path": "root" },
        "hostname": node.name,
        "mounts": mounts,
        "linux": {
            // The network namespace is that of crun.
            "namespaces": namespaces,
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sysrq-trigger", "/proc/sys/kernel",
                "/proc/sys/vm", "/proc/sys/fs", "/proc/sys/dev"],
        },
    }))
}

/// Returns the numbers of the user and group of an image: `USER[:GROUP]`, numbers or names.
fn user(files: &ContainerFiles, privilege: Privilege) -> io::Result<(u32, u32)> {
    // A user namespace of one user has no other.
    if files.user.is_empty() || privilege == Privilege::UserNamespace {
        return Ok((0, 0));
    }
    let (user, group) = files.user.split_once(':').map_or((&*files.user, None), |(u, g)| (u, Some(g)));
    let read = |file: &str| {
        files.layers.iter().find_map(|layer| fs::read_to_string(layer.join(file)).ok()).unwrap_or_default()
    };
    // NAME:PASSWORD:NUMBER:GROUP (passwd(5)), NAME:PASSWORD:NUMBER (group(5)).
    let entry = |text: &str, wanted: &str| -> Option<Vec<String>> {
        let lines = text.lines().map(|line| line.split(':').map(str::to_owned).collect::<Vec<_>>());
        lines.into_iter().find(|fields| {
            fields.first().is_some_and(|name| name == wanted) || fields.get(2).is_some_and(|id| id == wanted)
        })
    };
    let unknown = |what: &str| io::Error::other(format!("the image has no user or group '{what}'"));
    let number = |fields: &Option<Vec<String>>, place: usize| fields.as_ref()?.get(place)?.parse().ok();
    let found = entry(&read("etc/passwd"), user);
    let uid = number(&found, 2).or_else(|| user.parse().ok()).ok_or_else(|| unknown(user))?;
    let gid = match group {
        None => number(&found, 3).unwrap_or(0),
        Some(group) => {
            let found = entry(&read("etc/group"), group);
            number(&found, 2).or_else(|| group.parse().ok()).ok_or_else(|| unknown(group))?
        }
    };
    Ok((uid, gid))
}

/// The capabilities (capabilities(7)) by their numbers.
const CAPABILITIES: [&str; 38] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
];

/// Returns the capabilities of this process: a container cannot have others.
fn capabilities() -> Vec<String> {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapPrm:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let has = |(number, _): &(usize, &&str)| mask & (1 << number) != 0;
    CAPABILITIES.iter().enumerate().filter(has).map(|(_, name)| format!("CAP_{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_a_name_or_a_number() {
        let layer = env::temp_dir().join(format!("fastpath-user-{}", std::process::id()));
        fs::create_dir_all(layer.join("etc")).unwrap();
        fs::write(layer.join("etc/passwd"), "root:x:0:0::/:\nfrr:x:92:93::/:\n").unwrap();
        fs::write(layer.join("etc/group"), "vty:x:94:frr\n").unwrap();
        let (env, command, directory) = (Vec::new(), Vec::new(), String::new());
        let mut files =
            ContainerFiles { layers: vec![layer.clone()], env, command, directory, user: String::new() };
        let mut of = |text: &str| {
            files.user = text.to_owned();
            user(&files, Privilege::Own).map_err(|error| error.to_string())
        };
        for (text, expected) in [
            ("", (0, 0)),
            ("frr", (92, 93)),
            ("92", (92, 93)),
            ("7", (7, 0)),
            ("frr:vty", (92, 94)),
            ("7:8", (7, 8)),
        ] {
            assert_eq!(of(text), Ok(expected), "{text}");
        }
        assert_eq!(of("no").unwrap_err(), "the image has no user or group 'no'");
        fs::remove_dir_all(&layer).unwrap();
    }
}
