//! The distributed OPRF of private-ID (CZZDL 8.2): F(z) = F_1(z) XOR F_2(z), where S holds the key of F_1 and R the key
//! of F_2.
//!
//! ```text
//! OPRF 1   R learns F_1 at its inputs, S at its own
//! OPRF 2   S learns F_2 at its inputs, R at its own
//! both     F(z) = F_1(z) XOR F_2(z) at their own inputs
//! ```
//!
//! A value is the sum of the first 16 bytes of F_1 and F_2, and serves as an identifier. RR22 runs in small parts here, because
//! both parties hold the values of one function while they evaluate the other.
//!
//! Security: that of the OPRF. To a party, F is random at every input that it does not have: it lacks the key of one of the two
//! functions. A party that knows only an input's value of F learns nothing about the input. Leakage: the number of inputs of
//! both parties.
//!
//! The two OPRFs are separated by direction: each runs in its own part of the session, so that no message and no hash of one
//! can pass for one of the other.

use super::multi_point::MultiPoint;
use super::vole::Rr22;
use super::{Input, Oprf, OprfCost, Output};
use crate::context::Context;
use crate::error::Result;
use crate::hash::part;
use crate::params::share;
use crate::secret::Secrets;
use crate::vole::silent::Silent;
use crate::work::Step;

const TO_RECEIVER: &str = "distributed OPRF, the receiver evaluates";
const TO_SENDER: &str = "distributed OPRF, the sender evaluates";
/// The number of OPRFs that share the error of a run.
const RUNS: usize = 2;

/// A value of F.
pub type DistributedOutput = [u8; 16];

/// Runs the receiver. Returns F at its inputs, which must be distinct, in their order. The sender has `n_x` inputs.
///
/// # Errors
/// The errors of the OPRF.
pub fn receiver(
    oprf: &dyn Oprf,
    cx: &mut Context,
    inputs: &[Input],
    n_x: usize,
) -> Result<Secrets<DistributedOutput>> {
    let mut f = halves(&oprf.receiver(&mut within(cx, TO_RECEIVER), inputs, n_x)?);
    add(&mut f, &oprf.sender(&mut within(cx, TO_SENDER), inputs, n_x)?);
    Ok(f)
}

/// Runs the sender. Returns F at its inputs, which must be distinct, in their order. The receiver has `n_y` inputs.
///
/// # Errors
/// The errors of the OPRF.
pub fn sender(
    oprf: &dyn Oprf,
    cx: &mut Context,
    inputs: &[Input],
    n_y: usize,
) -> Result<Secrets<DistributedOutput>> {
    let mut f = halves(&oprf.sender(&mut within(cx, TO_RECEIVER), inputs, n_y)?);
    add(&mut f, &oprf.receiver(&mut within(cx, TO_SENDER), inputs, n_y)?);
    Ok(f)
}

/// The OPRF that minimises the traffic of the distributed OPRF for `n_y` inputs of the receiver, `n_x` of the sender, and an
/// error of 2^-`exponent`: CM20 up to a few thousand inputs per party, then RR22, whose VOLE has a fixed cost.
pub fn cheapest(exponent: u32, n_y: usize, n_x: usize) -> Box<dyn Oprf + Send + Sync> {
    let [vole, cm20] = costs(exponent, n_y, n_x);
    match bytes(&vole) <= bytes(&cm20) {
        true => Box::new(rr22()),
        false => Box::new(MultiPoint::default()),
    }
}

fn rr22() -> Rr22<Silent> {
    Rr22::in_small_parts(Silent::default())
}

/// The cost with the cheapest OPRF.
pub(crate) fn cost(exponent: u32, n_y: usize, n_x: usize) -> OprfCost {
    let [vole, cm20] = costs(exponent, n_y, n_x);
    if bytes(&vole) <= bytes(&cm20) { vole } else { cm20 }
}

/// The costs with RR22 and with CM20.
fn costs(exponent: u32, n_y: usize, n_x: usize) -> [OprfCost; 2] {
    let (vole, cm20) = (rr22(), MultiPoint::default());
    let exponent = share(exponent, RUNS);
    [
        both_ways(vole.cost(exponent, n_y, n_x), vole.cost(exponent, n_x, n_y), [n_y, n_x]),
        both_ways(cm20.cost(exponent, n_y, n_x), cm20.cost(exponent, n_x, n_y), [n_y, n_x]),
    ]
}

fn bytes(cost: &OprfCost) -> usize {
    cost.sends().iter().sum()
}

/// The cost of two evaluations, first R's and then S's, at these numbers of inputs.
fn both_ways(first: OprfCost, second: OprfCost, inputs: [usize; 2]) -> OprfCost {
    // S is the receiver of the second evaluation.
    let swapped = |[a, b]: [usize; 2]| [b, a];
    let (held, each_thread) = (swapped(second.held), swapped(second.each_thread));
    OprfCost {
        steps: first.steps.into_iter().chain(second.steps.into_iter().map(Step::swapped)).collect(),
        // The first message of the second evaluation travels with the last one of the first, or follows the answer to it.
        rounds: (first.rounds + second.rounds + 2 * usize::from(first.answered)).saturating_sub(1),
        answered: second.answered,
        // During the second, the values of the first are held too.
        held: [0, 1].map(|i| (first.held[i] + 16 * inputs[i]).max(16 * inputs[i] + held[i])),
        each_thread: [0, 1].map(|i| first.each_thread[i].max(each_thread[i])),
        progress: (first.progress.0, first.progress.1 + second.progress.1),
    }
}

/// The context of one OPRF: its part of the session, and its share of the error.
fn within<'c>(cx: &'c mut Context, name: &'static str) -> Context<'c> {
    Context {
        ch: cx.ch,
        session: part(&cx.session, name),
        rng: cx.rng,
        exponent: share(cx.exponent, RUNS),
        threads: cx.threads,
    }
}

/// The halves of F's outputs that go into the values.
fn halves(f: &[Output]) -> Secrets<DistributedOutput> {
    Secrets::from(f.iter().map(|f| f.as_chunks().0[0]).collect::<Vec<_>>())
}

/// Adds the values of the other function.
fn add(f: &mut [DistributedOutput], other: &[Output]) {
    for (f, other) in f.iter_mut().zip(other) {
        f.iter_mut().zip(other).for_each(|(f, other)| *f ^= other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::SessionId;
    use crate::oprf::Ideal;
    use crate::oprf::vole::FRAME;
    use crate::params::LAMBDA;
    use crate::rng::Prng;
    use crate::testing::run_pair;
    use std::collections::HashSet;
    use std::sync::Mutex;

    /// Both parties as an OPRF, so that the checks of every OPRF apply to it.
    struct Distributed<O>(O);

    impl<O: Oprf> Oprf for Distributed<O> {
        fn receiver(&self, cx: &mut Context, inputs: &[Input], n_x: usize) -> Result<Secrets<Output>> {
            Ok(stretched(&receiver(&self.0, cx, inputs, n_x)?))
        }

        fn sender(&self, cx: &mut Context, inputs: &[Input], n_y: usize) -> Result<Secrets<Output>> {
            Ok(stretched(&sender(&self.0, cx, inputs, n_y)?))
        }
    }

    fn stretched(f: &[DistributedOutput]) -> Secrets<Output> {
        Secrets::from(f.iter().map(|f| std::array::from_fn(|i| f[i % 16])).collect::<Vec<Output>>())
    }

    /// An OPRF that records each of its runs: the session, F at all inputs of a party, and the error.
    #[derive(Default)]
    struct Noting(Mutex<Vec<Note>>);

    /// A run: the session, whether the party was the receiver, F, and the exponent of the error.
    type Note = (SessionId, bool, Vec<Output>, u32);

    impl Noting {
        fn note(&self, cx: &Context, receives: bool, f: &Secrets<Output>) {
            self.0.lock().unwrap().push((cx.session, receives, f.to_vec(), cx.exponent));
        }
    }

    impl Oprf for Noting {
        fn receiver(&self, cx: &mut Context, inputs: &[Input], n_x: usize) -> Result<Secrets<Output>> {
            let f = Ideal.receiver(cx, inputs, n_x)?;
            self.note(cx, true, &f);
            Ok(f)
        }

        fn sender(&self, cx: &mut Context, inputs: &[Input], n_y: usize) -> Result<Secrets<Output>> {
            let f = Ideal.sender(cx, inputs, n_y)?;
            self.note(cx, false, &f);
            Ok(f)
        }
    }

    #[test]
    fn it_is_an_oprf_over_each_oprf() {
        crate::oprf::tests::is_an_oprf(&Distributed(Ideal), 100);
        crate::oprf::tests::is_an_oprf(&Distributed(rr22()), FRAME / 16);
        crate::oprf::tests::is_an_oprf(&Distributed(MultiPoint::default()), 100);
    }

    #[test]
    fn both_keys_go_into_every_value_and_each_direction_has_a_session_of_its_own() {
        let session = SessionId::of([5; 32]);
        let inputs: Vec<Input> = (0..50u32).map(|i| Input::of_item(&i.to_le_bytes())).collect();
        let (r, s) = (Noting::default(), Noting::default());
        let ((f_y, f_x), _) = run_pair(
            &session,
            |cx| receiver(&r, cx, &inputs, inputs.len()),
            |cx| sender(&s, cx, &inputs, inputs.len()),
        );
        let (r, s) = (r.0.into_inner().unwrap(), s.0.into_inner().unwrap());
        // R evaluates first, then S; both in the same parts of the session, and neither in the session itself.
        assert_eq!(
            [&r, &s].map(|notes| notes.iter().map(|n| n.1).collect::<Vec<_>>()),
            [[true, false], [false, true]]
        );
        let sessions: HashSet<_> = r.iter().chain(&s).map(|note| *note.0.as_bytes()).collect();
        assert!((r[0].0, r[1].0) == (s[0].0, s[1].0) && sessions.len() == 2);
        assert!(!sessions.contains(session.as_bytes()));
        // Both share the error of the run.
        assert!(r.iter().chain(&s).all(|note| note.3 == LAMBDA + 1));
        // The two functions differ, and F is their sum.
        for (i, (y, x)) in f_y.iter().zip(&*f_x).enumerate() {
            let [one, two] = [0, 1].map(|direction: usize| r[direction].2[i]);
            let sum: DistributedOutput = std::array::from_fn(|at| one[at] ^ two[at]);
            assert!(one != two && (*y, *x) == (sum, sum), "{i}");
        }
    }

    #[test]
    fn the_cheapest_takes_the_fewest_bytes() {
        let inputs = |n: usize| (0..n).map(|i| Input::of_item(&i.to_le_bytes())).collect::<Vec<Input>>();
        let mut chosen = Vec::new();
        for (n_y, n_x) in [(0, 0), (1, 1), (300, 5), (1000, 1000), (6000, 200), (9000, 9000)] {
            let (y, x) = (inputs(n_y), inputs(n_x));
            let bytes = |oprf: &(dyn Oprf + Send + Sync)| {
                let (_, views) = run_pair(
                    &SessionId::of([5; 32]),
                    |cx| receiver(oprf, cx, &y, n_x),
                    |cx| sender(oprf, cx, &x, n_y),
                );
                views.0.iter().map(Vec::len).sum::<usize>()
            };
            let (vole, cm20) = (rr22(), MultiPoint::default());
            let (vole, cm20, least) = (bytes(&vole), bytes(&cm20), bytes(&*cheapest(LAMBDA, n_y, n_x)));
            assert_eq!(least, vole.min(cm20), "{n_y} {n_x}: {vole} {cm20}");
            chosen.push(least == vole);
        }
        assert_eq!(chosen, [false, false, false, false, true, true]);
    }

    /// The cheapest for few inputs is CM20. Each of its two evaluations has its share of the error, as the cost assumes.
    #[test]
    fn few_inputs_take_the_bytes_of_the_cost() {
        let inputs: Vec<Input> = (0..60u32).map(|i| Input::of_item(&i.to_le_bytes())).collect();
        let oprf = cheapest(LAMBDA, inputs.len(), inputs.len());
        let (_, views) = run_pair(
            &SessionId::of([5; 32]),
            |cx| receiver(&*oprf, cx, &inputs, inputs.len()),
            |cx| sender(&*oprf, cx, &inputs, inputs.len()),
        );
        let sent = views.0.iter().map(Vec::len).sum::<usize>();
        assert_eq!(sent, bytes(&cost(LAMBDA, inputs.len(), inputs.len())));
    }

    #[test]
    fn the_key_of_either_party_makes_it_another_function() {
        let inputs: Vec<Input> = (0..20u32).map(|i| Input::of_item(&i.to_le_bytes())).collect();
        // Over the ideal OPRF, whose values depend on the sender's randomness only.
        let run = |seeds: [u8; 2]| {
            let [of_r, of_s] = seeds.map(|seed| Prng::from_seed(&[seed; 32]));
            let ((f, _), _) = run_pair(
                &SessionId::of([5; 32]),
                |cx| receiver(&Ideal, cx.under(of_r), &inputs, inputs.len()),
                |cx| sender(&Ideal, cx.under(of_s), &inputs, inputs.len()),
            );
            f.to_vec()
        };
        let same = run([1, 2]);
        assert_eq!(same, run([1, 2]));
        for other in [run([1, 3]), run([3, 2])] {
            assert!(same.iter().zip(&other).all(|(a, b)| a != b));
        }
    }
}
