//! The check of artefacts: install them in a fresh Debian root without Rust, run a lab with its
//! audit, remove them, and find nothing left.

use super::{MUSL, epoch, version};
use crate::process::{succeed, target};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const SUITE: &str = "bookworm";
/// How long the audit may take, in seconds: it takes twenty.
const JOB_LIMIT_S: &str = "60";
/// What a package manager keeps of its own.
const KEPT: &[&str] = &["var/lib/dpkg", "var/cache", "var/log", "var/lib/apt"];

/// An artefact, and the commands in the root that install and remove it.
struct Installation {
    artefact: &'static str,
    file: String,
    install: String,
    remove: String,
}

/// Checks the artefacts of these names. An image and a wheel are checked by their own tools.
pub(super) fn run(artefacts: &[String]) -> io::Result<()> {
    let version = version()?;
    let deb = format!("fastpath_{version}_amd64.deb");
    let archive = format!("fastpath-{version}-{MUSL}.tar.gz");
    let installations = [
        Installation {
            artefact: "deb",
            install: format!("dpkg --install /{deb}"),
            remove: "dpkg --purge fastpath".to_owned(),
            file: deb,
        },
        Installation {
            artefact: "archive",
            install: format!("tar -C /usr/local --strip-components=1 -xzf /{archive}"),
            remove: format!(
                "tar -tzf /{archive} | sed s,^[^/]*,/usr/local, | tac | while read f; do \
                 [ -d \"$f\" ] && {{ rmdir \"$f\" 2>/dev/null || true; }} || rm \"$f\"; done"
            ),
            file: archive,
        },
    ];
    let wanted = installations.iter().filter(|own| artefacts.iter().any(|artefact| artefact == own.artefact));
    for installation in wanted {
        let root = Root::new(installation.artefact)?;
        check(&root, installation)?;
    }
    Ok(())
}

fn check(root: &Root, installation: &Installation) -> io::Result<()> {
    let Installation { artefact, file, install, remove } = installation;
    println!("xtask: checking {file} in a fresh Debian {SUITE}");
    fs::copy(Path::new("dist").join(file), root.path.join(file))?;
    let before = root.files()?;
    root.run(install)?;
    root.run("fastpath --version")?;
    let documents = if *artefact == "deb" { "/usr/share/doc" } else { "/usr/local/share/doc" };
    let examples = format!("{documents}/fastpath/examples");
    root.run(&format!("fastpath replay {examples}/emulab-fig2-1.ns --in n0={examples}/emulab-fig2-1.pcap"))?;
    root.run(&format!("timeout {JOB_LIMIT_S} fastpath lab run {examples}/two-hosts.toml --audit"))?;
    root.run("test \"$(find / -xdev -path '*man1/fastpath*' | wc -l)\" -gt 20")?;
    root.run(remove)?;
    let after = root.files()?;
    let left: Vec<String> = after.difference(&before).map(|path| path.display().to_string()).collect();
    match left.is_empty() {
        true => Ok(()),
        false => Err(io::Error::other(format!("{file}: left after its removal: {}", left.join(", ")))),
    }
}

/// A Debian root, removed on drop.
struct Root {
    path: PathBuf,
}

impl Root {
    fn new(name: &str) -> io::Result<Root> {
        let root = Root { path: target().join("dist-files").join(format!("root-{name}")) };
        root.remove()?;
        let mut debian = Command::new("mmdebstrap");
        debian.env("SOURCE_DATE_EPOCH", epoch()?);
        debian.args(["--quiet", "--variant=minbase", "--include=iproute2,iputils-ping"]);
        succeed(debian.arg(SUITE).arg(&root.path))?;
        Ok(root)
    }

    /// Runs a command in the root, in network, mount and PID namespaces of its own.
    fn run(&self, command: &str) -> io::Result<()> {
        println!("xtask: + {command}");
        let root = fs::canonicalize(&self.path)?;
        let script = format!(
            "mount --rbind /dev {0}/dev && mount --rbind /sys {0}/sys && mount -t tmpfs none {0}/run && \
             exec chroot {0} sh -ec 'mount -t proc proc /proc; ip link set lo up; {1}'",
            root.display(),
            command.replace('\'', "'\\''"),
        );
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--propagation", "private", "--net", "--pid", "--fork", "--kill-child"]);
        unshare.args(["sh", "-ec", &script]);
        unshare.env_clear().env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        succeed(&mut unshare)
    }

    /// All files, from the root, except those that the package manager keeps.
    fn files(&self) -> io::Result<BTreeSet<PathBuf>> {
        let mut files = BTreeSet::new();
        let mut directories = vec![self.path.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory)? {
                let entry = entry?;
                let inside =
                    entry.path().strip_prefix(&self.path).map(Path::to_owned).map_err(io::Error::other)?;
                if KEPT.iter().any(|kept| inside.starts_with(kept)) {
                    continue;
                }
                if entry.file_type()?.is_dir() {
                    directories.push(entry.path());
                }
                files.insert(inside);
            }
        }
        Ok(files)
    }

    fn remove(&self) -> io::Result<()> {
        if !self.path.exists() {
            return Ok(());
        }
        // Mounts were in namespaces that have ended.
        succeed(Command::new("rm").args(["-rf", "--one-file-system"]).arg(&self.path))
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            eprintln!("xtask: {error}");
        }
    }
}
