//! `veilset help`: pages of the guide, and the help of commands.

use crate::{args, print};
use veilset::error::{Error, Result};
use veilset::spelling::to_type;
use veilset_app::guide::{self, listed, titles};
use veilset_app::near::{did_you_mean, sentence};

/// Prints the page, or the help of the command, with this name; without a name, the list of pages.
pub fn show(topic: Option<&str>) -> Result<()> {
    print(topic.map_or_else(|| Ok(contents()), about)?)
}

/// Returns a page, by its name or a word of it, or the help of a command.
fn about(topic: &str) -> Result<String> {
    if let Some(page) = guide::named(topic) {
        return Ok(page);
    }
    let mut all = args::command();
    all.build();
    if let Some(command) = all.find_subcommand_mut(topic) {
        return Ok(command.render_long_help().to_string());
    }
    guide::with_word(topic).ok_or_else(|| {
        let topics: Vec<&str> = guide::topics().collect();
        let commands = all.get_subcommands().map(clap::Command::get_name);
        let near = did_you_mean(topic, topics.into_iter().chain(commands));
        let what = sentence(format!("\"{topic}\" is neither a page of the guide nor a command{near}"));
        Error::usage(format!("{what} {} lists them", to_type("help")))
    })
}

/// Returns the names of all pages and commands, with their titles or summaries.
pub fn topics() -> Vec<(String, Option<String>)> {
    let pages = titles().map(|(name, title)| (name.to_string(), Some(title)));
    let all = args::command();
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set());
    let about = |command: &clap::Command| command.get_about().map(ToString::to_string);
    pages.chain(commands.map(|command| (command.get_name().to_string(), about(command)))).collect()
}

/// Returns the list of pages, with their titles.
fn contents() -> String {
    format!(
        "Pages of the guide (veilset help PAGE):\n{}\n\nCommands: veilset -h, and veilset help COMMAND",
        listed()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_a_page_or_a_word_of_its_name_or_a_command() {
        let title = |topic: &str| about(topic).unwrap().lines().next().unwrap().to_string();
        assert_eq!(title("policy-and-audit"), title("audit"));
        assert_eq!(title("policy"), title("audit"));
        // A command takes precedence over a word of a page's name.
        assert!(about("filter").unwrap().contains("Usage: veilset filter"));
        assert_eq!(title("filters"), title("prepare-and-filters"));
        let refused = |topic: &str| about(topic).unwrap_err().to_string();
        assert!(refused("polices").contains("; did you mean \"policy\""), "{}", refused("polices"));
        assert!(
            refused("zzz")
                .starts_with("\"zzz\" is neither a page of the guide nor a command. `veilset help`")
        );
        assert!(refused("and").contains("neither"));
    }
}
