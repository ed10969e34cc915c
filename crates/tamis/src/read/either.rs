//! A cursor that is one of two: the calls that both have alike are forwarded to the one in use.

/// Forwards a call to the cursor in use.
macro_rules! either {
    ($self:expr, $first:ident | $second:ident, $cursor:ident => $call:expr) => {
        match $self {
            Self::$first($cursor) => $call,
            Self::$second($cursor) => $call,
        }
    };
}

/// Implements the movements and the entry of an enum of two cursors.
macro_rules! forward_to_either {
    ($name:ident: $first:ident, $second:ident) => {
        impl $name {
            pub(super) fn seek_first(&mut self) -> Result<()> {
                either!(self, $first | $second, cursor => cursor.seek_first())
            }

            pub(super) fn seek_last(&mut self) -> Result<()> {
                either!(self, $first | $second, cursor => cursor.seek_last())
            }

            /// Moves to the first entry of the range at or after `key`.
            pub(super) fn seek(&mut self, key: &[u8]) -> Result<()> {
                either!(self, $first | $second, cursor => cursor.seek(key))
            }

            #[inline]
            pub(super) fn next(&mut self) -> Result<()> {
                either!(self, $first | $second, cursor => cursor.next())
            }

            #[inline]
            pub(super) fn prev(&mut self) -> Result<()> {
                either!(self, $first | $second, cursor => cursor.prev())
            }

            #[inline]
            pub(super) fn is_valid(&self) -> bool {
                either!(self, $first | $second, cursor => cursor.is_valid())
            }

            #[inline]
            pub(super) fn key(&self) -> &[u8] {
                either!(self, $first | $second, cursor => cursor.key())
            }

            #[inline]
            pub(super) fn value(&self) -> &[u8] {
                either!(self, $first | $second, cursor => cursor.value())
            }

            /// The value as an owned slice.
            pub(super) fn value_slice(&self) -> Slice {
                either!(self, $first | $second, cursor => cursor.value_slice())
            }
        }
    };
}

pub(super) use {either, forward_to_either};
