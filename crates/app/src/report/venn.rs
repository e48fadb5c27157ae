//! Two circles, labelled with the known size of each region. They are not to scale: this party does not know all sizes.

use super::known::{Known, Regions};
use maud::{Markup, html};
use veilset::operations::Announced;

/// The number of characters of a name that fit above a circle.
const FITS: usize = 30;

/// Draws both sets of a run of two: `ours` is the size of ours, and `theirs` the size that the peer announced.
pub(crate) fn diagram(ours: usize, theirs: Announced, peer: &str, regions: &Regions) -> Markup {
    let set = [Known::Exactly(ours), Known::announced(theirs)].map(|known| items(&known));
    let Regions { ours, both, theirs, .. } = regions;
    let described = format!(
        "Two overlapping circles, not to scale. This party's set: {}. The set of {peer}: {}. Only this party has: {ours}. Both \
         have: {both}. Only {peer} has: {theirs}.",
        set[0], set[1]
    );
    html! {
        figure {
            svg width="640" height="330" viewBox="0 0 640 330" role="img" aria-labelledby="venn-title venn-described" {
                title #venn-title { "What this party knows about both sets" }
                desc #venn-described { (described) }
                text.strong x="250" y="22" text-anchor="end" { "This party" }
                text x="250" y="42" text-anchor="end" { (set[0]) }
                text.strong x="390" y="22" { (shortened(peer)) }
                text x="390" y="42" { (set[1]) }
                circle.first cx="245" cy="190" r="132" fill="none" stroke-width="3" {}
                circle.second cx="395" cy="190" r="132" fill="none" stroke-width="3" {}
                (label(184, "only this party", ours))
                (label(320, "both", both))
                (label(456, "only the other", theirs))
            }
            figcaption.quiet { "Not to scale. Each region shows what this party knows of it, and nothing else." }
        }
    }
}

fn items(known: &Known) -> String {
    match known {
        Known::Exactly(1) => "1 item".into(),
        Known::Exactly(_) | Known::AtMost(_) => format!("{known} items"),
        Known::BelowMinimum | Known::Unknown => known.to_string(),
    }
}

/// Labels the region whose centre is at `x` with its name and the lines of its known size.
fn label(x: u32, name: &str, known: &Known) -> Markup {
    let lines = match known {
        Known::Exactly(_) => vec![known.to_string()],
        Known::AtMost(n) => vec!["at most".into(), Known::Exactly(*n).to_string()],
        Known::BelowMinimum => ["fewer than", "the agreed", "minimum"].map(String::from).to_vec(),
        Known::Unknown => ["not known", "to this party"].map(String::from).to_vec(),
    };
    html! {
        text.quiet x=(x) y="172" text-anchor="middle" { (name) }
        text.strong x=(x) y="174" text-anchor="middle" {
            @for line in lines { tspan x=(x) dy="20" { (line) } }
        }
    }
}

/// Shortens a name so that it fits above a circle.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(FITS) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.into(),
    }
}
