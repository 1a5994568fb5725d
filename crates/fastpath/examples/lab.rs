//! Runs ping on an emulated host (Linux; as root, or where user namespaces and /dev/net/tun are
//! permitted).
//!
//! `cargo run -p fastpath --example lab -- examples/two-hosts.toml`

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use fastpath::engine::Notice;
    use fastpath::lab::Lab;
    use std::process::Command;

    let path = std::env::args().nth(1).unwrap_or_else(|| "examples/two-hosts.toml".to_owned());
    let network = fastpath::load(path)?;
    let options = network.engine_options(None, Notice::to_stderr())?;
    let lab = match Lab::up(network.spec.topology, &format!("example-{}", std::process::id()), options) {
        Err(error) if error.is_refusal() => {
            println!("no hosts here: {error}");
            return Ok(());
        }
        lab => lab?,
    };
    let [a, b] = [&lab.hosts()[0], &lab.hosts()[1]];
    let to = b.addresses()[0].addr().to_string();
    let status = lab.spawn(a, Command::new("ping").args(["-c3", "-i0.2", &to]))?.wait()?;
    println!("ping from {} to {}: {status}", a.name, b.name);
    let report = lab.down()?;
    println!("{} frames delivered", report.accounting.delivered);
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {}
