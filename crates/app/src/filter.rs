//! `veilset filter`: encrypted filters that are made in advance.

use crate::make::{Made, Own, Work};
use crate::options::{FilterArgs, FilterCommand};
use crate::plan::{identity_path, keyed, threads};
use std::path::{Path, PathBuf};
use veilset::artefact::filter::{self, About, FilterDraft, FilterFile, Size};
use veilset::error::{Error, Result};
use veilset::party::{InputTable, KeyedTable, Watch};
use veilset::paths::{Paths, Use};
use veilset::protocols::groups;
use veilset::rng::Prng;
use veilset::spelling::{FILTER, IDENTITY, OUTPUT, to_type};
use veilset::table::{Destination, Table};

/// An action on a filter.
#[derive(Debug)]
pub(crate) enum FilterPlan {
    Build {
        source: InputTable,
        output: PathBuf,
        force: bool,
        cipher: &'static str,
        /// The capacity; `None` for the number of items.
        capacity: Option<usize>,
        queries: usize,
    },
    Update {
        filter: PathBuf,
        source: InputTable,
    },
    Info {
        filter: PathBuf,
    },
    Export {
        filter: PathBuf,
        output: PathBuf,
        force: bool,
    },
}

impl FilterPlan {
    pub(crate) fn of(command: FilterCommand) -> Result<(FilterPlan, Own)> {
        let own = |a: FilterArgs| Own { identity: a.identity, threads: threads(a.threads), quiet: a.quiet };
        Ok(match command {
            FilterCommand::Build { input, output, queries, capacity, cipher, own: a, force } => {
                file(&output)?;
                let part = part_of(&output);
                let source = keyed(input)?;
                let made = source.paths()?.with(OUTPUT.marked(), Use::Written, Some(&output));
                made.with("its part", Use::Written, Some(&part)).and(own_paths(&a)).check()?;
                (FilterPlan::Build { source, output, force, cipher, capacity, queries }, own(a))
            }
            FilterCommand::Update { filter, input, own: a } => {
                let part = part_of(&filter);
                let source = keyed(input)?;
                let made = source.paths()?.with("the filter", Use::Written, Some(&filter));
                made.with("its part", Use::Written, Some(&part)).and(own_paths(&a)).check()?;
                (FilterPlan::Update { source, filter }, own(a))
            }
            FilterCommand::Info { filter, own: a } => (FilterPlan::Info { filter }, own(a)),
            FilterCommand::Export { filter, output, own: a, force } => {
                file(&output)?;
                let paths = Paths::default().with("the filter", Use::Read, Some(&filter));
                paths.with(OUTPUT.marked(), Use::Written, Some(&output)).and(own_paths(&a)).check()?;
                (FilterPlan::Export { filter, output, force }, own(a))
            }
        })
    }

    pub(crate) fn source(&self) -> Option<&InputTable> {
        match self {
            FilterPlan::Build { source, .. } | FilterPlan::Update { source, .. } => Some(source),
            FilterPlan::Info { .. } | FilterPlan::Export { .. } => None,
        }
    }

    pub(crate) fn make(
        &self,
        work: &Work<'_>,
        table: impl FnOnce(&InputTable, Option<&[String]>, &Watch<'_>) -> Result<Table>,
    ) -> Result<Made> {
        let (made, text) = match self {
            FilterPlan::Build { source, output, force, cipher, capacity, queries } => {
                Destination::check(Some(output), *force)?;
                let keys = work.keys(source, table)?;
                let capacity = capacity.unwrap_or(keys.keyed.set.len());
                let size = Size { cipher, capacity, queries: *queries };
                let identity = work.identity()?;
                encrypted(work, output, |step, rng| {
                    let output = FilterFile { path: output, force: *force };
                    filter::build(&draft(work, &keys), size, &identity, output, step, rng)
                })?;
                let text =
                    format!("made {}, for runs with the same input and {FILTER} {0}", output.display());
                (Made::File, text)
            }
            FilterPlan::Update { filter: path, source } => {
                let keys = work.keys(source, table)?;
                let identity = work.identity()?;
                let inserted = encrypted(work, path, |step, rng| {
                    filter::update(path, &draft(work, &keys), &identity, step, rng)
                })?;
                let text = format!(
                    "inserted {inserted} items into {}, and encrypted it afresh. Its public part has changed ({})",
                    path.display(),
                    to_type("filter export")
                );
                (Made::Inserted(inserted), text)
            }
            FilterPlan::Info { filter: path } => {
                let about = filter::about(path, &|| work.identity(), &|_| work.go_on())?;
                let text = text(path, &about)?;
                return Ok(Made::About(Box::new(about), text));
            }
            FilterPlan::Export { filter: path, output, force } => {
                let identity = work.identity()?;
                let mut to = Destination::create("public filter", Some(output), *force)?;
                let facts = filter::export(path, &identity, &mut to, &|_| work.go_on())?;
                to.commit()?;
                (
                    Made::File,
                    format!(
                        "wrote {}: {facts}. It may be given to anybody. But it is not safe from a quantum computer, as a run \
                         over TLS is: whoever keeps it could one day read our set from it",
                        output.display()
                    ),
                )
            }
        };
        work.front.done(text.clone());
        work.front.say(&text);
        Ok(made)
    }
}

fn draft<'k>(
    work: &'k Work<'_>,
    KeyedTable { keyed, columns, compared, .. }: &'k KeyedTable,
) -> FilterDraft<'k> {
    FilterDraft {
        set: &keyed.set,
        key_columns: columns.len(),
        normalisation: compared,
        threads: &work.threads,
    }
}

/// Shows the progress of encrypting a filter, and how to continue an interrupted one.
fn encrypted<T>(
    work: &Work<'_>,
    output: &Path,
    make: impl FnOnce(&dyn Fn(u64, u64) -> Result<()>, &mut Prng) -> Result<T>,
) -> Result<T> {
    let mut rng = Prng::from_os()?;
    let made = work.shown("encrypting", |step| make(step, &mut rng));
    if matches!(made, Err(Error::Cancelled)) {
        let part = part_of(output);
        work.front.say(&format!("{} is kept: the same command resumes it", part.display()));
    }
    made
}

fn own_paths(a: &FilterArgs) -> Paths {
    Paths::default().with(IDENTITY.marked(), Use::Read, identity_path(a.identity.as_deref()).as_deref())
}

/// Returns the path of a filter that is not yet complete.
fn part_of(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// Refuses standard output: a filter is a file.
fn file(output: &Path) -> Result<()> {
    match output == Path::new("-") {
        true => Err(Error::usage(format!("a filter must be a file. Give {OUTPUT} a file name"))),
        false => Ok(()),
    }
}

/// Returns the name that an encryption has as an option.
pub fn cipher_name(cipher: &'static str) -> &'static str {
    let named = groups::CIPHERS.iter().find(|(_, group)| *group == cipher);
    named.map_or(cipher, |(name, _)| name)
}

/// Describes the contents of a filter file, in lines.
fn text(path: &Path, about: &About) -> Result<String> {
    let About { head, facts, items, .. } = about;
    let filter = head.filter();
    let digest: String = facts.digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let what = match items {
        Some(items) => format!("a filter of {items} items, with room for {}", head.capacity),
        None => format!("the public part of a filter of up to {} items", head.capacity),
    };
    Ok(format!(
        "{}: {what}
  owner:           {}
  for senders of:  up to {} items
  keys:            {} column{}, normalised as {}
  encryption:      {}
  cells:           {}, {} bytes; {} for each item
  digest:          {digest}",
        path.display(),
        head.owner,
        head.queries,
        head.key_columns,
        if head.key_columns == 1 { "" } else { "s" },
        head.normalisation,
        cipher_name(head.cipher),
        filter.cells,
        head.cell_bytes()?,
        filter.positions,
    ))
}
