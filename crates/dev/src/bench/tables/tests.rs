use super::*;
use clap::Parser;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

/// Returns the arguments of `bench tables` with these words.
fn arguments(words: &str) -> TablesArgs {
    let words = format!("veilset-dev bench tables {words}");
    let crate::args::Command::Bench(a) =
        crate::args::Arguments::try_parse_from(words.split_whitespace()).unwrap().command
    else {
        panic!()
    };
    let Some(crate::args::BenchTask::Tables(a)) = a.task else { panic!() };
    a
}

fn machine() -> Machine {
    Machine {
        processor: "A <fast> one".into(),
        cores: 2,
        paths: vec!["curves: Ifma512".into()],
        memory_gb: 8.0,
        system: "Linux".into(),
    }
}

fn run_of(seconds: f64) -> Run {
    let figures = json!({
        "seconds": seconds, "threads": 1, "receiver_cpu_seconds": 0.25, "sender_cpu_seconds": 0.5,
        "bytes_receiver_to_sender": 1_500_000, "bytes_sender_to_receiver": 500_000, "peak_rss_mb": 14.0,
    });
    Run { date: "2026-11-25".into(), figures }
}

fn program() -> Vec<Program> {
    vec![Program { path: "veilset".into(), beside: None }]
}

/// Returns the commands planned for these words without any results.
fn planned(words: &str, papers: &[Paper]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let all = load(folder.path(), papers, &machine()).unwrap();
    let planned = Planned::of(&arguments(words), &all, &Speeds::built_in(1), &program());
    planned.tasks.into_iter().map(|task| task.point.command).collect()
}

#[test]
fn what_is_asked_for_is_planned_and_nothing_else() {
    let papers = papers::all().unwrap();
    assert_eq!(
        planned("--paper czzdl --table 4 --log-n 8 --net LAN", &papers),
        [
            "bench --op intersect --protocol dh --group curve25519 --n 256 --threads 1 --net lan --json",
            "bench --op intersect --protocol dh-psi --group curve25519 --n 256 --threads 1 --net lan --json",
        ]
    );
    assert_eq!(
        planned("--paper gnt23 --table 3 --parties 4 --log-n 8 --net LAN --threads 1", &papers).len(),
        1
    );
    assert!(
        planned("--paper dc17 --op count --quick", &papers)
            .iter()
            .all(|command| command.contains("--op count"))
    );
    let (all, quick) = (planned("", &papers), planned("--quick", &papers));
    assert!(
        quick.len() < all.len() / 2 && quick.iter().all(|command| all.contains(command)),
        "{}",
        quick.len()
    );
    for paper in &papers {
        assert!(!planned(&format!("--quick --paper {}", paper.name), &papers).is_empty(), "{}", paper.name);
    }
    // Without a limit, nothing is omitted: 1 Mbit/s is included, and with a limit it is not.
    assert!(all.iter().any(|command| command.contains("--net 1Mbps")));
    assert!(!quick.iter().any(|command| command.contains("--net 1Mbps")));
}

#[test]
fn threads_are_the_papers_and_not_more_than_are_asked_for() {
    let papers = papers::all().unwrap();
    let one = planned("--paper krtw19 --table 4 --log-n 8 --net LAN --threads 1", &papers);
    assert_eq!(one, ["bench --op union --protocol krtw19 --n 256 --threads 1 --net 10Gbps,0.02ms --json"]);
    let row = |threads| papers[0].tables[1].rows.iter().find(|row| row.threads == threads).unwrap();
    assert_eq!((ours(row(1), Some(8)), ours(row(4), Some(8)), ours(row(32), Some(8))), (1, 4, 8));
}

#[test]
fn what_no_table_has_is_refused_with_what_there_is() {
    let papers = papers::all().unwrap();
    for (words, parts) in [
        ("--paper czzdl --table 99", ["no table 99", "2, 3, 4"]),
        ("--paper czzdl --table 4 --log-n 20", ["no table has such a point", "--log-n 8,9,10"]),
        ("--paper cm20 --net moon", ["no table has such a point", "LAN"]),
    ] {
        let e = refuse_unknown(&arguments(words), &papers).unwrap_err();
        assert!(matches!(e, Error::Usage(_)));
        assert!(parts.iter().all(|part| e.to_string().contains(part)), "{e}");
    }
    refuse_unknown(&arguments("--quick"), &papers).unwrap();
}

#[test]
fn results_are_kept_by_their_whole_command() {
    let papers = papers::all().unwrap();
    let (paper, table) = (&papers[4], &papers[4].tables[2]);
    let folder = tempfile::tempdir().unwrap();
    let mut results = Results::load(folder.path(), paper, table, &machine()).unwrap();
    assert!(results.points.is_empty());
    let point = |command: &str| Measured { command: command.into(), ..Measured::default() };
    results.add(point("bench --n 256"), run_of(3.0));
    results.add(point("bench --n 256"), run_of(2.0));
    results.add(Measured { beside: Some("other".into()), ..point("bench --n 256") }, run_of(5.0));
    results.save(folder.path()).unwrap();
    let mut again = Results::load(folder.path(), paper, table, &machine()).unwrap();
    assert_eq!(again, results);
    let found = again.find("bench --n 256", None).unwrap();
    assert_eq!((found.runs.len(), found.seconds), (2, 2.0));
    assert_eq!(again.find("bench --n 256", Some("other")).unwrap().seconds, 5.0);
    assert!(
        again.find("bench --n 512", None).is_none() && again.find("bench --n 256", Some("third")).is_none()
    );
    again.forget("bench --n 256", None);
    assert!(again.find("bench --n 256", None).is_none() && again.points.len() == 1);
    // Only the file is left: the temporary file was renamed.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn results_that_do_not_belong_here_are_refused_and_stay() {
    let papers = papers::all().unwrap();
    let (paper, table) = (&papers[4], &papers[4].tables[2]);
    let folder = tempfile::tempdir().unwrap();
    let path = results::file(folder.path(), paper, table);
    assert!(path.ends_with("czzdl-4.json"));
    let mut results = Results::new(paper, table, &machine());
    results.add(Measured { command: "bench".into(), ..Measured::default() }, run_of(1.0));
    results.save(folder.path()).unwrap();
    let good = std::fs::read_to_string(&path).unwrap();
    let other = Machine { cores: 64, ..machine() };
    let e = Results::load(folder.path(), paper, table, &other).unwrap_err().to_string();
    assert!(
        ["of another machine", "with 2 cores", "with 64 cores", "--out"].iter().all(|part| e.contains(part)),
        "{e}"
    );
    let version = good.replace(results::VERSION, "0.0.1");
    for (text, part) in [
        (version.as_str(), "of veilset 0.0.1"),
        (&good[..good.len() / 2], "damaged"),
        ("", "damaged"),
        (&good.replace("\"4\"", "\"5\""), "of czzdl, table 5"),
    ] {
        std::fs::write(&path, text).unwrap();
        let e = Results::load(folder.path(), paper, table, &machine()).unwrap_err();
        assert!(matches!(e, Error::Usage(_)));
        assert!(e.to_string().contains(part) && e.to_string().contains("--out"), "{e}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let e = Results::load(folder.path(), paper, table, &machine()).unwrap_err();
    assert!(e.to_string().contains("cannot be read"), "{e}");
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let e = results::prepare(&file.join("results")).unwrap_err();
    assert!(matches!(e, Error::Output(_)) && e.to_string().contains("--out"), "{e}");
    results::prepare(&folder.path().join("new/results")).unwrap();
}

#[test]
fn a_folder_is_measured_into_by_one_run_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let first = results::prepare(folder.path()).unwrap();
    let e = results::prepare(folder.path()).unwrap_err();
    assert!(matches!(&e, Error::Usage(why) if why.contains("another run")), "{e}");
    drop(first);
    results::prepare(folder.path()).unwrap();
}

/// Creates a program that counts its runs in a file in the same folder, and prints figures.
fn counting(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("veilset");
    let figures = run_of(1.5).figures;
    let script = format!(
        "#!/bin/sh\ncd '{}'\n[ \"$1\" = --version ] && echo veilset-dev 9.9.9 && exit\n[ -e broken ] && exit 2\necho \"$@\" >> runs\necho '{figures}'\n",
        folder.display()
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_program_beside_is_asked_for_its_version_and_measured() {
    let folder = tempfile::tempdir().unwrap();
    let path = counting(folder.path());
    let all = programs(Some(&path)).unwrap();
    assert!(all[1].beside.as_ref().unwrap().ends_with("veilset (veilset-dev 9.9.9)"));
    let go = AtomicBool::new(false);
    let figures = measure(&all[1], "bench --n 1 --json", &go).unwrap().unwrap();
    assert_eq!(figures["seconds"], 1.5);
    assert_eq!(std::fs::read_to_string(folder.path().join("runs")).unwrap(), "bench --n 1 --json\n");
    std::fs::write(folder.path().join("broken"), "").unwrap();
    assert!(measure(&all[1], "bench", &go).unwrap().is_none());
    assert!(matches!(measure(&all[1], "bench", &AtomicBool::new(true)), Err(Error::Cancelled)));
    for wrong in ["/bin/true", "/nowhere"] {
        let e = programs(Some(Path::new(wrong))).err().unwrap();
        assert!(matches!(e, Error::Usage(_)) && e.to_string().contains("--beside"), "{e}");
    }
}

/// A small set of results: two sizes of a table of CZZDL, and one of KRTW19.
fn small(papers: &[Paper]) -> Vec<Known<'_>> {
    let mut all = load(Path::new("/nowhere"), papers, &machine()).unwrap();
    let words = "--paper czzdl,krtw19 --table 4 --log-n 8,10 --threads 1";
    let planned = Planned::of(&arguments(words), &all, &Speeds::built_in(1), &program());
    for (task, seconds) in planned.tasks.into_iter().zip([0.5, 2.0].into_iter().cycle()) {
        let point = Measured { predicted_seconds: Some(1.0), ..task.point };
        all[task.table].2.add(point, run_of(seconds));
    }
    all
}

#[test]
fn the_pages_have_the_papers_figures_beside_ours() {
    let (papers, machine) = (papers::all().unwrap(), machine());
    let tables = small(&papers);
    let speeds = Speeds::built_in(1);
    let report = report::Report { machine: &machine, speeds: &speeds, tables: &tables };
    let text = report.markdown();
    for part in [
        "- Processor: A <fast> one, 2 cores, with AVX-512\n",
        "- Kernels: curves: Ifma512\n",
        "- Memory: 8 GB\n",
        "- Measured: 2026-11-25\n",
        "\n## CZZDL, private set operations from mqRPMT\n",
        "\n### PSI of small sets (CZZDL, Table 4)\n",
        "|  | threads | n | network | s | paper's s | predicted s | CPU s | MB | paper's MB | MB held | notes |\n",
        "| intersect by dh over curve25519 | 1 | 2^8 | LAN | 0.500 | 0.0419 | 1.00 | 0.250, 0.500 | 2.00 | 0.0386 | 14.0 | 1, 2, 3 |\n",
        "\n1. The paper measured on: Intel i7-11700, 2.50 GHz, 8 cores, 16 GB. Here all parties share the 2 cores of: A <fast> one.\n",
        "The paper has 32 threads a party; ours 1.",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains("beside |"));
    // A second program gets columns of its own.
    let mut tables = tables;
    for (_, _, results) in &mut tables {
        for point in results.points.clone() {
            results.add(Measured { beside: Some("other (veilset 9)".into()), ..point }, run_of(7.0));
        }
    }
    let two = report::Report { machine: &machine, speeds: &speeds, tables: &tables }.markdown();
    for part in [
        "| s, beside | CPU s, beside | notes |",
        "| 7.00 | 0.250, 0.500 | 1, 2, 3, 4 |",
        ". Beside: other (veilset 9).\n",
    ] {
        assert!(two.contains(part), "{part:?} is not in\n{two}");
    }
    // Tables without results are not shown.
    assert!(!text.contains("Table 7") && !text.contains("gnt23") && !text.contains("s alone"));
    // Every row has as many cells as its head.
    let cells = |line: &str| line.matches(" | ").count();
    let mut head = 0;
    for line in text.lines().filter(|line| line.starts_with("| ") || line.starts_with("|  |")) {
        head = if line.contains("| threads |") { cells(line) } else { head };
        assert_eq!(cells(line), head, "{line}");
    }
}

#[test]
fn the_page_of_html_is_whole_and_draws_what_was_measured() {
    let (papers, machine) = (papers::all().unwrap(), machine());
    let tables = small(&papers);
    let speeds = Speeds::built_in(1);
    let report = report::Report { machine: &machine, speeds: &speeds, tables: &tables };
    let page = report.html();
    for part in [
        "A &lt;fast&gt; one",
        "<caption>PSI of small sets (CZZDL, Table 4)</caption>",
        "<td>0.0419</td>",
        "CZZDL, table 4: seconds over items of each party, LAN",
        "KRTW19, table 4: seconds over threads of each party, WAN",
        "12 of 12 points are within a factor of two",
    ] {
        assert!(page.contains(part), "{part:?} is not in\n{page}");
    }
    assert!(
        !page.contains("<script")
            && !page.contains("src=")
            && !page.contains("href=")
            && !page.contains("<fast>")
    );
    assert!(!page.contains("NaN") && !page.contains("inf "));
    // Names are unique.
    let ids: Vec<&str> = page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}

#[test]
fn figures_have_three_digits() {
    for (number, text) in
        [(0.0, "0"), (0.012345, "0.0123"), (0.5, "0.500"), (9.876, "9.88"), (87.64, "87.6"), (1234.5, "1234")]
    {
        assert_eq!(report::digits(number), text);
    }
}
