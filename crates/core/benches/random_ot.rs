//! Times random OTs, each party on one thread, for every depth of the trees and both security levels:
//! `cargo bench -p veilset-core --features hazmat --bench random_ot`.

use std::time::{Duration, Instant};
use veilset_core::channel::{Channel, frames};
use veilset_core::context::Context;
use veilset_core::error::{Error, Result};
use veilset_core::hazmat;
use veilset_core::ot::Security;
use veilset_core::ot::extension::{FRAME, Receiver, Sender};
use veilset_core::rng::Prng;

const PURPOSE: &str = "benchmark of random OTs";
const N: usize = 1 << 20;

/// Runs `work` on a pool of one thread.
fn alone<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.map_err(|e| Error::bug(e.to_string()))?.install(work)
}

fn main() -> Result<()> {
    for security in [Security::SemiHonest, Security::Malicious] {
        for k in 1..=8 {
            let (mut a, mut b) = Channel::pair();
            let session = hazmat::session_id([7; 32]);
            let choices: Vec<bool> = (0..N).map(|i| i % 3 == 0).collect();
            // One frame at a time, so that waiting for the other party is not measured.
            let (receiver, sender, bytes) = std::thread::scope(|s| {
                let receiver = s.spawn(|| {
                    alone(|| {
                        let rng = &mut Prng::from_os()?;
                        let mut cx = Context::new(&mut a, &session, rng);
                        let mut ot = Receiver::setup(&mut cx, PURPOSE, k, security)?;
                        let (mut least, before) = (Duration::MAX, a.bytes_sent());
                        for choices in choices.chunks(FRAME) {
                            let start = Instant::now();
                            ot.pads(&mut a.tx, choices)?;
                            least = least.min(start.elapsed());
                        }
                        Ok((least, a.bytes_sent() - before))
                    })
                });
                let sender = alone(|| {
                    let rng = &mut Prng::from_os()?;
                    let mut ot =
                        Sender::setup(&mut Context::new(&mut b, &session, rng), PURPOSE, k, security)?;
                    let mut least = Duration::MAX;
                    for n in frames(N, FRAME) {
                        let start = Instant::now();
                        let pads = ot.pads(&mut b.rx, n)?;
                        std::hint::black_box((pads.of(false), pads.of(true)));
                        least = least.min(start.elapsed());
                    }
                    Ok(least)
                })?;
                let (least, bytes) =
                    receiver.join().map_err(|_| Error::Bug("the receiver panicked".into()))??;
                Ok::<_, Error>((least, sender, bytes))
            })?;
            let ns = |time: Duration| time.as_secs_f64() * 1e9 / FRAME as f64;
            println!(
                "{security:?} k = {k}: receiver {:5.1} ns, sender (both pads) {:5.1} ns, {:5.1} bits an OT",
                ns(receiver),
                ns(sender),
                bytes as f64 * 8.0 / N as f64
            );
        }
    }
    Ok(())
}
