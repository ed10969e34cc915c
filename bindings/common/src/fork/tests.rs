#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use super::*;

#[test]
fn values_of_a_parent_process_are_rejected_and_not_dropped() {
    let owner = Arc::new(());
    let guarded = Guarded::new(Arc::clone(&owner));
    assert!(guarded.get().is_ok());
    drop(guarded.clone());
    assert_eq!(Arc::strong_count(&owner), 2);

    let inherited = Guarded { generation: guarded.generation.wrapping_sub(1), value: guarded.value.clone() };
    assert_eq!(inherited.get().unwrap_err().code, Code::Forked);
    drop(inherited);
    assert_eq!(Arc::strong_count(&owner), 3, "a child leaks the values of its parent");
}

#[test]
fn a_child_process_has_another_generation() {
    let guarded = Guarded::new(7);
    // SAFETY: the child only reads an atomic and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = i32::from(guarded.is_own());
        // SAFETY: ends the child without running the test harness.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: waits for the child that was just created.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(libc::WEXITSTATUS(status), 0, "the child used the handle of its parent");
    assert_eq!(guarded.get().copied(), Ok(7));
}
