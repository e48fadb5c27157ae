//! Times the VOLE-based OPRF and its parts, each on one thread, on 2^20 items per side or the given number: `cargo
//! bench -p veilset-core --features hazmat --bench vole_oprf -- 1048576`.

use std::time::Instant;
use veilset_core::channel::Channel;
use veilset_core::context::Context;
use veilset_core::error::{Error, Result};
use veilset_core::hazmat;
use veilset_core::okvs;
use veilset_core::oprf::{Input, Oprf, vole::Rr22};
use veilset_core::rng::Prng;
use veilset_core::vole::{Half, Receiver, Sender, Vole, silent::Silent};

/// CPU time of this thread in seconds.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

/// Runs `work` on a pool of one thread; also returns the CPU seconds it took.
fn alone<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<(T, f64)> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.map_err(|e| Error::bug(e.to_string()))?.install(|| {
        let start = cpu();
        Ok((work()?, cpu() - start))
    })
}

fn both<A: Send, B: Send>(
    what: &str,
    first: impl FnOnce(&mut Context) -> Result<A> + Send,
    second: impl FnOnce(&mut Context) -> Result<B> + Send,
) -> Result<()> {
    let (mut a, mut b) = Channel::pair();
    let session = hazmat::session_id([1; 32]);
    let start = Instant::now();
    let (a_cpu, b_cpu) = std::thread::scope(|s| {
        let first = s.spawn(|| {
            alone(|| first(&mut Context::new(&mut a, &session, &mut Prng::from_os()?))).map(|(_, cpu)| cpu)
        });
        let second = alone(|| second(&mut Context::new(&mut b, &session, &mut Prng::from_os()?)));
        let second = second.map(|(_, cpu)| cpu);
        (first.join(), second)
    });
    let a_cpu = a_cpu.map_err(|_| Error::Bug("the receiver panicked".into()))??;
    println!(
        "{what}: receiver {a_cpu:.3} s CPU, sender {:.3} s CPU, {:.3} s; {:.2} MB to the sender, {:.2} MB back",
        b_cpu?,
        start.elapsed().as_secs_f64(),
        a.bytes_sent() as f64 / 1e6,
        b.bytes_sent() as f64 / 1e6,
    );
    Ok(())
}

fn main() -> Result<()> {
    let n: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1 << 20);
    let mut rng = Prng::from_os()?;
    let inputs: Vec<Input> = (0..n).map(|_| Input::random(&mut rng)).collect();
    let values: Vec<okvs::Value> = (0..n).map(|_| rng.bytes()).collect();
    let (m, seconds) = alone(|| Ok(okvs::size(n)))?;
    println!("{n} items, {m} elements ({seconds:.3} s)");
    for _ in 0..3 {
        let (_, seconds) = alone(|| okvs::BandRows::new(&[1; 16], &inputs, m))?;
        println!("rows: {seconds:.3} s");
        let (store, seconds) = alone(|| okvs::encode(&inputs, |i| values[i], &mut Prng::from_os()?))?;
        println!("rows and encode: {seconds:.3} s");
        let (_, seconds) = alone(|| store.rows.decode(&store.vector))?;
        println!("decode: {seconds:.3} s");
        let vole = Silent::default();
        both(
            "VOLE over GF(2^64)",
            |cx| vole.receiver(cx, "a")?.next::<Half>(cx, m, |_, _| Ok(())),
            |cx| vole.sender(cx, "a")?.next::<Half>(cx, m),
        )?;
        let oprf = Rr22::new(Silent::default());
        both("OPRF", |cx| oprf.receiver(cx, &inputs, n), |cx| oprf.sender(cx, &inputs, n))?;
    }
    Ok(())
}
