//! The contents of `--report` files.

use crate::common::{Words, World, csv};
use serde_json::Value;

fn total(report: &Value, way: &str) -> u64 {
    report["messages"].as_array().unwrap().iter().map(|message| message[way].as_u64().unwrap()).sum()
}

#[test]
fn the_name_of_the_file_says_whether_it_is_a_page_or_json() {
    let world = World::new();
    let files = [world.write("r.csv", csv(0..30)), world.write("s.csv", csv(20..60))];
    let files = files.each_ref().map(|file| file.as_path());
    let more: [Words; 2] = [&["--report", "r.html"], &["--report", "s.HTM"]];
    world.good("intersect", files, more);
    for (name, knows) in [("r.html", true), ("s.HTM", false)] {
        let page = world.read(name);
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"), "{page}");
        assert_eq!(page.contains("<td>not known to this party</td>"), !knows);
        assert!(world.fingerprints.iter().filter(|fingerprint| page.contains(*fingerprint)).count() == 2);
    }
    world.good("intersect", files, [&["--report", "r.json"], &["--report", "report"]]);
    for name in ["r.json", "report"] {
        let report: Value = serde_json::from_str(&world.read(name)).unwrap();
        // All bytes on the wire are attributed in the list of messages.
        for way in ["sent", "received"] {
            assert_eq!(total(&report, way), report["bytes"][way].as_u64().unwrap(), "{report}");
        }
        let all: f64 =
            report["stages"].as_array().unwrap().iter().map(|s| s["seconds"].as_f64().unwrap()).sum();
        let took = report["seconds"].as_f64().unwrap();
        assert!(all > 0.0 && all <= took && took - all < 0.5, "{all} {took}");
    }
}
