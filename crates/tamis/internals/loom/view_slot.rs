//! Every interleaving of reads with the opening, the installation and the failure of a view: run with
//! `RUSTFLAGS="--cfg loom" cargo test -p tamis --lib version::view_slot::loom --release`.

use std::sync::Arc;

use loom::{cell::UnsafeCell, thread};

use super::ViewSlot;

/// A view whose content loom watches.
struct Content(UnsafeCell<u64>);

fn view(content: u64) -> Arc<Content> {
    Arc::new(Content(UnsafeCell::new(content)))
}

/// Reads the content, as far as loom knows; returns its address.
fn identity_of(view: &Content) -> usize {
    view.0.with(|content| content as usize)
}

fn spawn<T: 'static>(
    slot: &Arc<ViewSlot<Content>>,
    work: impl FnOnce(&ViewSlot<Content>) -> T + 'static,
) -> thread::JoinHandle<T> {
    let slot = Arc::clone(slot);
    thread::spawn(move || work(&slot))
}

#[test]
fn readers_that_open_a_view_see_one_view() {
    loom::model(|| {
        let slot = Arc::new(ViewSlot::new());
        let open = |slot: &ViewSlot<Content>| {
            let is_opener = slot.claim_open();
            if is_opener {
                slot.set(view(1));
            }
            (is_opener, slot.get().map(|view| identity_of(view)))
        };
        let other = spawn(&slot, open);
        let mine = open(&slot);
        let others = other.join().expect("reader");
        assert!(mine.0 != others.0, "one thread opens it");
        for (is_opener, seen) in [mine, others] {
            assert!(!is_opener || seen.is_some(), "the thread that opened it uses it");
        }
        let now = slot.get().map(|view| identity_of(view));
        assert!(now.is_some() && [mine.1, others.1].iter().flatten().all(|&seen| Some(seen) == now));
    });
}

#[test]
fn the_first_of_two_installed_views_stays() {
    loom::model(|| {
        let slot = Arc::new(ViewSlot::new());
        let reader = spawn(&slot, |slot| {
            let first = slot.get().map(|view| identity_of(view));
            let second = slot.get().map(|view| identity_of(view));
            assert!(first.is_none() || first == second, "a reader sees one view");
            second
        });
        let installer = spawn(&slot, |slot| slot.set(view(1)));
        slot.set(view(2));
        installer.join().expect("installer");
        let seen = reader.join().expect("reader");
        let now = slot.get().map(|view| identity_of(view));
        assert!(now.is_some() && (seen.is_none() || seen == now));
        assert!(!slot.needs_open());
    });
}

#[test]
fn a_damaged_view_is_reported_once_and_not_used_again() {
    loom::model(|| {
        let slot = Arc::new(ViewSlot::new());
        let fail = |slot: &ViewSlot<Content>| {
            let is_first = slot.fail();
            assert!(slot.get().is_none() && !slot.needs_open());
            is_first
        };
        let installer = spawn(&slot, |slot| slot.set(view(1)));
        let other = spawn(&slot, fail);
        let is_first = fail(&slot);
        assert!(is_first != other.join().expect("reader"), "one thread reports it");
        installer.join().expect("installer");
        assert!(slot.get().is_none());
    });
}
