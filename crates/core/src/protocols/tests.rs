use super::*;
use crate::operations::{self, COUNT, ID, INTERSECT, UNION};
use crate::work::Primitive;
use std::collections::HashSet;

#[path = "rounds_tests.rs"]
mod rounds;

#[test]
fn names_are_distinct_and_found() {
    let all = || ALL.into_iter().chain(MULTIPARTY);
    let names: HashSet<&str> = all().map(|p| p.name).collect();
    assert_eq!(names.len(), ALL.len() + MULTIPARTY.len());
    for protocol in all() {
        assert!(std::ptr::eq(named(protocol.name).unwrap(), protocol));
    }
    let fhe = if cfg!(feature = "fhe") { "sigma-fhe, " } else { "" };
    let two =
        format!("dh, dh-psi, cm20, vole, krtw19, krtw19-plain, osn, poprf, sigma-dh, sigma-ahe, {fhe}dc17");
    let several = "of several parties: mpsu, mpsi, mpsi-ca";
    assert_eq!(named("spot").unwrap_err(), format!("\"spot\" is not a protocol: {two}; {several}"));
    assert_eq!(Choice::named("spot", "curve25519").unwrap_err(), named("spot").unwrap_err());
    for protocol in ALL {
        for group in protocol.groups {
            assert_eq!(Choice::named(protocol.name, group), Ok(Choice { protocol, group }));
        }
        for cipher in protocol.ciphers {
            let choice = Choice::named(protocol.name, cipher).unwrap();
            assert_eq!(choice, Choice { protocol, group: cipher });
            assert!(!protocol.choices().any(|other| other == choice));
        }
        // This modulus is too short to be secure; only the benchmark allows it.
        assert!(Choice::named(protocol.name, groups::PAILLIER_1024).is_err());
        let e = Choice::named(protocol.name, "p384").unwrap_err();
        assert!(e.contains("\"p384\" is not a group of") && e.contains(protocol.group()), "{e}");
    }
}

#[test]
fn one_protocol_of_several_parties_computes_each_operation_that_has_one() {
    let named = |operation| multiparty_for(operation).map(|p| p.name);
    assert_eq!(operations::ALL.map(named), [Some("mpsi"), Some("mpsu"), Some("mpsi-ca"), None, None, None]);
    assert!(MULTIPARTY.iter().all(|p| p.is_multiparty()) && !ALL.iter().any(|p| p.is_multiparty()));
    let (operation, group) = (&UNION, MPSU.group());
    let none = Announced { size: 0, padded: false };
    let deal = Deal { operation, terms: Terms::default(), group, receiver: none, sender: none };
    assert!(matches!(MPSU.cost(&deal), Err(Error::Bug(_))));
    assert!(matches!(CWPRF.multiparty_cost(&Terms::default(), &[1, 2]), Err(Error::Bug(_))));
}

/// A protocol that is not built is not unknown: the message names its feature.
#[test]
fn what_is_not_built_is_refused_with_its_feature() {
    let known: Vec<&str> = not_built().collect();
    assert_eq!(known, if cfg!(feature = "fhe") { vec![] } else { vec!["sigma-fhe"] });
    for name in known {
        let said = named(name).unwrap_err();
        assert_eq!(
            said,
            "this program is built without sigma-fhe: build it with the feature fhe, or use another protocol"
        );
    }
}

/// If a protocol has size limits, both the cost and the run reject larger sets before anything is sent.
#[test]
fn sets_larger_than_a_protocol_takes_are_refused() {
    let limited = |protocol: &&'static Protocol| protocol.offers[0].largest != [MAX_SET; 2];
    for protocol in ALL.into_iter().filter(limited) {
        let announced = |size| Announced { size, padded: false };
        for offer in protocol.offers {
            let [receiver, sender] = offer.largest;
            let (operation, group) = (offer.operation, protocol.group());
            let terms = Terms { reveal_count: offer.reveals_count, max_row: 9, ..Terms::default() };
            for (sizes, fits) in
                [([receiver, sender], true), ([receiver + 1, 0], false), ([0, sender + 1], false)]
            {
                let [receiver, sender] = sizes.map(announced);
                let cost = protocol.cost(&Deal { operation, terms, group, receiver, sender });
                assert_eq!((offer.takes(sizes), cost.is_ok()), (fits, fits), "{protocol} {sizes:?}");
                if let Err(e) = cost {
                    let (said, [receiver, sender]) = (e.to_string(), offer.largest);
                    let most = format!(
                        "at most {receiver} items of the receiver and {sender} of the sender, and the"
                    );
                    assert!(matches!(e, Error::Usage(_)) && said.contains(&most), "{said}");
                    assert!(said.contains("Use another `protocol`"), "{said}");
                }
            }
            let set: crate::item::ItemSet = (0..3).map(|i| i.to_string()).collect();
            let set = &crate::hashed::HashedSet::new(&set);
            let payloads = const { &crate::item::Items::new() };
            let role = Role::Sender;
            let task = Task { operation, role, group, set, values: &[1; 3], payloads, terms, filter: None };
            let run = |cx: &mut Context| run(protocol, &task, cx, announced(receiver + 1)).map(|_| ());
            let e = crate::testing::with_frames(&[], run).unwrap_err();
            assert!(matches!(&e, Error::Usage(said) if said.contains("at most")), "{e}");
        }
    }
}

/// Without a request, the protocol is always the first in order.
#[test]
fn each_operation_has_one_preferred_protocol() {
    for operation in operations::ALL {
        let offers = ALL.into_iter().filter_map(|p| p.offer(operation));
        assert_eq!(offers.filter(|offer| offer.order == 0).count(), 1, "{operation}");
        let first = default_for(operation, &Terms::default()).offer(operation);
        assert!(first.is_some_and(|offer| offer.order == 0 && offer.may_be_picked(&Terms::default())));
    }
    let names = [&INTERSECT, &UNION].map(|operation| default_for(operation, &Terms::default()).name);
    assert_eq!(names, ["dh-psi", "dh"]);
}

/// Identifiers come from an OPRF, regardless of the protocol for the union.
#[test]
fn identifiers_assume_what_their_oprf_does() {
    for protocol in ALL.into_iter().filter(|protocol| protocol.computes(&ID)) {
        let said = |operation| protocol.assumes(operation, &Terms::default(), protocol.group()).join(". ");
        assert!(said(&ID).starts_with(&said(&UNION)), "{protocol}");
        assert!(said(&ID).contains("for the identifiers: "), "{protocol}");
        assert!(
            said(&ID).contains("for the identifiers of some thousand items or more: learning parity"),
            "{protocol}"
        );
    }
}

#[test]
fn who_withstands_a_malicious_sender_says_so() {
    for protocol in ALL {
        let said = |malicious_sender| {
            let terms = Terms { malicious_sender, ..Terms::default() };
            (protocol.assumptions)(&terms, protocol.group()).join(". ")
        };
        // Without the request, both parties are semi-honest.
        assert!(said(false).starts_with(SEMI_HONEST), "{protocol}");
        let withstands = protocol.offers.iter().any(|offer| offer.malicious_sender);
        assert_eq!(said(true).contains("malicious"), withstands, "{protocol}");
        assert_eq!(said(true).starts_with(SEMI_HONEST), !withstands, "{protocol}");
    }
    let by_default =
        |operation, malicious_sender| default_for(operation, &Terms { malicious_sender, ..Terms::default() });
    assert_eq!([false, true].map(|asked| by_default(&INTERSECT, asked)), [&DH_PSI, &CM20]);
    // No union withstands a malicious sender: such a request is rejected.
    assert_eq!(by_default(&UNION, true), by_default(&UNION, false));
}

/// A protocol for small sets only is never taken if the user named none.
#[test]
fn the_default_takes_sets_of_any_size() {
    for operation in operations::ALL {
        for (malicious_sender, reveal_count) in [(false, false), (true, false), (false, true)] {
            let terms = Terms { malicious_sender, reveal_count, ..Terms::default() };
            let offer = default_for(operation, &terms).offer(operation).unwrap();
            assert_eq!(offer.largest, [MAX_SET; 2], "{operation}");
        }
    }
}

/// The limits apply to the two sets in the protocol, including dummies and those that the receiver inserts.
#[test]
fn sets_that_are_too_large_are_refused_by_name_of_the_limit() {
    let announced = |size, padded| Announced { size, padded };
    let cost = |operation, receiver, sender| {
        let terms = Terms { reveal_count: operation == &UNION, max_row: 9, ..Terms::default() };
        SIGMA_AHE.cost(&Deal { operation, terms, group: SIGMA_AHE.group(), receiver, sender })
    };
    for (operation, receiver, sender, said) in [
        (&UNION, (256, false), (4096, false), None),
        (&UNION, (257, false), (1, false), Some("the receiver has 257;")),
        (&UNION, (1, false), (4097, false), Some("the sender has 4097;")),
        (&UNION, (156, true), (100, true), None),
        (
            &UNION,
            (157, true),
            (100, true),
            Some("at most 256 items of the receiver and 4096 of the sender, and the receiver has 257;"),
        ),
        (&COUNT, (4096, true), (256, true), None),
        (
            &COUNT,
            (1, false),
            (257, false),
            Some("at most 4096 items of the receiver and 256 of the sender, and the sender has 257;"),
        ),
        (&COUNT, (4097, false), (1, true), Some("the receiver has 4097;")),
    ] {
        let end = cost(operation, announced(receiver.0, receiver.1), announced(sender.0, sender.1));
        let instead = if operation == &UNION { "(sigma-dh)" } else { "(dh, poprf, sigma-dh" };
        match (end, said) {
            (Ok(_), None) => {}
            (Err(Error::Usage(what)), Some(said)) => {
                assert!(what.contains(said) && what.contains(instead), "{what}");
            }
            (end, _) => panic!("{operation} {receiver:?} {sender:?}: {end:?}"),
        }
    }
}

/// In a union the receiver is the server, in a count the sender.
#[test]
fn sigma_ahe_multiplies_twice_for_each_pair_of_items() {
    for (operation, sizes, expected) in [
        (&UNION, [10, 20], [20 * (2 * 10 + 3), 20 * (2 * 10 + 1) + 1]),
        (&COUNT, [20, 10], [20 * (2 * 10 + 1) + 1, 20 * (2 * 10 + 3)]),
        (&COUNT, [20, 0], [20 * 3 + 1, 20 * 5]),
        (&COUNT, [0, 10], [0, 0]),
    ] {
        let [receiver, sender] = sizes.map(|size| Announced { size, padded: false });
        let terms = Terms { reveal_count: operation == &UNION, max_row: 9, ..Terms::default() };
        let deal = Deal { operation, terms, group: SIGMA_AHE.group(), receiver, sender };
        let cost = SIGMA_AHE.cost(&deal).unwrap();
        assert_eq!(
            Role::ALL.map(|role| cost.work(role).count(Primitive::Ristretto255) as usize),
            expected,
            "{operation} {sizes:?}"
        );
    }
}

/// A protocol that reveals the number of matches to the sender is taken only if both agreed; no other union reveals it.
#[test]
fn the_count_is_revealed_to_the_sender_if_so_asked_and_only_then() {
    for operation in operations::ALL {
        let by_default = |reveal_count| default_for(operation, &Terms { reveal_count, ..Terms::default() });
        let reveals =
            |protocol: &Protocol| protocol.offer(operation).is_some_and(|offer| offer.reveals_count);
        assert!(!reveals(by_default(false)), "{operation}");
        assert_eq!(reveals(by_default(true)), operation == &UNION, "{operation}");
        let those: Vec<&Protocol> = ALL.into_iter().filter(|p| reveals(p)).collect();
        assert_eq!(those, if operation == &UNION { vec![&SIGMA_DH, &SIGMA_AHE] } else { vec![] });
    }
}

#[test]
fn an_operation_is_offered_at_most_once_and_in_some_group() {
    for protocol in ALL {
        let operations: Vec<&'static Operation> =
            protocol.offers.iter().map(|offer| offer.operation).collect();
        assert!(!operations.is_empty() && !protocol.groups.is_empty(), "{protocol}");
        for operation in operations::ALL {
            assert!(operations.iter().filter(|&&o| o == operation).count() <= 1, "{operation} by {protocol}");
        }
        // Only a union needs inserted dummies.
        assert!(protocol.offers.iter().all(|o| !o.inserts_list || o.operation == &UNION));
    }
}

/// The possible deviations are stated for each offer and role, and differ if a sender is withstood.
#[test]
fn each_offer_says_what_a_party_that_deviates_can_do() {
    for protocol in ALL.into_iter().chain(MULTIPARTY) {
        for offer in protocol.offers {
            let terms = Terms { several: protocol.is_multiparty(), ..Terms::default() };
            let said = Role::ALL.map(|role| offer.deviating(&terms, role));
            for sentence in &said {
                assert!(sentence.split(' ').count() > 6 && sentence.ends_with('.'), "{protocol}: {sentence}");
                assert!(!sentence.contains("  "), "{protocol}: {sentence}");
            }
            assert_ne!(said[0], said[1], "{protocol}");
            let withstood = Terms { malicious_sender: true, ..terms };
            assert_eq!(offer.deviating(&withstood, Role::Receiver), said[0]);
            assert_eq!(
                offer.deviating(&withstood, Role::Sender) != said[1],
                offer.malicious_sender,
                "{protocol}"
            );
        }
    }
    let by_name = |protocol: &Protocol| {
        protocol.offer(&INTERSECT).unwrap().deviating(&Terms::default(), Role::Receiver)
    };
    assert!(by_name(&CWPRF).contains("ask for every row"));
    assert!(by_name(&DH_PSI).contains("as many guesses as it announced keys"));
}

/// The key itself has this many bits, not only the space reserved for it.
#[test]
fn a_modulus_has_as_many_bits_as_its_name_says() {
    struct Bits;
    impl under_cipher::UnderCipher for Bits {
        type Output = usize;
        fn run<C: crate::ahe::Cipher>(self) -> Result<usize> {
            let owner = C::generate(&mut crate::rng::Prng::from_seed(&[1; 32]));
            Ok(8 * C::save(&owner).len())
        }
    }
    for (cipher, bits) in
        [(groups::PAILLIER_1024, 1024), (groups::PAILLIER_2048, 2048), (groups::PAILLIER_3072, 3072)]
    {
        assert_eq!(under_cipher::with_cipher(cipher, Bits), Ok(bits));
    }
}
