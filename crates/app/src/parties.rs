//! Runs of several parties: the list of `--parties`, the options that it excludes, and parties on this machine.

use crate::near::{known_key, sentence_of};
use crate::options::{CommonArgs, OperationArgs, Wish};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use veilset::channel::Timeouts;
use veilset::error::{Error, Result};
use veilset::net::{
    Connection, Identity, Listed, ListedParty, ListenAt, Listener, Me, Member, Roster, assemble,
};
use veilset::operations::{self, Operation};
use veilset::protocols::{self, Protocol};
use veilset::spelling::{
    BOTH, CONNECT, INSECURE_PLAINTEXT, MALICIOUS_SENDER, ME, PARTIES, PEER, PREPARED, PROTOCOL, PROXY,
    RECEIVE_COLUMNS, REVEAL_COUNT_TO_SENDER, ROLE, SEND_COLUMNS,
};
use veilset::threads::{joined, start};
use veilset::trusted::{self, Whose};

/// Returns our place in the list of parties; `None` in a run of two.
pub fn of(a: &OperationArgs, warnings: &mut Vec<String>) -> Result<Option<Me>> {
    let CommonArgs { parties, me, protocol, .. } = &a.common;
    match (parties, me) {
        (None, None) => only_for_two(protocol.and_then(Wish::named)).map(|()| None),
        (None, Some(_)) => wrong(format!(
            "{ME} is our name in a list of parties. Give the list with {PARTIES} FILE, or omit {ME} in a run with one \
             peer"
        )),
        (Some(path), me) => {
            refuse(a, true)?;
            let Some(me) = me else {
                return wrong(format!(
                    "{ME} is missing: give our name in the list of {PARTIES}, for instance {ME} north"
                ));
            };
            let me = load(path, me, warnings)?;
            match me.others().count() {
                1 => only_for_two(protocol.and_then(Wish::named))?,
                _ => refuse(a, false)?,
            }
            Ok(Some(me))
        }
    }
}

/// Reads a list of parties, in which we have this name. Adds to `warnings` if others may change the file.
pub fn load(path: &Path, me: &str, warnings: &mut Vec<String>) -> Result<Me> {
    let shown = path.display().to_string();
    let unusable = |e: &dyn std::fmt::Display| {
        Error::usage(format!(
            "the list of parties {shown} cannot be used: {} Correct it, for all parties, or name another with \
             {PARTIES}",
            sentence_of(e)
        ))
    };
    let mut file = File::open(path).map_err(|e| unusable(&e))?;
    warnings.extend(trusted::check("the list of parties", path, Whose::Given, &file)?);
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|e| unusable(&e))?;
    let listed = parse(&text).map_err(|what| unusable(&what))?;
    Roster::new(listed, &shown)?.me(me)
}

/// Parses a list of parties, or returns why the text is not one.
pub fn parse(text: &str) -> std::result::Result<Listed, String> {
    toml::from_str(text)
        .map_err(|e: toml::de::Error| format!("{}{}", e.to_string().trim_end(), known_key(&e)))
}

/// Refuses a protocol for several parties in a run of two.
pub fn only_for_two(protocol: Option<&Protocol>) -> Result<()> {
    match protocol.filter(|protocol| protocol.is_multiparty()) {
        Some(protocol) => wrong(format!(
            "{PROTOCOL} {protocol} is for three parties or more, of a list ({PARTIES}). Omit {PROTOCOL}, or give such a list"
        )),
        None => Ok(()),
    }
}

/// Returns the protocol for several parties that computes the operation, unless another one was named.
pub fn protocol(
    operation: &'static Operation,
    named: Option<&'static Protocol>,
) -> Result<&'static Protocol> {
    let Some(default) = protocols::multiparty_for(operation) else {
        let others = operations::ALL.into_iter().filter(|o| protocols::multiparty_for(o).is_some());
        let others = others.map(|o| o.name).collect::<Vec<_>>().join(", ");
        return wrong(format!(
            "{operation} is for two parties, and the list has more. Omit {PARTIES}, give a list of two, or use one of {others}"
        ));
    };
    match named {
        Some(named) if !named.is_multiparty() => wrong(format!(
            "{PROTOCOL} {named} is for two parties. Omit it: for the parties of this list, {operation} is computed by {default}"
        )),
        named => Ok(named.unwrap_or(default)),
    }
}

/// Refuses options that a list of parties excludes: for `any` list, or for one of three parties or more.
fn refuse(a: &OperationArgs, any: bool) -> Result<()> {
    let CommonArgs { role, peer, connect, proxy, prepared, insecure_plaintext, .. } = &a.common;
    let columns =
        a.rows.as_ref().map_or([false; 2], |a| [!a.send_columns.is_empty(), !a.receive_columns.is_empty()]);
    let whatever = [
        (ROLE, role.is_some(), "the leader of the list is the receiver, and all others contribute", ""),
        (PEER, peer.is_some(), "the list has the fingerprints of all parties", ""),
        (
            CONNECT,
            connect.is_some(),
            "the list has the addresses of all parties",
            ", or correct the address in the list, for all parties",
        ),
        (PROXY, proxy.is_some(), "the parties of a list connect to each other directly", ""),
        (
            INSECURE_PLAINTEXT,
            *insecure_plaintext,
            "without TLS a party could not prove that it is the one in the list",
            "",
        ),
    ];
    let several = [
        (
            BOTH,
            a.both.as_ref().is_some_and(|a| a.both),
            "of three parties or more only the leader gets the result",
            "; the leader can pass the result on",
        ),
        (SEND_COLUMNS, columns[0], "columns are sent between two parties only", ""),
        (RECEIVE_COLUMNS, columns[1], "columns are sent between two parties only", ""),
        (PREPARED, prepared.is_some(), "a prepared half is for a run of two", ""),
        (
            MALICIOUS_SENDER,
            a.malicious.as_ref().is_some_and(|a| a.malicious_sender),
            "no protocol for several parties withstands a party that does not follow it",
            ", or run with each peer alone",
        ),
        (
            REVEAL_COUNT_TO_SENDER,
            a.reveal.as_ref().is_some_and(|a| a.reveal_count_to_sender),
            "of three parties or more nobody but the leader learns anything about the result",
            "",
        ),
    ];
    let given = if any { &whatever[..] } else { &several };
    if !any {
        protocol(a.operation, a.common.protocol.and_then(Wish::named))?;
    }
    match given.iter().find(|(_, given, ..)| *given) {
        Some((option, _, reason, further)) => {
            wrong(format!("{option} does not go with {PARTIES}: {reason}. Omit {option}{further}"))
        }
        None => Ok(()),
    }
}

fn wrong<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::usage(what.into()))
}

/// A party on this machine. It keeps its port as long as it has its listener.
pub struct Local {
    me: Me,
    identity: Arc<Identity>,
    /// `None` if it only connects.
    listener: Option<Listener>,
}

/// Returns a list of parties on this machine, at free ports, and these parties. The first party leads; the last one only
/// connects. `source` is the name of the list in messages.
pub fn on_this_machine(parties: &[(String, Arc<Identity>)], source: &str) -> Result<(Roster, Vec<Local>)> {
    let open = |i| if i + 1 < parties.len() { Listener::bind("127.0.0.1:0").map(Some) } else { Ok(None) };
    let listeners = (0..parties.len()).map(open).collect::<Result<Vec<_>>>()?;
    let party = parties.iter().zip(&listeners).map(|((name, identity), listener)| ListedParty {
        name: name.clone(),
        fingerprint: identity.fingerprint(),
        address: listener.as_ref().map(|listener| listener.local_addr().to_string()),
    });
    let party: Vec<_> = party.collect();
    let leader = party.first().map(|first| first.name.clone()).unwrap_or_default();
    let roster = Roster::new(Listed { leader, party }, source)?;
    let locals = parties.iter().zip(listeners).map(|((name, identity), listener)| {
        Ok(Local { me: roster.clone().me(name)?, identity: identity.clone(), listener })
    });
    let locals = locals.collect::<Result<_>>()?;
    Ok((roster, locals))
}

/// Writes a list of parties as TOML. The names must not need escapes.
pub fn written(roster: &Roster) -> String {
    let leader = roster.members().first().map_or("", Member::name);
    let mut text = format!("leader = \"{leader}\"\n");
    for member in roster.members() {
        let (name, fingerprint) = (member.name(), member.fingerprint());
        text += &format!("\n[[party]]\nname = \"{name}\"\nfingerprint = \"{fingerprint}\"\n");
        if let Some(address) = member.address() {
            text += &format!("address = \"{address}\"\n");
        }
    }
    text
}

/// Connects the parties of a list on this machine over TLS, and runs each on its own thread. Returns the results of all.
pub fn together<T: Send>(
    parties: Vec<Local>,
    timeouts: Timeouts,
    run: impl Fn(Me, Vec<Connection>) -> Result<T> + Sync,
) -> Vec<Result<T>> {
    let failed = AtomicBool::new(false);
    let one = |Local { me, identity, listener }| {
        let stop = || failed.load(Ordering::Relaxed);
        let listen = listener.map_or(ListenAt::Listed, ListenAt::Open);
        let connections = assemble(&me, &identity, listen, timeouts, &stop, &|_| ())?;
        run(me, connections)
    };
    let (one, failed) = (&one, &failed);
    std::thread::scope(|scope| {
        let begin = |party| {
            start(scope, move || one(party).inspect_err(|_| failed.store(true, Ordering::Relaxed)))
                .inspect_err(|_| failed.store(true, Ordering::Relaxed))
        };
        let threads: Vec<_> = parties.into_iter().map(begin).collect();
        threads.into_iter().map(|thread| joined(thread?.join())).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn nobody_else_gets_the_ports_of_parties_on_this_machine() {
        let parties = ["1", "2", "3"].map(|name| (name.into(), Arc::new(Identity::generate().unwrap())));
        let (roster, locals) = on_this_machine(&parties, "the test").unwrap();
        assert_eq!((roster.members()[0].name(), roster.members().len(), locals.len()), ("1", 3, 3));
        for Local { me, identity, listener } in locals {
            let own = me.own();
            assert_eq!(own.fingerprint(), identity.fingerprint());
            let taken = own.address().map(|address| TcpListener::bind(address).is_err());
            let expected = (own.name() != "3").then_some(true);
            assert_eq!((taken, listener.is_some()), (expected, expected.is_some()), "{}", own.name());
        }
    }
}
