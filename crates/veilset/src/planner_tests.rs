//! Tests of the protocols that may be picked, and those that never are.

use super::*;
use crate::operations::{self, COUNT, INTERSECT, SUM};
use crate::protocols::{CM20, CWPRF, DH_PSI, KRTW19_PLAIN, MPSU, OSN, SIGMA_DH, VOLE, groups};
use std::time::Duration;

const LAN: Network = Network::LAN;

fn wanted(operation: &'static Operation, sizes: [usize; 2]) -> Wanted<'static> {
    let sizes = sizes.map(|size| Announced { size, padded: false });
    let terms = Terms { max_row: 64, ..Terms::default() };
    Wanted { operation, terms, group: None, assume: None, sizes }
}

fn at(link: Network) -> Setting {
    Setting { speeds: [Speeds::built_in(1); 2], link, prices: Prices::default(), shared: None }
}

fn best(wanted: &Wanted, link: Network, preference: Preference) -> Choice {
    let all = unasked(wanted.acceptable(), wanted.operation, &wanted.terms);
    super::best(&wanted.ranked(&all, &at(link), preference), wanted.operation, preference).unwrap().0
}

/// These choices, expected to take the given seconds, and one byte for each millisecond.
fn expected(all: &[(&'static protocols::Protocol, f64)]) -> Vec<(Choice, Prediction)> {
    let run = |seconds: f64| Prediction {
        seconds,
        traffic: Traffic { to_sender: (1000.0 * seconds) as u64, to_receiver: 0 },
        rounds: 0,
        memory: [0; 2],
        dollars: seconds,
    };
    all.iter().map(|&(protocol, seconds)| (Choice::of(protocol), run(seconds))).collect()
}

/// Noise decides nothing: among protocols under a second, and among those too close to distinguish, the order decides.
#[test]
fn time_decides_only_where_it_matters() {
    let pick = |all: &[(&'static protocols::Protocol, f64)], preference| {
        super::best(&expected(all), &INTERSECT, preference).map(|(choice, _)| choice.protocol.name)
    };
    for (all, picked) in [
        (&[(&VOLE, 0.02), (&CM20, 0.05), (&DH_PSI, 0.99)][..], "dh-psi"),
        (&[(&VOLE, 0.02), (&CM20, 0.05), (&DH_PSI, 1.01)], "vole"),
        (&[(&CM20, 0.02), (&CWPRF, 0.01), (&VOLE, 2.0)], "cm20"),
        (&[(&VOLE, 10.0), (&DH_PSI, 13.9), (&CM20, 10.1)], "dh-psi"),
        (&[(&VOLE, 10.0), (&DH_PSI, 14.1), (&CM20, 9.9)], "vole"),
        (&[(&VOLE, 14.5), (&CM20, 10.0)], "cm20"),
    ] {
        assert_eq!(pick(all, Preference::Time), Some(picked), "{picked}");
        // The result does not depend on the order of the list.
        let back: Vec<_> = all.iter().rev().copied().collect();
        assert_eq!(pick(&back, Preference::Time), Some(picked), "{picked}");
    }
    // With another preference, only equal values are equal.
    for preference in [Preference::Bytes, Preference::Dollars] {
        assert_eq!(pick(&[(&DH_PSI, 0.03), (&VOLE, 0.02)], preference), Some("vole"));
        assert_eq!(pick(&[(&CM20, 0.02), (&VOLE, 0.02)], preference), Some("vole"));
    }
    assert_eq!(pick(&[], Preference::Time), None);
}

/// Each operation has a first offer, and no two offers share a place in the order.
#[test]
fn the_order_of_the_offers_is_one() {
    for operation in operations::ALL {
        let offers = protocols::ALL.into_iter().filter_map(|protocol| protocol.offer(operation));
        let all: Vec<_> = offers.map(|offer| offer.order).collect();
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "{operation}");
        assert!(all.contains(&0), "{operation}");
        assert!(
            acceptable(operation, &Terms::default(), None, None)
                .is_sorted_by_key(|choice| { choice.protocol.offer(operation).unwrap().order })
        );
    }
}

/// Protocols that a deviating receiver would profit from most, or that take many times as long, run only on request.
#[test]
fn what_may_not_be_picked_unasked_is_not_unless_nothing_else_is_left() {
    let names = |operation: &'static Operation, terms: Terms, group, assume| -> Vec<&str> {
        let all = unasked(acceptable(operation, &terms, group, assume), operation, &terms);
        all.iter().map(|choice| choice.protocol.name).collect()
    };
    let plain = Terms::default();
    let columns = Terms { payload: true, ..plain };
    for (operation, terms, expected) in [
        (&INTERSECT, plain, &["dh-psi", "vole", "cm20", "dh"][..]),
        (&INTERSECT, columns, &["dh-psi", "vole", "cm20"]),
        (&operations::UNION, plain, &["dh", "osn", "krtw19"]),
        (&operations::UNION, columns, &["dh", "osn", "krtw19"]),
        (&COUNT, plain, &["dh"]),
        (&SUM, plain, &["dh"]),
        (&operations::SHARE, plain, &["dh"]),
        (&operations::ID, plain, &["dh", "osn", "krtw19"]),
        (&INTERSECT, Terms { malicious_sender: true, ..plain }, &["cm20"]),
        // No other protocol reveals the count to the sender.
        (&operations::UNION, Terms { reveal_count: true, ..plain }, &["sigma-dh", "sigma-ahe"]),
    ] {
        assert_eq!(names(operation, terms, None, None), expected, "{operation}");
    }
    // In a group that few protocols support.
    assert_eq!(names(&INTERSECT, plain, Some(groups::RISTRETTO255), None), ["vole", "cm20"]);
    assert!(names(&COUNT, plain, Some(groups::RISTRETTO255), None).contains(&"poprf"));
    assert_eq!(names(&INTERSECT, columns, Some(groups::P256), None), ["dh-psi"]);
    assert_eq!(names(&INTERSECT, plain, None, Some(&[Assumption::Ddh])), ["dh-psi", "cm20", "dh"]);
}

/// The choices are the permitted ones that may be picked unasked; otherwise the first reason for a refusal, or none if there
/// were no choices.
#[test]
fn what_is_picked_from_is_permitted_and_never_empty() {
    let terms = Terms::default();
    let forbid = |forbidden: &[&'static protocols::Protocol]| {
        let permits = |choice: Choice| match forbidden.contains(&choice.protocol) {
            true => Err(Error::refused(format!("{choice} is forbidden"))),
            false => Ok(()),
        };
        let all = acceptable(&INTERSECT, &terms, None, None);
        pickable(all, &INTERSECT, &terms, &permits)
    };
    let names = |choices: Choices| -> Vec<&str> {
        [choices.first].iter().chain(&choices.others).map(|choice| choice.protocol.name).collect()
    };
    assert_eq!(names(forbid(&[]).unwrap().unwrap()), ["dh-psi", "vole", "cm20", "dh"]);
    assert_eq!(names(forbid(&[&DH_PSI, &CM20]).unwrap().unwrap()), ["vole", "dh"]);
    assert_eq!(names(forbid(&[&DH_PSI, &CM20, &CWPRF]).unwrap().unwrap()), ["vole"]);
    let all = acceptable(&INTERSECT, &terms, None, None);
    let none = |choice: Choice| -> Result<()> { Err(Error::refused(format!("{choice} is forbidden"))) };
    let refused = pickable(all, &INTERSECT, &terms, &none).unwrap_err();
    assert_eq!(refused, Error::Refused("dh-psi is forbidden".into()));
    assert_eq!(pickable(Vec::new(), &INTERSECT, &terms, &none), Ok(None));
}

#[test]
fn what_no_protocol_can_do_without_is_named() {
    let said = |operation: &'static Operation, terms: Terms, group, assume: &[Assumption]| {
        assert!(acceptable(operation, &terms, group, Some(assume)).is_empty(), "{operation}");
        nothing(&acceptable(operation, &terms, group, None), operation, Some(assume)).to_string()
    };
    let plain = Terms::default();
    // Each protocol assumes lpn, either by itself or for its identifiers.
    let id = said(&operations::ID, plain, None, &[Assumption::Ddh]);
    assert!(id.contains("by dh, poprf, osn, krtw19, krtw19-plain on lpn."), "{id}");
    let id = said(&operations::ID, plain, None, &[]);
    assert!(id.contains("by dh, poprf, osn, krtw19, krtw19-plain on ddh and lpn."), "{id}");
    let union = said(&operations::UNION, plain, None, &[]);
    assert!(
        union.contains("by dh,") && union.contains(" on ddh; by ") && union.contains("ddh and lpn"),
        "{union}"
    );
    // If the cause is not a missing assumption, no assumption is named.
    let sum = said(&SUM, Terms { malicious_sender: true, ..plain }, None, &[Assumption::Ddh]);
    assert!(sum.contains("no protocol computes sum under these terms") && !sum.contains("assume"), "{sum}");
    // The message for several parties.
    let several = nothing(&[Choice::of(&MPSU)], &operations::UNION, Some(&[Assumption::Ddh])).to_string();
    assert!(several.contains("by mpsu on lpn."), "{several}");
}

#[test]
fn the_best_is_picked_for_sizes_and_links() {
    let slow =
        |bandwidth, milliseconds| Network { bandwidth, round_trip: Duration::from_millis(milliseconds) };
    for (operation, n, link, protocol) in [
        (&INTERSECT, 1 << 20, LAN, &VOLE),
        (&INTERSECT, 1 << 22, LAN, &VOLE),
        (&INTERSECT, 1 << 12, LAN, &DH_PSI),
        (&INTERSECT, 300, LAN, &DH_PSI),
        (&INTERSECT, 300, slow(1e7, 80), &DH_PSI),
        (&operations::UNION, 1 << 16, slow(1e7, 80), &CWPRF),
        (&operations::UNION, 1 << 20, LAN, &OSN),
        (&COUNT, 1 << 16, LAN, &CWPRF),
    ] {
        let choice = best(&wanted(operation, [n; 2]), link, Preference::Time);
        assert_eq!(choice, Choice::of(protocol), "{operation} of {n}");
    }
}

#[test]
fn what_is_preferred_is_small() {
    let wanted = wanted(&operations::UNION, [1 << 18; 2]);
    let all = wanted.acceptable();
    for preference in Preference::ALL {
        let ranked = wanted.ranked(&all, &at(LAN), preference);
        assert!(ranked.windows(2).all(|two| two[0].1.by(preference) <= two[1].1.by(preference)));
        assert_eq!(preference.name().parse(), Ok(preference));
    }
    assert_ne!(best(&wanted, LAN, Preference::Bytes), best(&wanted, LAN, Preference::Time));
}

#[test]
fn nothing_below_what_is_asked_for_is_acceptable() {
    for operation in operations::ALL {
        let all = acceptable(operation, &Terms::default(), None, None);
        assert!(!all.is_empty(), "{operation}");
        let picked = unasked(all.clone(), operation, &Terms::default());
        assert!(picked.iter().all(|choice| choice.protocol != &KRTW19_PLAIN), "{operation}");
        assert!(
            all.iter().all(|choice| !choice.protocol.offer(operation).unwrap().reveals_count),
            "{operation}"
        );
        for allowed in [&[][..], &[Assumption::Ddh], &[Assumption::Ddh, Assumption::Lpn]] {
            for choice in acceptable(operation, &Terms::default(), None, Some(allowed)) {
                let rests = choice.rests_on(operation);
                assert!(all.contains(&choice) && rests.iter().all(|one| allowed.contains(one)), "{choice}");
            }
        }
        assert!(acceptable(operation, &Terms::default(), None, Some(&[])).is_empty());
    }
    let names = |operation, terms: Terms| -> Vec<Choice> { acceptable(operation, &terms, None, None) };
    let malicious = Terms { malicious_sender: true, ..Terms::default() };
    assert_eq!(names(&INTERSECT, malicious), [Choice::of(&CM20)]);
    assert_eq!(names(&SUM, malicious), []);
    let revealing = names(&operations::UNION, Terms { reveal_count: true, ..Terms::default() });
    assert!(revealing.contains(&Choice::of(&SIGMA_DH)) && !revealing.contains(&Choice::of(&CWPRF)));
    let within_p256 = acceptable(&INTERSECT, &Terms::default(), Some(groups::P256), None);
    assert!(!within_p256.is_empty() && within_p256.iter().all(|choice| choice.group == groups::P256));
    let without_lpn = acceptable(&INTERSECT, &Terms::default(), None, Some(&[Assumption::Ddh]));
    assert!(without_lpn.contains(&Choice::of(&CM20)) && !without_lpn.contains(&Choice::of(&VOLE)));
}

/// Predictions exist only for sets that fit.
#[test]
fn what_is_too_large_is_not_expected() {
    let few = wanted(&COUNT, [100; 2]);
    let many = wanted(&COUNT, [1 << 20; 2]);
    let [few, many] = [few, many].map(|w| w.ranked(&w.acceptable(), &at(LAN), Preference::Time).len());
    assert!(many < few);
}

/// A step takes as long as the slowest of four; rounds wait for the link.
#[test]
fn a_run_takes_as_long_as_its_slowest_parts() {
    let work = |n| Work::of(Primitive::Curve25519, n);
    let step = |r, s, to_sender, to_receiver| Step::of(work(r), work(s)).sends(to_sender, to_receiver);
    let cost = |steps: Vec<Step>, rounds| Cost { steps, rounds, memory: [memory(3), memory(5)] };
    let setting = at(Network { bandwidth: 8e6, round_trip: Duration::from_secs(1) });
    let of = |steps, rounds| Prediction::of(&cost(steps, rounds), 0, &setting);
    let none = of(vec![], 0);
    assert_eq!((none.rounds, none.seconds), (AROUND, START + AROUND as f64 * (ROUND + 0.5)));
    let point = setting.speeds[0].seconds(&work(1 << 20));
    let near = |a: f64, b: f64| assert!((a - b).abs() < 0.01 * b, "{a} {b}");
    for (r, s) in [(1, 2), (2, 1), (2, 2)] {
        near(of(vec![step(r << 20, s << 20, 0, 0)], 0).seconds - none.seconds, 2.0 * point);
    }
    near(of(vec![step(1 << 20, 0, 0, 0), step(0, 1 << 20, 0, 0)], 0).seconds - none.seconds, 2.0 * point);
    near(of(vec![step(1, 1, 50_000_000, 0)], 0).seconds - none.seconds, 50.0);
    near(of(vec![step(1, 1, 50_000_000, 90_000_000)], 0).seconds - none.seconds, 90.0);
    near(of(vec![], 4).seconds - none.seconds, 2.0);
    // Both parties on one core.
    let shared = Setting { shared: Some(1), ..setting };
    let both = Prediction::of(&cost(vec![step(1 << 20, 1 << 20, 0, 0)], 0), 0, &shared);
    near(both.seconds - none.seconds, 2.0 * point);
    let run = of(vec![step(1, 1, 1_000_000_000, 0)], 0);
    near(run.dollars, 0.09 + 2.0 * run.seconds / 3600.0 * 0.096);
    assert_eq!(run.memory[1] - run.memory[0], 2);
}

fn memory(held: usize) -> crate::operations::cost::Memory {
    crate::operations::cost::Memory::held(held)
}

/// Shards run one after another, and are padded; the messages around them count once.
#[test]
fn a_job_takes_as_long_as_its_shards() {
    let whole = wanted(&INTERSECT, [1 << 20; 2]);
    let cut = Wanted { terms: Terms { shards: 8, ..whole.terms }, ..whole };
    let setting = at(Network { bandwidth: 1e8, round_trip: Duration::from_millis(40) });
    let [whole, job] = [whole, cut].map(|wanted| wanted.predict(Choice::of(&DH_PSI), &setting).unwrap());
    let times = job.seconds / whole.seconds;
    assert!((1.0..1.2).contains(&times), "{times}");
    assert_eq!(job.rounds - AROUND, 8 * (whole.rounds - AROUND));
    assert!(job.traffic.to_sender > whole.traffic.to_sender && job.memory[0] < whole.memory[0] / 4);
}

/// The slowest of several parties decides, and the link with the most traffic.
#[test]
fn several_parties_are_as_fast_as_the_slowest() {
    let terms = Terms { max_row: 64, several: true, ..Terms::default() };
    let predict = |parties: usize, setting: &Setting| {
        let cost = MPSU.multiparty_cost(&terms, &vec![1 << 12; parties]).unwrap();
        (Prediction::of_several(&cost, setting), cost)
    };
    let (three, cost) = predict(3, &at(LAN));
    let (five, _) = predict(5, &at(LAN));
    assert!(five.seconds > three.seconds && five.dollars > three.dollars);
    let work = cost.parties.iter().map(|party| Speeds::built_in(1).seconds(&party.work)).fold(0.0, f64::max);
    assert!(three.seconds > work);
    assert!(three.traffic.to_receiver as f64 > cost.parties[0].received as f64);
    // With a thousandth of the bandwidth, the link alone decides.
    let (slow, _) = predict(3, &at(Network { bandwidth: 1e7, ..LAN }));
    let busiest = cost.parties.iter().map(|party| party.sent.max(party.received)).max().unwrap();
    assert!(slow.seconds > busiest as f64 * 8.0 / 1e7);
}
