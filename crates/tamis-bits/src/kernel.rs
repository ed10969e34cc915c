//! Small loops over bytes in a portable form and, where the processor has them, with vector instructions.
//!
//! `portable.rs` and `x86_64.rs` are twins: same functions, same answers, same tests. The choice is made at run time, so one
//! program serves all x86-64 processors: AVX2 for lines and bytes, POPCNT and BMI2 for ranks and for setting bits. Where there
//! is AVX-512, questions to lines, mixing numbers and setting bits all over a filter have a third form, in `avx512.rs`, many
//! digests at once in `batch.rs`, and walks through tries in `wide.rs`. Miri, which runs the others, knows too little of it: these forms are
//! compared with the portable ones on processors that have it.

/// The steps of walks in terms of a module's `equal_mask` and `not_smaller_mask`, for a type that its `run` alone makes.
#[cfg(target_arch = "x86_64")]
macro_rules! steps_form {
    ($form:ident) => {
        impl super::Steps for $form {
            #[inline(always)]
            fn equal_mask(self, bytes: &[u8; LINE_BYTES], byte: u8) -> u64 {
                // SAFETY: the processor has what `run` is compiled for, or there were no value of this type.
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

/// The setting of the bits of many digests, for a module whose `lines_insert_each` does it for a number of bits that is constant.
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

/// Calls the vector twin where the processor has the named features, the portable one otherwise.
macro_rules! dispatch {
    ($feature:tt $(, $more:tt)* => $function:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!($feature) $(&& std::arch::is_x86_feature_detected!($more))* {
            // SAFETY: the functions of `x86_64` are safe but for the features that they are compiled for; the
            // processor has just been found to have them.
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
            // SAFETY: the functions of `avx512` are safe but for the feature that they are compiled for; the processor
            // has just been found to have it (and AVX-512F, which belongs to it).
            return unsafe { avx512::$function($($argument),*) };
        }
        dispatch!($feature => $function($($argument),*))
    }};
}

/// Calls the form of a question to one line that the processor has. Asked once for each filter of a lookup: callers get one load and a
/// jump. The question to the processor, which would have them save registers for a call, stands apart, in `$asking`.
macro_rules! dispatch_line {
    ($asking:ident, $function:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        match LINE_FORM.load(Ordering::Relaxed) {
            // SAFETY: this form is known only after the processor was found to have what it is compiled for.
            FORM_AVX512 => return unsafe { avx512::$function($($argument),*) },
            // SAFETY: as above.
            FORM_AVX2 => return unsafe { x86_64::$function($($argument),*) },
            _ => {}
        }
        $asking($($argument),*)
    }};
}

/// Whether all bits of a pattern are set in a line; see [`crate::line`]. Any `probe_count` up to [`LINE_PROBE_MAX`].
#[inline]
pub fn line_contains(line: &[u8; LINE_BYTES], pattern: u32, probe_count: u32) -> bool {
    dispatch_line!(line_contains_asking, line_contains(line, pattern, probe_count))
}

/// Whether the line of a digest holds its bits. `true` where that line lies outside `lines`.
#[inline]
pub fn may_contain(lines: &[u8], line_count: u64, digest: u64, probe_count: u32) -> bool {
    dispatch_line!(may_contain_asking, may_contain(lines, line_count, digest, probe_count))
}

/// The form in which lines are asked one by one: 0 where it is not known yet. Whoever asks at the same time finds the same.
#[cfg(target_arch = "x86_64")]
static LINE_FORM: AtomicU8 = AtomicU8::new(0);
#[cfg(target_arch = "x86_64")]
const FORM_AVX2: u8 = 1;
#[cfg(target_arch = "x86_64")]
const FORM_AVX512: u8 = 2;

/// Remembers the form of the processor.
fn ask_for_line_form() {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512vl") {
        LINE_FORM.store(FORM_AVX512, Ordering::Relaxed);
    } else if std::arch::is_x86_feature_detected!("avx2") {
        LINE_FORM.store(FORM_AVX2, Ordering::Relaxed);
    }
}

/// [`line_contains`] where the form is not known yet, or the portable one.
#[inline(never)]
fn line_contains_asking(line: &[u8; LINE_BYTES], pattern: u32, probe_count: u32) -> bool {
    ask_for_line_form();
    dispatch_wide!("avx2" => line_contains(line, pattern, probe_count))
}

/// [`may_contain`] where the form is not known yet, or the portable one.
#[inline(never)]
fn may_contain_asking(lines: &[u8], line_count: u64, digest: u64, probe_count: u32) -> bool {
    ask_for_line_form();
    dispatch_wide!("avx2" => may_contain(lines, line_count, digest, probe_count))
}

/// Asks for many digests at once: `answers[i]` becomes whether the line of `digests[i]` holds its bits, and `true` where that
/// line lies outside `lines`. Lines are fetched some digests ahead.
#[inline]
pub fn lines_contain(lines: &[u8], line_count: u64, digests: &[u64], probe_count: u32, answers: &mut [bool]) {
    let probe_count = probe_count.min(LINE_PROBE_MAX);
    dispatch_wide!("avx2" => lines_contain(lines, line_count, digests, probe_count, answers));
}

/// Sets the bits of many digests; those whose line lies outside `lines` are passed over.
#[inline]
pub fn lines_insert(lines: &mut [u8], line_count: u64, digests: &[u64], probe_count: u32) {
    let probe_count = probe_count.min(LINE_PROBE_MAX);
    dispatch_wide!("bmi2" => lines_insert(lines, line_count, digests, probe_count));
}

/// [`lines_insert`] with patterns of their own, the low halves of `values`: a digest says which line alone.
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

/// Calls the form with AVX-512 where the processor has what its loops over words need.
macro_rules! dispatch_words {
    ($condition:expr, $function:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if $condition
            && std::arch::is_x86_feature_detected!("avx512dq")
            && std::arch::is_x86_feature_detected!("avx512vl")
            && std::arch::is_x86_feature_detected!("bmi2")
        {
            // SAFETY: the functions of `avx512` are safe but for the features that they are compiled for; the processor
            // has just been found to have them (and AVX-512F, which belongs to them).
            return unsafe { avx512::$function($($argument),*) };
        }
        dispatch!("bmi2" => $function($($argument),*))
    }};
}

/// Each value becomes its [`mix64`](crate::mix64()) with the number beside it.
#[inline]
pub fn mix64_each(values: &mut [u64], numbers: &[u64]) {
    dispatch_words!(true, mix64_each(values, numbers));
}

/// Sets bits all over `bits`, `probe_count` for each value: those of the value, of the value and its step, of the value and two
/// steps, and so on. The bit of a number among `bit_count` is the high half of their product; one outside `bits` is passed over.
#[inline]
pub fn places_insert(bits: &mut [u8], bit_count: u64, values: &[u64], probe_count: u32, step: Step) {
    let is_short = bit_count <= u64::from(u32::MAX);
    dispatch_words!(is_short, places_insert(bits, bit_count, values, probe_count, step));
}

/// What lies between one number of a value and the next, for [`places_insert`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The value's [`mix64`](crate::mix64()), made odd: for values that are not mixed well.
    Mixed,
    /// The value with its halves exchanged: one instruction, and the high halves of both, which decide, share no bit.
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

/// The bit that a number means among `bit_count`, for [`places_insert`].
#[inline(always)]
pub const fn place(number: u64, bit_count: u64) -> u64 {
    ((number as u128 * bit_count as u128) >> 64) as u64
}

/// How many of the first `bit_count` bits of a line are set; all of them from 512 on.
#[inline]
pub fn rank_in_line(line: &[u8; LINE_BYTES], bit_count: u32) -> u32 {
    dispatch!("popcnt" => rank_in_line(line, bit_count))
}

/// Position of the set bit that `rank` set bits of the line precede; 512 where there are no more.
#[inline]
pub fn select_in_line(line: &[u8; LINE_BYTES], rank: u32) -> u32 {
    dispatch!("bmi2", "popcnt", "bmi1" => select_in_line(line, rank, 0))
}

/// Position of the unset bit that `rank` unset bits of the line precede; 512 where there are no more.
#[inline]
pub fn select_zero_in_line(line: &[u8; LINE_BYTES], rank: u32) -> u32 {
    dispatch!("bmi2", "popcnt", "bmi1" => select_in_line(line, rank, u64::MAX))
}

/// Steps over lines and words that a walk is made of, in one of the three forms. A value of a form stands for what the processor
/// has: a task that is given one does not ask again.
pub trait Steps: Copy {
    /// Bit `i` of the answer: whether `bytes[i]` equals `byte`.
    fn equal_mask(self, bytes: &[u8; LINE_BYTES], byte: u8) -> u64;

    /// Bit `i` of the answer: whether `bytes[i]` is at least `byte`.
    fn not_smaller_mask(self, bytes: &[u8; LINE_BYTES], byte: u8) -> u64;

    /// Bit `i` of the answer: whether the `i`th word of a line (bytes of lower places are lower) equals `word`, once both are without their
    /// `shift` (below 64) lowest bits.
    fn equal_words(self, line: &[u8; LINE_BYTES], word: u64, shift: u32) -> u32;

    /// The set bit that `rank` (below 64) set bits precede, alone in a word; 0 where there is none.
    fn nth_one(self, word: u64, rank: u32) -> u64;

    /// The bits from the set bit that `rank` (below 63) set bits precede up to the next set bit, without that; to the end of the word where
    /// there is no next. Nothing that can be relied on where there is no such bit.
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

/// Work that is to be compiled for what the processor has: see [`run`].
pub trait Task {
    /// What the work gives.
    type Output;

    /// Does the work. Inlined at any price: only then is it compiled for the better processor.
    fn run<S: Steps>(self, steps: S) -> Self::Output;
}

/// Runs a task in the form that is compiled with POPCNT, BMI2 and AVX2, or AVX-512, where the processor has them. One choice for a whole
/// walk, where a choice for each step of it would cost as much as the steps; and one load for the choice, where asking for
/// three features takes three. Everything that the task calls must be `#[inline(always)]` to profit. Inlined itself: on the way through
/// another call the task is copied in pieces of other sizes than it was written in, and each query waits for that.
#[inline(always)]
pub fn run<T: Task>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    {
        let form = WALK_FORM.load(Ordering::Relaxed);
        if form == WALK_WIDE {
            // SAFETY: the functions of `wide` are safe but for the features that they are compiled for; the processor has
            // been found to have them.
            return unsafe { wide::run(task) };
        }
        if form == WALK_VECTOR {
            // SAFETY: as above, for `x86_64`.
            return unsafe { x86_64::run(task) };
        }
    }
    run_otherwise(task)
}

/// The first task of all, which asks for the form, or one on another processor. Apart, so that a caller whose processor has better pays
/// nothing for it, not even room on the stack.
#[inline(never)]
fn run_otherwise<T: Task>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    match walk_form() {
        // SAFETY: as in `run`.
        WALK_WIDE => return unsafe { wide::run(task) },
        // SAFETY: as in `run`.
        WALK_VECTOR => return unsafe { x86_64::run(task) },
        _ => {}
    }
    task.run(Portable)
}

/// What [`run`] knows of the processor: nothing yet, what [`Vector`] needs, or what [`Wide`] does; or [`WALK_PORTABLE`]. Whoever
/// asks at the same time finds the same.
#[cfg(target_arch = "x86_64")]
static WALK_FORM: AtomicU8 = AtomicU8::new(0);
#[cfg(target_arch = "x86_64")]
const WALK_PORTABLE: u8 = 1;
#[cfg(target_arch = "x86_64")]
const WALK_VECTOR: u8 = 2;
#[cfg(target_arch = "x86_64")]
const WALK_WIDE: u8 = 3;

/// The form that [`run`] chooses; asked once.
#[cfg(target_arch = "x86_64")]
fn walk_form() -> u8 {
    use std::arch::is_x86_feature_detected;

    let known = WALK_FORM.load(Ordering::Relaxed);
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
        (true, true) => WALK_WIDE,
        (true, false) => WALK_VECTOR,
        (false, _) => WALK_PORTABLE,
    };
    WALK_FORM.store(form, Ordering::Relaxed);
    form
}

#[cfg(test)]
mod tests;
