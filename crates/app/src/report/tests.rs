use super::known::{Known, Regions};
use super::*;
use Known::{AtMost, BelowMinimum, Exactly, Unknown};
use std::thread;
use veilset::channel::{Channel, WireCount};
use veilset::item::ItemSet;
use veilset::net::{Connection, Identity, Listed, ListedParty, Roster, in_memory};
use veilset::operations::{Role, named};
use veilset::protocols::{self, Choice};
use veilset::rng::Prng;
use veilset::session::run::{Request, run};

/// Six items of ours and four of the peer's, of which three match.
fn sets() -> [ItemSet; 2] {
    [["a", "b", "c", "d", "e", "f"].iter().collect(), ["d", "e", "f", "g"].iter().collect()]
}

/// Runs both sides with requests changed by `change`, and returns their reports.
fn reports(operation: &str, change: impl Fn(&mut Request<'_>) + Sync) -> [Report; 2] {
    let (sets, operation) = (sets(), named(operation).unwrap());
    let values = [10, 20, 30, 40];
    let (a, b) = Channel::pair();
    let party = |role: Role, set, channel| {
        let mut request = Request::new(operation, role, set);
        if operation.uses.has_values(role, &request.spec.terms) {
            request.input.values = &values;
        }
        change(&mut request);
        let connection = Connection::unprotected(channel, WireCount::default());
        let outcome = run(connection, &request, &mut Prng::from_os().unwrap()).unwrap();
        Report::new(&request, &outcome, 1.5).unwrap()
    };
    thread::scope(|s| {
        let there = s.spawn(|| party(Role::Sender, &sets[1], b));
        [party(Role::Receiver, &sets[0], a), there.join().unwrap()]
    })
}

/// Returns the numbers of items that only this party has, both have, only the peer has, and at least one has.
fn known(report: &Report) -> [Known; 4] {
    let regions = Regions::of(report);
    [regions.ours, regions.both, regions.theirs, regions.union()]
}

const NOTHING: [Known; 4] = [Unknown; 4];
const ALL_HERE: [Known; 4] = [Exactly(3), Exactly(3), Exactly(1), Exactly(7)];
const ALL_THERE: [Known; 4] = [Exactly(1), Exactly(3), Exactly(3), Exactly(7)];

#[test]
fn each_operation_shows_what_this_party_learned() {
    let plain = |operation| reports(operation, |_| ()).each_ref().map(known);
    assert_eq!(plain("intersect"), [ALL_HERE, NOTHING]);
    assert_eq!(plain("union"), [ALL_HERE, NOTHING]);
    assert_eq!(plain("count"), [ALL_HERE, NOTHING]);
    assert_eq!(plain("sum"), [ALL_HERE, ALL_THERE]);
    assert_eq!(plain("id"), [ALL_HERE, ALL_THERE]);
    // A party does not know to which item its share belongs.
    let [there, here] = plain("share");
    assert_eq!(here, NOTHING);
    assert!(there == ALL_HERE || there == NOTHING, "{there:?}");
    for operation in ["intersect", "union", "count"] {
        let both = reports(operation, |request| request.spec.terms.both = true);
        assert_eq!(both.each_ref().map(known), [ALL_HERE, ALL_THERE], "{operation}");
    }
}

#[test]
fn the_page_has_the_terms_and_whom_a_loss_concerns() {
    let [mut here, _] = reports("intersect", |_| ());
    here.key_columns = vec!["mail".into()];
    here.notes = vec![format!("2 of our rows repeat a key: {}.", veilset::spelling::DUPLICATES)];
    let text = as_page(&here);
    for words in [
        "The terms that all parties agreed on",
        "normalisation of keys",
        "This party's key columns",
        ">mail<",
        "2 of our rows repeat a key: --duplicates.",
        "none: the connection was not protected",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn what_padding_hides_stays_hidden() {
    let padded =
        |operation| reports(operation, |request| request.input.pad_to = Some(9)).each_ref().map(known);
    let matching = [Exactly(3), Exactly(3), AtMost(6), AtMost(12)];
    assert_eq!(padded("intersect"), [matching, NOTHING]);
    assert_eq!(padded("count"), [matching, NOTHING]);
    // The number of new items, but not how many match.
    assert_eq!(padded("union"), [[Unknown, Unknown, Exactly(1), Exactly(7)], NOTHING]);
}

#[test]
fn a_sum_that_was_withheld_says_only_that() {
    let [_, there] = reports("sum", |request| request.spec.terms.min_count = 4);
    assert_eq!(known(&there), [Unknown, BelowMinimum, Unknown, Unknown]);
    let page = as_page(&there);
    assert!(page.contains("withheld: fewer items match than the agreed minimum"), "{page}");
    assert!(!page.contains("<td>90</td>"));
    let [_, there] = reports("sum", |_| ());
    assert!(as_page(&there).contains("<td>60</td>"));
}

#[test]
fn a_party_that_learned_nothing_gets_the_announced_sizes_only() {
    let [_, there] = reports("intersect", |request| {
        request.input.pad_to = (request.spec.role == Role::Receiver).then_some(9);
    });
    let page = as_page(&there);
    let drawing = &page[page.find("<svg").unwrap()..page.find("</svg>").unwrap()];
    assert_eq!(drawing.matches("<tspan").count(), 6, "{drawing}");
    assert_eq!(drawing.matches(">not known<").count(), 3);
    assert!(drawing.contains(">4 items<") && drawing.contains(">at most 9 items<"), "{drawing}");
    // No number but these two; coordinates are within tags.
    let text: String =
        drawing.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect();
    let digits: Vec<char> = text.chars().filter(char::is_ascii_digit).collect();
    // Once in the drawing and once in its description.
    assert_eq!(digits.len(), 4, "{text}");
}

#[test]
fn a_page_has_everything_that_the_json_has() {
    let [here, _] = reports("count", |_| ());
    let page = as_page(&here);
    let json: serde_json::Value = serde_json::from_str(&here.to_json().unwrap()).unwrap();
    let fields = json.as_object().unwrap();
    for name in ["time", "session", "operation", "protocol", "group", "role", "failure_bound", "version"] {
        assert!(page.contains(fields[name].as_str().unwrap()), "{name}");
    }
    for list in ["learned", "assumptions"] {
        let said = fields[list].as_array().unwrap();
        assert!(!said.is_empty());
        assert!(said.iter().all(|text| page.contains(text.as_str().unwrap())), "{list}");
    }
    for list in ["stages", "messages"] {
        let entries = fields[list].as_array().unwrap();
        assert!(entries.len() > 3, "{list}");
        for entry in entries {
            let name = html! { (entry["name"].as_str().unwrap()) }.into_string();
            assert!(page.contains(&format!("<th scope=\"row\">{name}</th>")), "{name}");
        }
    }
    assert_eq!(page.matches("<h1>").count(), 1);
    assert!(!page.contains("<script") && !page.contains("http:") && !page.contains("https:"));
}

#[test]
fn names_of_peers_and_files_stay_text() {
    let hostile = "<img src=x onerror=alert(1)>\"'&";
    let [mut here, _] = reports("intersect", |_| ());
    let mut peer = here.parties.peer().clone();
    peer.name = Some(hostile.into());
    here.parties = peer.into();
    (here.input, here.output) = (Some(hostile.into()), Some(hostile.into()));
    here.sent_columns = vec![hostile.into()];
    here.learned.push(hostile.into());
    let page = as_page(&here);
    assert!(!page.contains("<img"), "{page}");
    assert!(page.matches("&lt;img src=x onerror=alert(1)&gt;").count() >= 8);
}

#[test]
fn a_long_name_is_shortened_in_the_drawing_only() {
    let [mut here, _] = reports("intersect", |_| ());
    let mut peer = here.parties.peer().clone();
    peer.name = Some("\u{e9}".repeat(200));
    here.parties = peer.into();
    let page = as_page(&here);
    assert!(page.contains(&format!(">{}...<", "\u{e9}".repeat(30))));
    assert!(page.contains(&format!(">{}<", "\u{e9}".repeat(200))));
}

#[test]
fn of_several_parties_no_overlap_of_two_is_shown() {
    let names = ["north", "south", "west"];
    let party = |(i, name): (usize, &str)| ListedParty {
        name: name.into(),
        fingerprint: Identity::generate().unwrap().fingerprint(),
        address: Some(format!("127.0.0.1:{}", 1000 + i)),
    };
    let listed = Listed { leader: "north".into(), party: names.into_iter().enumerate().map(party).collect() };
    let roster = Roster::new(listed, "a list").unwrap();
    let sets =
        [&["a", "b", "c"][..], &["b", "c", "d", "e"], &["c", "f"]].map(|set| set.iter().collect::<ItemSet>());
    let one = |i: usize, connections: Vec<Connection>| {
        let me = roster.clone().me(names[i]).unwrap();
        let operation = named("intersect").unwrap();
        let protocol = protocols::multiparty_for(operation).unwrap();
        let role = Role::multiparty(me.leads());
        let request = Request::new(operation, role, &sets[i]).with(|r| {
            r.spec.candidates = Choice::of(protocol).into();
            r.spec.parties = Some(me.clone());
        });
        let outcome = run(connections, &request, &mut Prng::from_os().unwrap()).unwrap();
        as_page(&Report::new(&request, &outcome, 1.5).unwrap())
    };
    let connections = in_memory(&roster);
    let pages: Vec<String> = thread::scope(|s| {
        let one = &one;
        let all = connections.into_iter().enumerate().map(|(i, links)| s.spawn(move || one(i, links)));
        let all: Vec<_> = all.collect();
        all.into_iter().map(|party| party.join().unwrap()).collect()
    });
    let of_all = |number: &str| format!("<th scope=\"row\">Items that all have</th><td>{number}</td>");
    for (page, of_all) in
        pages.iter().zip(["1", "not known to this party", "not known to this party"].map(of_all))
    {
        assert!(!page.contains("<svg") && page.contains("nobody learns them"), "{page}");
        assert!(page.contains(&of_all), "{page}");
    }
    for (name, items) in [("party 2 (south)", 4), ("party 3 (west)", 2)] {
        assert!(pages[0].contains(&format!("<th scope=\"row\">{name}</th><td>{items}</td>")), "{}", pages[0]);
    }
}

#[test]
fn thousands_are_grouped() {
    let cases = [
        (0, "0"),
        (999, "999"),
        (1000, "1,000"),
        (12_345_678, "12,345,678"),
        (u64::MAX, "18,446,744,073,709,551,615"),
    ];
    cases.iter().for_each(|(n, text)| assert_eq!(grouped(*n), *text));
}
