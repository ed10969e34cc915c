//! The bytes keep their address while a slice holds them, and are dropped with the last one.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::OwnedSlice;

/// Records its drop.
struct Owner {
    bytes: Vec<u8>,
    is_gone: Arc<AtomicBool>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }
}

#[test]
fn bytes_live_until_their_last_slice_is_dropped() {
    let is_gone = Arc::new(AtomicBool::new(false));
    let owner = Owner { bytes: (0..100).collect(), is_gone: Arc::clone(&is_gone) };
    let bytes = OwnedSlice::new(Arc::new(owner), |owner| &owner.bytes);
    assert_eq!(bytes.as_ref(), (0..100).collect::<Vec<u8>>());
    let part = bytes.clone().skip(90);
    drop(bytes);
    assert!(!is_gone.load(Ordering::Relaxed));
    std::thread::scope(|scope| {
        scope.spawn(move || assert_eq!(part.as_ref(), (90..100).collect::<Vec<u8>>()));
    });
    assert!(is_gone.load(Ordering::Relaxed));
}

#[test]
fn an_owner_may_own_another_owner() {
    let file: Arc<dyn AsRef<[u8]> + Send + Sync> = Arc::new(vec![1_u8, 2, 3]);
    let bytes = OwnedSlice::new(Arc::new(Arc::clone(&file)), |file| (**file).as_ref());
    drop(file);
    assert_eq!(bytes.as_ref(), [1, 2, 3]);
}

#[test]
fn a_slice_beyond_the_end_is_empty() {
    let bytes = OwnedSlice::new(Arc::new([1_u8, 2]), |bytes| bytes.as_slice());
    assert_eq!(bytes.clone().skip(2).as_ref(), []);
    assert_eq!(bytes.skip(3).as_ref(), []);
}
