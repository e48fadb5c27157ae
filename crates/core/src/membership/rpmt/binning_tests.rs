use super::super::tests::COMPARISONS;
use super::*;

/// Pr[Binomial(n, p) > bound], summed term by term from the logarithm of the first.
fn above(n: usize, p: f64, bound: usize) -> f64 {
    if bound >= n {
        return 0.0;
    }
    let first = bound + 1;
    let binomial: f64 = (1..=first).map(|j| ((n - first + j) as f64 / j as f64).ln()).sum();
    let mut term = (binomial + first as f64 * p.ln() + (n - first) as f64 * (-p).ln_1p()).exp();
    let mut sum = term;
    for i in first..n {
        term *= (n - i) as f64 / (i + 1) as f64 * p / (1.0 - p);
        sum += term;
    }
    sum
}

#[test]
fn plans_keep_the_budget() {
    for (n_r, n_s) in [(0, 0), (1, 1), (1 << 8, 1 << 8), (1 << 20, 1 << 20), (1 << 20, 50), (50, 1 << 20)] {
        for comparison in COMPARISONS {
            let plan = Binning::new(comparison, n_r, n_s, 20).unwrap();
            let events = if comparison == Comparison::Private { 2.0 } else { 1.0 };
            let (slots, length) = (plan.slots() as f64, (plan.bins.receiver + 1) as f64);
            let budget = (-40f64).exp2();
            // A slot matches by chance, or two items of its bin collide, so that one is lost.
            let polynomial = slots * length * (-f64::from(plan.field.bits())).exp2();
            assert!(polynomial * events <= budget, "{n_r} {n_s}");
            if comparison == Comparison::Private {
                assert!(slots * (-8.0 * plan.tag as f64).exp2() * events <= budget);
            }
            // The codes of two inputs differ in fewer than 128 places: an item or the bottom item in a bin of R
            // against each slot of the bin, and s against s*.
            let Bins { number, receiver, sender } = plan.bins;
            let close = |width: usize| above(width, 0.5, width - 128);
            let pairs = (sender + 1) * (n_r + number);
            assert!(close(plan.width) * pairs as f64 * events <= budget, "{n_r} {n_s}: {}", plan.width);
            assert_eq!(plan.peqt.is_some(), comparison == Comparison::Private);
            assert!(plan.peqt.is_none_or(|peqt| close(peqt) * slots * events <= budget), "{n_r} {n_s}");
            // Any bin of R, any bin of S or any frame of R overflows.
            let (bins, frames) = (number as f64, plan.frames().len() as f64);
            let fullest = [
                bins * above(n_r, 1.0 / bins, receiver),
                bins * above(n_s, 1.0 / bins, sender),
                frames * above(n_r, plan.per_frame as f64 / bins, plan.in_frame),
            ];
            assert!(fullest.iter().sum::<f64>() <= budget, "{n_r} {n_s}: {fullest:?}");
            assert!(plan.per_frame * plan.slots_of_bin() <= kkrt::FRAME);
            assert!(plan.polynomial_bytes() * kkrt::FRAME < 1 << 24);
        }
    }
    // 2^20 items on both sides with rows of 19 bytes: within the limit of a run (2.9 and 2.6 GB).
    let bytes = |comparison| {
        let plan = Binning::new(comparison, 1 << 20, 1 << 20, 22).unwrap();
        let (to_sender, to_receiver) = plan.traffic();
        to_sender + to_receiver + plan.slots() as u64 * 22
    };
    assert!(bytes(Comparison::Private) < 2_900_000_000, "{}", bytes(Comparison::Private));
    assert!(bytes(Comparison::Plain) < 2_600_000_000, "{}", bytes(Comparison::Plain));
}
