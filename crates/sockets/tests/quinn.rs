//! quinn over emulated links: its own endpoints, streams and timers on virtual time.
#![cfg(feature = "quinn")]

mod tls;

use fastpath_sockets::{Stalled, VirtualNetwork, VirtualRuntime};
use fastpath_units::{Duration, Time};
use quinn::{Endpoint, EndpointConfig, ServerConfig};
use tls::configs;

fn endpoint(runtime: &VirtualRuntime, host: &str, seed: u8, server: Option<ServerConfig>) -> Endpoint {
    let socket = runtime.with_network(|network| network.bind(host, 4433).unwrap());
    let mut config = EndpointConfig::default();
    config.rng_seed(Some([seed; 32]));
    runtime.quinn_endpoint(socket, config, server).unwrap()
}

/// Downloads `len` bytes. Returns when the last of them arrived, and the frames of the link.
fn download(link: &str, len: usize, seed: u64) -> Result<(Time, [u64; 2]), Stalled> {
    let spec = format!("[host.client]\n[host.server]\n[[link]]\nbetween = ['client', 'server']\n{link}");
    let runtime = VirtualRuntime::new(VirtualNetwork::from_spec(&spec, seed).unwrap());
    let (client, server) = configs();
    let listening = endpoint(&runtime, "server", 1, Some(server));
    let connecting = endpoint(&runtime, "client", 2, None);
    let to = runtime.with_network(|network| {
        let socket = network.bind("server", 0).unwrap();
        let mut address = network.address(socket);
        address.set_port(4433);
        address
    });
    runtime.spawn(async move {
        while let Some(incoming) = listening.accept().await {
            let connection = incoming.await.unwrap();
            let mut stream = connection.accept_uni().await.unwrap();
            stream.read_to_end(10).await.unwrap();
            let mut answer = connection.open_uni().await.unwrap();
            answer.write_all(&vec![7; len]).await.unwrap();
            answer.finish().unwrap();
            connection.closed().await;
        }
    });
    let clock = runtime.clone();
    let at = runtime.block_on(async move {
        let connection = connecting.connect_with(client, to, "server").unwrap().await.unwrap();
        let mut stream = connection.open_uni().await.unwrap();
        stream.write_all(b"get").await.unwrap();
        stream.finish().unwrap();
        let mut answer = connection.accept_uni().await.unwrap();
        let bytes = answer.read_to_end(len).await.unwrap();
        assert_eq!(bytes, vec![7; len]);
        let at = clock.now();
        connection.close(0u32.into(), b"");
        at
    })?;
    let link = runtime.with_network(|network| {
        let link = network.network().topology().link_named("client-server").unwrap();
        [0, 1].map(|index| network.network().pipe(link, index).counters().pushed.packets)
    });
    Ok((at, link))
}

#[test]
fn a_download_takes_the_time_of_its_bytes_on_the_link() {
    let len = 2_000_000;
    let (at, [_, down]) = download("rate = '20Mbit'\ndelay = '10ms'\nqueue = '200p'", len, 1).unwrap();
    // At 20 Mbit/s with headers, after two round trips; less than a tenth more.
    let least = Duration::from_ms(len as u64 * 8 / 20_000 + 40);
    let took = at.since(Time::ZERO);
    assert!(took > least && took < least + Duration::from_ms(90), "{at}, at least {least:?}");
    assert!(down as usize > len / 1472, "{down}");
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let lossy = "rate = '10Mbit'\ndelay = '15ms'\nloss = '2%'\nqueue = '50p'";
    let first = download(lossy, 500_000, 5).unwrap();
    for _ in 0..4 {
        assert_eq!(download(lossy, 500_000, 5).unwrap(), first);
    }
    assert_ne!(download(lossy, 500_000, 6).unwrap(), first);
}

#[test]
fn a_link_that_is_dead_ends_in_an_error_of_quinn_and_a_lost_wait_in_ours() {
    let runtime = VirtualRuntime::new(
        VirtualNetwork::from_spec("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nloss = '100%'", 1)
            .unwrap(),
    );
    let (client, _) = configs();
    let connecting = endpoint(&runtime, "a", 1, None);
    let to = runtime
        .with_network(|network| network.bind("b", 4433).map(|socket| network.address(socket)).unwrap());
    let error = runtime
        .block_on(async { connecting.connect_with(client, to, "server").unwrap().await.unwrap_err() })
        .unwrap();
    assert_eq!(error, quinn::ConnectionError::TimedOut);
    let never = runtime.block_on(std::future::pending::<()>());
    assert!(matches!(never, Err(Stalled::NothingHappens { .. })), "{never:?}");
    let busy = runtime.block_on(std::future::poll_fn(|cx| -> std::task::Poll<()> {
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    }));
    assert!(matches!(busy, Err(Stalled::TimeStands { task: 0, .. })), "{busy:?}");
}

/// quinn-proto's state machines, driven by hand.
#[cfg(feature = "quinn-proto")]
#[test]
fn state_machines_driven_by_hand_transfer_the_same_each_time() {
    use fastpath_sockets::ProtoEndpoint;
    use quinn::VarInt;

    let run = |seed: u64| {
        let spec = "[host.client]\n[host.server]\n[[link]]\nbetween = ['client', 'server']\n\
                    rate = '10Mbit'\ndelay = '10ms'\nloss = '1%'";
        let mut network = VirtualNetwork::from_spec(spec, seed).unwrap();
        let (client, server) = configs();
        let sockets = ["client", "server"].map(|host| network.bind(host, 4433).unwrap());
        let zero = std::time::Instant::now();
        let endpoint = |socket, seed: u8, server| {
            let mut config = EndpointConfig::default();
            config.rng_seed(Some([seed; 32]));
            ProtoEndpoint::new(socket, config, server, zero)
        };
        let (mut here, mut there) = (endpoint(sockets[0], 1, None), endpoint(sockets[1], 2, Some(server)));
        let to = network.address(sockets[1]);
        let handle = here.connect(&network, client, to, "server").unwrap();
        let (mut accepted, mut stream, mut sent, mut received) = (None, None, 0, 0);
        const LEN: usize = 200_000;
        while received < LEN {
            here.poll(&mut network);
            there.poll(&mut network);
            if let Some(new) = there.accept(&mut network) {
                accepted = Some(new.unwrap());
                there.poll(&mut network);
            }
            let connection = here.connection(handle).unwrap();
            stream = stream.or_else(|| connection.streams().open(quinn::Dir::Uni));
            if let Some(stream) = stream {
                while sent < LEN
                    && let Ok(written) = connection.send_stream(stream).write(&vec![1; LEN - sent])
                {
                    sent += written;
                }
                here.poll(&mut network);
            }
            if let Some(handle) = accepted
                && let Some(connection) = there.connection(handle)
                && let Some(id) = stream
                && let Ok(mut chunks) = connection.recv_stream(id).read(true)
            {
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    received += chunk.bytes.len();
                }
                let _ = chunks.finalize();
            }
            there.poll(&mut network);
            let next = [here.next_timeout(), there.next_timeout(), network.next_at()];
            let next = next.into_iter().flatten().min().expect("something happens").max(network.now());
            assert!(next < Time::ZERO + Duration::from_secs(30), "{received} of {LEN} bytes by {next}");
            network.advance(next).unwrap();
            while network.next_event().is_some() {}
        }
        here.connection(handle).unwrap().close(zero, VarInt::from_u32(0), Vec::new().into());
        network.now()
    };
    let at = run(4);
    assert!(at > Time::ZERO + Duration::from_ms(160), "{at}");
    assert_eq!((run(4), run(4)), (at, at));
    assert_ne!(run(5), at);
}
