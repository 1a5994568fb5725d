//! `cargo xtask dist`: what users install, in `dist/`.
//!
//! ```text
//! profile dist, glibc ─▶ .deb ─▶ OCI image (Debian and the .deb)
//! profile dist, musl  ─▶ .tar.gz, any Linux; symbols apart
//!                     ─▶ OCI image of the QUIC interop simulator
//! python.rs           ─▶ wheel
//! all of them         ─▶ SHA256SUMS
//! ```
//!
//! `--check` installs the .deb and the archive in a fresh Debian root, runs a lab with its audit
//! there, removes them, and compares the files (`check.rs`).

mod check;
mod deb;
mod image;

use crate::process::{cargo, copy_tree, succeed, target};
use crate::programs;
use crate::python::{self, WheelOptions};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

pub(crate) const MUSL: &str = "x86_64-unknown-linux-musl";
/// The address of the files of releases. README.md installs from it.
const RELEASES: &str = "https://example.invalid/fastpath/releases/download";
/// Whether there is a release there. Until then README.md says that there is none.
#[cfg(test)]
const IS_RELEASED: bool = false;
/// What `apt-get` installs for it: a program, its package.
const PROGRAMS: &[(&str, &str)] = &[
    ("dpkg-deb", "dpkg"),
    ("mmdebstrap", "mmdebstrap"),
    ("musl-gcc", "musl-tools"),
    ("objcopy", "binutils"),
    ("podman", "podman"),
];

/// What a run makes.
struct Plan {
    /// The cargo profile: `dist`, or for a trial one that compiles faster.
    profile: String,
    /// The artefacts: deb, archive, image, quic-sim, wheel.
    only: Vec<String>,
    checks: bool,
}

const ARTEFACTS: [&str; 5] = ["deb", "archive", "image", "quic-sim", "wheel"];

/// Makes the artefacts. The exit code is 1 if one of them cannot be made, or fails its check.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let Some(plan) = read(arguments) else {
        eprintln!("usage: cargo xtask dist [--check] [--profile NAME] [{}]…", ARTEFACTS.join("|"));
        return ExitCode::from(2);
    };
    match make(&plan) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: dist: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read(arguments: &[String]) -> Option<Plan> {
    let mut plan = Plan { profile: "dist".to_owned(), only: Vec::new(), checks: false };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--check" => plan.checks = true,
            "--profile" => plan.profile = words.next()?.clone(),
            word if ARTEFACTS.contains(&word) => plan.only.push(word.to_owned()),
            _ => return None,
        }
    }
    if plan.only.is_empty() {
        plan.only = ARTEFACTS.map(str::to_owned).to_vec();
    }
    Some(plan)
}

fn make(plan: &Plan) -> io::Result<()> {
    programs::install(PROGRAMS);
    fs::create_dir_all("dist")?;
    let wants = |artefact: &str| plan.only.iter().any(|only| only == artefact);
    // The image contains the .deb.
    if wants("deb") || wants("image") {
        let program = build(plan, None)?;
        let package = deb::make(&program)?;
        if wants("image") {
            image::make(&package)?;
        }
    }
    if wants("archive") || wants("quic-sim") {
        let program = build(plan, Some(MUSL))?;
        if wants("archive") {
            archive(&program)?;
        }
        if wants("quic-sim") {
            image::make_quic_sim(&program)?;
        }
    }
    if wants("wheel") && python::wheel(&WheelOptions::of_artefact(plan.checks)) != ExitCode::SUCCESS {
        return Err(io::Error::other("the wheel is not made"));
    }
    checksums()?;
    if plan.checks { check::run(&plan.only) } else { Ok(()) }
}

/// The version of the workspace.
pub(crate) fn version() -> io::Result<String> {
    let manifest = fs::read_to_string("Cargo.toml")?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|rest| rest.strip_suffix('"'));
    version.map(str::to_owned).ok_or_else(|| io::Error::other("Cargo.toml has no version"))
}

/// Builds the program, takes its symbols out, and returns its path.
fn build(plan: &Plan, triple: Option<&str>) -> io::Result<PathBuf> {
    if let Some(triple) = triple {
        println!("xtask: the archive needs the standard library for {triple}: rustup target add");
        succeed(Command::new("rustup").args(["target", "add", triple]))?;
    }
    let mut arguments = vec![
        "build",
        "--locked",
        "--package",
        "fastpath-cli",
        "--features",
        "full",
        "--profile",
        &plan.profile,
    ];
    arguments.extend(triple.iter().flat_map(|triple| ["--target", triple]));
    cargo(&arguments)?;
    let directory = if plan.profile == "dev" { "debug" } else { &plan.profile };
    let built = triple.map_or_else(target, |triple| target().join(triple)).join(directory).join("fastpath");
    let place = target().join("dist-files").join(triple.unwrap_or("gnu"));
    fs::create_dir_all(&place)?;
    let program = place.join("fastpath");
    let symbols =
        Path::new("dist").join(format!("fastpath-{}-{}.debug", version()?, triple.unwrap_or("gnu")));
    fs::copy(&built, &program)?;
    succeed(
        Command::new("objcopy")
            .args(["--only-keep-debug", "--compress-debug-sections"])
            .arg(&program)
            .arg(&symbols),
    )?;
    succeed(Command::new("strip").args(["--strip-all"]).arg(&program))?;
    succeed(Command::new("objcopy").arg("--add-gnu-debuglink").arg(&symbols).arg(&program))?;
    Ok(program)
}

/// Lays out below `root` what a system has of fastpath: program, pages, completions, examples.
fn install(program: &Path, root: &Path) -> io::Result<()> {
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    let share = root.join("share");
    let documents = share.join("doc/fastpath");
    fs::create_dir_all(root.join("bin"))?;
    fs::create_dir_all(&documents)?;
    fs::copy(program, root.join("bin/fastpath"))?;
    succeed(Command::new(program).arg("man").arg(share.join("man/man1")))?;
    let completions = [
        ("bash", "bash-completion/completions/fastpath"),
        ("zsh", "zsh/vendor-completions/_fastpath"),
        ("fish", "fish/vendor_completions.d/fastpath.fish"),
    ];
    for (shell, file) in completions {
        let output = Command::new(program).args(["completions", shell]).output()?;
        let file = share.join(file);
        fs::create_dir_all(file.parent().expect("the file is in a directory"))?;
        fs::write(file, output.stdout)?;
    }
    copy_tree(Path::new("examples"), &documents.join("examples"))?;
    for file in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(file, documents.join(file))?;
    }
    Ok(())
}

/// The name of the archive of a version, without `.tar.gz`: that of the directory in it.
fn archive_name(version: &str) -> String {
    format!("fastpath-{version}-{MUSL}")
}

/// The address of the archive of a version.
pub(crate) fn archive_address(version: &str) -> String {
    format!("{RELEASES}/v{version}/{}.tar.gz", archive_name(version))
}

/// Makes the archive that any Linux unpacks: `tar -C /usr/local --strip-components=1 -xzf FILE`.
fn archive(program: &Path) -> io::Result<()> {
    let name = archive_name(&version()?);
    let place = target().join("dist-files").join(&name);
    install(program, &place)?;
    let file = fs::canonicalize("dist")?.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--use-compress-program=gzip -9n"]);
    tar.arg(format!("--mtime=@{}", epoch()?)).arg("-cf").arg(&file);
    succeed(tar.arg("-C").arg(target().join("dist-files")).arg(&name))?;
    println!("xtask: {}", file.display());
    Ok(())
}

/// The time of the commit, in seconds: the date of files in artefacts.
fn epoch() -> io::Result<String> {
    let output = Command::new("git").args(["log", "-1", "--format=%ct"]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Writes `dist/SHA256SUMS`.
pub(crate) fn checksums() -> io::Result<()> {
    let files = fs::read_dir("dist")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut files: Vec<String> = files.filter(|name| name != "SHA256SUMS").collect();
    files.sort();
    let output = Command::new("sha256sum").args(&files).current_dir("dist").output()?;
    fs::write("dist/SHA256SUMS", output.stdout)
}

#[test]
fn arguments_name_artefacts_profiles_and_the_check() {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let plan = read(&words("--check --profile release deb")).unwrap();
    assert!(plan.checks && plan.profile == "release" && plan.only == ["deb"]);
    assert_eq!(read(&[]).unwrap().only, ARTEFACTS);
    assert!(read(&words("rpm")).is_none() && read(&words("--profile")).is_none());
}

#[test]
fn the_readme_installs_the_archive_of_this_version_and_says_whether_it_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let address = archive_address(env!("CARGO_PKG_VERSION"));
    let lines = || readme.lines().skip_while(|line| *line != "## Install");
    assert!(lines().any(|line| line == format!("curl -L {address} |")), "{address}");
    assert_eq!(readme.contains("There is no release yet"), !IS_RELEASED);
    assert!(readme.contains("`cargo xtask dist archive`"));
}
