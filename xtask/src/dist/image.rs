//! The OCI image: Debian with the package, and the programs that experiments use most.

use super::version;
use crate::process::{succeed, target};
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

const SUITE: &str = "bookworm";
/// Debian packages beside fastpath.
const PACKAGES: &str = "ca-certificates,curl,iperf3,iproute2,iputils-ping,nftables,passt,tcpdump";

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
    if file.exists() {
        fs::remove_file(&file)?;
    }
    let mut import = Command::new("podman");
    import.args([
        "import",
        "--quiet",
        "--change",
        "ENTRYPOINT [\"/usr/bin/fastpath\"]",
        "--change",
        "CMD [\"--help\"]",
    ]);
    succeed(import.arg(&root).arg(&name))?;
    let saved = succeed(
        Command::new("podman")
            .args(["save", "--quiet", "--format", "oci-archive", "-o"])
            .arg(&file)
            .arg(&name),
    );
    let removed = succeed(Command::new("podman").args(["rmi", "--force", &name]));
    fs::remove_file(&root)?;
    saved.and(removed)?;
    println!("xtask: {}", file.display());
    Ok(())
}
