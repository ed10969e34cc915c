//! A batch of writes that happen together, and its bytes.
