//! The Debian package.

use super::{epoch, install, version};
use crate::process::{succeed, target};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest GNU C library that the program runs with, if the build machine has no newer one.
const GLIBC: &str = "2.36";

/// Makes the package of a program, and returns its path.
pub(super) fn make(program: &Path) -> io::Result<PathBuf> {
    let version = version()?;
    let root = target().join("dist-files/deb");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    install(program, &root.join("usr"))?;
    compress(&root.join("usr/share/man/man1"))?;
    let documents = root.join("usr/share/doc/fastpath");
    let copyright = "License: MIT or Apache-2.0, at your choice. See LICENSE-MIT and LICENSE-APACHE.\n";
    fs::write(documents.join("copyright"), copyright)?;
    let units = root.join("lib/systemd/system");
    fs::create_dir_all(&units)?;
    fs::copy("packaging/fastpath@.service", units.join("fastpath@.service"))?;
    let control = root.join("DEBIAN");
    fs::create_dir_all(&control)?;
    for script in ["prerm", "postrm"] {
        let file = control.join(script);
        fs::copy(Path::new("packaging").join(script), &file)?;
        fs::set_permissions(file, fs::Permissions::from_mode(0o755))?;
    }
    let size = (fs::metadata(program)?.len() / 1024 + 1024).to_string();
    let text = fs::read_to_string("packaging/control")?;
    let text = text.replace("VERSION", &version).replace("GLIBC", GLIBC).replace("SIZE", &size);
    fs::write(control.join("control"), text)?;
    let file = Path::new("dist").join(format!("fastpath_{version}_amd64.deb"));
    let mut build = Command::new("dpkg-deb");
    build.env("SOURCE_DATE_EPOCH", epoch()?);
    succeed(build.args(["--root-owner-group", "--build"]).arg(&root).arg(&file))?;
    println!("xtask: {}", file.display());
    Ok(file)
}

/// Compresses the files of a directory, without their times.
fn compress(directory: &Path) -> io::Result<()> {
    let files: Vec<PathBuf> = fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    succeed(Command::new("gzip").args(["-9", "-n"]).args(files))
}
