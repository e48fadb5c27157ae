use super::*;
use crate::item::{Items, encode_key};
use crate::operations::{INTERSECT, Operation, Role};
use crate::party::{InputTable, Watch};
use crate::protocols::{Choice, VOLE};
use crate::sharded::engine::{Lanes, Workers};
use crate::table::{EmptyKeys, Table};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use std::sync::Arc;

/// Rows with a repeated key, an empty one, and cells that may be sent.
const ROWS: [&str; 7] = ["a,1", "b,2", ",3", "a,4", "c,5", "d,6", "c,7"];

struct Side {
    folder: tempfile::TempDir,
    identity: Identity,
}

impl Side {
    fn new() -> Side {
        Side { folder: tempfile::tempdir().unwrap(), identity: Identity::generate().unwrap() }
    }

    /// A sender's job of four shards on these rows, in memory as those of a piece are.
    fn party(&self, name: &str, rows: &[&str]) -> PartySpec {
        let file = self.folder.path().join(name);
        std::fs::write(&file, format!("k,n\n{}\n", rows.join("\n"))).unwrap();
        let mut party =
            PartySpec::new(&INTERSECT as &'static Operation, Role::Sender, InputTable::new(file, ["k"]));
        party.source.empty_keys = EmptyKeys::Skip;
        party.spec.sent_columns = vec!["n".into()];
        party.spec.candidates = Choice::of(&VOLE).into();
        party.spec.terms.shards = 4;
        party.in_memory = true;
        party
    }

    fn of<T>(&self, rows: &[&str], then: impl FnOnce(&Data<'_>) -> T) -> T {
        let party = self.party("rows.csv", rows);
        let table = party.source.table(None, &Watch::NONE).unwrap();
        then(&Data::of(&party, table, &Watch::NONE).unwrap())
    }

    fn sums(&self, rows: &[&str]) -> (u64, u64, [Sum; 2]) {
        let Sums { items, duplicates, sums, .. } =
            self.of(rows, |data| data.sums(&keys(&self.identity)).unwrap());
        (items, duplicates, sums)
    }
}

struct Nobody;

impl Workers for Nobody {
    fn cut(&self, _: &[u8; 32]) -> Result<()> {
        Ok(())
    }

    fn lanes(&self) -> Lanes {
        Lanes { at_once: 0, places: None }
    }

    fn run(
        &self,
        _: &[Secret<Vec<u8>>],
        _: &crate::sharded::engine::Kept<'_>,
    ) -> Result<Vec<Option<String>>> {
        Ok(Vec::new())
    }

    fn result(&self, _: u32, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

fn spread(sums: Vec<(Secret<[u8; 32]>, Sum)>, items: usize) -> RemoteSet {
    RemoteSet { items, sums, workers: Box::new(Nobody) }
}

#[test]
fn hashes_are_those_of_the_rows_that_have_a_key() {
    let (rows, hashes) = Side::new().of(&ROWS, |data| data.hashes().unwrap());
    assert_eq!(rows, [0, 1, 3, 4, 5, 6]);
    let hash = |at: usize| hashes[at].as_bytes();
    assert!(hash(0) == hash(2) && hash(3) == hash(5));
    let distinct: std::collections::BTreeSet<_> = hashes.iter().map(|hash| *hash.as_bytes()).collect();
    assert_eq!(distinct.len(), 4);
}

#[test]
fn the_sums_of_pieces_add_up_to_those_of_the_whole() {
    let side = Side::new();
    let (items, duplicates, whole) = side.sums(&ROWS);
    assert_eq!((items, duplicates), (4, 2));
    let pieces = [side.sums(&[ROWS[0], ROWS[3], ROWS[5]]), side.sums(&[ROWS[4], ROWS[6], ROWS[1]])];
    let added: Vec<_> = (0..2).map(|at| crate::sharded::set::add(pieces[0].2[at], pieces[1].2[at])).collect();
    assert_eq!(added, whole);
    assert_eq!(pieces.map(|(items, ..)| items), [2, 2]);
}

/// What may cost matches is said of all pieces as of one table: also whether all long numbers end in zeros.
#[test]
fn the_profiles_of_pieces_add_up_to_that_of_the_whole() {
    let side = Side::new();
    let rows = [" a,1", "B,1", "4111111111111110,1", "n/a,1", "9000000000000001,1", "B,2", "4.91e+11,1"];
    let profile = |rows: &[&str]| side.of(rows, |data| data.sums(&keys(&side.identity)).unwrap().profile);
    let whole = profile(&rows);
    let text = "the key begins or ends with white space in 1 row, has capital letters in 2 rows, looks rounded by a spreadsheet \
                in 1 row, stands for no value, like NULL, in 1 row: ";
    assert!(whole.text().unwrap().starts_with(text), "{whole:?}");
    let mut counts = [0; 7];
    for piece in [&rows[..3], &rows[3..5], &rows[5..]] {
        counts.iter_mut().zip(profile(piece).counts()).for_each(|(all, of_piece)| *all += of_piece);
    }
    assert_eq!(Profile::of_counts(counts), whole);
    // It is what is said of the table of the workers.
    let party = side.party("profile.csv", &rows);
    let data = Data::elsewhere(&party, Elsewhere::new(&party, spread(Vec::new(), 6), 7, 1, 0, whole.clone()))
        .unwrap();
    assert_eq!(data.facts().profile, Some(&whole));
}

#[test]
fn the_digest_of_a_job_is_of_what_is_sent_too_and_that_of_the_log_of_keys_only() {
    let side = Side::new();
    let other: Vec<&str> = ROWS.iter().map(|row| if *row == "d,6" { "d,8" } else { row }).collect();
    let [(.., one), (.., two)] = [side.sums(&ROWS), side.sums(&other)];
    assert!(one[0] == two[0] && one[1] != two[1]);
    // Under another identity nothing can be compared.
    let (.., elsewhere) = Side::new().sums(&ROWS);
    assert!(one[0] != elsewhere[0] && one[1] != elsewhere[1]);
}

#[test]
fn the_digest_of_the_log_is_that_of_one_run() {
    let side = Side::new();
    let [for_log, _] = &keys(&side.identity);
    let (items, _, sums) = side.sums(&ROWS);
    let spread = spread(vec![(Secret::new(**for_log), sums[0])], items as usize);
    let message = |_: u32, hash: &ItemHash, _: &[u8], to: &mut Vec<u8>| to.extend_from_slice(hash);
    let of = |request: &crate::session::run::Request<'_>| {
        request.input.set.digest(request.input.payloads, &request.local.threads, for_log, message).unwrap()
    };
    let whole = side.of(&ROWS, |data| of(&data.request()));
    let party = side.party("spread.csv", &ROWS);
    let data = Data::elsewhere(&party, Elsewhere::new(&party, spread, 7, 2, 1, Profile::default())).unwrap();
    assert_eq!(of(&data.request()), whole);
}

#[test]
fn a_job_without_shards_or_with_a_file_for_its_result_is_refused() {
    let side = Side::new();
    let refused = |change: &dyn Fn(&mut PartySpec), words: &str| {
        let mut party = side.party("refused.csv", &ROWS);
        change(&mut party);
        let error = Data::elsewhere(
            &party,
            Elsewhere::new(&party, spread(Vec::new(), 4), 7, 2, 1, Profile::default()),
        )
        .err()
        .unwrap();
        assert!(matches!(&error, Error::Usage(said) if said.contains(words)), "{error}");
    };
    refused(&|party| party.spec.terms.shards = 0, "`shards`");
    refused(&|party| party.output = Some("result.csv".into()), "`output`");
}

/// A worker's result of a shard that has these keys of the other side.
fn learned(keys: &[&str]) -> Vec<u8> {
    let mut items = Items::new();
    for key in keys {
        items.push_with(|item| encode_key([key.as_bytes()], item));
    }
    let payloads = Items::new();
    learned::to_bytes(Ok(Learned::New(New { items, payloads }))).unwrap()
}

#[test]
fn a_column_has_one_type_in_the_whole_result() {
    let side = Side::new();
    let mut party = side.party("union.csv", &[]);
    (party.spec.operation, party.spec.role) = (&crate::operations::UNION, Role::Receiver);
    (party.spec.sent_columns, party.spec.terms.shards) = (Vec::new(), 2);
    let rows =
        RecordBatch::try_from_iter([("k", Arc::new(Int64Array::from(vec![5, 6])) as ArrayRef)]).unwrap();
    let table =
        Table::from_batches("rows", &rows.schema(), [Ok(rows.clone())], &party.source.read, None).unwrap();
    let data = Data::of(&party, table, &Watch::NONE).unwrap();
    let [numbers, texts] = [learned(&["7", "-1"]), learned(&["8", "a text"])];
    assert_eq!(data.text_keys_of(&numbers).unwrap(), [0; 0]);
    assert_eq!(data.text_keys_of(&texts).unwrap(), [0]);
    let of = |learned: &[u8], as_text: &[usize]| {
        let batches = data.batches_of(learned, as_text).unwrap().unwrap();
        let schema = batches.schema().unwrap();
        let rows = batches.batches().iter().cloned().map(Ok);
        let result = Table::from_batches("result", schema, rows, &party.source.read, None).unwrap();
        let values = (0..result.rows()).map(|row| String::from_utf8(result.cell(row, 0).to_vec()).unwrap());
        (schema.field(0).data_type().is_integer(), values.collect::<Vec<_>>())
    };
    let ours = |more: [&str; 2]| ["5", "6"].into_iter().chain(more).map(String::from).collect::<Vec<_>>();
    assert_eq!(of(&numbers, &[]), (true, ours(["7", "-1"])));
    // As text because a key of another shard is none.
    assert_eq!(of(&numbers, &[0]), (false, ours(["7", "-1"])));
    assert_eq!(of(&texts, &[0]), (false, ours(["8", "a text"])));
    assert_eq!(data.text_keys_of(&learned(&[])).unwrap(), [0; 0]);
}
