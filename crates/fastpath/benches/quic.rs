//! A download over QUIC in virtual time: `cargo bench -p fastpath --bench quic`.
//!
//! 10 MB over a link of 100 Mbit/s and 25 ms each way. `items` are bytes.

use divan::counter::BytesCount;
use fastpath::Replay;
use fastpath::spec::parse;

const SIZE: u64 = 10_000_000;

fn main() {
    divan::main();
}

#[divan::bench(args = ["cubic", "reno"], sample_count = 10)]
fn download(bencher: divan::Bencher, congestion: &str) {
    let text = format!(
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '100Mbit'\ndelay = '25ms'\nqueue = '500p'\n\
         [[traffic]]\nfrom = 'a'\nto = 'b'\nkind = 'quic'\nsize = '{SIZE}B'\ncongestion = '{congestion}'\n"
    );
    let (topology, _) = parse(&text).unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
    bencher.counter(BytesCount::new(SIZE)).bench(|| {
        let summary = Replay::through(topology.clone()).run().expect("it runs");
        assert!(summary.transfers[0].complete);
        summary
    });
}
