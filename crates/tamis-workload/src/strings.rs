//! Text keys: domain names, e-mail addresses, and the Zipfian-composite keys of the REMIX paper.
//!
//! Real lists cannot be published, so these are generated: words are chains of syllables, chosen with the skew of
//! language, so that keys share prefixes as real ones do. They have the properties that papers report of their lists:
//! domain names have 5 to 253 bytes, a median of 21, and log-normal lengths; addresses are host-reversed
//! (`com.example@name`), 22 bytes on average and at most 129. Lengths use the system's `ln`, `exp` and `cos`: another
//! C library may draw a few other keys. Cost: one sort of all keys; memory: the keys and 24 bytes per key.

use std::{f64::consts::PI, fmt, str::FromStr};

use crate::{
    operations::hex_digits,
    prng::SplitMix64,
    zipf::{Zipfian, ZipfianComposite},
};

#[cfg(test)]
mod tests;

/// Bytes of domain names.
const DOMAIN_BYTES: (usize, usize) = (5, 253);
/// The median of their lengths.
const DOMAIN_MEDIAN: f64 = 21.0;
/// The deviation of the logarithm of their lengths.
const DOMAIN_DEVIATION: f64 = 0.36;
/// The suffix of all of them, as in the Proteus paper.
const DOMAIN_END: &str = ".org";
/// Maximum length of a label.
const LABEL_BYTES_MAX: usize = 63;
/// One domain name in this number has a subdomain.
const SUBDOMAIN_ONE_IN: u64 = 4;

/// The longest address.
const ADDRESS_BYTES_MAX: usize = 129;
/// The median of the lengths of names in addresses, and the deviation of its logarithm.
const NAME_MEDIAN: f64 = 8.8;
const NAME_DEVIATION: f64 = 0.35;
/// Hosts of addresses, the most popular first; the others are generated.
const HOSTS: [&str; 12] = [
    "com.gmail",
    "com.yahoo",
    "com.hotmail",
    "com.aol",
    "com.outlook",
    "net.comcast",
    "com.msn",
    "com.live",
    "de.web",
    "de.gmx",
    "uk.co.btinternet",
    "fr.free",
];
/// Number of hosts.
const HOST_COUNT: u64 = 20_000;
/// One name in this number ends with a number.
const NUMBERED_ONE_IN: u64 = 3;

/// Prefixes of composite keys: a few have all their 65,536 keys in a set of millions, most have a handful.
const COMPOSITE_PREFIXES: u64 = 1 << 20;

const ENDS: [&str; 8] = ["com", "net", "org", "de", "uk.co", "edu", "fr", "jp.co"];

/// The most frequent first: they are chosen with the skew of language.
const SYLLABLES: [&str; 96] = [
    "an", "er", "in", "ma", "re", "on", "al", "ar", "ti", "la", "st", "en", "or", "ro", "de", "co", "li",
    "ra", "te", "ne", "ca", "is", "to", "mi", "el", "sa", "no", "me", "ri", "le", "ta", "pa", "do", "lo",
    "so", "mo", "na", "es", "be", "da", "vi", "di", "se", "ch", "ha", "as", "art", "ba", "ga", "man", "ing",
    "the", "pro", "net", "web", "com", "ist", "hu", "jo", "ke", "fa", "gr", "tr", "sch", "bo", "ver", "tra",
    "ja", "ko", "wi", "su", "pi", "fi", "go", "ki", "ho", "ni", "va", "tu", "po", "cy", "ed", "um", "ex",
    "us", "ly", "og", "ow", "zu", "za", "qu", "xi", "yo", "ky", "ev", "uk",
];

/// Kinds of text keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextSet {
    /// Domain names.
    Domains,
    /// Host-reversed e-mail addresses.
    Emails,
    /// 16 hexadecimal digits, of which the first 12 are Zipfian and the others uniform.
    Composite,
}

impl TextSet {
    /// All sets, in the order in which they are listed to users.
    pub const ALL: [Self; 3] = [Self::Domains, Self::Emails, Self::Composite];

    /// The set's name in file names and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Domains => "domains",
            Self::Emails => "emails",
            Self::Composite => "composite",
        }
    }

    /// `count` distinct keys, ascending.
    pub fn generate(self, count: usize, seed: u64) -> Vec<Vec<u8>> {
        let mut draws = TextDraws::new(self, seed);
        let mut keys = Vec::with_capacity(count);
        while keys.len() < count {
            for _ in keys.len()..count {
                keys.push(draws.draw());
            }
            keys.sort_unstable();
            keys.dedup();
        }
        keys
    }

    /// `key_count` keys and `query_count` other ones of the same kind, both distinct and ascending: an experiment's
    /// keys and its absent points. One set is divided into both parts at random.
    pub fn generate_split(
        self,
        key_count: usize,
        query_count: usize,
        seed: u64,
    ) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let all = self.generate(key_count + query_count, seed);
        let mut random = SplitMix64::new(seed ^ SPLIT_SEED);
        let (mut keys, mut queries) = (Vec::with_capacity(key_count), Vec::with_capacity(query_count));
        for text in all {
            let (keys_left, queries_left) = (key_count - keys.len(), query_count - queries.len());
            if random.below((keys_left + queries_left) as u64) < keys_left as u64 {
                keys.push(text);
            } else {
                queries.push(text);
            }
        }
        (keys, queries)
    }
}

/// Makes the division independent of the generation with the same seed.
const SPLIT_SEED: u64 = 0x7370_6C69_7400;

/// Draws texts, possibly repeated.
#[derive(Debug, Clone)]
pub struct TextDraws {
    set: TextSet,
    random: SplitMix64,
    syllables: Zipfian,
    hosts: Zipfian,
    composite: Option<ZipfianComposite>,
}

impl TextDraws {
    /// The draws of a seed.
    pub fn new(set: TextSet, seed: u64) -> Self {
        Self {
            set,
            random: SplitMix64::new(seed),
            syllables: Zipfian::new(SYLLABLES.len() as u64),
            hosts: Zipfian::new(HOST_COUNT),
            composite: (set == TextSet::Composite).then(|| ZipfianComposite::new(COMPOSITE_PREFIXES)),
        }
    }

    /// The next text.
    pub fn draw(&mut self) -> Vec<u8> {
        match (&self.composite, self.set) {
            (Some(composite), _) => hex_digits(composite.draw(&mut self.random)).to_vec(),
            (None, TextSet::Domains) => self.domain().into_bytes(),
            (None, _) => self.email().into_bytes(),
        }
    }

    fn domain(&mut self) -> String {
        let (least, most) = DOMAIN_BYTES;
        let length = self.log_normal(DOMAIN_MEDIAN, DOMAIN_DEVIATION, least, most);
        let mut rest = length - DOMAIN_END.len();
        let mut text = String::with_capacity(length);
        if rest > 8 && self.random.below(SUBDOMAIN_ONE_IN) == 0 {
            let front = 2 + self.random.below(4) as usize;
            self.word(front, &mut text);
            text.push('.');
            rest -= front + 1;
        }
        while rest > LABEL_BYTES_MAX {
            // At least one byte remains after the dot.
            let label = LABEL_BYTES_MAX.min(rest - 2);
            self.word(label, &mut text);
            text.push('.');
            rest -= label + 1;
        }
        self.word(rest, &mut text);
        text + DOMAIN_END
    }

    fn email(&mut self) -> String {
        let rank = self.hosts.draw(&mut self.random);
        let mut text = match HOSTS.get(rank as usize) {
            Some(host) => (*host).to_owned(),
            None => drawn_host(rank, &self.syllables),
        };
        text.push('@');
        let most = ADDRESS_BYTES_MAX - text.len();
        let length = self.log_normal(NAME_MEDIAN, NAME_DEVIATION, 2, most);
        let digits = match self.random.below(NUMBERED_ONE_IN) {
            0 if length > 5 => 1 + self.random.below(4) as usize,
            _ => 0,
        };
        let mut letters = length - digits;
        if letters > 8 && self.random.below(2) == 0 {
            let first = 3 + self.random.below(4) as usize;
            self.word(first, &mut text);
            text.push('.');
            letters -= first + 1;
        }
        self.word(letters, &mut text);
        for _ in 0..digits {
            text.push(char::from(b'0' + self.random.below(10) as u8));
        }
        text
    }

    /// Appends exactly `length` letters.
    fn word(&mut self, length: usize, text: &mut String) {
        word(length, text, &self.syllables, &mut self.random);
    }

    /// A length whose logarithm is normal; values outside the bounds are drawn again.
    fn log_normal(&mut self, median: f64, deviation: f64, least: usize, most: usize) -> usize {
        loop {
            let (u1, u2) = (self.random.unit_above_zero(), self.random.unit());
            let z = (-2.0 * u1.ln()).sqrt() * (2.0 * PI * u2).cos();
            let length = (median * (deviation * z).exp()).round() as usize;
            if (least..=most).contains(&length) {
                return length;
            }
        }
    }
}

fn word(length: usize, text: &mut String, syllables: &Zipfian, random: &mut SplitMix64) {
    let end = text.len() + length;
    while text.len() < end {
        text.push_str(SYLLABLES.get(syllables.draw(random) as usize).copied().unwrap_or_default());
    }
    text.truncate(end);
}

/// The host of a rank: independent of the seed, as hosts are the same in all lists.
fn drawn_host(rank: u64, syllables: &Zipfian) -> String {
    let mut random = SplitMix64::new(rank);
    let mut host = ENDS.get(random.below(ENDS.len() as u64) as usize).copied().unwrap_or_default().to_owned();
    host.push('.');
    let length = 5 + random.below(8) as usize;
    word(length, &mut host, syllables, &mut random);
    host
}

impl fmt::Display for TextSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for TextSet {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|set| set.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.map(Self::name).to_vec();
            format!("no text set named {name:?}; there are {}", names.join(", "))
        })
    }
}
