//! A separate screen of the terminal, and keys without a line: both are given back when it is dropped.

use std::{
    io::{self, IsTerminal, Write},
    thread,
    time::Duration,
};

use crossterm::{
    QueueableCommand as _,
    cursor::MoveTo,
    event::{self, Event, KeyCode, KeyModifiers},
    terminal::{
        Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
    },
};

use crate::{failure::Failure, interrupt};

/// The size of a terminal that does not say it.
const ROWS: usize = 24;
const COLUMNS: usize = 80;
/// The time after which an interrupt is seen.
const SLICE: Duration = Duration::from_millis(100);

/// See the head of this file.
pub(super) struct Screen<'a> {
    output: &'a mut dyn Write,
    /// The input is a terminal: without one only an interrupt ends the screen.
    has_keys: bool,
}

impl<'a> Screen<'a> {
    pub(super) fn open(output: &'a mut dyn Write) -> Result<Self, Failure> {
        let has_keys = io::stdin().is_terminal();
        if has_keys {
            enable_raw_mode()?;
        }
        let screen = Self { output, has_keys };
        screen.output.queue(EnterAlternateScreen)?;
        Ok(screen)
    }

    /// Shows the first lines of a text: as many as the terminal has.
    pub(super) fn show(&mut self, text: &str) -> Result<(), Failure> {
        let known = size().ok().filter(|&(columns, rows)| columns > 0 && rows > 0);
        let (columns, rows) = known.map_or((COLUMNS, ROWS), |(columns, rows)| (columns.into(), rows.into()));
        let lines = text.lines().take(rows).map(|line| line.chars().take(columns).collect::<String>());
        let lines: Vec<_> = lines.collect();
        // In raw mode a line feed does not return to the first column.
        self.output.queue(MoveTo(0, 0))?.queue(Clear(ClearType::FromCursorDown))?;
        write!(self.output, "{}", lines.join("\r\n"))?;
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
        if !self.has_keys {
            thread::park_timeout(time);
            return Ok(false);
        }
        if !event::poll(time)? {
            return Ok(false);
        }
        Ok(match event::read()? {
            Event::Key(key) if key.code == KeyCode::Char('c') => {
                key.modifiers.contains(KeyModifiers::CONTROL)
            }
            Event::Key(key) => matches!(key.code, KeyCode::Char('q' | 'Q')),
            _ => false,
        })
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        // The terminal may be closed.
        let _ = self.output.queue(LeaveAlternateScreen).and_then(|output| output.flush());
        if self.has_keys {
            let _ = disable_raw_mode();
        }
    }
}
