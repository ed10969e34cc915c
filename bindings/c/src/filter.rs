//! Filters alone, without a database: built from keys, opened over borrowed bytes.

use std::{ffi::c_char, mem::MaybeUninit};

use tamis_bindings_common::{
    Code, Failure,
    filter::{Builder, OpenFilter, key_range},
    scan::{Direction, Selection},
};
use tamis_filter::Candidate;

use crate::{
    boundary::{
        Exclusive, bytes, call, clear, clear_pointer, free_box, handle, items, items_mut, null, own, put,
        put_handle, quiet, text,
    },
    keyspace::{RangeBound, selection},
    value::{Bytes, Owner, Value},
};

/// Builds filters of one family. One thread uses it at a time.
#[derive(Debug)]
pub struct FilterBuilderHandle(Exclusive<Builder>);

/// An open filter over bytes that the caller keeps as they are until the filter is freed. Any number of threads may use it.
#[derive(Debug)]
pub struct FilterHandle(OpenFilter<&'static [u8]>);

/// A filter's knowledge of the first key that a scan would meet.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CandidateKind {
    /// Nothing.
    Unknown = 0,
    /// There certainly is no such key.
    Absent = 1,
    /// Forward: no key is smaller than the bytes. Backward: every key is smaller than the bytes, or begins with them.
    Bytes = 2,
}

/// Makes a builder for a filter such as "surf@16" or "binary-fuse:bits=8": NAME[:param=value,...][@BITS_PER_KEY]. Filters of one seed
/// share digests. Free it with tamis_filter_builder_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_builder_new(
    specification: *const c_char,
    seed: u64,
    mut builder: Option<&mut MaybeUninit<*mut FilterBuilderHandle>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut builder);
    call(message, || {
        let made = Builder::new(text(specification, "specification")?, seed)?;
        put_handle(builder, "builder", FilterBuilderHandle(Exclusive::new(made)))
    })
}

/// Adds a key; keys come in ascending order, a repeated one is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_builder_add(
    builder: Option<&FilterBuilderHandle>,
    key: *const u8,
    key_length: usize,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let key = bytes(key, key_length, "key")?;
        handle(builder, "builder")?.0.with(|builder| builder.add(key))
    })
}

/// Adds a query from which families that design themselves (surf, rosetta, proteus, 1pbf, 2pbf) learn.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_builder_sample(
    builder: Option<&FilterBuilderHandle>,
    lower: RangeBound,
    upper: RangeBound,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let query = selection(lower, upper)?;
        handle(builder, "builder")?.0.with(|builder| {
            builder.add_sample(query);
            Ok(())
        })
    })
}

/// The encoded filter, with `bits_per_key` or, where that is 0, with the budget of the specification. The builder may build again.
/// Free the bytes with tamis_value_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_builder_finish(
    builder: Option<&FilterBuilderHandle>,
    bits_per_key: f64,
    mut filter: Option<&mut MaybeUninit<Value>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut filter);
    call(message, || {
        let target = filter.ok_or_else(|| null("filter"))?;
        let bits = (bits_per_key != 0.0).then_some(bits_per_key);
        let made = handle(builder, "builder")?.0.with(|builder| builder.finish(bits))?;
        target.write(Value::new(Owner::Vector(made)));
        Ok(())
    })
}

/// Frees a builder. Null is possible.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_builder_free(builder: *mut FilterBuilderHandle) {
    quiet(|| free_box(builder));
}

/// Opens an encoded filter in place; reads its header only. The bytes are borrowed: they must stay, and must not change, until the
/// filter is freed with tamis_filter_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_open(
    data: *const u8,
    length: usize,
    mut filter: Option<&mut MaybeUninit<*mut FilterHandle>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut filter);
    call(message, || {
        let open = OpenFilter::new(bytes(data, length, "data")?)?;
        put_handle(filter, "filter", FilterHandle(open))
    })
}

/// Frees an open filter; its bytes stay the caller's. Null is possible.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_free(filter: *mut FilterHandle) {
    quiet(|| free_box(filter));
}

fn filter(filter: Option<&FilterHandle>) -> Result<&OpenFilter<&'static [u8]>, Failure> {
    Ok(&handle(filter, "filter")?.0)
}

/// Whether a key may be among the keys. False: it certainly is not.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_may_contain(
    filter: Option<&FilterHandle>,
    key: *const u8,
    key_length: usize,
    mut answer: Option<&mut MaybeUninit<bool>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut answer);
    call(message, || put(answer, "answer", self::filter(filter)?.may_contain(bytes(key, key_length, "key")?)))
}

/// As tamis_filter_may_contain, for `count` keys at once: overlaps their cache misses.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_may_contain_many(
    filter: Option<&FilterHandle>,
    keys: *const Bytes,
    count: usize,
    answers: *mut MaybeUninit<bool>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || {
        let targets = items_mut(answers, count, "answers")?;
        let keys = items(keys, count, "keys")?.iter().map(|key| bytes(key.data, key.length, "key"));
        let keys = keys.collect::<Result<Vec<&[u8]>, _>>()?;
        let answers = self::filter(filter)?.may_contain_many(&keys);
        for (target, answer) in targets.iter_mut().zip(answers) {
            *target = MaybeUninit::new(answer);
        }
        Ok(())
    })
}

/// Whether a key may be between two bounds. False: certainly none does.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_may_contain_range(
    filter: Option<&FilterHandle>,
    lower: RangeBound,
    upper: RangeBound,
    mut answer: Option<&mut MaybeUninit<bool>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut answer);
    call(message, || {
        let selection = selection(lower, upper)?;
        put(answer, "answer", self::filter(filter)?.may_contain_range(key_range(&selection)))
    })
}

/// Whether a key may begin with a prefix. False: certainly none does.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_may_contain_prefix(
    filter: Option<&FilterHandle>,
    prefix: *const u8,
    prefix_length: usize,
    mut answer: Option<&mut MaybeUninit<bool>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut answer);
    call(message, || {
        let selection = Selection::Prefix(bytes(prefix, prefix_length, "prefix")?.to_vec());
        put(answer, "answer", self::filter(filter)?.may_contain_range(key_range(&selection)))
    })
}

/// The knowledge about the first key that a scan between two bounds would meet, forward or (`is_backward` not 0) backward: a value of
/// tamis_candidate, and its bytes. Free the bytes with tamis_value_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_candidate(
    filter: Option<&FilterHandle>,
    lower: RangeBound,
    upper: RangeBound,
    is_backward: i32,
    mut kind: Option<&mut MaybeUninit<i32>>,
    mut candidate: Option<&mut MaybeUninit<Value>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut kind);
    clear(&mut candidate);
    let direction = if is_backward == 0 { Direction::Forward } else { Direction::Backward };
    call(message, || {
        let target = candidate.ok_or_else(|| null("candidate"))?;
        let selection = selection(lower, upper)?;
        let (found, value) = match self::filter(filter)?.candidate(key_range(&selection), direction) {
            Candidate::Unknown => (CandidateKind::Unknown, Value::default()),
            Candidate::Absent => (CandidateKind::Absent, Value::default()),
            Candidate::Bytes(found) => (CandidateKind::Bytes, Value::new(Owner::Vector(found))),
        };
        target.write(value);
        put(kind, "kind", found as i32)
    })
}

/// An estimate of how many keys are between two bounds, and how far the true number may be from it. `is_known` is false where the family
/// can't count.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_count(
    filter: Option<&FilterHandle>,
    lower: RangeBound,
    upper: RangeBound,
    mut is_known: Option<&mut MaybeUninit<bool>>,
    mut count: Option<&mut MaybeUninit<u64>>,
    mut error_max: Option<&mut MaybeUninit<u64>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut is_known);
    clear(&mut count);
    clear(&mut error_max);
    call(message, || {
        let selection = selection(lower, upper)?;
        let Some(found) = self::filter(filter)?.count(key_range(&selection)) else { return Ok(()) };
        put(count, "count", found.keys)?;
        put(error_max, "error_max", found.error_max)?;
        put(is_known, "is_known", true)
    })
}

/// Family, number of keys, size, predicted rate of false positives and design, as JSON. Free it with tamis_text_free.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_describe(
    filter: Option<&FilterHandle>,
    mut json: Option<&mut MaybeUninit<*mut c_char>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear_pointer(&mut json);
    call(message, || {
        let filter = self::filter(filter)?;
        if json.is_none() {
            return Err(null("json"));
        }
        let described = serde_json::json!({
            "family": filter.family(),
            "key_count": filter.key_count(),
            "bytes": filter.encoded_bytes(),
            "predicted_fpr": filter.predicted_fpr(),
            "design": filter.design(),
        });
        put(json, "json", own(described.to_string()))
    })
}

/// Compares the checksum of all bytes of a filter: TAMIS_CODE_CORRUPTION where it does not fit.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_verify(
    filter: Option<&FilterHandle>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || self::filter(filter)?.verify())
}
