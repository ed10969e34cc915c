//! The layout of an encoded filter. Defined in `docs/format/filter.md`.
//!
//! ```text
//! parts block, 64 bytes | Bloom filter of the second stage | first stage: Bloom filter or set
//! ```

use tamis_bits::{BitmapShape, EliasFanoShape, bitmap};

use super::bloom::{self, BloomView};
use super::design::{BloomLayout, Prices, SetForm, WHOLE_KEYS};
use crate::envelope::PARAMETER_BYTES;
use crate::fixed_keys::FixedKeys;
use crate::key_set::PREFIX_BITS_MAX;
use crate::trie::{Layout, TRAILER_BYTES};
use crate::{DecodeError, Family, Probe};

/// Bytes of the block before the parts.
pub(super) const BLOCK_BYTES: usize = 64;
/// A level of a trie: number of its first leaf (u32), first bit of its leaves (u64).
pub(super) const LEVEL_BYTES: usize = 12;
/// Bytes of a trie set in addition to the trie, the level table and the explicit bits.
pub(super) const fn trie_overhead() -> u64 {
    TRAILER_BYTES as u64
}

/// A Bloom filter in the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BloomPart {
    /// Bits of a prefix, or [`WHOLE_KEYS`].
    pub(super) prefix: u32,
    /// Whether the prefixes are whole keys, which have the digests of keys.
    pub(super) holds_keys: bool,
    pub(super) layout: BloomLayout,
    pub(super) probe_count: u32,
    pub(super) start: usize,
    pub(super) length: usize,
}

impl BloomPart {
    /// The digest of the only prefix of a key.
    #[inline(always)]
    pub(super) fn key_digest(&self, seed: u64, probe: &Probe<'_>) -> u64 {
        if self.holds_keys { probe.digest(seed) } else { probe.prefix_digest(seed, self.prefix) }
    }

    #[inline(always)]
    pub(super) fn view<'a>(&self, payload: &'a [u8]) -> BloomView<'a> {
        let rest = payload.get(self.start..).unwrap_or_default();
        let bytes = rest.get(..self.length).unwrap_or_default();
        BloomView { bytes, layout: self.layout, probe_count: self.probe_count }
    }
}

/// A set in the payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct SetPart {
    pub(super) depth: u32,
    pub(super) form: SetForm,
    pub(super) start: usize,
    /// The least prefix, and the distance to the greatest; integers only.
    pub(super) least: u64,
    pub(super) last: u64,
    pub(super) shape: SetShape,
}

/// The offsets inside a set, by its form.
#[derive(Debug, Clone, Copy)]
pub(super) enum SetShape {
    Trie(Layout),
    EliasFano(EliasFanoShape),
    Bitmap(BitmapShape),
}

/// The first stage.
#[derive(Debug, Clone, Copy)]
pub(super) enum FirstPart {
    None,
    Set(SetPart),
    Bloom(BloomPart),
}

/// All parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    /// Keys of one length of at most eight bytes.
    pub(super) fixed: Option<FixedKeys>,
    /// The length of all other keys, 0 if lengths differ.
    pub(super) string_bytes: u16,
    pub(super) first: FirstPart,
    pub(super) bloom: Option<BloomPart>,
    /// Most tests in Bloom filters per query.
    pub(super) cap: u64,
    pub(super) predicted: Option<f64>,
}

/// The fields of the block and the parameters.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fields {
    pub(super) depth: u32,
    pub(super) prefix: u32,
    pub(super) cap: u32,
    /// 0 none, the form of a set, or [`FIRST_BLOOM`].
    pub(super) first: u8,
    pub(super) key_bytes: u8,
    pub(super) string_bytes: u16,
    pub(super) layout: u8,
    pub(super) probe_count: u8,
    pub(super) first_probe_count: u8,
    pub(super) bloom_bytes: u64,
    pub(super) first_bytes: u64,
    pub(super) count: u64,
    pub(super) least: u64,
    pub(super) last: u64,
    pub(super) predicted: Option<f64>,
}

/// The number of a Bloom filter as first stage.
pub(super) const FIRST_BLOOM: u8 = 4;

impl Fields {
    pub(super) fn parameters(&self) -> [u8; PARAMETER_BYTES] {
        let mut parameters = [0; PARAMETER_BYTES];
        crate::envelope::set_parameter(&mut parameters, 0, [self.key_bytes]);
        crate::envelope::set_parameter(&mut parameters, 1, self.string_bytes.to_le_bytes());
        crate::envelope::set_predicted_fpr(&mut parameters, self.predicted);
        parameters
    }

    pub(super) fn block(&self) -> [u8; BLOCK_BYTES] {
        let mut block = [0; BLOCK_BYTES];
        let fields: [&[u8]; 12] = [
            &self.depth.to_le_bytes(),
            &self.prefix.to_le_bytes(),
            &self.cap.to_le_bytes(),
            &[self.first, self.layout, self.probe_count, self.first_probe_count],
            &self.bloom_bytes.to_le_bytes(),
            &self.first_bytes.to_le_bytes(),
            &self.count.to_le_bytes(),
            &self.least.to_le_bytes(),
            &self.last.to_le_bytes(),
            &[0; 8],
            &[],
            &[],
        ];
        for (target, source) in block.iter_mut().zip(fields.iter().flat_map(|field| field.iter())) {
            *target = *source;
        }
        block
    }

    fn read(parameters: &[u8; PARAMETER_BYTES], payload: &[u8]) -> Result<Self, DecodeError> {
        let length = payload.len() as u64;
        let block = payload
            .first_chunk::<BLOCK_BYTES>()
            .ok_or(DecodeError::Field { field: "payload_bytes", got: length })?;
        let [key_bytes] = crate::envelope::parameter(parameters, 0);
        let string_bytes = u16::from_le_bytes(crate::envelope::parameter(parameters, 1));
        let reserved = crate::envelope::parameter::<1>(parameters, 3);
        let predicted = crate::envelope::predicted_fpr(parameters)?;
        crate::envelope::check_reserved(parameters, 8)?;
        let (words, _) = block.as_chunks::<4>();
        let mut words = words.iter();
        let mut small = || words.next().copied().unwrap_or_default();
        let depth = u32::from_le_bytes(small());
        let prefix = u32::from_le_bytes(small());
        let cap = u32::from_le_bytes(small());
        let [first, layout, probe_count, first_probe_count] = small();
        let mut large = || {
            let [a, b] = [small(), small()].map(u32::from_le_bytes);
            u64::from(a) | u64::from(b) << 32
        };
        let [bloom_bytes, first_bytes, count, least, last, rest] = std::array::from_fn(|_| large());
        if reserved != [0] || rest != 0 {
            return Err(DecodeError::Field { field: "reserved", got: rest });
        }
        Ok(Self {
            depth,
            prefix,
            cap,
            first,
            key_bytes,
            string_bytes,
            layout,
            probe_count,
            first_probe_count,
            bloom_bytes,
            first_bytes,
            count,
            least,
            last,
            predicted,
        })
    }
}

fn invalid<T>(field: &'static str, got: u64) -> Result<T, DecodeError> {
    Err(DecodeError::Field { field, got })
}

impl Parts {
    /// Reads the block, and of the payload at most the last bytes of a trie.
    pub(super) fn read(
        family: Family,
        parameters: &[u8; PARAMETER_BYTES],
        payload: &[u8],
    ) -> Result<Self, DecodeError> {
        let fields = Fields::read(parameters, payload)?;
        if fields.key_bytes > 8 {
            return invalid("key_bytes", u64::from(fields.key_bytes));
        }
        let is_string = fields.key_bytes == 0 && fields.string_bytes > 8;
        if fields.string_bytes != 0 && !is_string {
            return invalid("string_bytes", u64::from(fields.string_bytes));
        }
        let fixed = (fields.key_bytes > 0).then(|| FixedKeys::new(fields.key_bytes));
        let bit_count = fixed.map_or(PREFIX_BITS_MAX, FixedKeys::bit_count);
        if fields.cap > Prices::PROBE_CAP_MAX {
            return invalid("probe_cap", u64::from(fields.cap));
        }
        let whole = fields.bloom_bytes.checked_add(fields.first_bytes);
        if whole.and_then(|whole| whole.checked_add(BLOCK_BYTES as u64)) != Some(payload.len() as u64) {
            return invalid("payload_bytes", payload.len() as u64);
        }
        let is_prefix =
            (1..=bit_count).contains(&fields.prefix) || (fields.prefix == WHOLE_KEYS && fixed.is_none());
        if (fields.prefix == 0) != (fields.bloom_bytes == 0) || !(is_prefix || fields.prefix == 0) {
            return invalid("prefix", u64::from(fields.prefix));
        }
        let is_above = fields.prefix == 0 || fields.prefix > fields.depth;
        if fields.depth > bit_count || (fields.depth == 0) != (fields.first == 0) || !is_above {
            return invalid("depth", u64::from(fields.depth));
        }
        let start = BLOCK_BYTES + fields.bloom_bytes as usize;
        let bloom = if fields.prefix == 0 { None } else { Some(fields.bloom(BLOCK_BYTES, fixed)?) };
        let first = match (fields.first, SetForm::from_number(fields.first)) {
            (0, _) if fields.first_bytes == 0 => FirstPart::None,
            (FIRST_BLOOM, _)
                if family == Family::TwoPrefixBloom && bloom.is_some() && fields.prefix != WHOLE_KEYS =>
            {
                FirstPart::Bloom(fields.first_bloom(start)?)
            }
            (_, Some(form)) if family == Family::Proteus => {
                FirstPart::Set(fields.set(form, fixed, start, payload)?)
            }
            _ => return invalid("first", u64::from(fields.first)),
        };
        let Fields { string_bytes, predicted, .. } = fields;
        Ok(Self { fixed, string_bytes, first, bloom, cap: u64::from(fields.cap), predicted })
    }

    /// Whether a key of strings may have this length.
    #[inline(always)]
    pub(super) fn is_length(&self, length: usize) -> bool {
        self.string_bytes == 0 || length == usize::from(self.string_bytes)
    }
}

impl Fields {
    fn bloom(&self, start: usize, fixed: Option<FixedKeys>) -> Result<BloomPart, DecodeError> {
        let Some(layout) = BloomLayout::from_number(self.layout) else {
            return invalid("layout", u64::from(self.layout));
        };
        let is_whole = layout == BloomLayout::Spread || self.bloom_bytes.is_multiple_of(64);
        if !is_whole {
            return invalid("bloom_bytes", self.bloom_bytes);
        }
        let probe_count = u32::from(self.probe_count);
        if !bloom::is_possible_probe_count(layout, probe_count) {
            return invalid("probe_count", u64::from(probe_count));
        }
        let (prefix, length) = (self.prefix, self.bloom_bytes as usize);
        let holds_keys = prefix == fixed.map_or(WHOLE_KEYS, FixedKeys::bit_count);
        Ok(BloomPart { prefix, holds_keys, layout, probe_count, start, length })
    }

    fn first_bloom(&self, start: usize) -> Result<BloomPart, DecodeError> {
        let probe_count = u32::from(self.first_probe_count);
        if !bloom::is_possible_probe_count(BloomLayout::Spread, probe_count) || self.first_bytes == 0 {
            return invalid("first_probe_count", u64::from(probe_count));
        }
        let (layout, length) = (BloomLayout::Spread, self.first_bytes as usize);
        Ok(BloomPart { prefix: self.depth, holds_keys: false, layout, probe_count, start, length })
    }

    fn set(
        &self,
        form: SetForm,
        fixed: Option<FixedKeys>,
        start: usize,
        payload: &[u8],
    ) -> Result<SetPart, DecodeError> {
        let bytes = payload.get(start..).unwrap_or_default();
        let Self { depth, count, least, last, .. } = *self;
        let (shape, expected) = match form {
            SetForm::Trie => {
                let layout =
                    Layout::read(bytes, true).map_err(|(field, got)| DecodeError::Field { field, got })?;
                let table = layout.counts.height as usize * LEVEL_BYTES + TRAILER_BYTES;
                let is_whole = bytes.len().checked_sub(table).is_some_and(|rest| rest >= layout.leaves);
                (Some(SetShape::Trie(layout)), is_whole.then_some(self.first_bytes))
            }
            SetForm::EliasFano => {
                let expected = tamis_bits::elias_fano::encoded_bytes(count, last);
                (EliasFanoShape::new(count, last).map(SetShape::EliasFano), expected)
            }
            SetForm::MarkedEliasFano => {
                let expected = tamis_bits::elias_fano::encoded_marked_bytes(count, last);
                (EliasFanoShape::new(count, last).map(SetShape::EliasFano), expected)
            }
            SetForm::Bitmap => {
                let is_possible = last.checked_add(1).is_some_and(|bits| count <= bits);
                let expected = is_possible.then(|| bitmap::encoded_bytes(last));
                (BitmapShape::new(last).map(SetShape::Bitmap), expected)
            }
        };
        let is_possible = form == SetForm::Trie || (fixed.is_some() && count > 0);
        let Some(shape) = shape.filter(|_| is_possible && expected == Some(self.first_bytes)) else {
            return invalid("first_bytes", self.first_bytes);
        };
        Ok(SetPart { depth, form, start, least, last, shape })
    }
}
