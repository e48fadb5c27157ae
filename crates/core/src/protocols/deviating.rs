//! Common descriptions of deviations, which complete the sentences "a receiver that deviates can ..." and "a sender that
//! deviates can ...". docs/protocols.md gives details.

/// A malicious sender against which the receiver is protected ([`super::Offer::malicious_sender`]).
pub(super) const WITHSTOOD: &str = "choose its set, and change the columns that it sends; it changes nothing else of which keys \
                                    match, but what it learns where both get the result is not covered";
/// Intersect over a membership test with rows.
pub(super) const INTERSECT: [&str; 2] = [
    "ask for every row: it gets a hash of each key of the sender, against which it can test guesses, and all columns that are \
     sent",
    "omit or replace rows, and where both get the result learn which of its keys match",
];
/// Union over a membership test with rows.
pub(super) const UNION: [&str; 2] = [
    "ask for every row, and learn which of its keys match",
    "omit or replace rows, and learn from a union that it gets which of its keys match",
];
/// Count over a membership test.
pub(super) const COUNT: [&str; 2] = [
    "learn which of its keys match",
    "change the number of matches, and where both get the result learn which of its keys match",
];
/// Sum over a membership test with rows.
pub(super) const SUM: [&str; 2] = [
    "learn which of its keys match, and shift the sum that the sender learns",
    "learn which of its keys match, and get a sum over fewer matches than agreed with some probability",
];
/// Share over a membership test.
pub(super) const SHARE: [&str; 2] = [
    "get shares that add up to any of the sender's keys or values",
    "share other keys or values than its own",
];
/// Identifiers, with any protocol for the union.
pub(super) const ID: [&str; 2] = [
    "learn which of its keys match, test as many guesses as it announced keys or more, and add identifiers to the list",
    "learn which of its keys match, and test as many guesses as it announced keys or more",
];
/// Union by a protocol with a private permutation.
pub(super) const PERMUTED_UNION: [&str; 2] = [
    "learn which of its keys match, ask for every row, and show the sender another number of matches",
    "learn which of its keys match, and omit or replace rows",
];
/// Count by a protocol with a private permutation.
pub(super) const PERMUTED_COUNT: [&str; 2] = [
    "learn which of its keys match",
    "show the receiver another number of matches, and where both get the result learn about single keys from it",
];
/// Union of several parties: the leader, and any other party.
pub(super) const MULTIPARTY_UNION: [&str; 2] = [
    "replace, drop or mark each row that passes through its hands, and learn which party is the first to have a new key",
    "replace, drop or mark each row that passes through its hands, learn with the leader what is compared, and whether some \
     party has a key that it offers",
];
/// Intersection of several parties: the leader, and any other party.
pub(super) const MULTIPARTY_INTERSECT: [&str; 2] =
    ["use more keys than it announced", "use more keys than it announced"];
/// Size of the intersection of several parties: the leader, and any other party.
pub(super) const MULTIPARTY_COUNT: [&str; 2] = [
    "count what only some of the parties have in common, or what one of them lacks, learn of as many of its keys as the count \
     has binary digits whether all have them, and learn with others what is compared",
    "replace, drop or mark each row that passes through its hands, and so change the number of matches or learn about single keys \
     from it with the leader",
];
