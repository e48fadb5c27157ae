use super::*;
use crate::operations::{self, INTERSECT, UNION};
use std::collections::HashSet;

#[path = "rounds_tests.rs"]
mod rounds;

#[test]
fn names_are_distinct_and_found() {
    let names: HashSet<&str> = ALL.into_iter().map(|p| p.name).collect();
    assert_eq!(names.len(), ALL.len());
    for protocol in ALL {
        assert!(std::ptr::eq(named(protocol.name).unwrap(), protocol));
    }
    let always = "\"osn\" is not a protocol: dh, dh-psi, cm20, vole, krtw19, krtw19-plain, poprf, sigma-dh";
    let more = if cfg!(feature = "fhe") { ", sigma-fhe" } else { "" };
    assert_eq!(named("osn").unwrap_err(), format!("{always}{more}"));
    assert_eq!(Choice::named("osn", "curve25519").unwrap_err(), named("osn").unwrap_err());
    for protocol in ALL {
        for group in protocol.groups {
            assert_eq!(Choice::named(protocol.name, group), Ok(Choice { protocol, group }));
        }
        let e = Choice::named(protocol.name, "p384").unwrap_err();
        assert!(e.contains("\"p384\" is not a group of") && e.contains(protocol.group()), "{e}");
    }
}

/// A protocol that is not built is not unknown: the message says how to get it.
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

/// Where a protocol has largest sizes, larger sets are refused before anything is sent, by the cost and by the run.
#[test]
fn sets_larger_than_a_protocol_takes_are_refused() {
    for protocol in ALL {
        let Some([receiver, sender]) = protocol.largest else {
            assert!(protocol.takes([MAX_SET; 2]));
            continue;
        };
        let announced = |size| Announced { size, padded: false };
        for (sizes, fits) in
            [([receiver, sender], true), ([receiver + 1, 0], false), ([0, sender + 1], false)]
        {
            let [of_receiver, of_sender] = sizes.map(announced);
            for offer in protocol.offers {
                let terms = Terms { reveal_count: offer.reveals_count, max_row: 9, ..Terms::default() };
                let (operation, group) = (offer.operation, protocol.group());
                let deal = Deal { operation, terms, group, receiver: of_receiver, sender: of_sender };
                let cost = protocol.cost(&deal);
                assert_eq!((protocol.takes(sizes), cost.is_ok()), (fits, fits), "{protocol} {sizes:?}");
                if let Err(e) = cost {
                    let said = e.to_string();
                    let most =
                        format!("{protocol} takes at most {receiver} items of the receiver and {sender} of");
                    assert!(matches!(e, Error::Usage(_)) && said.contains(&most), "{said}");
                    assert!(said.contains("Use another protocol"), "{said}");
                }
            }
        }
        let set: crate::item::ItemSet = (0..3).map(|i| i.to_string()).collect();
        let set = &crate::hashed::Hashed::new(&set);
        let task = Task {
            operation: protocol.offers[0].operation,
            role: Role::Sender,
            group: protocol.group(),
            set,
            values: &[],
            payloads: const { &crate::item::Items::new() },
            terms: Terms::default(),
        };
        let run = |cx: &mut Context| run(protocol, &task, cx, announced(receiver + 1)).map(|_| ());
        let e = crate::testing::told(&[], run).unwrap_err();
        assert!(matches!(e, Error::Usage(_)), "{e}");
    }
}

/// Another protocol than the preferred one is never taken without a word.
#[test]
fn each_operation_has_one_preferred_protocol() {
    for operation in operations::ALL {
        let offers = ALL.into_iter().filter_map(|p| p.offer(operation));
        assert_eq!(offers.filter(|offer| offer.preferred).count(), 1, "{operation}");
        assert!(
            default_for(operation, &Terms::default()).offer(operation).is_some_and(|offer| offer.preferred)
        );
    }
    let names = [&INTERSECT, &UNION].map(|operation| default_for(operation, &Terms::default()).name);
    assert_eq!(names, ["dh-psi", "dh"]);
}

#[test]
fn who_withstands_a_malicious_sender_says_so() {
    for protocol in ALL {
        let said = |malicious_sender| {
            let terms = Terms { malicious_sender, ..Terms::default() };
            (protocol.assumptions)(&terms, protocol.group()).join(". ")
        };
        // Without the request everybody is semi-honest.
        assert!(said(false).starts_with(SEMI_HONEST), "{protocol}");
        let withstands = protocol.offers.iter().any(|offer| offer.malicious_sender);
        assert_eq!(said(true).contains("malicious"), withstands, "{protocol}");
        assert_eq!(said(true).starts_with(SEMI_HONEST), !withstands, "{protocol}");
    }
    let by_default =
        |operation, malicious_sender| default_for(operation, &Terms { malicious_sender, ..Terms::default() });
    assert_eq!([false, true].map(|asked| by_default(&INTERSECT, asked)), [&DH_PSI, &CM20]);
    // Nothing withstands one there: a request that asks for it is refused.
    assert_eq!(by_default(&UNION, true), by_default(&UNION, false));
}

/// A protocol that shows the sender how many match is taken only if both agreed, and no union reveals it otherwise.
#[test]
fn the_count_is_revealed_to_the_sender_if_so_asked_and_only_then() {
    for operation in operations::ALL {
        let by_default = |reveal_count| default_for(operation, &Terms { reveal_count, ..Terms::default() });
        let reveals =
            |protocol: &Protocol| protocol.offer(operation).is_some_and(|offer| offer.reveals_count);
        assert!(!reveals(by_default(false)), "{operation}");
        assert_eq!(reveals(by_default(true)), operation == &UNION, "{operation}");
        let those: Vec<&Protocol> = ALL.into_iter().filter(|p| reveals(p)).collect();
        assert_eq!(those, if operation == &UNION { vec![&SIGMA_DH] } else { vec![] });
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
        // Only a union has dummies that have to be inserted.
        assert!(protocol.offers.iter().all(|o| !o.inserts_list || o.operation == &UNION));
    }
}
