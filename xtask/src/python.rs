//! The Python package: its tests, and `cargo xtask wheel`.
//!
//! The tests run on the sources of `crates/python/python` and a debug build of the native module,
//! copied to one directory below the target directory. The wheel is built by maturin, in release.

use crate::process::{cargo, copy_tree, succeed, target};
use crate::tally::Tally;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What the tests and the wheel need from PyPI.
const PACKAGES: &[&str] = &[
    "maturin==1.16.0",
    "pytest==8.4.2",
    "numpy==2.0.2 ; python_version < '3.13'",
    "numpy==2.3.3 ; python_version >= '3.13'",
];
const CRATE: &str = "crates/python";

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

/// Builds `dist/*.whl`: the package, its native module, and the program.
pub(crate) fn wheel() -> ExitCode {
    let Some(python) = environment(true) else {
        eprintln!("xtask: the wheel needs python3 with venv, and maturin from PyPI");
        return ExitCode::from(2);
    };
    match build_wheel(&python) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: wheel: {error}");
            ExitCode::FAILURE
        }
    }
}

fn build_wheel(python: &Path) -> io::Result<()> {
    cargo(&["build", "--release", "--package", "fastpath-cli"])?;
    let scripts = Path::new(CRATE).join("data/scripts");
    fs::create_dir_all(&scripts)?;
    let program = scripts.join("fastpath");
    fs::copy(target().join("release/fastpath"), &program)?;
    // Without the lines of its sources it is a third of its size.
    succeed(Command::new("strip").arg(&program))?;
    let mut maturin = Command::new(python);
    maturin.args(["-m", "maturin", "build", "--release", "--strip", "--locked", "--out", "dist"]);
    succeed(maturin.arg("--manifest-path").arg(Path::new(CRATE).join("Cargo.toml")))
}

/// Copies the sources and a debug build of the native module to one directory. Returns it.
fn stage() -> io::Result<PathBuf> {
    // All targets of the workspace: the tests have built them with the same features.
    cargo(&["build", "--quiet", "--workspace", "--all-targets"])?;
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
fn environment(install: bool) -> Option<PathBuf> {
    let venv = target().join("python");
    let python = venv.join("bin/python");
    // Written last.
    let complete = venv.join("complete");
    if complete.exists() {
        return Some(python);
    }
    if !install {
        return None;
    }
    println!(
        "xtask: the Python package needs pytest, numpy and maturin (150 MB): installing them from PyPI into {}",
        venv.display()
    );
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check", "install"]).args(PACKAGES);
    succeed(Command::new("python3").args(["-m", "venv"]).arg(&venv)).ok()?;
    succeed(&mut pip).ok()?;
    fs::write(complete, "").ok()?;
    Some(python)
}
