//! A party's run, or work in advance, on its own thread.

use crate::errors::{as_name, as_python, exception, help_in_python};
use crate::frame::{Frame, batches, known_in, unhad};
use crate::link::{Doing, Link};
use crate::spread::{Whole, agree};
use crate::stream::Stream;
use arrow_schema::ArrowError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList};
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use veilset::artefact::filter;
use veilset::error::{Error, Result};
use veilset::guarded::guarded;
use veilset::party::{Data, InFolder, InputTable, PartySpec, Phase, Watch};
use veilset::session::Proposal;
use veilset::session::estimate::{Estimate, would_learn};
use veilset::session::run::Checked;
use veilset::sharded::folder;
use veilset::table::{Batches, Table};
use veilset_app::config::{Value, command};
use veilset_app::front::{Files, Front, Purpose, Ready, going_on, ready};
use veilset_app::guide::page as page_of_guide;
use veilset_app::make::{Made, MakePlan, make};
use veilset_app::panicked;
use veilset_app::plan::PartyPlan;
use veilset_app::words::about;
use veilset_app::{About, check_text, cipher_name};

/// A run, or work in advance, from its beginning to its result. Its methods may be called from any thread.
#[pyclass(frozen, module = "veilset._native")]
pub(crate) struct Run {
    link: Link<Ended>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The process that started the thread. A copy made by `fork` has this value, but not the thread.
    process: u32,
}

/// The outcome of a run, or its failure.
pub(crate) type Ended = std::result::Result<Done, Box<Failed>>;

/// An error, and which of several parties it is about.
pub(crate) struct Failed {
    error: Error,
    about: Vec<String>,
}

pub(crate) enum Done {
    Ran(Box<Ran>),
    Checked(Box<Agreement>),
    Made(Made),
}

/// A completed run, without any result that was written to a file.
pub(crate) struct Ran {
    report: String,
    text: String,
    frame: Option<Batches>,
    ids: Option<Batches>,
    map: Option<Batches>,
    leftover: Option<folder::Leftover>,
}

/// The agreement of a check, and the cost of the run.
pub(crate) struct Agreement {
    checked: Checked,
    estimate: Estimate,
    text: String,
}

impl Agreement {
    /// Adds the agreement to a dictionary.
    fn describe(&self, to: &Bound<'_, PyDict>) -> PyResult<()> {
        let Checked { proposal, their_milliseconds, .. } = &self.checked;
        let Proposal { hello, choice, why, ours, parties, .. } = proposal;
        let Estimate { sent, received, rounds, memory, work, .. } = self.estimate;
        let others = parties.iter().map(|party| {
            let fingerprint = party.fingerprint.map(|fingerprint| fingerprint.to_string());
            (party.name.clone(), fingerprint, party.announced.size, party.announced.padded)
        });
        let terms = PyDict::new(to.py());
        proposal.terms().into_iter().try_for_each(|term| terms.set_item(term.key, term.value))?;
        // In a run of several parties, the slowest of the others.
        let theirs = their_milliseconds.iter().max().map_or(0.0, |theirs| *theirs as f64 / 1000.0);
        let rests: Vec<_> = choice.rests_on(hello.spec.operation).into_iter().map(|one| one.name()).collect();
        to.set_item("text", &self.text)?;
        to.set_item("operation", hello.spec.operation.name)?;
        to.set_item("role", hello.spec.role.name())?;
        to.set_item("protocol", choice.protocol.name)?;
        to.set_item("group", choice.group)?;
        to.set_item("picked", why.as_deref().map(as_python))?;
        to.set_item("rests_on", rests)?;
        to.set_item("items", ours.size)?;
        to.set_item("padded", ours.padded)?;
        to.set_item("others", others.collect::<Vec<_>>())?;
        to.set_item("learned", would_learn(proposal))?;
        to.set_item("terms", terms)?;
        to.set_item("sent", sent)?;
        to.set_item("received", received)?;
        to.set_item("rounds", rounds)?;
        to.set_item("memory", memory)?;
        to.set_item("seconds", work.as_secs_f64())?;
        to.set_item("their_seconds", theirs)
    }
}

/// The files that a complete job leaves, which are deleted once Python has the result.
#[pyclass(module = "veilset._native")]
pub(crate) struct Leftover(Option<folder::Leftover>);

#[pymethods]
impl Leftover {
    /// Deletes the files. Returns a message if anything is left, such as files that the job did not make.
    fn delete(&mut self, py: Python<'_>) -> PyResult<Option<String>> {
        let deleted = self.0.take().map_or(Ok(None), folder::Leftover::delete);
        deleted.map_err(|e| exception(py, &e, &[]))
    }
}

/// Returns the failure for an error that names no party of a list.
pub(crate) fn alone(error: Error) -> Box<Failed> {
    Box::new(Failed { error, about: Vec::new() })
}

impl Drop for Run {
    /// Stops a run for which Python no longer waits.
    fn drop(&mut self) {
        if self.is_ours() {
            self.link.cancel();
        }
    }
}

impl Run {
    fn check_process(&self) -> PyResult<()> {
        match self.is_ours() {
            true => Ok(()),
            false => Err(PyRuntimeError::new_err(
                "this run goes on in another process, of which this one is a copy. Start another run here",
            )),
        }
    }

    /// Starts `work` on its own thread. `reads` tells whether it reads a frame first.
    fn start(reads: bool, work: impl FnOnce(&Link<Ended>) -> Ended + Send + 'static) -> PyResult<Run> {
        let link = Link::new();
        link.reading(reads);
        Run::over(link, work)
    }

    /// Starts `work` on its own thread, over this link.
    pub(crate) fn over(
        link: Link<Ended>,
        work: impl FnOnce(&Link<Ended>) -> Ended + Send + 'static,
    ) -> PyResult<Run> {
        let worker = link.clone();
        let work = move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&worker)));
            worker.end(outcome.unwrap_or_else(|_| Err(alone(panicked()))));
        };
        let thread = Builder::new().name("veilset".into()).spawn(work)?;
        Ok(Run { link, thread: Mutex::new(Some(thread)), process: std::process::id() })
    }
}

#[pymethods]
impl Run {
    /// Starts a run, or its check, with the options of the operation. `frame` is its table if there is no input file. A result
    /// without an output file is returned as a frame.
    #[new]
    #[pyo3(signature = (operation, options, frame = None, *, check = false))]
    fn new(
        py: Python<'_>,
        operation: &str,
        options: &Bound<'_, PyDict>,
        frame: Option<&Bound<'_, PyAny>>,
        check: bool,
    ) -> PyResult<Run> {
        let mut plan = planned(operation, &values(options)?).map_err(|e| exception(py, &e, &[]))?;
        let frame = frame.map(batches).transpose()?;
        Run::start(frame.is_some(), move |link| {
            carry_out(&mut plan, load(frame, link), link, check).map_err(|error| {
                let about = plan.party.spec.parties.iter().flat_map(|me| about(me, &error)).collect();
                Box::new(Failed { error, about })
            })
        })
    }

    /// Starts work in advance: `prepare`, or a command of `filter`.
    #[staticmethod]
    #[pyo3(signature = (command, options, frame = None))]
    fn make(
        py: Python<'_>,
        command: &str,
        options: &Bound<'_, PyDict>,
        frame: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Run> {
        let plan = self::command(command, &values(options)?).and_then(MakePlan::of);
        let plan = plan.map_err(|e| exception(py, &e, &[]))?;
        let frame = frame.map(batches).transpose()?;
        Run::start(frame.is_some(), move |link| {
            make(&plan, read(frame, link), link).map(Done::Made).map_err(alone)
        })
    }

    /// Starts the run of the side that agrees, for a table spread over workers: `whole` has the known facts about the table,
    /// and `crew` has the table.
    #[staticmethod]
    fn spread(
        py: Python<'_>,
        operation: &str,
        options: &Bound<'_, PyDict>,
        whole: Whole,
        crew: Py<PyAny>,
    ) -> PyResult<Run> {
        agree(py, operation, options, whole, crew)
    }

    /// Waits for the end, for at most this number of seconds; without limit if it is negative, too large or not a
    /// number. Returns whether the run is over.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        self.check_process()?;
        let patience = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        Ok(py.detach(|| self.link.wait(patience)))
    }

    /// Asks the run to stop, and notifies the other parties.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.check_process()?;
        py.detach(|| self.link.cancel());
        Ok(())
    }

    /// Returns the number of seconds to wait for a run that was asked to stop. After that, it ends by itself at its next step.
    fn patience(&self) -> f64 {
        self.link.patience().as_secs_f64()
    }

    /// Returns whether the run belongs to this process, rather than to one of which this is a copy.
    fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    /// Returns the messages since the last call: pairs of a kind, `info` or `warning`, and a text.
    fn said(&self) -> Vec<(&'static str, String)> {
        self.link.said()
    }

    /// Returns the progress: the name of the current work, then the number of the stage and of all stages (0 before the run).
    /// Then come the amount done, the total (0 if unknown) and their unit, and the remaining seconds of the run, if they can
    /// be estimated.
    fn doing(&self) -> (String, usize, usize, u64, u64, &'static str, Option<f64>) {
        let Doing { what, stage, stages, done, total, unit, left } = self.link.doing();
        (what, stage, stages, done, total, unit, left)
    }

    /// Returns the outcome of a run that is over, as a dictionary, or raises its error. To be called once.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.check_process()?;
        let Some(outcome) = self.link.outcome() else {
            return Err(PyRuntimeError::new_err("the run is not over, or its result was taken before"));
        };
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| thread.map(JoinHandle::join));
        let result = PyDict::new(py);
        match outcome.map_err(|failed| exception(py, &failed.error, &failed.about))? {
            Done::Ran(ran) => {
                let Ran { report, text, frame, ids, map, leftover } = *ran;
                let of = |batches: Option<Batches>| {
                    batches.map(|batches| Py::new(py, Frame::from(batches))).transpose()
                };
                result.set_item("report", report)?;
                result.set_item("text", text)?;
                result.set_item("frame", of(frame)?)?;
                result.set_item("ids", of(ids)?)?;
                result.set_item("map", of(map)?)?;
                let leftover = leftover.map(|leftover| Py::new(py, Leftover(Some(leftover)))).transpose()?;
                result.set_item("leftover", leftover)?;
            }
            Done::Checked(agreement) => agreement.describe(&result)?,
            Done::Made(Made::File) => {}
            Done::Made(Made::Inserted(items)) => result.set_item("inserted", items)?,
            Done::Made(Made::About(about, text)) => {
                result.set_item("text", text)?;
                describe(&about, &result)?;
            }
        }
        Ok(result)
    }
}

/// Returns a function that reads the data for a computation: from the frame, if there is one.
fn load(
    frame: Option<Stream>,
    link: &Link<Ended>,
) -> impl for<'j> FnOnce(&'j PartySpec, &Watch<'_>) -> Result<Data<'j>> {
    move |party, watch| match frame {
        Some(_) => {
            let table = read(frame, link)(&party.source, party.columns().as_deref(), watch)?;
            Data::of(party, table, watch)
        }
        None => party.load(watch),
    }
}

/// Returns a function that reads a table: from the frame, if there is one.
pub(crate) fn read<T>(
    frame: Option<Stream>,
    link: &Link<T>,
) -> impl FnOnce(&InputTable, Option<&[String]>, &Watch<'_>) -> Result<Table> {
    move |source, columns, watch| {
        let Some(mut batches) = frame else { return source.table(columns, watch) };
        (watch.begins)(Phase::Reading);
        let name = source.name();
        let schema = batches.schema();
        let failed =
            |e: ArrowError| Error::input(&name, unhad("the next rows", known_in(&e.to_string())), NEXT);
        // Reading a batch that does not fit its own schema may panic.
        let unfit = || Error::input(&name, "a batch does not fit the schema that was handed over", NEXT);
        let next = || guarded(|| batches.next()).ok_or_else(unfit).transpose();
        let mut bytes = 0;
        let checked = std::iter::from_fn(next).map(|batch| {
            let batch = batch?.map_err(failed)?;
            let sizes = batch.columns().iter().map(|column| column.to_data().get_slice_memory_size());
            bytes += sizes.map(|size| size.unwrap_or_default() as u64).sum::<u64>();
            (watch.read)(bytes)?;
            Ok(batch)
        });
        let table = Table::from_batches(&name, &schema, checked, &source.read, columns);
        drop(batches);
        link.reading(false);
        table
    }
}

/// The advice for a frame that fails.
pub(crate) const NEXT: &str = "What its library says of that is not shown, because it may name a cell: read all of the rows \
                               without veilset to see it";

/// Carries out the plan, or only checks it.
pub(crate) fn carry_out(
    plan: &mut PartyPlan,
    load: impl for<'j> FnOnce(&'j PartySpec, &Watch<'_>) -> Result<Data<'j>>,
    link: &Link<Ended>,
    check: bool,
) -> Result<Done> {
    plan.begin(if check { Purpose::Check } else { Purpose::Run })?;
    ready(plan, load, link, |party| {
        let plan = party.plan;
        let files = party.files()?;
        if check {
            let (checked, estimate) = party.check()?;
            let text = as_python(&check_text(&checked, &estimate, plan));
            return Ok(Done::Checked(Box::new(Agreement { checked, estimate, text })));
        }
        finish(party, files, link)
    })
}

/// Runs the protocol, and writes or keeps the result.
fn finish(ready: Ready<'_>, files: Files, link: &Link<Ended>) -> Result<Done> {
    let (plan, data, kept) = (ready.plan, ready.data, ready.kept);
    let party = &plan.party;
    let ran = ready.run()?;
    let (outcome, mut report) = (ran.outcome, ran.report);
    let (mut frame, mut all_ids, mut row_map) = (None, None, None);
    let write = || -> Result<()> {
        match files.output {
            Some(mut output) => {
                data.write(&outcome, &mut output)?;
                output.commit()?;
            }
            None => frame = data.batches(&outcome)?,
        }
        match files.ids {
            Some(mut ids) => {
                data.write_beside(&outcome, &mut ids)?;
                ids.commit()?;
            }
            None if party.has_identifiers() => all_ids = Some(data.beside(&outcome)?),
            None => {}
        }
        match files.map {
            Some(mut map) => {
                data.write_beside(&outcome, &mut map)?;
                map.commit()?;
            }
            None if party.shares_ours() => row_map = Some(data.beside(&outcome)?),
            None => {}
        }
        Ok(())
    };
    write().map_err(|error| going_on(kept, error))?;
    data.complete(&mut report);
    let (json, text) = (report.to_json()?, as_python(report.marked_text().trim_end()));
    // The result exists, so a missing report or log entry is no reason to lose it.
    let reported = plan.write_report(&report, files.report);
    let leftover = kept.filter(|_| party.has_result()).map(InFolder::leftover);
    for failed in [reported, ran.logged].into_iter().filter_map(Result::err) {
        link.warn(&format!("the run is done, but {}", failed.marked()));
    }
    Ok(Done::Ran(Box::new(Ran { report: json, text, frame, ids: all_ids, map: row_map, leftover })))
}

/// Adds the parameters of a filter to a dictionary.
fn describe(about: &filter::About, to: &Bound<'_, PyDict>) -> PyResult<()> {
    let filter::About { head, facts, items, .. } = about;
    let digest: String = facts.digest.iter().map(|byte| format!("{byte:02x}")).collect();
    to.set_item("owner", head.owner.to_string())?;
    to.set_item("items", items)?;
    to.set_item("capacity", head.capacity)?;
    to.set_item("queries", head.queries)?;
    to.set_item("key_columns", head.key_columns)?;
    to.set_item("normalisation", &head.normalisation)?;
    to.set_item("cipher", cipher_name(head.cipher))?;
    to.set_item("digest", digest)
}

/// Plans an operation with these options. A result without an output file stays in memory.
pub(crate) fn planned(operation: &str, options: &[(String, Value)]) -> Result<PartyPlan> {
    PartyPlan::of(command(operation, options)?, true)
}

/// Converts options into values as a run file has them.
pub(crate) fn values(options: &Bound<'_, PyDict>) -> PyResult<Vec<(String, Value)>> {
    options.iter().map(|(key, value)| Ok((key.extract()?, value_of(&value)?))).collect()
}

/// Converts the value of an option: a truth value, a path, a list, or anything else as text, for instance a number. The
/// elements of a list become texts.
fn value_of(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::Flag(value.extract()?));
    }
    if let Ok(list) = value.cast::<PyList>() {
        let texts = list.iter().map(|one| one.str()?.extract());
        return Ok(Value::List(texts.collect::<PyResult<_>>()?));
    }
    if let Ok(path) = value.extract::<PathBuf>() {
        return Ok(Value::Text(path.into_os_string()));
    }
    Ok(Value::Text(OsString::from(value.str()?.extract::<String>()?)))
}

/// Returns the names of the operations, each with its description.
#[pyfunction]
pub(crate) fn operations() -> Vec<(&'static str, &'static str)> {
    veilset::operations::ALL.iter().map(|operation| (operation.name, operation.about)).collect()
}

/// An option: its name, its help in a line, its default if that is always the same, whether it is a flag, and whether it must
/// be given.
type Option_ = (String, String, Option<String>, bool, bool);

/// Returns the options of each of these operations or other commands.
#[pyfunction]
pub(crate) fn options(commands: Vec<String>) -> Vec<Vec<Option_>> {
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let option = |About { name, help, default, flag, required }: About| {
        (as_name(&name), help_in_python(&help), default, flag, required)
    };
    veilset_app::options(&commands).into_iter().map(|of| of.into_iter().map(option).collect()).collect()
}

/// Returns a page of the guide; without a name, the names and titles of all pages.
#[pyfunction]
#[pyo3(signature = (page = None))]
pub(crate) fn guide(py: Python<'_>, page: Option<&str>) -> PyResult<String> {
    page_of_guide(page).map_err(|e| exception(py, &e, &[]))
}
