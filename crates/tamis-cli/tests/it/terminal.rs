//! The shell on a terminal, key by key: what a person types, sees, and finds again the next time.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    process::{Child, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};

use crate::Folder;

/// A terminal with the shell on it.
struct Terminal {
    child: Child,
    master: File,
    /// Everything that was shown.
    shown: String,
    /// Up to where that was expected.
    seen: usize,
}

impl Terminal {
    fn open(folder: &Folder, history: &str) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        // It shall become the terminal of no other process.
        let flags = OFlags::NOCTTY.bits() as i32;
        let slave = || {
            let options = File::options().read(true).write(true).custom_flags(flags).open(&path);
            Stdio::from(options.unwrap())
        };
        let mut command = folder.command(&["shell", "store"]);
        command.stdin(slave()).stdout(slave()).stderr(slave());
        command.env("TERM", "xterm").env("TAMIS_HISTORY", folder.path(history));
        Self { child: command.spawn().unwrap(), master: master.into(), shown: String::new(), seen: 0 }
    }

    /// Types keys, and reads on until the terminal has shown `expected` after them.
    fn types(&mut self, keys: &str, expected: &str) -> &mut Self {
        self.master.write_all(keys.as_bytes()).unwrap();
        loop {
            if let Some(place) = self.shown[self.seen..].find(expected) {
                self.seen += place + expected.len();
                return self;
            }
            let wait = Timespec { tv_sec: 60, tv_nsec: 0 };
            let ready = poll(&mut [PollFd::new(&self.master, PollFlags::IN)], Some(&wait)).unwrap();
            assert!(ready > 0, "{expected:?} never came: {:?}", self.shown);
            let mut bytes = [0; 1024];
            let length =
                self.master.read(&mut bytes).unwrap_or_else(|error| panic!("{error}: {}", self.shown));
            self.shown.push_str(&String::from_utf8_lossy(&bytes[..length]));
        }
    }

    /// Types the last keys; the exit code.
    fn ends(mut self, keys: &str) -> i32 {
        self.master.write_all(keys.as_bytes()).unwrap();
        // The terminal fails to be read once nobody has it open.
        let mut rest = Vec::new();
        let _ = self.master.read_to_end(&mut rest);
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

/// The end of a prompt; a line is taken behind it.
const PROMPT: &str = "default> ";

#[test]
fn a_person_talks_to_the_shell() {
    let folder = Folder::new();
    let mut terminal = Terminal::open(&folder, "history");
    // A prompt is waited for before each line: keys that come before it may be lost as the terminal changes its mode.
    terminal
        .types("", PROMPT)
        .types("put apple red\r", PROMPT)
        .types("get apple\r", "red\r\n")
        .types("", PROMPT);
    // Lines that fail are told, and the next one is asked for.
    terminal.types("get nothing\r", "not there").types("", PROMPT);
    terminal.types("frobnicate\r", "unrecognized subcommand").types("", PROMPT);
    terminal.types("keyspace none\r", "there are: default").types("", PROMPT);
    // Ctrl-C leaves the line.
    terminal
        .types("delete apple", "apple")
        .types("\u{3}", PROMPT)
        .types("count\r", "1\r\n")
        .types("", PROMPT);
    // A terminal may be closed at any time: lines are kept at once.
    let history = std::fs::read_to_string(folder.path("history")).unwrap();
    assert!(history.contains("put apple red\nget apple\nget nothing\n"), "{history}");
    assert!(!history.contains("delete apple"), "{history}");
    assert_eq!(terminal.ends("\u{4}"), 0, "Ctrl-D leaves the shell");
    assert_eq!(folder.ok(&["get", "store", "apple"]), "red\n");

    // The next time the last line is the first that the arrow brings.
    let mut terminal = Terminal::open(&folder, "history");
    terminal.types("", PROMPT).types("\u{1b}[A", "count").types("\r", "1\r\n").types("", PROMPT);
    assert_eq!(terminal.ends("quit\r"), 0);

    // A history that can't be written is told once, and hinders nothing.
    let mut terminal = Terminal::open(&folder, "no/such/folder");
    terminal.types("", PROMPT).types("count\r", "lines are not kept").types("", "1\r\n");
    terminal.types("", PROMPT);
    assert_eq!(terminal.ends("quit\r"), 0);
}
