//! Filters without a database: built from keys, opened over borrowed bytes.

use std::{ffi::c_char, mem::MaybeUninit};

use tamis_bindings_common::{
    Code, Failure,
    filter::{Builder, OpenFilter, key_range},
    scan::{Direction, Selection},
};
use tamis_filter::{Candidate, KeyRange};

use crate::{
    boundary::{
        Exclusive, bytes, call, clear, clear_pointer, free_box, handle, items, items_mut, null, own, put,
        put_handle, quiet, text,
    },
    keyspace::{RangeBound, borrowed, selection},
    value::{Bytes, Owner, Value},
};

/// A builder of filters of one family, for one thread at a time.
#[derive(Debug)]
pub struct FilterBuilderHandle(Exclusive<Builder>);

/// An open filter over bytes that the caller must keep unchanged until the filter is freed. Any number of threads may use it.
#[derive(Debug)]
pub struct FilterHandle(OpenFilter<&'static [u8]>);

/// The bound of a filter for the first key that a scan would return.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CandidateKind {
    /// Nothing.
    Unknown = 0,
    /// There is certainly no such key.
    Absent = 1,
    /// Forward: no key is smaller than the bytes. Backward: every key is smaller than the bytes or has them as a prefix.
    Bytes = 2,
}

/// Creates a builder for a filter such as "surf@16" or "surf-real:bits=8": NAME[:param=value,...][@BITS_PER_KEY]. "auto@16" is the cheapest range
/// filter for the keys and the sample. Filters with the same seed share digests. Free it with tamis_filter_builder_free.
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

/// Adds a key. Keys must be in ascending order; a duplicate is ignored.
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

/// Adds a sample query, for families that choose their design from a sample (surf, rosetta, proteus, 1pbf, 2pbf).
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

/// Builds and encodes the filter with `bits_per_key`, or with the budget of the specification if it is 0. The builder can build again.
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

/// Frees a builder. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_builder_free(builder: *mut FilterBuilderHandle) {
    quiet(|| free_box(builder));
}

/// Opens an encoded filter in place; reads only its header. The bytes are borrowed: they must stay unchanged until the
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

/// Frees an open filter; the caller still owns its bytes. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_free(filter: *mut FilterHandle) {
    quiet(|| free_box(filter));
}

fn filter(filter: Option<&FilterHandle>) -> Result<&OpenFilter<&'static [u8]>, Failure> {
    Ok(&handle(filter, "filter")?.0)
}

/// Whether the filter may contain a key. False: the key is certainly absent.
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

/// Like tamis_filter_may_contain, for `count` keys.
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

/// Whether the filter may contain a key between two bounds. False: there is certainly none.
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
        let range = KeyRange::new(borrowed(lower, "lower")?, borrowed(upper, "upper")?);
        put(answer, "answer", self::filter(filter)?.may_contain_range(range))
    })
}

/// tamis_filter_open, tamis_filter_may_contain_range and tamis_filter_free in one call, which allocates nothing. Only the header is verified.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_bytes_may_contain_range(
    data: *const u8,
    length: usize,
    lower: RangeBound,
    upper: RangeBound,
    mut answer: Option<&mut MaybeUninit<bool>>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    clear(&mut answer);
    call(message, || {
        let range = KeyRange::new(borrowed(lower, "lower")?, borrowed(upper, "upper")?);
        let filter = OpenFilter::new(bytes(data, length, "data")?)?;
        put(answer, "answer", filter.may_contain_range(range))
    })
}

/// Whether the filter may contain a key with a prefix. False: there is certainly none.
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

/// Returns a bound for the first key that a scan between two bounds would return, forward or (`is_backward` not 0) backward: a value of
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

/// Returns family, number of keys, size, predicted false positive rate and design as JSON. Free it with tamis_text_free.
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

/// Verifies the checksum of all bytes of a filter: TAMIS_CODE_CORRUPTION if it does not match.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_filter_verify(
    filter: Option<&FilterHandle>,
    message: Option<&mut MaybeUninit<*mut c_char>>,
) -> Code {
    call(message, || self::filter(filter)?.verify())
}
