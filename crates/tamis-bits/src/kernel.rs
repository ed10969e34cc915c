//! Small loops over bytes in a portable form, and with vector instructions where the processor has them.
//!
//! `portable.rs` and `x86_64.rs` are twins: same functions, same answers, same tests. The choice is made at run time,
//! so one program serves all x86-64 processors: the second form needs AVX2, POPCNT, LZCNT and BMI2. Loops that set bits
//! have one form.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

use crate::line::{self, LINE_BYTES, LINE_PROBE_MAX};

/// Prefetch distance of lines, in digests.
const PREFETCH_DIGESTS: usize = 16;

/// The step of [`crate::line`] to the powers from 0 on.
static POWERS: [u32; LINE_PROBE_MAX as usize] = powers();

const fn powers<const COUNT: usize>() -> [u32; COUNT] {
    let mut powers = [1_u32; COUNT];
    let mut index = 1;
    #[expect(clippy::indexing_slicing, reason = "an index below the length")]
    while index < COUNT {
        powers[index] = powers[index - 1].wrapping_mul(line::STEP);
        index += 1;
    }
    powers
}

/// The form for this processor; 0 before the detection. Concurrent detections store the same value.
#[cfg(target_arch = "x86_64")]
static FORM: AtomicU8 = AtomicU8::new(0);
#[cfg(target_arch = "x86_64")]
const FORM_PORTABLE: u8 = 1;
#[cfg(target_arch = "x86_64")]
const FORM_VECTOR: u8 = 2;

/// Whether the form is known to be that of `x86_64.rs`: one load.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn is_vector() -> bool {
    FORM.load(Ordering::Relaxed) == FORM_VECTOR
}

/// Whether the form is that of `x86_64.rs`; detects it if it is not known.
#[cfg(target_arch = "x86_64")]
fn detect_vector() -> bool {
    use std::arch::is_x86_feature_detected;

    if FORM.load(Ordering::Relaxed) == 0 {
        let has_vector = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        FORM.store(if has_vector { FORM_VECTOR } else { FORM_PORTABLE }, Ordering::Relaxed);
    }
    is_vector()
}

/// Calls the form of a function for this processor: callers get one load and a jump. The detection, a call that would
/// make them save registers, is in a separate function, `$slow_path`, which is inlined into none of them.
macro_rules! dispatch {
    ($slow_path:ident, $function:ident($($argument:ident: $kind:ty),*) -> $output:ty) => {{
        #[cfg(target_arch = "x86_64")]
        if is_vector() {
            // SAFETY: the functions of `x86_64` are safe except for the features that they are compiled for, which
            // were detected.
            return unsafe { x86_64::$function($($argument),*) };
        }
        #[inline(never)]
        fn $slow_path($($argument: $kind),*) -> $output {
            #[cfg(target_arch = "x86_64")]
            if detect_vector() {
                // SAFETY: as above.
                return unsafe { x86_64::$function($($argument),*) };
            }
            portable::$function($($argument),*)
        }
        $slow_path($($argument),*)
    }};
}

/// Whether all bits of a pattern are set in a line; see [`crate::line`]. Any `probe_count` up to [`LINE_PROBE_MAX`].
#[inline]
pub fn line_contains(line: &[u8; LINE_BYTES], pattern: u32, probe_count: u32) -> bool {
    dispatch!(slow_path, line_contains(line: &[u8; LINE_BYTES], pattern: u32, probe_count: u32) -> bool)
}

/// Whether the line of a digest has all its bits set; `true` if that line is outside `lines`.
#[inline]
pub fn may_contain(lines: &[u8], line_count: u64, digest: u64, probe_count: u32) -> bool {
    dispatch!(slow_path, may_contain(lines: &[u8], line_count: u64, digest: u64, probe_count: u32) -> bool)
}

/// Sets the bits of many digests; skips those whose line is outside `lines`.
pub fn lines_insert(lines: &mut [u8], line_count: u64, digests: &[u64], probe_count: u32) {
    lines_insert_values(lines, line_count, digests, digests, probe_count);
}

/// [`lines_insert`] with separate patterns, the low halves of `values`: a digest determines only the line. Prefetches
/// lines some digests ahead, and sets the bits in words of eight bytes: each address is one independent multiplication.
pub fn lines_insert_values(
    lines: &mut [u8],
    line_count: u64,
    digests: &[u64],
    values: &[u64],
    probe_count: u32,
) {
    let powers = POWERS.get(..probe_count as usize).unwrap_or(&POWERS);
    let ahead = digests.iter().skip(PREFETCH_DIGESTS).map(Some).chain(std::iter::repeat(None));
    for ((digest, value), next) in digests.iter().zip(values).zip(ahead) {
        if let Some(next) = next {
            line::prefetch_whole_line(lines, line_count, *next);
        }
        let Some(line) = line::line_at_mut(lines, line_count, *digest) else { continue };
        let (words, _) = line.as_chunks_mut::<8>();
        for power in powers {
            let pattern = line::pattern(*value).wrapping_mul(*power);
            if let Some(word) = words.get_mut((pattern >> 29) as usize) {
                *word = (u64::from_le_bytes(*word) | 1 << ((pattern >> 23) & 63)).to_le_bytes();
            }
        }
    }
}

/// Sets scattered bits of `bits`, `probe_count` per value: those of the value, of the value plus its step, plus two
/// steps, and so on. The bit of a number among `bit_count` is the high half of their product; bits outside `bits` are
/// skipped.
pub fn places_insert(bits: &mut [u8], bit_count: u64, values: &[u64], probe_count: u32, step: Step) {
    for value in values {
        let step = step.of(*value);
        let mut number = *value;
        for _ in 0..probe_count {
            let place = place(number, bit_count);
            if let Some(byte) = bits.get_mut((place / 8) as usize) {
                *byte |= 1 << (place % 8);
            }
            number = number.wrapping_add(step);
        }
    }
}

/// The difference between consecutive numbers of a value, for [`places_insert`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The value's [`mix64`](crate::mix64()), made odd: for values that are not well mixed.
    Mixed,
    /// The value with its halves exchanged: one instruction, and the high halves of both, which decide, have no bit in
    /// common.
    Halves,
}

impl Step {
    /// The step of a value.
    #[inline(always)]
    pub const fn of(self, value: u64) -> u64 {
        match self {
            Self::Mixed => crate::mix64(value, 0) | 1,
            Self::Halves => value.rotate_left(32),
        }
    }
}

/// The bit of a number among `bit_count`, for [`places_insert`].
#[inline(always)]
pub const fn place(number: u64, bit_count: u64) -> u64 {
    ((number as u128 * bit_count as u128) >> 64) as u64
}

/// Number of set bits among the first `bit_count` of a line; all of them from 512 on.
#[inline]
pub fn rank_in_line(line: &[u8; LINE_BYTES], bit_count: u32) -> u32 {
    dispatch!(slow_path, rank_in_line(line: &[u8; LINE_BYTES], bit_count: u32) -> u32)
}

/// Position of the set bit with `rank` set bits before it; 512 if there are no more.
#[inline]
pub fn select_in_line(line: &[u8; LINE_BYTES], rank: u32) -> u32 {
    select_among(line, rank, 0)
}

/// Position of the unset bit with `rank` unset bits before it; 512 if there are no more.
#[inline]
pub fn select_zero_in_line(line: &[u8; LINE_BYTES], rank: u32) -> u32 {
    select_among(line, rank, u64::MAX)
}

/// The position of a bit of a line whose words are exclusive-or `flip`.
#[inline]
fn select_among(line: &[u8; LINE_BYTES], rank: u32, flip: u64) -> u32 {
    dispatch!(slow_path, select_in_line(line: &[u8; LINE_BYTES], rank: u32, flip: u64) -> u32)
}

/// The operations of a search on lines and words, in one of two forms. A value of a form is proof of the processor's
/// features: a task that has one needs no detection.
pub trait Steps: Copy {
    /// Bit `i` of the result: whether `bytes[i]` equals `byte`.
    fn equal_mask(self, bytes: &[u8; LINE_BYTES], byte: u8) -> u64;

    /// Bit `i` of the result: whether `bytes[i]` is at least `byte`.
    fn not_smaller_mask(self, bytes: &[u8; LINE_BYTES], byte: u8) -> u64;

    /// The set bit with `rank` (below 64) set bits before it, alone in a word; 0 if there is none.
    fn nth_one(self, word: u64, rank: u32) -> u64;

    /// The bits from the set bit with `rank` (below 63) set bits before it up to the next set bit, excluded, or to the
    /// end of the word. Unspecified if there is no such bit.
    #[inline(always)]
    fn nth_run(self, word: u64, rank: u32) -> u64 {
        self.nth_one(word, rank + 1).wrapping_sub(self.nth_one(word, rank))
    }
}

pub use portable::Portable;

/// Work that is compiled for the processor's features: see [`run`].
pub trait Task {
    /// The result of the work.
    type Output;

    /// Does the work. Always inlined: only then is it compiled for those features.
    fn run<S: Steps>(self, steps: S) -> Self::Output;
}

/// Runs a task in the form for this processor. One choice for a whole search, since a choice per step would cost as
/// much as the step. Everything that the task calls must be `#[inline(always)]` to profit. Inlined itself: through
/// another call the task would be copied through the stack, which delays each query.
#[inline(always)]
pub fn run<T: Task>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    if is_vector() {
        // SAFETY: the functions of `x86_64` are safe except for the features that they are compiled for, which were
        // detected.
        return unsafe { x86_64::run(task) };
    }
    run_slow_path(task)
}

/// The first task, which detects the form, or a task on a processor without the features. A separate function, so that
/// other callers pay nothing for it, not even stack space.
#[inline(never)]
fn run_slow_path<T: Task>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    if detect_vector() {
        // SAFETY: as in `run`.
        return unsafe { x86_64::run(task) };
    }
    task.run(Portable)
}

#[cfg(test)]
mod tests;
