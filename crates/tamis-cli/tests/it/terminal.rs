//! Commands on a pseudo-terminal: keys, output, history.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    process::{Child, Command, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};

use crate::Folder;

/// A pseudo-terminal with a running command.
pub(crate) struct Terminal {
    child: Child,
    master: File,
    /// All output so far.
    shown: String,
    /// Position after the last expected output.
    seen: usize,
}

impl Terminal {
    pub(crate) fn open(folder: &Folder, words: &[&str], history: &str) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        // It must not become the controlling terminal of the test.
        let flags = OFlags::NOCTTY.bits() as i32;
        let slave = || {
            let options = File::options().read(true).write(true).custom_flags(flags).open(&path);
            Stdio::from(options.unwrap())
        };
        let mut command = folder.command(words);
        command.stdin(slave()).stdout(slave()).stderr(slave());
        command.env("TERM", "xterm").env("TAMIS_HISTORY", folder.path(history));
        Self { child: command.spawn().unwrap(), master: master.into(), shown: String::new(), seen: 0 }
    }

    /// Types keys and reads until the output contains `expected`.
    pub(crate) fn types(&mut self, keys: &str, expected: &str) -> &mut Self {
        self.master.write_all(keys.as_bytes()).unwrap();
        loop {
            if let Some(place) = self.shown[self.seen..].find(expected) {
                self.seen += place + expected.len();
                return self;
            }
            let wait = Timespec { tv_sec: 60, tv_nsec: 0 };
            let ready = poll(&mut [PollFd::new(&self.master, PollFlags::IN)], Some(&wait)).unwrap();
            assert!(ready > 0, "{expected:?} not found: {:?}", self.shown);
            let mut bytes = [0; 1024];
            let length =
                self.master.read(&mut bytes).unwrap_or_else(|error| panic!("{error}: {}", self.shown));
            self.shown.push_str(&String::from_utf8_lossy(&bytes[..length]));
        }
    }

    /// Sends the signal of Ctrl-C: the terminal does not control the command.
    pub(crate) fn interrupt(&mut self) -> &mut Self {
        let process = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &process]).status().unwrap().success());
        self
    }

    /// Types the last keys; returns the exit code.
    pub(crate) fn ends(mut self, keys: &str) -> i32 {
        self.master.write_all(keys.as_bytes()).unwrap();
        // Reading the terminal fails after the command has exited.
        let mut rest = Vec::new();
        let _ = self.master.read_to_end(&mut rest);
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

const SHELL: &[&str] = &["shell", "store"];

/// The prompt; the shell then accepts a line.
const PROMPT: &str = "default> ";

#[test]
fn the_shell_works_on_a_terminal() {
    let folder = Folder::new();
    let mut terminal = Terminal::open(&folder, SHELL, "history");
    // Waits for the prompt before each line: the terminal may lose earlier keys when it changes its mode.
    terminal
        .types("", PROMPT)
        .types("put apple red\r", PROMPT)
        .types("get apple\r", "red\r\n")
        .types("", PROMPT);
    // The shell reports failed lines and continues.
    terminal.types("get nothing\r", "not found").types("", PROMPT);
    terminal.types("frobnicate\r", "unrecognized subcommand").types("", PROMPT);
    terminal.types("keyspace none\r", "there are: default").types("", PROMPT);
    // The prompt shows an open transaction.
    terminal
        .types("begin\r", "default (transaction)> ")
        .types("put pear green\r", "default (transaction)> ")
        .types("rollback\r", PROMPT)
        .types("get pear\r", "not found")
        .types("", PROMPT);
    // Ctrl-C discards the line.
    terminal
        .types("delete apple", "apple")
        .types("\u{3}", PROMPT)
        .types("count\r", "1\r\n")
        .types("", PROMPT);
    // Lines are saved immediately.
    let history = std::fs::read_to_string(folder.path("history")).unwrap();
    assert!(history.contains("put apple red\nget apple\nget nothing\n"), "{history}");
    assert!(!history.contains("delete apple"), "{history}");
    assert_eq!(terminal.ends("\u{4}"), 0, "Ctrl-D leaves the shell");
    assert_eq!(folder.ok(&["get", "store", "apple"]), "red\n");

    // In the next shell, the up arrow brings the last line.
    let mut terminal = Terminal::open(&folder, SHELL, "history");
    terminal.types("", PROMPT).types("\u{1b}[A", "count").types("\r", "1\r\n").types("", PROMPT);
    assert_eq!(terminal.ends("quit\r"), 0);

    // If the history cannot be written, the shell reports it once and continues.
    let mut terminal = Terminal::open(&folder, SHELL, "no/such/folder");
    terminal.types("", PROMPT).types("count\r", "the history is not saved").types("", "1\r\n");
    terminal.types("", PROMPT);
    assert_eq!(terminal.ends("quit\r"), 0);
}
