//! Programs on tokio's paused time over an emulated link.
#![cfg(feature = "tokio")]

use fastpath_sockets::{TokioNetwork, VirtualNetwork};
use fastpath_units::{Duration, Time};
use tokio::time::{Instant, sleep, timeout};

fn start(link: &str) -> TokioNetwork {
    let spec = format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n{link}");
    TokioNetwork::start(VirtualNetwork::from_spec(&spec, 1).unwrap())
}

#[tokio::test(start_paused = true)]
async fn arrivals_are_exact_and_tasks_see_them_within_a_millisecond() {
    // 1,250 bytes with headers at 8 Mbit/s: 1.25 ms, and 20.3 ms of delay.
    let network = start("rate = '8Mbit'\ndelay = '20.3ms'");
    let [a, b] = ["a", "b"].map(|host| network.bind(host, 7).unwrap());
    let (to, zero) = (b.local_addr(), Instant::now());
    tokio::spawn(async move {
        let datagram = b.receive().await;
        sleep(std::time::Duration::from_millis(5)).await;
        b.send_to(b"answer", datagram.from).unwrap();
    });
    a.send_to(&[0; 1208], to).unwrap();
    let answer = a.receive().await;
    let seen = zero.elapsed().as_micros();
    assert_eq!(answer.payload, b"answer");
    // There: 21.55 ms, seen at 22 at the latest; 5 ms; back: 48 bytes take 48 µs.
    let at = answer.at.since(Time::ZERO);
    let least = Duration::from_us(21_550 + 5_000 + 20_348);
    assert!(at >= least && at <= least + Duration::from_ms(2), "{at:?}");
    let late = Duration::from_us(seen as u64).saturating_sub(at);
    assert!(late <= Duration::from_ms(1), "arrived at {at:?}, seen at {seen} µs");
}

#[tokio::test(start_paused = true)]
async fn hours_pass_at_once_and_losses_stay_losses() {
    let network = start("loss = '100%'");
    let [a, b] = ["a", "b"].map(|host| network.bind(host, 7).unwrap());
    a.send_to(b"x", b.local_addr()).unwrap();
    let hour = std::time::Duration::from_secs(3600);
    assert!(timeout(hour, b.receive()).await.is_err());
    assert!(network.with_network(|network| network.now()) >= Time::ZERO + Duration::from_secs(3600));
    drop(b);
    assert!(network.bind("b", 7).is_ok(), "a dropped socket is closed");
}
