//! Reads Grafite in place: maps a range to at most two intervals of hashes and looks these up.

use std::fmt;

use tamis_bits::elias_fano::{self, EliasFano, EliasFanoShape};

use super::hash::BlockHash;
use super::symbols::{POSITIONS_MAX, Symbols};
use super::window::{ByteWindow, Window};
use super::{FLAG_ENDS_INSIDE, FLAG_EXACT, FLAG_FIXED, FLAG_SYMBOLS, FLAG_WHOLE, FRONT_BYTES, MODULUS_MAX};
use crate::envelope::{self, ENVELOPE_BYTES, Envelope};
use crate::filter::envelope_methods;
use crate::{DecodeError, Filter, KeyRange, Probe, RangeProbe};

const FLAGS: u8 = FLAG_WHOLE | FLAG_FIXED | FLAG_EXACT | FLAG_SYMBOLS | FLAG_ENDS_INSIDE;

/// A filter of [`crate::Family::Grafite`].
#[derive(Debug, Clone)]
pub struct GrafiteFilter<D> {
    bytes: D,
    envelope: Envelope,
    predicted_fpr: f32,
    window: Window,
    shared_bytes: usize,
    /// `None` if windows are stored as they are.
    hash: Option<BlockHash>,
    /// The greatest possible hash.
    last: u64,
    hash_count: u64,
    /// `None` in an empty filter.
    shape: Option<EliasFanoShape>,
}

/// Hashes from `start` to `start + span`, modulo the number of hashes.
#[derive(Debug, Clone, Copy)]
struct Interval {
    start: u64,
    span: u64,
}

/// The hashes of a range of windows.
#[derive(Debug, Clone, Copy)]
enum Image {
    /// No key can be in the range.
    Empty,
    /// The range is longer than a block.
    TooLong,
    One(Interval),
    /// The range crosses a block border.
    Two(Interval, Interval),
}

/// The stored parts of a filter with keys.
#[derive(Debug, Clone, Copy)]
struct View<'a> {
    hashes: EliasFano<'a>,
    shared: &'a [u8],
}

/// The most bytes of a window, and whether the flags may occur together.
fn limits(flags: u8) -> (u8, bool) {
    let has = |flag: u8| flags & flag != 0;
    if has(FLAG_SYMBOLS) {
        (POSITIONS_MAX as u8, flags <= FLAGS && !has(FLAG_FIXED))
    } else {
        (8, flags <= FLAGS && !has(FLAG_ENDS_INSIDE) && (has(FLAG_WHOLE) || !has(FLAG_FIXED)))
    }
}

fn byte_window(byte_count: u8, flags: u8) -> ByteWindow {
    ByteWindow {
        byte_count: u32::from(byte_count),
        is_whole: flags & FLAG_WHOLE != 0,
        is_fixed: flags & FLAG_FIXED != 0,
    }
}

/// The symbols after the hashes of a filter.
fn symbols(filter: &[u8], hash_bytes: u64, byte_count: u8, flags: u8) -> Option<Symbols> {
    let start = usize::try_from(hash_bytes).ok()?.checked_add(FRONT_BYTES)?;
    let stored = envelope::payload(filter).get(start..)?;
    Symbols::decode(stored, usize::from(byte_count), flags & FLAG_ENDS_INSIDE != 0)
}

impl<D: AsRef<[u8]>> GrafiteFilter<D> {
    pub(crate) fn open(envelope: Envelope, bytes: D) -> Result<Self, DecodeError> {
        let parameters = &envelope.parameters;
        let [byte_count, flags] = envelope::parameter::<2>(parameters, 0);
        let shared_bytes = usize::from(u16::from_le_bytes(envelope::parameter(parameters, 2)));
        let predicted_fpr = f32::from_le_bytes(envelope::parameter(parameters, 4));
        let last = u64::from_le_bytes(envelope::parameter(parameters, 8));
        let refuse = |field, got| Err(DecodeError::Field { field, got });
        let has = |flag: u8| flags & flag != 0;
        let (byte_count_max, are_possible) = limits(flags);
        if byte_count > byte_count_max {
            return refuse("window_bytes", u64::from(byte_count));
        }
        if !are_possible {
            return refuse("flags", u64::from(flags));
        }
        let byte_window = byte_window(byte_count, flags);
        if !(0.0..=1.0).contains(&predicted_fpr) {
            return refuse("predicted_fpr", u64::from(predicted_fpr.to_bits()));
        }
        if envelope.key_count == 0 {
            envelope::check_reserved(parameters, 0)?;
            if envelope.payload_bytes != 0 {
                return refuse("payload_bytes", envelope.payload_bytes);
            }
            return Ok(Self {
                bytes,
                envelope,
                predicted_fpr,
                window: Window::Bytes(byte_window),
                shared_bytes,
                hash: None,
                last,
                hash_count: 0,
                shape: None,
            });
        }
        let is_exact = has(FLAG_EXACT);
        if !is_exact && !(1..MODULUS_MAX).contains(&last) {
            return refuse("last", last);
        }
        let front = envelope::payload(bytes.as_ref()).first_chunk::<FRONT_BYTES>();
        let Some(hash_count) = front.map(|front| u64::from_le_bytes(*front)) else {
            return refuse("payload_bytes", envelope.payload_bytes);
        };
        if hash_count == 0 || hash_count > envelope.key_count {
            return refuse("hash_count", hash_count);
        }
        let encoded = elias_fano::encoded_bytes(hash_count, last);
        let (Some(encoded), Some(shape)) = (encoded, EliasFanoShape::new(hash_count, last)) else {
            return refuse("hash_count", hash_count);
        };
        let mut others = (FRONT_BYTES + shared_bytes) as u64;
        let mut window = Window::Bytes(byte_window);
        if has(FLAG_SYMBOLS) {
            let Some(symbols) = symbols(bytes.as_ref(), encoded, byte_count, flags) else {
                return refuse("symbols", u64::from(byte_count));
            };
            others += symbols.encoded_bytes() as u64;
            window = Window::Symbols(Box::new(symbols.symbol_window(has(FLAG_WHOLE))));
        }
        if encoded.checked_add(others) != Some(envelope.payload_bytes) {
            return refuse("payload_bytes", envelope.payload_bytes);
        }
        let shape = Some(shape);
        let hash = (!is_exact).then(|| BlockHash::new(envelope.seed, last + 1));
        Ok(Self { bytes, envelope, predicted_fpr, window, shared_bytes, hash, last, hash_count, shape })
    }

    /// `None` in an empty filter.
    #[inline(always)]
    fn view(&self) -> Option<View<'_>> {
        let bytes = self.bytes.as_ref();
        let shared_start = bytes.len().checked_sub(self.shared_bytes)?;
        let hashes = self.shape.as_ref()?.view(bytes.get(ENVELOPE_BYTES + FRONT_BYTES..)?)?;
        Some(View { hashes, shared: bytes.get(shared_start..)? })
    }

    #[inline(always)]
    fn image_of_key(&self, view: &View<'_>, key: &[u8]) -> Image {
        match self.window.of_point(view.shared, key) {
            Some(number) => self.image(number, number),
            None => Image::Empty,
        }
    }

    #[inline(always)]
    fn image_of_range(&self, view: &View<'_>, range: &KeyRange<'_>) -> Image {
        match self.window.of_range(view.shared, range) {
            Some((lower, upper)) => self.image(lower, upper),
            None => Image::Empty,
        }
    }

    /// The hashes of the windows between two, both included.
    #[inline(always)]
    fn image(&self, lower: u64, upper: u64) -> Image {
        let span = upper - lower;
        let Some(hash) = &self.hash else {
            let last = self.last;
            return if lower > last {
                Image::Empty
            } else {
                Image::One(Interval { start: lower, span: span.min(last - lower) })
            };
        };
        if span >= self.last {
            return Image::TooLong;
        }
        let (block, place) = hash.block(lower);
        let start = hash.rotate(block, place);
        let to_border = self.last - place;
        if span <= to_border {
            return Image::One(Interval { start, span });
        }
        let next = Interval { start: hash.rotate(block + 1, 0), span: span - to_border - 1 };
        Image::Two(Interval { start, span: to_border }, next)
    }

    #[inline(always)]
    fn may_meet(&self, view: &View<'_>, image: &Image) -> bool {
        match image {
            Image::Empty => false,
            Image::TooLong => true,
            Image::One(interval) => self.has_hash(view, interval),
            Image::Two(first, second) => self.has_hash(view, first) || self.has_hash(view, second),
        }
    }

    #[inline(always)]
    fn has_hash(&self, view: &View<'_>, interval: &Interval) -> bool {
        let Interval { start, span } = *interval;
        let next = view.hashes.successor(start);
        let to_end = self.last - start;
        if span <= to_end {
            return next.is_some_and(|(_, next)| next.wrapping_sub(start) <= span);
        }
        // The interval wraps around.
        next.is_some() || view.hashes.successor(0).is_some_and(|(_, least)| least < span - to_end)
    }
}

impl<D: AsRef<[u8]>> Filter for GrafiteFilter<D> {
    #[inline]
    fn may_contain(&self, probe: &Probe<'_>) -> bool {
        probe.add_probes(1);
        match self.view() {
            Some(view) => self.may_meet(&view, &self.image_of_key(&view, probe.key())),
            None => self.hash_count > 0,
        }
    }

    #[inline]
    fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        probe.add_probes(1);
        match self.view() {
            Some(view) => self.may_meet(&view, &self.image_of_range(&view, probe.range())),
            None => self.hash_count > 0 && !probe.range().is_empty(),
        }
    }

    fn prefetch(&self, probe: &Probe<'_>) {
        if let Some(view) = self.view()
            && let Image::One(interval) | Image::Two(interval, _) = self.image_of_key(&view, probe.key())
        {
            view.hashes.prefetch(interval.start);
        }
    }

    envelope_methods!(self, self.envelope);

    /// The rate for points that are distributed as the keys are.
    fn predicted_fpr(&self) -> Option<f64> {
        Some(f64::from(self.predicted_fpr))
    }

    fn design(&self, target: &mut dyn fmt::Write) -> fmt::Result {
        let count = self.hash_count;
        match self.hash {
            None => write!(target, "{count} exact windows of ")?,
            Some(_) => write!(target, "{count} windows of ")?,
        }
        match &self.window {
            Window::Bytes(window) => write!(target, "{} bytes", window.byte_count)?,
            Window::Symbols(window) => {
                write!(target, "{} bytes of {} values", window.position_count(), window.radix())?;
            }
        }
        write!(target, " after {} shared bytes", self.shared_bytes)?;
        match self.hash {
            None => Ok(()),
            Some(_) => write!(target, ", hashed modulo {}", self.last + 1),
        }
    }
}
