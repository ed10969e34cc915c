//! Tagged records, the encoding of changes and options: a reader can ignore a tag that it does not know if the flags allow
//! it.

use crate::coding::{Decoder, put_bytes, put_varint};

/// Bit 0 of the flags: a reader that does not know the tag may ignore the record.
pub(super) const IGNORABLE: u8 = 1;

/// Tag, flags, length and body.
pub(super) fn put_tagged(target: &mut Vec<u8>, tag: u64, flags: u8, body: &[u8]) {
    put_varint(target, tag);
    target.push(flags);
    put_bytes(target, body);
}

pub(super) fn take_tagged<'a>(source: &mut Decoder<'a>) -> Option<(u64, u8, &'a [u8])> {
    Some((source.take_varint()?, source.take_u8()?, source.take_bytes()?))
}
