//! Times equality with shared output, each party on one thread, on 2^20 strings of 64 bits or the given number: `cargo
//! bench -p veilset-core --features hazmat --bench equality -- 1048576`.

use std::time::Instant;
use veilset_core::channel::Channel;
use veilset_core::context::Context;
use veilset_core::equality::{Equality, nibbles::Nibbles};
use veilset_core::error::{Error, Result};
use veilset_core::hazmat;
use veilset_core::params::LAMBDA;
use veilset_core::rng::Prng;
use veilset_core::threads::Threads;

/// CPU time of this program in seconds, to a hundredth.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split(' ').skip(12).take(2);
    fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn main() -> Result<()> {
    let n: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1 << 20);
    let mut rng = Prng::from_os()?;
    let theirs: Vec<u128> = (0..n).map(|_| u128::from_le_bytes(rng.bytes())).collect();
    // A third of them are equal.
    let ours: Vec<u128> = theirs.iter().enumerate().map(|(i, s)| s ^ u128::from(i % 3 > 0)).collect();
    let session = hazmat::session_id([1; 32]);
    for k in [2, 4, 5, 6, 8] {
        let protocol = Nibbles::new(k);
        let (mut a, mut b) = Channel::pair();
        let (start, computed) = (Instant::now(), cpu());
        let (r, s) = std::thread::scope(|scope| {
            let receiver = scope.spawn(|| {
                let (mut rng, threads) = (Prng::from_os()?, Threads::new(1)?);
                let mut cx =
                    Context { ch: &mut a, session, rng: &mut rng, exponent: LAMBDA, threads: &threads };
                protocol.receiver(&mut cx, &ours, 64)
            });
            let (mut rng, threads) = (Prng::from_os()?, Threads::new(1)?);
            let mut cx = Context { ch: &mut b, session, rng: &mut rng, exponent: LAMBDA, threads: &threads };
            let sent = protocol.sender(&mut cx, &theirs, 64);
            let received = receiver.join().map_err(|_| Error::Bug("the receiver panicked".into()))?;
            Ok::<_, Error>((received?, sent?))
        })?;
        let equal = r.iter().zip(s.iter()).filter(|(r, s)| r != s).count();
        println!(
            "k = {k}: {equal} of {n} agree; {:.2} s, {:.2} s CPU of both; {:.1} MB to the sender, {:.1} MB back",
            start.elapsed().as_secs_f64(),
            cpu() - computed,
            a.bytes_sent() as f64 / 1e6,
            b.bytes_sent() as f64 / 1e6,
        );
    }
    Ok(())
}
