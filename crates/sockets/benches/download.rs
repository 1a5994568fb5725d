//! A download of 10 MB by quinn over a link of 50 ms:
//! `cargo bench -p fastpath-sockets --features quinn --bench download`.
//!
//! `time` is that of the machine, handshake included; the clock of the network shows seconds.

#[path = "../tests/tls/mod.rs"]
mod tls;

use fastpath_sockets::{VirtualNetwork, VirtualRuntime};
use quinn::{EndpointConfig, ServerConfig};
use tls::configs;

const LEN: usize = 10_000_000;

fn main() {
    divan::main();
}

/// At 100 Mbit/s, and without a limit of the rate.
#[divan::bench(args = ["rate = '100Mbit'", ""])]
fn ten_megabytes_over_50_ms(link: &str) {
    let spec = format!(
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\ndelay = '50ms'\nqueue = '1000p'\n{link}"
    );
    let runtime = VirtualRuntime::new(VirtualNetwork::from_spec(&spec, 1).expect("a valid spec"));
    let (client, server) = configs();
    let endpoint = |host: &str, seed: u8, server: Option<ServerConfig>| {
        let (socket, address) = runtime.with_network(|network| {
            let socket = network.bind(host, 4433).expect("a free port");
            (socket, network.address(socket))
        });
        let mut config = EndpointConfig::default();
        config.rng_seed(Some([seed; 32]));
        (runtime.quinn_endpoint(socket, config, server).expect("an endpoint"), address)
    };
    let (listening, to) = endpoint("b", 1, Some(server));
    let (connecting, _) = endpoint("a", 2, None);
    runtime.spawn(async move {
        while let Some(incoming) = listening.accept().await {
            let connection = incoming.await.expect("a handshake");
            let mut stream = connection.open_uni().await.expect("a stream");
            stream.write_all(&vec![7; LEN]).await.expect("a client that reads");
            stream.finish().expect("an open stream");
            connection.closed().await;
        }
    });
    let received = runtime.block_on(async move {
        let connection =
            connecting.connect_with(client, to, "server").expect("a connection").await.expect("a handshake");
        let mut stream = connection.accept_uni().await.expect("a stream");
        let received = stream.read_to_end(LEN).await.expect("all bytes").len();
        connection.close(0u32.into(), b"");
        received
    });
    assert_eq!(received.expect("an end"), LEN);
}
