//! `veilset identity new|show`.

use crate::args::IdentityCommand;
use crate::print;
use crate::terminal::warn;
use veilset::error::Result;
use veilset::net::Identity;
use veilset_app::front::load_identity;

pub fn run(command: &IdentityCommand) -> Result<()> {
    match command {
        IdentityCommand::New { output } => {
            let path = output.clone().map_or_else(Identity::default_path, Ok)?;
            let identity = Identity::generate()?;
            identity.save(&path)?;
            eprintln!(
                "made {}; keep it secret. Its fingerprint, for the other party's --peer:",
                path.display()
            );
            print(identity.fingerprint())
        }
        IdentityCommand::Show { identity } => {
            print(load_identity(identity.as_deref(), &mut warn)?.fingerprint())
        }
    }
}
