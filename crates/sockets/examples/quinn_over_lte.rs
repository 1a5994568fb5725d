//! A phone downloads 2 MB with quinn over the link of `examples/cellular.toml`, in virtual time.

#[path = "../tests/tls/mod.rs"]
mod tls;

use fastpath_sockets::{VirtualNetwork, VirtualRuntime};
use quinn::{Endpoint, EndpointConfig, ServerConfig};
use std::{error::Error, fs, net::SocketAddr};
const LEN: usize = 2_000_000;
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/");

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let file = |name: &str| fs::read_to_string(EXAMPLES.to_owned() + name).map_err(|error| error.to_string());
    let (spec, _) = fastpath_spec::read(&file("cellular.toml")?, &file)?;
    let runtime = VirtualRuntime::new(VirtualNetwork::new(spec.topology, 1));
    type Open = Result<(Endpoint, SocketAddr), Box<dyn Error>>;
    let endpoint = |host: &str, server: Option<ServerConfig>| -> Open {
        let socket = runtime.with_network(|network| network.bind(host, 4433))?;
        let mut config = EndpointConfig::default();
        config.rng_seed(Some([host.len() as u8; 32]));
        let address = runtime.with_network(|network| network.address(socket));
        Ok((runtime.quinn_endpoint(socket, config, server)?, address))
    };
    let (client, server) = tls::configs();
    let (listening, address) = endpoint("server", Some(server))?;
    let (connecting, _) = endpoint("phone", None)?;
    runtime.spawn(async move {
        let connection = listening.accept().await.expect("a client").await.expect("a handshake");
        let mut stream = connection.open_uni().await.expect("a stream");
        stream.write_all(&vec![7; LEN]).await.expect("a client that reads");
        stream.finish().expect("an open stream");
        connection.closed().await;
    });
    let bytes = runtime.block_on(async move {
        let connection = connecting.connect_with(client, address, "server")?.await?;
        Ok::<usize, Box<dyn Error>>(connection.accept_uni().await?.read_to_end(LEN).await?.len())
    })??;
    println!("{bytes} bytes by {}", runtime.now());
    Ok(())
}
