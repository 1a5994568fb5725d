//! Changes the delay of a link under a running ping (Linux; as root, or where user namespaces and
//! /dev/net/tun are permitted). Run with `cargo run -p fastpath --example change_link`.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use fastpath::lab::Lab;
    use fastpath::link::Change;
    use fastpath::prelude::*;
    use std::process::Command;

    let network = load("examples/two-hosts.toml")?;
    let options = network.engine_options(None, fastpath::engine::Notice::to_stderr())?;
    let lab = match Lab::up(network.spec.topology, &format!("change-{}", std::process::id()), options) {
        Err(error) if error.is_refusal() => {
            println!("no hosts here: {error}");
            return Ok(());
        }
        lab => lab?,
    };
    let to = lab.hosts()[1].addresses()[0].addr().to_string();
    let ping = || lab.spawn(&lab.hosts()[0], Command::new("ping").args(["-c1", "-W2", &to]))?.wait();
    println!("25 ms each way: {}", ping()?);
    lab.link("a-b")?.set(Change { delay: Some(Duration::from_ms(60)), ..Change::default() })?;
    println!("60 ms each way: {}", ping()?);
    println!("{} frames delivered", lab.down()?.accounting.delivered);
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {}
