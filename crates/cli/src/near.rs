//! Suggestions for mistyped names.

/// The minimum similarity of two names, from 0 to 1.
const ALIKE: f64 = 0.8;
/// Maximum number of suggestions.
const SHOWN: usize = 3;

/// "; did you mean x or y?", or nothing if no candidate is similar to `name`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_come_nearest_first_and_far_ones_not_at_all() {
        let names = ["hospital-b", "hospital-a", "bank"];
        assert_eq!(did_you_mean("hospitl-b", names), "; did you mean \"hospital-b\" or \"hospital-a\"?");
        assert_eq!(did_you_mean("zzz", names), "");
    }
}
