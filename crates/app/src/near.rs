//! Suggestions for mistyped names.

/// The minimum similarity of two names, from 0 to 1.
const ALIKE: f64 = 0.8;
/// Maximum number of suggestions.
const SHOWN: usize = 3;

/// Returns "; did you mean x or y?", or nothing if no candidate is similar to `name`.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let likeness = |candidate: &'a str| (strsim::jaro_winkler(name, candidate), candidate);
    let mut near: Vec<_> = candidates.into_iter().map(likeness).filter(|(like, _)| *like > ALIKE).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.truncate(SHOWN);
    match near.is_empty() {
        true => String::new(),
        false => {
            let names: Vec<_> = near.iter().map(|(_, name)| format!("\"{name}\"")).collect();
            format!("; did you mean {}?", names.join(" or "))
        }
    }
}

/// Suggests known keys for an unknown key in a TOML file, as [`did_you_mean`] does; nothing for other errors.
pub fn known_key(error: &toml::de::Error) -> String {
    let message = error.message();
    let mut names = message.split('`').skip(1).step_by(2);
    match (message.starts_with("unknown field"), names.next()) {
        (true, Some(key)) => did_you_mean(key, names),
        _ => String::new(),
    }
}

/// Formats a message of a parser or of the system as a sentence.
pub fn sentence_of(what: &dyn std::fmt::Display) -> String {
    sentence(what.to_string().trim_end().into())
}

/// Adds a full stop, unless the text is a question.
pub fn sentence(text: String) -> String {
    if text.ends_with('?') { text } else { text + "." }
}

#[cfg(test)]
mod tests {
    use super::*;
    use veilset::governance::policy::Rules;

    #[test]
    fn near_names_come_nearest_first_and_far_ones_not_at_all() {
        let names = ["hospital-b", "hospital-a", "bank"];
        assert_eq!(did_you_mean("hospitl-b", names), "; did you mean \"hospital-b\" or \"hospital-a\"?");
        assert_eq!(did_you_mean("zzz", names), "");
    }

    #[test]
    fn a_key_that_a_file_cannot_have_is_near_one_that_it_can() {
        let near = |text: &str| known_key(&toml::from_str::<Rules>(text).unwrap_err());
        assert_eq!(near("min-peer-sizes = 3"), "; did you mean \"min-peer-size\" or \"min-our-size\"?");
        assert_eq!(near("[peer.a]\nrepeat = \"warn\""), "; did you mean \"repeats\"?");
        assert_eq!(near("zzz = 3"), "");
        assert_eq!(near("min-count = \"`max-count`\""), "");
    }
}
