//! A scanner of Rust text: blanks comments, strings and characters, and finds words, lines and bodies in the rest.
//!
//! The masked text has the same length and the same line breaks as the source, so offsets in one are offsets in the
//! other. Raw strings, byte and C strings, nested comments, and the difference between `'a'` and `'a` are known; macro
//! bodies are read as ordinary code.

/// The source with comments and literals turned into spaces.
pub fn mask(source: &str) -> String {
    let mut masker = Masker { bytes: source.as_bytes(), offset: 0, masked: Vec::with_capacity(source.len()) };
    while masker.offset < masker.bytes.len() {
        masker.step();
    }
    String::from_utf8_lossy(&masker.masked).into_owned()
}

struct Masker<'a> {
    bytes: &'a [u8],
    offset: usize,
    masked: Vec<u8>,
}

impl Masker<'_> {
    /// The byte so far ahead; 0 past the end.
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.offset + ahead).copied().unwrap_or_default()
    }

    fn keep(&mut self) {
        self.masked.push(self.peek(0));
        self.offset += 1;
    }

    fn blank(&mut self, count: usize) {
        for _ in 0..count {
            if self.offset < self.bytes.len() {
                self.masked.push(if self.peek(0) == b'\n' { b'\n' } else { b' ' });
                self.offset += 1;
            }
        }
    }

    fn step(&mut self) {
        match (self.peek(0), self.peek(1)) {
            (b'/', b'/') => {
                while self.offset < self.bytes.len() && self.peek(0) != b'\n' {
                    self.blank(1);
                }
            }
            (b'/', b'*') => self.blank_nested_comment(),
            (b'"', _) => self.blank_string(),
            (b'\'', _) => self.blank_character_or_keep_lifetime(),
            (byte, _) if is_word_byte(byte) => self.keep_word_or_blank_raw_string(),
            _ => self.keep(),
        }
    }

    fn blank_nested_comment(&mut self) {
        let mut depth = 0_usize;
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => depth += 1,
                (b'*', b'/') => depth -= 1,
                _ if self.offset >= self.bytes.len() => return,
                _ => {
                    self.blank(1);
                    continue;
                }
            }
            self.blank(2);
            if depth == 0 {
                return;
            }
        }
    }

    fn blank_string(&mut self) {
        self.blank(1);
        while self.offset < self.bytes.len() {
            match self.peek(0) {
                b'\\' => self.blank(2),
                b'"' => return self.blank(1),
                _ => self.blank(1),
            }
        }
    }

    fn blank_character_or_keep_lifetime(&mut self) {
        if self.peek(1) == b'\\' {
            self.blank(3);
        } else if self.peek(1) < 0x80 && self.peek(2) != b'\'' {
            return self.keep();
        } else {
            self.blank(1);
        }
        while self.offset < self.bytes.len() && self.peek(0) != b'\'' {
            self.blank(1);
        }
        self.blank(1);
    }

    /// A word is kept whole, so that the `r` of `for` never begins a raw string.
    fn keep_word_or_blank_raw_string(&mut self) {
        let rest = self.bytes.get(self.offset..).unwrap_or_default();
        let length = rest.iter().take_while(|&&byte| is_word_byte(byte)).count();
        let is_raw = matches!(rest.get(..length), Some(b"r" | b"br" | b"cr"));
        let fence = rest.iter().skip(length).take_while(|&&byte| byte == b'#').count();
        if is_raw && rest.get(length + fence) == Some(&b'"') {
            self.blank(length + fence + 1);
            while self.offset < self.bytes.len() && !self.closes_raw_string(fence) {
                self.blank(1);
            }
            return self.blank(fence + 1);
        }
        for _ in 0..length {
            self.keep();
        }
    }

    fn closes_raw_string(&self, fence: usize) -> bool {
        self.peek(0) == b'"' && (1..=fence).all(|ahead| self.peek(ahead) == b'#')
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The words (names, keywords, numbers) of masked code with their byte offsets.
pub fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut offset = 0;
    code.split(|character: char| !(character.is_alphanumeric() || character == '_')).filter_map(move |word| {
        let at = code.get(offset..).and_then(|rest| rest.find(word)).map_or(offset, |found| offset + found);
        offset = at + word.len();
        (!word.is_empty()).then_some((at, word))
    })
}

/// A function with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Byte offset of the word `fn`.
    pub offset: usize,
    /// Lines from the word `fn` to the closing brace, both included.
    pub line_count: usize,
}

/// The functions of masked code, nested ones too.
pub fn functions(code: &str) -> Vec<Function> {
    let all: Vec<(usize, &str)> = words(code).collect();
    let mut found = Vec::new();
    for pair in all.windows(2) {
        let &[(offset, "fn"), (name_offset, name)] = pair else { continue };
        // `fn(u8)` is a type: something other than space is between the words.
        let between = code.get(offset + 2..name_offset).unwrap_or_default();
        if !between.trim().is_empty() {
            continue;
        }
        if let Some(length) = body_end(code.get(offset..).unwrap_or_default()) {
            let text = code.get(offset..offset + length).unwrap_or_default();
            let line_count = 1 + text.matches('\n').count();
            found.push(Function { name: name.to_owned(), offset, line_count });
        }
    }
    found
}

/// Length up to and with the brace that closes the body; `None` for a declaration without one.
fn body_end(code: &str) -> Option<usize> {
    let mut round = 0_i32;
    let mut braces = 0_i32;
    for (offset, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' => round += 1,
            b')' | b']' => round -= 1,
            b';' if round == 0 && braces == 0 => return None,
            b'{' => braces += 1,
            b'}' => {
                braces -= 1;
                if braces == 0 && round == 0 {
                    return Some(offset + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;
