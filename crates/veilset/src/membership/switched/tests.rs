use super::*;
use crate::hash::SessionId;
use crate::testing::{Views, run_pair, sizes};

pub(super) const SESSION: SessionId = SessionId::of([8; 32]);

pub(super) fn items(from: usize, n: usize) -> Vec<Input> {
    (from..from + n).map(|i| Input::of_item(&i.to_le_bytes())).collect()
}

pub(super) fn run(
    plan: &Plan,
    y: &[Input],
    x: &[Input],
    real: usize,
) -> (Secrets<bool>, Secrets<u32>, Views) {
    let ((bits, order), views) = run_pair(&SESSION, |cx| plan.receiver(cx, y), |cx| plan.sender(cx, x, real));
    assert_eq!([bits.len(), order.len()], [plan.slots(); 2]);
    (bits, order, views)
}

/// One bit per item of X, in order. Also checks the contents of the slots.
fn bits_by_item(plan: &Plan, y: &[Input], x: &[Input]) -> Vec<bool> {
    let (bits, order, _) = run(plan, y, x, x.len());
    let mut by_item = vec![None; x.len()];
    for (&item, &bit) in order.iter().zip(bits.iter()) {
        match item {
            BOTTOM => assert!(bit, "the bottom item is in every bin"),
            item => assert!(by_item[item as usize].replace(bit).is_none()),
        }
    }
    by_item.into_iter().map(Option::unwrap).collect()
}

#[test]
fn the_bits_are_those_of_the_plain_computation() {
    let others = vec![(57, 33), (57, 33), (2, 1), (255, 256), (900, 3), (3, 5000), (3000, 2500)];
    for (i, (n_y, n_x)) in [sizes(40), others].concat().into_iter().enumerate() {
        // All or some items in common.
        let common = n_y.min(n_x) / (1 + i % 2);
        let (y, x) = (items(0, n_y), items(n_y - common, n_x));
        let bits = bits_by_item(&Plan::new(40, n_y, n_x, 20), &y, &x);
        assert!(bits.iter().enumerate().all(|(i, bit)| *bit == (i < common)), "{n_y} {n_x} {common}");
    }
}
