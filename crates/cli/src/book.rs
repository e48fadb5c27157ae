//! `veilset peer add|list|remove`.

use crate::args::PeerCommand;
use crate::print;
use crate::terminal::warn;
use veilset::error::Result;
use veilset_app::book::{Book, NewPeer, Peer, add_peer, remove_peer};

/// Carries out the command.
pub fn run(command: PeerCommand) -> Result<()> {
    let mut warnings = Vec::new();
    let done = carry_out(command, &mut warnings);
    warnings.iter().for_each(|warning| warn(warning));
    done?.iter().try_for_each(print)
}

/// Carries out the command, and returns the lines to print.
fn carry_out(command: PeerCommand, warnings: &mut Vec<String>) -> Result<Vec<String>> {
    match command {
        PeerCommand::Add { name, fingerprint, address, force, identity, book } => {
            let peer = NewPeer { name, fingerprint, address, identity, book, force };
            add_peer(peer, warnings).map(|()| Vec::new())
        }
        PeerCommand::List { book } => {
            let peers: Vec<_> = Book::load(book.as_deref(), warnings)?.peers().collect();
            let name = |peer: &Peer| peer.name.clone().unwrap_or_default();
            let width = peers.iter().map(|peer| name(peer).len()).max().unwrap_or(0);
            let line = |peer: &Peer| {
                let address = peer.address.as_deref().unwrap_or("");
                format!("{:width$}  {}  {address}", name(peer), peer.fingerprint).trim_end().to_string()
            };
            Ok(peers.iter().map(line).collect())
        }
        PeerCommand::Remove { name, book } => {
            remove_peer(&name, book.as_deref(), warnings).map(|()| Vec::new())
        }
    }
}
