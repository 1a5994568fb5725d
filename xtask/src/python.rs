//! The Python package: its tests, `cargo xtask wheel`, `cargo xtask notebooks`.
//!
//! The tests run on the sources of `crates/python/python` and a debug build of the native module,
//! copied to one directory below the target directory. The wheel is built by maturin, in release.

use crate::process::{cargo, copy_tree, succeed, target};
use crate::tally::Tally;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What the tests and the wheel need from PyPI.
const PACKAGES: &[&str] = &[
    "maturin==1.16.0",
    "pytest==8.4.2",
    "mypy==1.18.2",
    "distributed==2024.8.0 ; python_version < '3.10'",
    "distributed==2025.9.1 ; python_version >= '3.10'",
    "aioquic==1.2.0 ; python_version < '3.11'",
    "aioquic==1.7.2 ; python_version >= '3.11'",
    "numpy==2.0.2 ; python_version < '3.13'",
    "numpy==2.3.3 ; python_version >= '3.13'",
];
/// What the notebooks need beside them.
const NOTEBOOK_PACKAGES: &[&str] = &["ipykernel", "matplotlib", "nbclient", "nbformat"];
const CRATE: &str = "crates/python";
/// The largest wheel.
const WHEEL_BYTES_MAX: u64 = 30_000_000;

/// Runs pytest on the package. Without Python or the packages of PyPI it is skipped.
pub(crate) fn test(tally: &mut Tally, install: bool) {
    let Some(python) = environment(install) else {
        return tally.skip("crates/python: no virtual environment with pytest and numpy");
    };
    let staged = stage();
    let passed = staged.and_then(|site| {
        let program = fs::canonicalize(target().join("debug/fastpath"))?;
        let site = fs::canonicalize(site)?;
        let mut command = Command::new(python);
        command.args(["-m", "pytest", "-p", "no:cacheprovider", "--color=no", "-q", "-rs", CRATE]);
        command.env("PYTHONPATH", site).env("FASTPATH_PROGRAM", program);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.output()
    });
    match passed {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            print!("{text}");
            eprint!("{}", String::from_utf8_lossy(&output.stderr));
            tally.pytest(&text, output.status.success());
        }
        Err(error) => {
            println!("xtask: the tests of crates/python did not run: {error}");
            tally.pytest("", false);
        }
    }
}

/// How the wheel is built.
#[derive(Default)]
pub(crate) struct WheelOptions {
    profile: Profile,
    after: AfterBuild,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Profile {
    Debug,
    #[default]
    Release,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum AfterBuild {
    #[default]
    Keep,
    TryInstalled,
}

impl WheelOptions {
    /// Returns the options of a wheel for users, installed and tried if `is_checked`.
    pub(crate) fn of_artefact(is_checked: bool) -> WheelOptions {
        let after = if is_checked { AfterBuild::TryInstalled } else { AfterBuild::Keep };
        WheelOptions { profile: Profile::Release, after }
    }

    /// Reads the words after `wheel`; `None` if one is unknown.
    pub(crate) fn parse(words: &[String]) -> Option<WheelOptions> {
        let mut options = WheelOptions::default();
        for word in words {
            match word.as_str() {
                "--debug" => options.profile = Profile::Debug,
                "--check" => options.after = AfterBuild::TryInstalled,
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Builds `dist/*.whl`: the package, its native module, and the program.
pub(crate) fn wheel(options: &WheelOptions) -> ExitCode {
    let Some(python) = environment(true) else {
        eprintln!("xtask: the wheel needs python3 with venv, and maturin from PyPI");
        return ExitCode::from(2);
    };
    let built = build_wheel(&python, options.profile).and_then(|wheel| {
        let bytes = fs::metadata(&wheel)?.len();
        println!("{}: {:.1} MB", wheel.display(), bytes as f64 / 1e6);
        if options.profile == Profile::Release && bytes > WHEEL_BYTES_MAX {
            return Err(io::Error::other(format!("{bytes} bytes; at most {WHEEL_BYTES_MAX} are wanted")));
        }
        if options.after == AfterBuild::TryInstalled { check_wheel(&wheel) } else { Ok(()) }
    });
    match built {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: wheel: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the path of the wheel.
fn build_wheel(python: &Path, profile: Profile) -> io::Result<PathBuf> {
    let mut build = vec!["build", "--package", "fastpath-cli", "--features", "full"];
    let mut options = vec!["--locked"];
    let built = match profile {
        Profile::Debug => "debug/fastpath",
        Profile::Release => {
            build.extend(["--profile", "dist"]);
            options.extend(["--profile", "dist", "--strip"]);
            "dist/fastpath"
        }
    };
    cargo(&build)?;
    let scripts = Path::new(CRATE).join("data/scripts");
    fs::create_dir_all(&scripts)?;
    let program = scripts.join("fastpath");
    fs::copy(target().join(built), &program)?;
    // Without the lines of its sources it is a third of its size.
    succeed(Command::new("strip").arg(&program))?;
    // An older wheel would be taken for the new one.
    let dist = target().join("wheel");
    let _ = fs::remove_dir_all(&dist);
    let mut maturin = Command::new(python);
    maturin.args(["-m", "maturin", "build", "--out"]).arg(&dist).args(options);
    // maturin looks for cargo on the path.
    if let Some(cargo) = env::var_os("CARGO").map(PathBuf::from) {
        let path = env::var_os("PATH").unwrap_or_default();
        let directories = cargo.parent().map(Path::to_owned).into_iter().chain(env::split_paths(&path));
        maturin.env("PATH", env::join_paths(directories).map_err(io::Error::other)?);
    }
    succeed(maturin.arg("--manifest-path").arg(Path::new(CRATE).join("Cargo.toml")))?;
    let made = fs::read_dir(&dist)?.next().ok_or_else(|| io::Error::other("maturin made no wheel"))??;
    fs::create_dir_all("dist")?;
    let wheel = Path::new("dist").join(made.file_name());
    fs::copy(made.path(), &wheel)?;
    Ok(wheel)
}

/// Installs a wheel into a fresh virtual environment and runs `tests/wheel/check.py` there, without
/// Rust on the path.
fn check_wheel(wheel: &Path) -> io::Result<()> {
    let venv = target().join("wheel-check");
    let _ = fs::remove_dir_all(&venv);
    succeed(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let python = fs::canonicalize(&venv)?.join("bin/python");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check", "install"]).arg(wheel);
    succeed(&mut pip)?;
    let script = fs::canonicalize(Path::new(CRATE).join("tests/wheel/check.py"))?;
    // Its own directory, where no source of the package is found.
    let mut check = Command::new(&python);
    check.arg(script).current_dir(&venv).env_clear();
    for name in ["HOME", "USER", "TMPDIR", "XDG_RUNTIME_DIR", "LANG"] {
        check.envs(env::var_os(name).map(|value| (name, value)));
    }
    succeed(check.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"))
}

/// Runs the notebooks of `docs/notebooks` and keeps their results in them.
pub(crate) fn notebooks() -> ExitCode {
    let Some(python) = environment(true) else {
        eprintln!("xtask: the notebooks need python3 with venv, and packages from PyPI");
        return ExitCode::from(2);
    };
    let run = || {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check", "install"]);
        succeed(pip.args(NOTEBOOK_PACKAGES))?;
        let site = fs::canonicalize(stage()?)?;
        let program = fs::canonicalize(target().join("debug/fastpath"))?;
        let mut command = Command::new(&python);
        command.arg("docs/notebooks/make.py").env("PYTHONPATH", site).env("FASTPATH_PROGRAM", program);
        succeed(&mut command)
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: notebooks: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Copies the sources and a debug build of the native module to one directory. Returns it.
fn stage() -> io::Result<PathBuf> {
    // All targets of the workspace: the tests have built them with the same features.
    cargo(&["build", "--quiet", "--workspace", "--all-targets", "--all-features"])?;
    let site = target().join("python-site");
    if site.exists() {
        fs::remove_dir_all(&site)?;
    }
    copy_tree(&Path::new(CRATE).join("python"), &site)?;
    let library = target().join("debug/libfastpath_native.so");
    fs::copy(library, site.join("fastpath/_native.abi3.so"))?;
    Ok(site)
}

/// Returns the interpreter of a virtual environment with [`PACKAGES`], made if it is missing.
pub(crate) fn environment(install: bool) -> Option<PathBuf> {
    let venv = target().join("python");
    let python = venv.join("bin/python");
    // Written last: the packages that were installed.
    let complete = venv.join("complete");
    if fs::read_to_string(&complete).is_ok_and(|packages| packages == PACKAGES.join("\n")) {
        return Some(python);
    }
    if !install {
        return None;
    }
    println!(
        "xtask: the Python package needs pytest and further packages (250 MB): installing them from PyPI into {}",
        venv.display()
    );
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check", "install"]).args(PACKAGES);
    succeed(Command::new("python3").args(["-m", "venv"]).arg(&venv)).ok()?;
    succeed(&mut pip).ok()?;
    fs::write(complete, PACKAGES.join("\n")).ok()?;
    Some(python)
}
