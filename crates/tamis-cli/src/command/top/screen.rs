//! A separate screen of the terminal, and keys without a line: both are given back when it is dropped.

use std::{
    io::{self, Write},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, read},
    stdio::{stdin, stdout},
    termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};

use crate::{failure::Failure, interrupt};

/// The alternative screen on, and off.
const OPEN: &str = "\x1b[?1049h";
const CLOSE: &str = "\x1b[?1049l";
/// Moves to the first line and clears what is below.
const CLEAR: &str = "\x1b[H\x1b[J";
/// The size of a terminal that does not say it.
const ROWS: usize = 24;
const COLUMNS: usize = 80;
/// The time after which an interrupt is seen.
const SLICE: Duration = Duration::from_millis(100);

/// See the head of this file.
pub(super) struct Screen<'a> {
    output: &'a mut dyn Write,
    /// The mode of the input before; `None` if it is no terminal: only an interrupt ends the screen then.
    before: Option<Termios>,
}

impl<'a> Screen<'a> {
    pub(super) fn open(output: &'a mut dyn Write) -> Result<Self, Failure> {
        let before = tcgetattr(stdin()).ok();
        if let Some(mode) = &before {
            let mut keys = mode.clone();
            keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            tcsetattr(stdin(), OptionalActions::Now, &keys).map_err(io::Error::from)?;
        }
        let screen = Self { output, before };
        write!(screen.output, "{OPEN}")?;
        Ok(screen)
    }

    /// Shows the first lines of a text: as many as the terminal has.
    pub(super) fn show(&mut self, text: &str) -> Result<(), Failure> {
        let size = tcgetwinsize(stdout()).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
        let (rows, columns) = size.map_or((ROWS, COLUMNS), |size| (size.ws_row.into(), size.ws_col.into()));
        let lines = text.lines().take(rows).map(|line| line.chars().take(columns).collect::<String>());
        let lines: Vec<_> = lines.collect();
        write!(self.output, "{CLEAR}{}", lines.join("\n"))?;
        Ok(self.output.flush()?)
    }

    /// Waits; returns whether the user ends the command in this time.
    pub(super) fn is_ended_within(&self, time: Duration) -> Result<bool, Failure> {
        let mut rest = time;
        while !rest.is_zero() && !interrupt::is_interrupted() {
            let slice = rest.min(SLICE);
            if self.has_end_key(slice)? {
                return Ok(true);
            }
            rest -= slice;
        }
        Ok(interrupt::is_interrupted())
    }

    /// Waits for a key; whether it is one that ends the command.
    fn has_end_key(&self, time: Duration) -> Result<bool, Failure> {
        let input = stdin();
        let mut inputs = [PollFd::new(&input, PollFlags::IN)];
        let inputs = if self.before.is_some() { &mut inputs[..] } else { &mut [] };
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        match poll(inputs, Some(&time)) {
            // The signal is seen by the caller.
            Ok(0) | Err(Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let mut keys = [0; 16];
        match read(input, &mut keys) {
            // The terminal was closed.
            Ok(0) => Ok(true),
            Ok(length) => Ok(keys.iter().take(length).any(|key| matches!(key, b'q' | b'Q' | 3))),
            Err(Errno::INTR | Errno::AGAIN) => Ok(false),
            Err(_) => Ok(true),
        }
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        // The terminal may be closed.
        let _ = write!(self.output, "{CLOSE}").and_then(|()| self.output.flush());
        if let Some(mode) = &self.before {
            let _ = tcsetattr(stdin(), OptionalActions::Now, mode);
        }
    }
}
