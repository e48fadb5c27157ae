//! Parties whose lists of parties differ.

use crate::common::{Ended, Running, Words, csv, run};
use crate::several::{NAMES, Several};
use std::time::{Duration, Instant};

const NORTH: usize = 0;
const SOUTH: usize = 1;
const EAST: usize = 2;

/// Runs all parties, one of them with a list of its own. Returns how they ended.
fn with_list(several: &Several, who: usize, list: &str) -> [Ended; 3] {
    let file = several.world.write("f.csv", csv(0..3));
    several.world.write("own.toml", list);
    let long: Words = &["--connect-timeout", "300"];
    let own: Words = &["--connect-timeout", "300", "--parties", "own.toml"];
    let start = Instant::now();
    let parties = [NORTH, SOUTH, EAST].map(|i| {
        let more = if i == who { own } else { long };
        Running::start(&mut several.party(i, "count", &file, more))
    });
    let ended = parties.map(Running::end);
    assert!(start.elapsed() < Duration::from_secs(50), "{}", ended[0].err);
    ended
}

/// Returns the list, with its parties in this order.
fn ordered(several: &Several, order: [usize; 3]) -> String {
    let list = several.list();
    let parts: Vec<&str> = list.split("\n[[party]]").collect();
    let parties = order.map(|i| format!("\n[[party]]{}", parts[i + 1]));
    format!("{}{}", parts[0], parties.concat())
}

#[test]
fn every_difference_between_lists_is_named_by_all_parties_long_before_the_time_out() {
    let several = Several::new();
    let good = several.list();
    let [north, south, _] = several.fingerprints.each_ref().map(String::as_str);
    let second = &several.addresses[1];
    let mut fourth = Several::new();
    fourth.addresses[0] = "127.0.0.1:1".into();
    let stranger = &fourth.fingerprints[0];
    let extra = format!(
        "{good}\n[[party]]\nname = \"west\"\nfingerprint = \"{stranger}\"\naddress = \"127.0.0.1:1\"\n"
    );
    let silent = good.split("\n[[party]]").take(3).collect::<Vec<_>>().join("\n[[party]]");
    let swapped = good.replace(north, "x").replace(south, north).replace("\"x\"", &format!("\"{south}\""));
    let leader = |name: &str| good.replace("leader = \"north\"", &format!("leader = \"{name}\""));
    let in_list = |what: &str| format!("{what} in the list of parties (--parties): ours is ");
    // (party with its own list, that list, all exit codes, the message with exit code 4)
    let cases = [
        (EAST, leader("south"), [4, 4, 4], in_list("leader")),
        (SOUTH, leader("south"), [4, 4, 4], in_list("leader")),
        (NORTH, leader("east"), [4, 4, 4], in_list("leader")),
        (EAST, ordered(&several, [0, 2, 1]), [4, 4, 4], "order of the list of parties (--parties): ".into()),
        (SOUTH, ordered(&several, [0, 2, 1]), [4, 4, 4], "order of the list of parties (--parties): ".into()),
        // A party without a connection to the differing one is informed too.
        (EAST, good.replace(second, "127.0.0.1:1"), [4, 5, 4], in_list("address")),
        (EAST, format!("{good}address = \"127.0.0.1:1\"\n"), [4, 4, 4], in_list("address")),
        (EAST, good.replace(south, stranger), [4, 5, 4], in_list("fingerprint")),
        (EAST, swapped, [4, 4, 4], in_list("name")),
        (NORTH, silent, [4, 4, 5], "a party of the list (--parties): ours is ".into()),
        (SOUTH, extra, [4, 4, 4], "a party of the list (--parties): ours is ".into()),
    ];
    for (who, list, codes, what) in cases {
        let ended = with_list(&several, who, &list);
        let number = format!("party {}", who + 1);
        for (i, (ended, code)) in ended.into_iter().zip(codes).enumerate() {
            println!("--- {what} {who} {i}: {}", ended.err);
            match (code, i == who) {
                (4, true) => ended.bad(4, &[&what, "Settle with all parties which value it should be"]),
                (4, false) => ended.bad(4, &[&what, &number, NAMES[who], "Settle with all parties"]),
                _ => ended.bad(5, &[&number, NAMES[who]]),
            }
        }
    }
}

#[test]
fn a_program_that_runs_twice_says_so_at_once() {
    let several = Several::new();
    let file = several.world.write("f.csv", csv(0..3));
    let mut north = Running::start(&mut several.party(NORTH, "count", &file, &[]));
    north.until("listening on");
    let first = Running::start(&mut several.party(EAST, "count", &file, &[]));
    north.until("party 3 (east) is connected");
    let second = run(&mut several.party(EAST, "count", &file, &[]));
    second
        .bad(2, &["the address of north, is connected already", "our identity", "If our program runs twice"]);
    // The run continues.
    let south = Running::start(&mut several.party(SOUTH, "count", &file, &[]));
    for ended in [north, south, first].map(Running::end) {
        ended.good();
    }
}
