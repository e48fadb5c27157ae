use super::*;
use crate::config::{self, Value};
use crate::options::Typed;

/// Returns the options of an operation that take a path.
fn of_paths(operation: &Operation) -> Vec<String> {
    let all = Typed::command();
    let command = config::named(&all, operation.name).unwrap();
    let paths = command.get_arguments().filter(|arg| config::is_path(arg));
    paths.filter_map(|arg| Some(arg.get_long()?.to_string())).collect()
}

/// The comparison of a run's files covers every option: a new one fails here until it is included.
#[test]
fn no_file_of_a_run_is_its_result_or_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).into_os_string();
    let [ours, theirs] = [(), ()].map(|()| Identity::generate().unwrap().fingerprint());
    let party = |(name, fingerprint, port): (&str, &Fingerprint, u16)| {
        format!(
            "[[party]]\nname = \"{name}\"\nfingerprint = \"{fingerprint}\"\naddress = \"127.0.0.1:{port}\"\n"
        )
    };
    let list = [("us", &ours, 1), ("them", &theirs, 2)].map(party).concat();
    std::fs::write(at("input.csv"), "a,b\n1,2\n").unwrap();
    let mut tried = 0;
    for operation in operations::ALL {
        for option in of_paths(operation) {
            let is_used = match &*option {
                "parties" => protocols::multiparty_for(operation).is_some(),
                "filter" => protocols::filtering(operation).is_some(),
                "prepared" | "prepared-ledger" => {
                    !protocols::names(|p| p.attaches(operation, Attachment::Half)).is_empty()
                }
                _ => true,
            };
            if !is_used {
                continue;
            }
            // The minimal contents without which the file is rejected first.
            match &*option {
                "book" | "policy" => std::fs::write(at("file"), "").unwrap(),
                "parties" => std::fs::write(at("file"), format!("leader = \"us\"\n{list}")).unwrap(),
                _ => {}
            }
            for written in ["output", "report"].into_iter().filter(|written| *written != option) {
                let said = ["receiver", "sender"].map(|role| {
                    let peer = theirs.to_string();
                    let mut further = match &*option {
                        "parties" => vec![("me", "us")],
                        _ => vec![("role", role), ("peer", &peer), ("connect", "127.0.0.1:2")],
                    };
                    match &*option {
                        "job" => further.push(("shards", "2")),
                        "prepared-ledger" => further.push(("prepared", "half")),
                        _ => {}
                    }
                    let mut options = vec![
                        ("input".into(), Value::Text(at("input.csv"))),
                        ("key".into(), Value::Text("a".into())),
                        (written.into(), Value::Text(at("file"))),
                        (option.clone(), Value::Text(at("file"))),
                    ];
                    options
                        .extend(further.iter().map(|(name, to)| (name.to_string(), Value::Text(to.into()))));
                    if option != "audit-log" {
                        options.push(("audit-log".into(), Value::Text("none".into())));
                    }
                    let command = config::command(operation.name, &options);
                    let planned = command.and_then(|command| PartyPlan::of(command, false));
                    planned.err().map(|e| crate::words::as_options(&e.marked())).unwrap_or_default()
                });
                let told = |m: &String| m.contains("are both") && m.contains(&format!("--{option}"));
                // Some options are for one role only.
                assert!(said.iter().any(told), "{operation} --{option} as --{written}: {said:?}");
                tried += 1;
            }
            let _ = std::fs::remove_file(at("file"));
        }
    }
    assert!(tried > 80, "{tried}");
}

fn text(options: &[(&str, &str)]) -> Vec<(String, Value)> {
    options.iter().map(|(name, value)| (name.to_string(), Value::Text(value.into()))).collect()
}

/// A worker has a ticket for the connection and a piece for the table: its options only define the computation.
#[test]
fn a_worker_plans_the_computation_and_asks_for_nothing_else() {
    let computed = [
        ("key", "email"),
        ("role", "receiver"),
        ("normalize", "casefold"),
        ("receive_columns", "city"),
        ("max_row", "32"),
        ("shards", "4"),
        ("pad_to", "100"),
        ("threads", "1"),
        ("connect_timeout", "7"),
    ];
    // People, files and connections, which would be wrong here.
    let others = [
        ("peer", "nobody"),
        ("identity", "/nowhere/identity.pem"),
        ("policy", "/nowhere/policy.toml"),
        ("listen", "no address"),
        ("output", "/nowhere/out"),
    ];
    let plan =
        |options: &[(&str, &str)]| config::worker("intersect", &text(options)).and_then(WorkerPlan::of);
    let WorkerPlan { party, timeouts } = plan(&[&computed[..], &others].concat()).unwrap();
    assert_eq!((party.source.key.as_slice(), party.spec.role), (&["email".to_string()][..], Role::Receiver));
    assert_eq!((party.source.format(), party.source.pad_to), (Format::Arrow, Some(100)));
    assert_eq!(party.source.name(), "the frame");
    assert_eq!((party.spec.terms.shards, party.spec.terms.max_row, party.in_memory), (4, 32, true));
    assert_eq!((&party.spec.sent_columns, &party.received_as), (&vec!["city".into()], &vec!["city".into()]));
    assert_eq!((timeouts.connect.as_secs(), timeouts.idle), (7, Timeouts::default().idle));
    assert!(party.spec.candidates.first.protocol.attaches(party.spec.operation, Attachment::Shards));
    // The same settings as those of the side that agrees: its hello has the same terms.
    let set = veilset::item::ItemSet::default();
    let own = PartyPlan::of(
        config::command(
            "intersect",
            &text(
                &[
                    &computed[..],
                    &[
                        ("input", "a.arrow"),
                        ("connect", "127.0.0.1:1"),
                        ("audit_log", "none"),
                        ("peer", &Identity::generate().unwrap().fingerprint().to_string()),
                    ],
                ]
                .concat(),
            ),
        )
        .unwrap(),
        true,
    )
    .unwrap();
    let terms = |party: &PartySpec| {
        let terms = party.request(&set, &party.compared()).hello(false).terms();
        terms.into_iter().map(|term| (term.key, term.value)).collect::<Vec<_>>()
    };
    assert_eq!(terms(&party), terms(&own.party));
    // Wrong options are refused as on the side that agrees.
    for (wrong, words) in [
        (&[("role", "receiver")][..], "key"),
        (&[("key", "a,a"), ("role", "receiver")], "twice"),
        (&[("key", "a"), ("role", "sender"), ("receive_columns", "b")], "is for the receiver"),
        (&[("key", "a"), ("role", "receiver"), ("normalize", "upper")], "upper"),
        (&[("key", "a"), ("role", "receiver"), ("shards", "x")], "x"),
    ] {
        let said = plan(wrong).unwrap_err();
        assert!(matches!(said, Error::Usage(_)) && said.to_string().contains(words), "{wrong:?}: {said}");
    }
}
