//! Debian's packages, fetched without changing anything of the machine's apt.

use super::steps::Steps;
use super::{file, text};
use crate::BuildError;
use std::fs;
use std::path::{Path, PathBuf};

/// Programs that must be there, and their packages.
const COMPILER: [(&str, &str); 4] = [("gcc", "gcc"), ("ld", "binutils"), ("make", "make"), ("tar", "tar")];
/// The file that shows that programs can be compiled, and its package.
const HEADERS: (&str, &str) = ("/usr/include/stdio.h", "libc6-dev");
/// Programs that are fetched if they are missing, and their packages.
const TOOLS: [(&str, &str); 6] = [
    ("m4", "m4"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("patch", "patch"),
    ("xz", "xz-utils"),
];
/// Where sources of kernels are looked for.
const SUITES: [&str; 2] = ["trixie-backports", "trixie"];
const MIRROR: &str = "http://deb.debian.org/debian";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// apt with directories of its own.
pub(super) struct Apt {
    room: PathBuf,
}

impl Apt {
    pub(super) fn new(room: &Path) -> Apt {
        Apt { room: room.join("apt") }
    }

    /// Returns the options of a call of apt. `sources` is a file; without it the machine's sources
    /// count, read into lists of this directory.
    fn options(&self, sources: Option<&Path>) -> Vec<String> {
        let lists = self.room.join(if sources.is_some() { "lists-source" } else { "lists-tools" });
        let cache = self.room.join("cache");
        let _ = fs::create_dir_all(lists.join("partial"));
        let _ = fs::create_dir_all(cache.join("archives/partial"));
        let mut options = vec![
            format!("Dir::State::Lists={}", lists.display()),
            format!("Dir::Cache={}", cache.display()),
            "Dir::State::status=/dev/null".to_owned(),
            "APT::Sandbox::User=".to_owned(),
            "Acquire::Languages=none".to_owned(),
        ];
        if let Some(sources) = sources {
            options.push(format!("Dir::Etc::sourcelist={}", sources.display()));
            options.push("Dir::Etc::sourceparts=-".to_owned());
        }
        options.into_iter().flat_map(|option| ["-o".to_owned(), option]).collect()
    }

    fn call(
        &self,
        steps: &Steps,
        sources: Option<&Path>,
        (step, words): (&'static str, &[&str]),
    ) -> Result<(), BuildError> {
        let options = self.options(sources);
        let all: Vec<&str> = options.iter().map(String::as_str).chain(words.iter().copied()).collect();
        steps.run_in(&self.room, step, "apt-get", &all)
    }

    /// Fetches a package and unpacks it into a directory.
    fn unpack(
        &self,
        steps: &Steps,
        sources: Option<&Path>,
        package: &str,
        to: &Path,
    ) -> Result<(), BuildError> {
        self.call(steps, sources, ("fetching packages", &["download", package]))?;
        let listed = fs::read_dir(&self.room).map_err(|source| file(&self.room, source))?;
        for entry in listed.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                steps.run("unpacking packages", "dpkg-deb", &["-x", text(&path)?, text(to)?])?;
                fs::remove_file(&path).map_err(|source| file(&path, source))?;
            }
        }
        Ok(())
    }
}

/// Fetches the tools that are missing, and names those that cannot be fetched.
pub(super) fn complete_tools(
    steps: &mut Steps,
    apt: &Apt,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BuildError> {
    let mut missing: Vec<(&str, &str)> =
        COMPILER.into_iter().filter(|(program, _)| !steps.has(program)).collect();
    if !Path::new(HEADERS.0).is_file() {
        missing.push(HEADERS);
    }
    let tools: Vec<(&str, &str)> = TOOLS.into_iter().filter(|(program, _)| !steps.has(program)).collect();
    if !steps.has("apt-get") || !steps.has("dpkg-deb") {
        missing.extend(&tools);
    }
    if !missing.is_empty() {
        let (programs, packages) = missing.into_iter().unzip();
        return Err(BuildError::Programs { programs, packages });
    }
    if tools.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = tools.iter().map(|(_, package)| *package).collect();
    tell(&format!("fetching {} (not installed)", packages.join(", ")));
    let to = steps.room.join("tools");
    fs::create_dir_all(&to).map_err(|source| file(&to, source))?;
    apt.call(steps, None, ("reading the machine's sources", &["update"]))?;
    for package in packages {
        apt.unpack(steps, None, package, &to)?;
    }
    steps.path.push(to.join("usr/bin"));
    steps.path.push(to.join("bin"));
    steps.environment.push(("BISON_PKGDATADIR", to.join("usr/share/bison").into()));
    if !tools.iter().all(|(program, _)| *program != "m4") {
        steps.environment.push(("M4", to.join("usr/bin/m4").into()));
    }
    Ok(())
}

/// Fetches the newest source of a kernel and unpacks it to `tree`. Returns package and version.
pub(super) fn unpack_source(
    steps: &Steps,
    apt: &Apt,
    tree: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<String, BuildError> {
    if !steps.has("apt-get") || !steps.has("dpkg-deb") {
        return Err(BuildError::NoSource { suites: "apt, which this machine does not have".to_owned() });
    }
    let signed = if Path::new(KEYRING).is_file() { format!("[signed-by={KEYRING}] ") } else { String::new() };
    let lines: String = SUITES.iter().map(|suite| format!("deb {signed}{MIRROR} {suite} main\n")).collect();
    let sources = steps.write("sources.list", &lines)?;
    tell(&format!("looking for a source in {} of {MIRROR}", SUITES.join(", ")));
    apt.options(Some(&sources));
    apt.call(steps, Some(&sources), ("reading the list of kernels", &["update"]))?;
    let search: Vec<String> = apt.options(Some(&sources));
    let words = ["search", "--names-only", "^linux-source-[0-9.]+$"];
    let arguments: Vec<&str> = search.iter().map(String::as_str).chain(words).collect();
    let found = steps.output("apt-cache", &arguments);
    let package = newest(&found).ok_or_else(|| BuildError::NoSource { suites: SUITES.join(" and ") })?;
    let shown: Vec<&str> = search.iter().map(String::as_str).chain(["show", &package]).collect();
    let about = steps.output("apt-cache", &shown);
    let version = about.lines().find_map(|line| line.strip_prefix("Version: ")).unwrap_or("").to_owned();
    tell(&format!("fetching {package} {version} (about 170 MB)"));
    let to = steps.room.join("package");
    fs::create_dir_all(&to).map_err(|source| file(&to, source))?;
    apt.unpack(steps, Some(&sources), &package, &to)?;
    tell("unpacking it");
    let archive = to.join(format!("usr/src/{package}.tar.xz"));
    fs::create_dir_all(tree).map_err(|source| file(tree, source))?;
    let words = ["-xJf", text(&archive)?, "-C", text(tree)?, "--strip-components=1"];
    steps.run("unpacking the source", "tar", &words)?;
    let _ = fs::remove_dir_all(&to);
    Ok(format!("{package} {version}"))
}

/// Returns the package of the highest version among the lines of `apt-cache search`.
fn newest(found: &str) -> Option<String> {
    let version = |package: &str| -> Option<Vec<u32>> {
        package.strip_prefix("linux-source-")?.split('.').map(|part| part.parse().ok()).collect()
    };
    let packages = found.lines().filter_map(|line| line.split_whitespace().next());
    let newest = packages.filter_map(|package| Some((version(package)?, package))).max()?;
    Some(newest.1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_source_is_that_of_the_highest_number() {
        let found = "linux-source-6.12 - Linux kernel source for version 6.12\n\
            linux-source-7.10 - Linux\nlinux-source-7.9 - Linux\nlinux-source-rt - Linux\n";
        assert_eq!(newest(found).as_deref(), Some("linux-source-7.10"));
        assert_eq!(newest("linux-source - Linux"), None);
    }
}
