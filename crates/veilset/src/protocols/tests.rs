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
    assert_eq!(
        named("osn").unwrap_err(),
        "\"osn\" is not a protocol: dh, dh-psi, cm20, vole, krtw19, krtw19-plain, poprf, sigma-dh"
    );
    assert_eq!(Choice::named("osn", "curve25519").unwrap_err(), named("osn").unwrap_err());
    for protocol in ALL {
        for group in protocol.groups {
            assert_eq!(Choice::named(protocol.name, group), Ok(Choice { protocol, group }));
        }
        let e = Choice::named(protocol.name, "p384").unwrap_err();
        assert!(e.contains("\"p384\" is not a group of") && e.contains(protocol.group()), "{e}");
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
