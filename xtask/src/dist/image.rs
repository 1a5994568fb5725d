//! The OCI images: Debian with the package, and the programs that experiments use most; and the
//! static program alone, as the simulator of the QUIC interop runner.

use super::version;
use crate::process::{succeed, target};
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

const SUITE: &str = "bookworm";
/// Debian packages beside fastpath.
const PACKAGES: &str = "ca-certificates,curl,iperf3,iproute2,iputils-ping,nftables,passt,tcpdump";

/// The largest image of the simulator, bytes.
const QUIC_SIM_BYTES_MAX: u64 = 20_000_000;

/// Makes `dist/fastpath-VERSION.oci.tar`, which `podman load` and `docker load` read.
pub(super) fn make(package: &Path) -> io::Result<()> {
    let root = target().join("dist-files/image.tar");
    let name = format!("localhost/fastpath:{}", version()?);
    let file = Path::new("dist").join(format!("fastpath-{}.oci.tar", version()?));
    let mut debian = Command::new("mmdebstrap");
    debian.args(["--quiet", "--variant=minbase", &format!("--include={PACKAGES}")]);
    for hook in [
        format!("cp {} \"$1\"/fastpath.deb", package.display()),
        "chroot \"$1\" dpkg --install /fastpath.deb".to_owned(),
        "rm \"$1\"/fastpath.deb".to_owned(),
    ] {
        debian.arg(format!("--customize-hook={hook}"));
    }
    succeed(debian.arg(SUITE).arg(&root))?;
    let changes = ["ENTRYPOINT [\"/usr/bin/fastpath\"]", "CMD [\"--help\"]"];
    save(&root, &name, &changes, &file)
}

/// Makes `dist/fastpath-quic-sim-VERSION.oci.tar` from the static program.
pub(super) fn make_quic_sim(program: &Path) -> io::Result<()> {
    let directory = target().join("dist-files/quic-sim");
    let _ = fs::remove_dir_all(&directory);
    // What the program writes to, and where containers have their names.
    for place in ["usr/bin", "logs", "run", "tmp", "etc"] {
        fs::create_dir_all(directory.join(place))?;
    }
    fs::copy(program, directory.join("usr/bin/fastpath"))?;
    let root = target().join("dist-files/quic-sim.tar");
    let owner = ["--owner=0", "--group=0", "--numeric-owner", "--sort=name", "--mtime=@0"];
    succeed(Command::new("tar").args(owner).arg("-cf").arg(&root).arg("-C").arg(&directory).arg("."))?;
    let name = format!("localhost/fastpath-quic-sim:{}", version()?);
    let file = Path::new("dist").join(format!("fastpath-quic-sim-{}.oci.tar", version()?));
    save(&root, &name, &["ENTRYPOINT [\"/usr/bin/fastpath\", \"quic-sim\"]", "EXPOSE 57832/tcp"], &file)?;
    let bytes = fs::metadata(&file)?.len();
    if bytes > QUIC_SIM_BYTES_MAX {
        let what = format!("{}: {bytes} bytes, more than {QUIC_SIM_BYTES_MAX}", file.display());
        return Err(io::Error::other(what));
    }
    Ok(())
}

/// Makes an image of the files in an archive, and writes it to `file`.
fn save(root: &Path, name: &str, changes: &[&str], file: &Path) -> io::Result<()> {
    if file.exists() {
        fs::remove_file(file)?;
    }
    let mut import = Command::new("podman");
    import.args(["import", "--quiet"]).args(changes.iter().flat_map(|change| ["--change", change]));
    succeed(import.arg(root).arg(name))?;
    let saved = succeed(
        Command::new("podman").args(["save", "--quiet", "--format", "oci-archive", "-o"]).arg(file).arg(name),
    );
    let removed = succeed(Command::new("podman").args(["rmi", "--force", name]));
    fs::remove_file(root)?;
    saved.and(removed)?;
    println!("xtask: {}", file.display());
    Ok(())
}
