//! Measures times in nanoseconds and in processor cycles.
//!
//! The candidates take turns, so that a noisy neighbour affects all alike, and the best round of each counts. Time is the CPU
//! time of the thread. The time stamp counter may tick at a different rate from the core, so cycles are measured with a loop of
//! dependent additions, one cycle each: the loop takes turns with the candidates, and its best round gives the duration of a
//! cycle. A core that lowers its clock rate for some code makes this slightly inaccurate.

use std::arch::asm;
use std::time::Instant;

/// A piece of code to time.
pub(crate) struct Candidate<'a> {
    name: String,
    points: usize,
    call: Box<dyn FnMut() + 'a>,
}

impl<'a> Candidate<'a> {
    /// Creates a candidate whose `call` processes `points` points.
    pub(crate) fn new(name: String, points: usize, call: impl FnMut() + 'a) -> Self {
        Candidate { name, points, call: Box::new(call) }
    }
}

/// The measured time and cycles per point.
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) ns: f64,
    pub(crate) cycles: f64,
}

/// Runs the candidates in turn for at least `seconds` seconds and five rounds.
pub(crate) fn measure(candidates: &mut [Candidate<'_>], seconds: f64) -> Vec<Measured> {
    let mut best = vec![f64::INFINITY; candidates.len()];
    let mut cycle = f64::INFINITY;
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < 5 || start.elapsed().as_secs_f64() < seconds {
        cycle = cycle.min(cycle_ns());
        for (candidate, best) in candidates.iter_mut().zip(&mut best) {
            // Small batches are repeated, so that reading the clock does not count.
            let calls = 64usize.div_ceil(candidate.points);
            let t = cpu_ns();
            for _ in 0..calls {
                (candidate.call)();
            }
            let ns = (cpu_ns() - t) as f64;
            *best = best.min(ns / (calls * candidate.points) as f64);
        }
        rounds += 1;
    }
    let measured = |(candidate, ns): (&Candidate<'_>, f64)| Measured {
        name: candidate.name.clone(),
        ns,
        cycles: ns / cycle,
    };
    candidates.iter().zip(best).map(measured).collect()
}

/// Prints a line for each candidate, and a column for each run.
pub(crate) fn print_table(heads: &[&str], runs: &[Vec<Measured>]) {
    print!("{:36}", "");
    heads.iter().for_each(|head| print!("{head:>19}"));
    println!();
    for i in 0..runs[0].len() {
        print!("{:36}", runs[0][i].name);
        for run in runs {
            print!("{:>19}", format!("{:.0} ({:.0})", run[i].ns, run[i].cycles));
        }
        println!();
    }
}

/// Returns the processor's name and its current clock rate.
pub(crate) fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let cycle = (0..20).map(|_| cycle_ns()).fold(f64::INFINITY, f64::min);
    format!("{}, {:.2} GHz", name.trim_start_matches([' ', '\t', ':']), 1.0 / cycle)
}

/// Returns the duration of a cycle in nanoseconds, measured over 200,000 cycles.
fn cycle_ns() -> f64 {
    const LOOPS: u64 = 6250;
    let t = cpu_ns();
    // SAFETY: arithmetic in registers. The operand is a register, because some processors add constants in no time.
    unsafe {
        asm!(
            "2:",
            ".rept 32",
            "add {sum}, {one}",
            ".endr",
            "dec {n}",
            "jnz 2b",
            sum = inout(reg) 0u64 => _, one = in(reg) 1u64, n = inout(reg) LOOPS => _,
            options(nomem, nostack)
        );
    }
    (cpu_ns() - t) as f64 / (32 * LOOPS) as f64
}

/// Returns the CPU time of this thread, in nanoseconds.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes only to the structure passed to it.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(result, 0);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// A generator of varied inputs, the same in every run (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bytes(&mut self) -> [u8; 32] {
        let mut out = [0; 32];
        for bytes in out.as_chunks_mut::<8>().0 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            *bytes = (z ^ z >> 31).to_le_bytes();
        }
        out
    }
}
