//! Small loops over bytes in a portable form, and with vector instructions where the processor has them.
//!
//! `portable.rs` and `x86_64.rs` are twins: same functions, same answers, same tests. The choice is made at run time,
//! so one program serves all x86-64 processors: AVX2 for lines and bytes, POPCNT and BMI2 for ranks and for setting
//! bits. With AVX-512, line queries, the mixing of numbers and scattered bits have a third form in `avx512.rs`,
//! batches of digests in `batch.rs`, and trie searches in `wide.rs`. Miri runs the first two forms but does not support
//! enough of AVX-512: tests compare that form with the portable one on processors that have it.

/// The steps of searches by a module's `equal_mask` and `not_smaller_mask`, for a type that only its `run` creates.
#[cfg(target_arch = "x86_64")]
macro_rules! steps_form {
    ($form:ident) => {
        impl super::Steps for $form {
            #[inline(always)]
            fn equal_mask(self, bytes: &[u8; LINE_BYTES], byte: u8) -> u64 {
                // SAFETY: a value of this type exists only if the processor has the features that `run` is compiled
                // for.
                unsafe { equal_mask(bytes, byte) }
            }

            #[inline(always)]
            fn not_smaller_mask(self, bytes: &[u8; LINE_BYTES], byte: u8) -> u64 {
                // SAFETY: as above.
                unsafe { not_smaller_mask(bytes, byte) }
            }

            #[inline(always)]
            fn equal_words(self, line: &[u8; LINE_BYTES], word: u64, shift: u32) -> u32 {
                // SAFETY: as above.
                unsafe { equal_words(line, word, shift) }
            }

            #[inline(always)]
            fn nth_one(self, word: u64, rank: u32) -> u64 {
                // SAFETY: as above; BMI2 is part of it.
                unsafe { _pdep_u64(1 << (rank & 63), word) }
            }

            #[inline(always)]
            fn nth_run(self, word: u64, rank: u32) -> u64 {
                // SAFETY: as above.
                let ends = unsafe { _pdep_u64(3 << (rank & 63), word) };
                (ends & ends.wrapping_sub(1)).wrapping_sub(ends & ends.wrapping_neg())
            }
        }
    };
}

/// Sets the bits of many digests, for a module whose `lines_insert_each` does it for a constant number of bits.
#[cfg(target_arch = "x86_64")]
macro_rules! insert_forms {
    ($features:literal, $($count:literal)*) => {
        #[target_feature(enable = $features)]
        pub(super) fn lines_insert(lines: &mut [u8], line_count: u64, digests: &[u64], probe_count: u32) {
            lines_insert_values(lines, line_count, digests, digests, probe_count);
        }

        #[target_feature(enable = $features)]
        pub(super) fn lines_insert_values(
            lines: &mut [u8],
            line_count: u64,
            digests: &[u64],
            values: &[u64],
            probe_count: u32,
        ) {
            match probe_count {
                $($count => lines_insert_each::<$count>(lines, line_count, digests, values),)*
                _ => {}
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_line;
#[cfg(target_arch = "x86_64")]
mod batch;
mod portable;
#[cfg(target_arch = "x86_64")]
mod wide;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

use crate::line::{LINE_BYTES, LINE_PROBE_MAX};

/// Calls the vector twin if the processor has the named features, else the portable one.
macro_rules! dispatch {
    ($feature:tt $(, $more:tt)* => $function:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!($feature) $(&& std::arch::is_x86_feature_detected!($more))* {
            // SAFETY: the functions of `x86_64` are safe except for the features that they are compiled for, which
            // were just detected.
            return unsafe { x86_64::$function($($argument),*) };
        }
        portable::$function($($argument),*)
    }};
}

/// [`dispatch`] with the form of `avx512.rs` before the others.
macro_rules! dispatch_wide {
    ($feature:tt => $function:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx512vl") {
            // SAFETY: the functions of `avx512` are safe except for the feature that they are compiled for, which was
            // just detected (and AVX-512F, which it implies).
            return unsafe { avx512::$function($($argument),*) };
        }
        dispatch!($feature => $function($($argument),*))
    }};
}

/// Calls the form of a line query for this processor. Runs for each filter of a lookup: callers get one load and a
/// jump. The feature detection, a call that would make them save registers, is a separate function, `$detecting`.
macro_rules! dispatch_line {
    ($detecting:ident, $function:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        match LINE_FORM.load(Ordering::Relaxed) {
            // SAFETY: this form is stored only after the features that it is compiled for were detected.
            FORM_AVX512 => return unsafe { avx512::$function($($argument),*) },
            // SAFETY: as above.
            FORM_AVX2 => return unsafe { x86_64::$function($($argument),*) },
            _ => {}
        }
        $detecting($($argument),*)
    }};
}

/// Whether all bits of a pattern are set in a line; see [`crate::line`]. Any `probe_count` up to [`LINE_PROBE_MAX`].
#[inline]
pub fn line_contains(line: &[u8; LINE_BYTES], pattern: u32, probe_count: u32) -> bool {
    dispatch_line!(line_contains_detecting, line_contains(line, pattern, probe_count))
}

/// Whether the line of a digest has all its bits set; `true` if that line is outside `lines`.
#[inline]
pub fn may_contain(lines: &[u8], line_count: u64, digest: u64, probe_count: u32) -> bool {
    dispatch_line!(may_contain_detecting, may_contain(lines, line_count, digest, probe_count))
}

/// The form of single line queries; 0 before the detection. Concurrent detections store the same value.
#[cfg(target_arch = "x86_64")]
static LINE_FORM: AtomicU8 = AtomicU8::new(0);
#[cfg(target_arch = "x86_64")]
const FORM_AVX2: u8 = 1;
#[cfg(target_arch = "x86_64")]
const FORM_AVX512: u8 = 2;

/// Detects and stores the form of this processor.
fn detect_line_form() {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512vl") {
        LINE_FORM.store(FORM_AVX512, Ordering::Relaxed);
    } else if std::arch::is_x86_feature_detected!("avx2") {
        LINE_FORM.store(FORM_AVX2, Ordering::Relaxed);
    }
}

/// [`line_contains`] before the detection, or in the portable form.
#[inline(never)]
fn line_contains_detecting(line: &[u8; LINE_BYTES], pattern: u32, probe_count: u32) -> bool {
    detect_line_form();
    dispatch_wide!("avx2" => line_contains(line, pattern, probe_count))
}

/// [`may_contain`] before the detection, or in the portable form.
#[inline(never)]
fn may_contain_detecting(lines: &[u8], line_count: u64, digest: u64, probe_count: u32) -> bool {
    detect_line_form();
    dispatch_wide!("avx2" => may_contain(lines, line_count, digest, probe_count))
}

/// Looks up many digests at once: `answers[i]` becomes whether the line of `digests[i]` has its bits set, and `true`
/// if that line is outside `lines`. Prefetches lines some digests ahead.
#[inline]
pub fn lines_contain(lines: &[u8], line_count: u64, digests: &[u64], probe_count: u32, answers: &mut [bool]) {
    let probe_count = probe_count.min(LINE_PROBE_MAX);
    dispatch_wide!("avx2" => lines_contain(lines, line_count, digests, probe_count, answers));
}

/// Sets the bits of many digests; skips those whose line is outside `lines`.
#[inline]
pub fn lines_insert(lines: &mut [u8], line_count: u64, digests: &[u64], probe_count: u32) {
    let probe_count = probe_count.min(LINE_PROBE_MAX);
    dispatch_wide!("bmi2" => lines_insert(lines, line_count, digests, probe_count));
}

/// [`lines_insert`] with separate patterns, the low halves of `values`: a digest determines only the line.
#[inline]
pub fn lines_insert_values(
    lines: &mut [u8],
    line_count: u64,
    digests: &[u64],
    values: &[u64],
    probe_count: u32,
) {
    let probe_count = probe_count.min(LINE_PROBE_MAX);
    dispatch_wide!("bmi2" => lines_insert_values(lines, line_count, digests, values, probe_count));
}

/// Calls the AVX-512 form if the processor has the features of its loops over words.
macro_rules! dispatch_words {
    ($condition:expr, $function:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if $condition
            && std::arch::is_x86_feature_detected!("avx512dq")
            && std::arch::is_x86_feature_detected!("avx512vl")
            && std::arch::is_x86_feature_detected!("bmi2")
        {
            // SAFETY: the functions of `avx512` are safe except for the features that they are compiled for, which
            // were just detected (and AVX-512F, which they imply).
            return unsafe { avx512::$function($($argument),*) };
        }
        dispatch!("bmi2" => $function($($argument),*))
    }};
}

/// Replaces each value by its [`mix64`](crate::mix64()) with the corresponding number.
#[inline]
pub fn mix64_each(values: &mut [u64], numbers: &[u64]) {
    dispatch_words!(true, mix64_each(values, numbers));
}

/// Sets scattered bits of `bits`, `probe_count` per value: those of the value, of the value plus its step, plus two
/// steps, and so on. The bit of a number among `bit_count` is the high half of their product; bits outside `bits` are
/// skipped.
#[inline]
pub fn places_insert(bits: &mut [u8], bit_count: u64, values: &[u64], probe_count: u32, step: Step) {
    dispatch_words!(
        bit_count <= u64::from(u32::MAX),
        places_insert(bits, bit_count, values, probe_count, step)
    );
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
    dispatch!("popcnt" => rank_in_line(line, bit_count))
}

/// Position of the set bit with `rank` set bits before it; 512 if there are no more.
#[inline]
pub fn select_in_line(line: &[u8; LINE_BYTES], rank: u32) -> u32 {
    dispatch!("bmi2", "popcnt", "bmi1" => select_in_line(line, rank, 0))
}

/// Position of the unset bit with `rank` unset bits before it; 512 if there are no more.
#[inline]
pub fn select_zero_in_line(line: &[u8; LINE_BYTES], rank: u32) -> u32 {
    dispatch!("bmi2", "popcnt", "bmi1" => select_in_line(line, rank, u64::MAX))
}

/// The operations of a search on lines and words, in one of three forms. A value of a form is proof of the processor's
/// features: a task that has one needs no detection.
pub trait Steps: Copy {
    /// Bit `i` of the result: whether `bytes[i]` equals `byte`.
    fn equal_mask(self, bytes: &[u8; LINE_BYTES], byte: u8) -> u64;

    /// Bit `i` of the result: whether `bytes[i]` is at least `byte`.
    fn not_smaller_mask(self, bytes: &[u8; LINE_BYTES], byte: u8) -> u64;

    /// Bit `i` of the result: whether the `i`th word of a line (little-endian) equals `word`, without the lowest
    /// `shift` (below 64) bits of both.
    fn equal_words(self, line: &[u8; LINE_BYTES], word: u64, shift: u32) -> u32;

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
#[cfg(target_arch = "x86_64")]
pub use wide::Wide;
#[cfg(target_arch = "x86_64")]
pub use x86_64::Vector;

/// Work that is compiled for the processor's features: see [`run`].
pub trait Task {
    /// The result of the work.
    type Output;

    /// Does the work. Always inlined: only then is it compiled for those features.
    fn run<S: Steps>(self, steps: S) -> Self::Output;
}

/// Runs a task in the form that is compiled with POPCNT, BMI2 and AVX2, or AVX-512, if the processor has them. One
/// choice for a whole search, since a choice per step would cost as much as the step; and one load for the choice, where
/// detecting three features takes three. Everything that the task calls must be `#[inline(always)]` to profit. Inlined
/// itself: through another call the task would be copied through the stack, which delays each query.
#[inline(always)]
pub fn run<T: Task>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    {
        let form = TASK_FORM.load(Ordering::Relaxed);
        if form == TASK_WIDE {
            // SAFETY: the functions of `wide` are safe except for the features that they are compiled for, which were
            // detected.
            return unsafe { wide::run(task) };
        }
        if form == TASK_VECTOR {
            // SAFETY: as above, for `x86_64`.
            return unsafe { x86_64::run(task) };
        }
    }
    run_slow_path(task)
}

/// The first task, which detects the form, or a task on a processor without the features. A separate function, so that
/// other callers pay nothing for it, not even stack space.
#[inline(never)]
fn run_slow_path<T: Task>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    match task_form() {
        // SAFETY: as in `run`.
        TASK_WIDE => return unsafe { wide::run(task) },
        // SAFETY: as in `run`.
        TASK_VECTOR => return unsafe { x86_64::run(task) },
        _ => {}
    }
    task.run(Portable)
}

/// The form of [`run`]: 0 before the detection, that of [`Vector`], of [`Wide`], or [`TASK_PORTABLE`]. Concurrent
/// detections store the same value.
#[cfg(target_arch = "x86_64")]
static TASK_FORM: AtomicU8 = AtomicU8::new(0);
#[cfg(target_arch = "x86_64")]
const TASK_PORTABLE: u8 = 1;
#[cfg(target_arch = "x86_64")]
const TASK_VECTOR: u8 = 2;
#[cfg(target_arch = "x86_64")]
const TASK_WIDE: u8 = 3;

/// The form that [`run`] chooses; detected once.
#[cfg(target_arch = "x86_64")]
fn task_form() -> u8 {
    use std::arch::is_x86_feature_detected;

    let known = TASK_FORM.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let has_vector = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    let has_wide = is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512bw");
    let form = match (has_vector, has_wide) {
        (true, true) => TASK_WIDE,
        (true, false) => TASK_VECTOR,
        (false, _) => TASK_PORTABLE,
    };
    TASK_FORM.store(form, Ordering::Relaxed);
    form
}

#[cfg(test)]
mod tests;
