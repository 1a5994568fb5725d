//! Builds the kernel of guests from Debian's package of its source, or from a directory.
//!
//! ```text
//!  linux-source-N (apt, lists of its own) ─┐
//!  --source DIR ───────────────────────────┴▶ patch ▶ configure ▶ make ▶ a guest that ends ▶ home
//! ```
//!
//! Nothing of the machine changes: apt works on lists of sources in the directory of the build, and
//! tools that are missing are unpacked there. The directory is removed at the end.

mod packages;
mod steps;

use crate::kernel::{DESCRIPTION, home};
use crate::{BuildError, Guest, Kernel, sums};
use packages::Apt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use steps::Steps;

/// Options of the kernel beside the default ones of User Mode Linux.
const CONFIGURATION: &str = include_str!("../../kernel/config");
/// See the head of the crate.
const PATCH: &str = include_str!("../../kernel/fastpath.patch");
/// Options without which there are no labs in guests.
const NEEDED: [&str; 9] = [
    "UML_TIME_TRAVEL_SUPPORT",
    "HOSTFS",
    "OVERLAY_FS",
    "TMPFS",
    "NET_NS",
    "PID_NS",
    "VETH",
    "TUN",
    "HIGH_RES_TIMERS",
];
/// What the build takes, MiB.
const ROOM_MIB: u64 = 3000;
/// The time that kernel, user and host of the build have in the kernel, so that two builds are the
/// same file.
const STAMP: [(&str, &str); 3] = [
    ("KBUILD_BUILD_TIMESTAMP", "Tue Jan  1 00:00:00 UTC 2030"),
    ("KBUILD_BUILD_USER", "fastpath"),
    ("KBUILD_BUILD_HOST", "fastpath"),
];

/// Where the source of the kernel is from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// The newest of Debian's packages `linux-source-*` for stable and its backports.
    Debian,
    /// A directory with the source of a kernel. It is copied.
    Directory(PathBuf),
}

/// Returns the SHA-256 of what is made of a source.
pub(crate) fn recipe() -> String {
    sums::of_bytes(format!("{CONFIGURATION}\0{PATCH}").as_bytes())
}

/// Builds the kernel into the user's directory. `tell` is called at the begin of each step.
///
/// # Errors
/// See [`BuildError`]. A kernel that was there stays.
pub fn build(source: &Source, jobs: usize, tell: &mut dyn FnMut(&str)) -> Result<Kernel, BuildError> {
    if !cfg!(target_arch = "x86_64") {
        return Err(BuildError::Processor);
    }
    let home = home().ok_or(BuildError::NoHome)?;
    let room = home.join("build");
    // What an interrupted build has left.
    let _ = fs::remove_dir_all(&room);
    fs::create_dir_all(&room).map_err(|source| file(&room, source))?;
    let free = steps::free_mib(&room)?;
    if free < ROOM_MIB {
        return Err(BuildError::Room { path: room, free, needed: ROOM_MIB });
    }
    let log = home.join("build.log");
    fs::write(&log, "").map_err(|source| file(&log, source))?;
    let mut steps = Steps { room: room.clone(), log, path: Vec::new(), environment: Vec::new() };
    tell(&format!("the output of all steps is in {}", steps.log.display()));
    let built = build_in(&mut steps, source, jobs, tell);
    // A failure leaves its log.
    let _ = fs::remove_dir_all(&room);
    let (image, mut kernel) = built?;
    let name = format!("linux-{}", kernel.version);
    kernel.path = home.join(&name);
    let new = home.join(format!("{name}.new"));
    fs::write(&new, image).map_err(|source| file(&new, source))?;
    steps::make_executable(&new)?;
    tell("starting a guest of it");
    let trial = Kernel { path: new.clone(), ..kernel.clone() };
    let ran = Guest::new(&trial).run_program(&["/bin/true"], &AtomicBool::new(false));
    if let Err(error) = ran {
        let _ = fs::remove_file(&new);
        return Err(BuildError::Trial(Box::new(error)));
    }
    fs::rename(&new, &kernel.path).map_err(|source| file(&new, source))?;
    let text = serde_json::to_vec_pretty(&kernel).expect("a description is JSON");
    let description = home.join(DESCRIPTION);
    fs::write(&description, text).map_err(|source| file(&description, source))?;
    Ok(kernel)
}

/// Returns the bytes of the new kernel, and what is known of it.
fn build_in(
    steps: &mut Steps,
    source: &Source,
    jobs: usize,
    tell: &mut dyn FnMut(&str),
) -> Result<(Vec<u8>, Kernel), BuildError> {
    let apt = Apt::new(&steps.room);
    packages::complete_tools(steps, &apt, tell)?;
    let tree = steps.room.join("linux");
    let (from, command) = match source {
        Source::Debian => {
            (packages::unpack_source(steps, &apt, &tree, tell)?, "fastpath guest build".to_owned())
        }
        Source::Directory(directory) => {
            if !directory.join("Kbuild").is_file() || !directory.join("arch/um").is_dir() {
                return Err(BuildError::NotSource(directory.clone()));
            }
            tell(&format!("copying {}", directory.display()));
            steps.run("copying the source", "cp", &["-a", text(directory)?, text(&tree)?])?;
            let given = directory.display();
            (given.to_string(), format!("fastpath guest build --source {given}"))
        }
    };
    tell("patching and configuring");
    let patch = steps.write("fastpath.patch", PATCH)?;
    steps.run_in(&tree, "patching", "patch", &["-p1", "--forward", "--batch", "-i", text(&patch)?])?;
    let out = steps.room.join("out");
    fs::create_dir_all(&out).map_err(|source| file(&out, source))?;
    let to = format!("O={}", text(&out)?);
    steps.environment.extend(STAMP.map(|(name, value)| (name, value.into())));
    let make = |steps: &Steps, step, what: &[&str]| {
        let arguments: Vec<&str> = ["-s", "ARCH=um", &to].into_iter().chain(what.iter().copied()).collect();
        steps.run_in(&tree, step, "make", &arguments)
    };
    make(steps, "configuring", &["x86_64_defconfig"])?;
    let config = out.join(".config");
    let defaults = read(&config)?;
    fs::write(&config, format!("{defaults}\n{CONFIGURATION}")).map_err(|source| file(&config, source))?;
    make(steps, "configuring", &["olddefconfig"])?;
    let without = missing(&read(&config)?);
    let lacking: Vec<String> =
        without.iter().filter(|option| NEEDED.contains(&option.as_str())).cloned().collect();
    if !lacking.is_empty() {
        return Err(BuildError::Configuration(lacking));
    }
    tell("compiling (about 10 minutes of CPU)");
    make(steps, "compiling", &[&format!("-j{jobs}"), "linux"])?;
    let version = read(&out.join("include/config/kernel.release"))?.trim().to_owned();
    let image = out.join("linux");
    steps.run("stripping", "strip", &[text(&image)?])?;
    let bytes = fs::read(&image).map_err(|source| file(&image, source))?;
    let kernel = Kernel {
        version,
        path: image,
        sha256: sums::of_bytes(&bytes),
        source: from,
        recipe: recipe(),
        command,
        without,
    };
    Ok((bytes, kernel))
}

/// Returns the options of ours that a configuration does not have.
fn missing(config: &str) -> Vec<String> {
    let asked = CONFIGURATION.lines().filter(|line| line.starts_with("CONFIG_") && line.ends_with("=y"));
    let has = |line: &&str| !config.lines().any(|known| known == *line);
    let name = |line: &str| line["CONFIG_".len()..line.len() - "=y".len()].to_owned();
    asked.filter(has).map(name).collect()
}

fn read(path: &Path) -> Result<String, BuildError> {
    fs::read_to_string(path).map_err(|source| file(path, source))
}

pub(crate) fn file(path: &Path, source: std::io::Error) -> BuildError {
    BuildError::File { path: path.to_owned(), source }
}

/// Returns a path as an argument.
fn text(path: &Path) -> Result<&str, BuildError> {
    let not_text =
        || std::io::Error::new(std::io::ErrorKind::InvalidInput, "not UTF-8; use another directory");
    path.to_str().ok_or_else(|| file(path, not_text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_configuration_lacks_is_found() {
        let all: String = CONFIGURATION.lines().map(|line| format!("{line}\n")).collect();
        assert_eq!(missing(&all), Vec::<String>::new());
        let without = all.replace("CONFIG_VETH=y\n", "# CONFIG_VETH is not set\n");
        assert_eq!(missing(&without), ["VETH"]);
        let asks = |option: &&str| CONFIGURATION.contains(&format!("CONFIG_{option}=y\n"));
        assert_eq!(NEEDED.iter().filter(|option| !asks(option)).count(), 0);
    }
}
