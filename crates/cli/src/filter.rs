//! `veilset filter`: encrypted filters that are made in advance.

use crate::args::{FilterArgs, FilterCommand, KeyArgs};
use crate::interrupt::Interrupt;
use crate::party::{load_identity, sayer, start_threads, tell, words};
use crate::plan::{different, keyed, threads};
use crate::print;
use crate::progress::{Life, Progress};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use veilset::artefact::filter::{self, About, Draft, Size};
use veilset::channel::{Observer, Unit};
use veilset::error::{Error, Result};
use veilset::job::{Keys, Phase, Watch};
use veilset::protocols::groups;
use veilset::rng::Prng;
use veilset::table::Destination;
use veilset::threads::Threads;

pub fn run(command: FilterCommand) -> Result<()> {
    match command {
        FilterCommand::Build { input, output, queries, capacity, cipher, own, force } => {
            file(&output)?;
            let part = part_of(&output);
            different(&input.input, &[("--output", Some(&output)), ("its part", Some(&part))])?;
            Destination::check(Some(&output), force)?;
            let work = Work::begin(&own)?;
            let keys = work.keys(input)?;
            let size = Size { cipher, capacity: capacity.unwrap_or(keys.keyed.set.len()), queries };
            let identity = load_identity(own.identity.as_deref())?;
            let made = work.encrypt(&output, |step, rng| {
                filter::build(&work.draft(&keys), size, &identity, (&output, force), step, rng)
            });
            made?;
            work.done(format!("made {}, for runs with the same input and --filter {0}", output.display()));
        }
        FilterCommand::Update { filter: path, input, own } => {
            let part = part_of(&path);
            different(&input.input, &[("the filter", Some(&path)), ("its part", Some(&part))])?;
            let work = Work::begin(&own)?;
            let keys = work.keys(input)?;
            let identity = load_identity(own.identity.as_deref())?;
            let inserted = work.encrypt(&path, |step, rng| {
                filter::update(&path, &work.draft(&keys), &identity, step, rng)
            })?;
            work.done(format!(
                "inserted {inserted} items into {}, and encrypted it afresh. Its public part has changed (`veilset filter \
                 export`)",
                path.display()
            ));
        }
        FilterCommand::Info { filter: path, own } => {
            let work = Work::begin(&own)?;
            let identity = || load_identity(own.identity.as_deref());
            let about = filter::about(&path, &identity, &|_| work.interrupt.check())?;
            print(text(&path, &about)?)?;
        }
        FilterCommand::Export { filter: path, output, own, force } => {
            file(&output)?;
            different(&[], &[("the filter", Some(&path)), ("--output", Some(&output))])?;
            let work = Work::begin(&own)?;
            let identity = load_identity(own.identity.as_deref())?;
            let mut to = Destination::create("public filter", Some(&output), force)?;
            let facts = filter::export(&path, &identity, &mut to, &|_| work.interrupt.check())?;
            to.commit()?;
            work.done(format!("wrote {}: {facts}. It may be given to anybody", output.display()));
        }
    }
    Ok(())
}

/// Where a filter is until it is complete.
fn part_of(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// Refuses standard output: a filter is a file.
fn file(output: &Path) -> Result<()> {
    match output == Path::new("-") {
        true => Err(Error::Usage("a filter must be a file. Give --output a file name".into())),
        false => Ok(()),
    }
}

/// What a command works with.
struct Work {
    interrupt: Interrupt,
    threads: Threads,
    quiet: bool,
}

impl Work {
    fn begin(own: &FilterArgs) -> Result<Work> {
        let interrupt = Interrupt::install(own.quiet)?;
        Ok(Work { interrupt, threads: start_threads(threads(own.threads))?, quiet: own.quiet })
    }

    fn keys(&self, input: KeyArgs) -> Result<Keys> {
        let source = keyed(input)?;
        let life = Life::begin(self.quiet, words(Phase::Reading, &source));
        let read = |bytes| {
            life.read(bytes);
            self.interrupt.check()
        };
        let begins = |phase| life.next(words(phase, &source));
        let keys = source.load(&Watch { read: &read, begins: &begins }, &self.threads)?;
        drop(life);
        tell(&keys, "omitted", &sayer(self.quiet));
        Ok(keys)
    }

    fn draft<'k>(&'k self, Keys { keyed, columns, compared, .. }: &'k Keys) -> Draft<'k> {
        Draft { set: &keyed.set, key_columns: columns.len(), normalisation: compared, threads: &self.threads }
    }

    /// Shows the progress of making a filter, and says how to go on with one that is interrupted.
    fn encrypt<T>(
        &self,
        output: &Path,
        make: impl FnOnce(&dyn Fn(u64, u64) -> Result<()>, &mut Prng) -> Result<T>,
    ) -> Result<T> {
        let progress = (!self.quiet).then(|| Progress::new(1));
        let before = Cell::new(None);
        let step = |done: u64, cells: u64| {
            if let Some(progress) = &progress {
                if before.get().is_none() {
                    progress.stage("encrypting", Unit::Items, cells as usize);
                }
                let earlier: u64 = before.replace(Some(done)).unwrap_or_default();
                progress.advance(Unit::Items, (done - earlier) as usize);
            }
            self.interrupt.check()
        };
        let made = make(&step, &mut Prng::from_os()?);
        progress.iter().for_each(|progress| progress.end(made.is_ok()));
        if matches!(made, Err(Error::Cancelled)) {
            let part = part_of(output);
            sayer(self.quiet)(&format!("{} is kept: the same command goes on with it", part.display()));
        }
        made
    }

    fn done(&self, what: String) {
        self.interrupt.done(0, what.clone());
        sayer(self.quiet)(&what);
    }
}

/// What a file holds, in lines.
fn text(path: &Path, about: &About) -> Result<String> {
    let About { head, facts, items, .. } = about;
    let filter = head.filter();
    let cipher = groups::CIPHERS.into_iter().find(|(_, group)| *group == head.cipher);
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
        cipher.map_or(head.cipher, |(name, _)| name),
        filter.cells,
        head.cell_bytes()?,
        filter.positions,
    ))
}
