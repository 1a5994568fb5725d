//! A transfer over every combination of three rates, delays, losses, and of two queues.
#![cfg(feature = "quinn")]

mod tls;

use fastpath_sockets::{VirtualNetwork, VirtualRuntime};
use fastpath_units::{Duration, Time};
use quinn::{EndpointConfig, ServerConfig};

const LEN: usize = 100_000;

/// Sends `LEN` bytes over a link. Returns when the sender knows that all have arrived.
fn transfer(link: &str) -> Time {
    let spec = format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n{link}");
    let runtime = VirtualRuntime::new(VirtualNetwork::from_spec(&spec, 1).unwrap());
    let endpoint = |host: &str, server: Option<ServerConfig>| {
        let socket = runtime.with_network(|network| network.bind(host, 4433).unwrap());
        let address = runtime.with_network(|network| network.address(socket));
        let mut config = EndpointConfig::default();
        config.rng_seed(Some([1; 32]));
        (runtime.quinn_endpoint(socket, config, server).unwrap(), address)
    };
    let (client, server) = tls::configs();
    let ((there, address), (here, _)) = (endpoint("b", Some(server)), endpoint("a", None));
    runtime.spawn(async move {
        let connection = there.accept().await.unwrap().await.unwrap();
        let received = connection.accept_uni().await.unwrap().read_to_end(LEN).await.unwrap();
        assert_eq!(received, vec![7; LEN]);
        connection.closed().await;
    });
    let sent = runtime.block_on(async move {
        let connection = here.connect_with(client, address, "server").unwrap().await.unwrap();
        let mut stream = connection.open_uni().await.unwrap();
        stream.write_all(&vec![7; LEN]).await.unwrap();
        stream.finish().unwrap();
        stream.stopped().await.unwrap()
    });
    assert_eq!(sent, Ok(None), "{link}");
    runtime.now()
}

#[test]
fn transfers_over_all_links() {
    for (rate, delay) in [1, 10, 100].into_iter().flat_map(|rate| [1, 20, 150].map(|delay| (rate, delay))) {
        for (loss, queue) in
            [0, 1, 5].into_iter().flat_map(|loss| ["50p", "codel"].map(|queue| (loss, queue)))
        {
            let link =
                format!("rate = '{rate}Mbit'\ndelay = '{delay}ms'\nloss = '{loss}%'\nqueue = '{queue}'");
            // Two round trips, and the bytes with their headers.
            let least = Duration::from_ms(4 * delay) + Duration::from_us(LEN as u64 * 8 / rate);
            let took = transfer(&link).since(Time::ZERO);
            assert!(took > least && took < least + Duration::from_secs(20), "{link}: {took:?}");
        }
    }
}
