//! The facts that a party learns, and their wording before a run, in its report, and in SECURITY.md.

/// Something that a party learns from a run, in addition to the size of the peer's set. A party that follows the
/// protocol learns nothing beyond its facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fact {
    /// Which of its own items the other party also has, and their payload if it receives one.
    WhichMatch,
    /// The items that only the other party has, and their payload if it receives one. With the sizes of both sets, they
    /// reveal how many match.
    NewItems,
    /// The number of matching items.
    HowManyMatch,
    /// The sum of its own values over the matches.
    Sum,
    /// A share of each of its own items, or of each of the other party's items and which of these shares are of matches.
    Shares {
        /// Whether the shared items are its own.
        own: bool,
    },
    /// An identifier for each of its own items, and the identifiers of both sets. With the announced sizes, they reveal how
    /// many match.
    Identifiers,
    /// If fewer items match than this number: only that, instead of all other facts.
    OnlyThatFewer(u64),
}

/// The point of view from which facts are worded.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The name of the other party: "the peer", or "the others" for all others together in a run of several.
    pub other: &'a str,
    /// Whether this is a run of several parties.
    pub several: bool,
    /// Whether the other party's set is padded; `None` to word both cases.
    pub other_pads: Option<bool>,
    /// The names of the columns that the party receives, in words; empty if there are none.
    pub columns: &'a str,
    /// The known part of the outcome of the run.
    pub numbers: Option<Numbers<'a>>,
}

/// The outcome of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Numbers<'a> {
    /// The number of matches.
    pub matches: Option<usize>,
    /// The number of items that only the other party has.
    pub new: Option<usize>,
    /// The sum, as text.
    pub sum: Option<&'a str>,
    /// Whether fewer items matched than the agreed minimum.
    pub below_minimum: Option<bool>,
}

impl View<'_> {
    /// Words all facts, to complete a sentence that breaks off after "and ".
    pub fn say(&self, facts: &[Fact]) -> String {
        let fewer = facts.iter().find_map(|fact| match fact {
            Fact::OnlyThatFewer(n) => Some(*n),
            Fact::WhichMatch
            | Fact::NewItems
            | Fact::HowManyMatch
            | Fact::Sum
            | Fact::Shares { .. }
            | Fact::Identifiers => None,
        });
        let below = self.numbers.and_then(|numbers| numbers.below_minimum);
        if let (Some(fewer), Some(true)) = (fewer, below) {
            return format!("that fewer than {fewer} items match; nothing else");
        }
        let sentences: Vec<String> = facts.iter().filter_map(|fact| self.one(*fact)).collect();
        let all = match sentences.is_empty() {
            true => "nothing else".into(),
            false => sentences.join(", and "),
        };
        match (fewer, below) {
            (Some(fewer), None) => format!("{all}; or only that fewer than {fewer} items match"),
            _ => all,
        }
    }

    fn one(&self, fact: Fact) -> Option<String> {
        if self.several {
            return self.multiparty(fact);
        }
        let View { other, columns, .. } = self;
        let columns =
            if columns.is_empty() { String::new() } else { format!(", with the columns {columns}") };
        let numbers = self.numbers.unwrap_or_default();
        let how_many = || match numbers.matches {
            Some(1) => "that 1 item matches, but not which".into(),
            Some(n) => format!("that {n} items match, but not which"),
            None => String::from("how many items match, but not which"),
        };
        Some(match fact {
            Fact::WhichMatch => {
                let found = numbers.matches.map(|n| format!(" ({n})")).unwrap_or_default();
                format!("which of its own items {other} has too{found}{columns}")
            }
            Fact::NewItems => {
                let shown = match self.other_pads {
                    Some(false) => format!(", and so {}", how_many()),
                    Some(true) => String::new(),
                    None => format!(", and so, unless {other} pads, {}", how_many()),
                };
                let found = numbers.new.map(|n| format!(" ({n})")).unwrap_or_default();
                format!("every item that only {other} has{found}, in the clear{columns}{shown}")
            }
            Fact::HowManyMatch => how_many(),
            Fact::Sum => match numbers.sum {
                Some(sum) => format!("that its own values over them add up to {sum}"),
                None => "the sum of its own values over them".into(),
            },
            Fact::Shares { own: true } => "a share of each of its own items, random by itself".into(),
            Fact::Shares { own: false } => {
                format!("a share of each item of {other}, random by itself, and which of them are of matches")
            }
            Fact::Identifiers => {
                format!(
                    "the random identifiers of its own items and of all items of both, and so {}",
                    how_many()
                )
            }
            Fact::OnlyThatFewer(_) => return None,
        })
    }

    /// Words a fact of a run of several parties; `None` if no operation of several parties reveals it.
    fn multiparty(&self, fact: Fact) -> Option<String> {
        let View { other, .. } = self;
        let numbers = self.numbers.unwrap_or_default();
        let found = |n: Option<usize>| n.map(|n| format!(" ({n})")).unwrap_or_default();
        match fact {
            Fact::WhichMatch => {
                Some(format!("which of its own items all of {other} have{}", found(numbers.matches)))
            }
            Fact::NewItems => Some(format!(
                "every item that only {other} have{}, in the clear, but not who of them has it, nor how many do",
                found(numbers.new)
            )),
            Fact::HowManyMatch => Some(match numbers.matches {
                Some(n) => format!(
                    "that all have {n} item{} in common, but not which",
                    if n == 1 { "" } else { "s" }
                ),
                None => "how many items all have in common, but not which".into(),
            }),
            Fact::Sum | Fact::Shares { .. } | Fact::Identifiers | Fact::OnlyThatFewer(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::{self, Operation, Role, SUM, Terms, UNION};
    use crate::protocols;

    const VIEW: View<'_> =
        View { other: "the peer", several: false, other_pads: Some(false), columns: "", numbers: None };

    #[test]
    fn security_md_says_what_each_party_learns() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../SECURITY.md");
        let text = std::fs::read_to_string(path).unwrap();
        let reveals = |operation: &Operation| {
            !protocols::names(|p| p.offer(operation).is_some_and(|offer| offer.reveals_count)).is_empty()
        };
        let revealed = operations::ALL.into_iter().filter(|o| reveals(o)).map(|o| (o, true));
        for (operation, reveal_count) in operations::ALL.map(|o| (o, false)).into_iter().chain(revealed) {
            let learns = |role: Role, both| {
                let other = format!("the {}", role.other());
                let columns = if role == Role::Receiver { "that the sender sends" } else { "" };
                let columns = if operation.uses.rows == operations::Rows::None { "" } else { columns };
                let view = View { other: &other, several: false, other_pads: None, columns, numbers: None };
                view.say(&(operation.learns)(role, &Terms { both, reveal_count, ..Terms::default() }))
            };
            let both = operation.uses.both && !reveal_count;
            let both = if both { learns(Role::Sender, true) + " " } else { String::new() };
            let how = if reveal_count { " with `--reveal-count-to-sender`" } else { "" };
            let row = format!(
                "| {operation}{how} | {} | {} | {both}|",
                learns(Role::Receiver, false),
                learns(Role::Sender, false)
            );
            assert!(text.lines().any(|line| line == row), "SECURITY.md lacks: {row}");
        }
        for operation in operations::ALL.into_iter().filter(|o| protocols::multiparty_for(o).is_some()) {
            let terms = Terms { several: true, ..Terms::default() };
            let learns = |role, other| {
                let view = View { other, several: true, other_pads: None, columns: "", numbers: None };
                view.say(&(operation.learns)(role, &terms))
            };
            let row = format!(
                "| {operation} of several parties | {} | {} | |",
                learns(Role::Receiver, "the others"),
                learns(Role::Sender, "the others")
            );
            assert!(text.lines().any(|line| line == row), "SECURITY.md lacks: {row}");
        }
    }

    #[test]
    fn a_party_learns_something_exactly_if_it_has_a_result() {
        for operation in operations::ALL {
            for role in Role::ALL {
                for (both, reveal_count) in [(false, false), (true, false), (false, true)] {
                    let terms = Terms { both, reveal_count, ..Terms::default() };
                    let learns = (operation.learns)(role, &terms);
                    let result = (operation.result)(role, &terms);
                    assert_eq!(learns.is_empty(), result == operations::Shape::Nothing, "{operation} {role}");
                    assert_eq!(VIEW.say(&learns) == "nothing else", learns.is_empty());
                }
            }
        }
    }

    #[test]
    fn a_sum_that_is_withheld_is_said_to_be() {
        let terms = Terms { min_count: 7, ..Terms::default() };
        let facts = (SUM.learns)(Role::Sender, &terms);
        let say = |numbers| View { numbers, ..VIEW }.say(&facts);
        let all = "how many items match, but not which, and the sum of its own values over them";
        assert_eq!(say(None), format!("{all}; or only that fewer than 7 items match"));
        let below = |below| Numbers { below_minimum: Some(below), ..Numbers::default() };
        assert_eq!(say(Some(below(true))), "that fewer than 7 items match; nothing else");
        assert_eq!(say(Some(below(false))), all);
        let known = Numbers { matches: Some(9), sum: Some("1.50"), ..below(false) };
        assert_eq!(
            say(Some(known)),
            "that 9 items match, but not which, and that its own values over them add up to 1.50"
        );
    }

    #[test]
    fn the_number_of_new_items_shows_how_many_match_unless_the_other_pads() {
        let facts = (UNION.learns)(Role::Receiver, &Terms::default());
        let say = |other_pads| View { other_pads, ..VIEW }.say(&facts);
        assert!(say(Some(false)).ends_with("and so how many items match, but not which"));
        assert!(!say(Some(true)).contains("match"));
        assert!(say(None).contains("unless the peer pads"));
    }
}
