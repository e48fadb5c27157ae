//! A folder with two identities, and parties that run in it.

use std::path::{Path, PathBuf};
use std::process::Command;
pub use veilset_testing::program::{Ended, Running, Words, run, signal, signalled};

pub const RECEIVER: usize = 0;
pub const SENDER: usize = 1;

/// Two parties' identities and files.
pub struct World {
    folder: tempfile::TempDir,
    /// The configuration and state of both parties; the tester's own are never read.
    home: tempfile::TempDir,
    pub fingerprints: [String; 2],
    /// Whether the parties allow small sets, which most tests use.
    pub allow_small: bool,
}

impl World {
    pub fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let fingerprints = ["r.pem", "s.pem"].map(|name| {
            let made = run(veilset().args(["identity", "new", "--output"]).arg(folder.path().join(name)));
            assert_eq!(made.code, Some(0), "{}", made.err);
            made.out.trim().to_string()
        });
        World { folder, home: tempfile::tempdir().unwrap(), fingerprints, allow_small: true }
    }

    /// Returns the path of a file in the configuration or state folder of both parties.
    pub fn home(&self, name: &str) -> PathBuf {
        let path = self.home.path().join("veilset").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// Returns the program, with this world's configuration and state.
    pub fn veilset(&self) -> Command {
        let mut command = veilset();
        command.current_dir(self.folder.path());
        command.env("XDG_CONFIG_HOME", self.home.path()).env("XDG_STATE_HOME", self.home.path());
        command
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Returns the names of all files.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Returns the command of a party without an address. Adds the options that `more` lacks: role, key (not for a list),
    /// time-outs, the peer, and permission for small sets.
    pub fn party(&self, who: usize, operation: &str, file: &Path, more: Words) -> Command {
        let mut command = self.veilset();
        command.args(operation.split(' ')).arg(file).args(more);
        command.args(["--identity", ["r.pem", "s.pem"][who]]);
        command.args(self.allow_small.then_some("--allow-small"));
        let mut default = |unless: Words, option: &str, value: &str| {
            if !more.iter().any(|m| unless.contains(m)) {
                command.args([option, value]);
            }
        };
        default(&["--role"], "--role", ["receiver", "sender"][who]);
        let list = file.extension().is_some_and(|e| e == "txt") && !more.contains(&"--format");
        if !list {
            default(&["--key"], "--key", "id");
        }
        default(&["--connect-timeout"], "--connect-timeout", "20");
        default(&["--idle-timeout"], "--idle-timeout", "20");
        default(&["--peer", "--insecure-plaintext"], "--peer", &self.fingerprints[1 - who]);
        command
    }

    /// Runs both parties, with the receiver listening. Returns how the receiver and the sender ended.
    pub fn run(&self, operation: &str, files: [&Path; 2], more: [Words; 2]) -> [Ended; 2] {
        let [receiver, sender] =
            [RECEIVER, SENDER].map(|who| self.party(who, operation, files[who], more[who]));
        both(receiver, sender)
    }

    /// Runs both parties, which must succeed. Returns their standard outputs.
    pub fn good(&self, operation: &str, files: [&Path; 2], more: [Words; 2]) -> [String; 2] {
        self.run(operation, files, more).map(Ended::good)
    }
}

pub fn veilset() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_veilset"));
    command.env("XDG_CONFIG_HOME", "/nowhere").env("XDG_STATE_HOME", "/nowhere");
    command
}

/// Starts a party that listens, and returns its address.
pub fn listen(mut command: Command) -> (Running, String) {
    let mut running = Running::start(command.args(["--listen", "127.0.0.1:0"]));
    let address = running.until("listening on ");
    (running, address)
}

/// Returns the command under a limit of `ulimit`.
pub fn limited(command: &Command, limit: &str) -> Command {
    after(&format!("ulimit {limit}"), command)
}

/// Returns the command, started by a shell that first runs `first`.
pub fn after(first: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{first}; exec \"$@\""), "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(command.get_current_dir().unwrap());
    shell
}

pub fn connect(mut command: Command, address: &str) -> Running {
    Running::start(command.args(["--connect", address]))
}

/// Runs two parties, the first of which listens. Returns how they ended.
pub fn both(listens: Command, connects: Command) -> [Ended; 2] {
    let (here, address) = listen(listens);
    let there = connect(connects, &address);
    [here.end(), there.end()]
}

/// Returns rows with an id and a cost.
pub fn csv(ids: impl Iterator<Item = u32>) -> String {
    let rows: Vec<String> = ids.map(|i| format!("{i},{}.5\n", i % 100)).collect();
    format!("id,cost\n{}", rows.concat())
}
