use std::sync::Arc;

use super::*;

#[test]
fn values_of_a_parent_process_are_not_dropped() {
    let owner = Arc::new(());
    let owned = OwnedByProcess::new(Arc::clone(&owner));
    assert!(OwnedByProcess::is_owned(&owned));
    drop(owned.clone());
    assert_eq!(Arc::strong_count(&owner), 2);

    let parent = Process(owned.process.0.wrapping_sub(1));
    let inherited = OwnedByProcess { process: parent, value: owned.value.clone() };
    assert!(!OwnedByProcess::is_owned(&inherited));
    drop(inherited);
    assert_eq!(Arc::strong_count(&owner), 3, "a child leaks the values of its parent");
}

#[test]
fn a_child_process_is_not_its_parent() {
    let (process, open) = (Process::current(), OpenIn::this_process());
    // SAFETY: the child only reads atomics and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = i32::from(process.is_current() || open.is_usable() || open.is_closed());
        // SAFETY: ends the child without running the test harness.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: waits for the child that was just created.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(libc::WEXITSTATUS(status), 0, "the child took itself for its parent");
    assert!(process.is_current() && open.is_usable() && !open.is_closed());
    open.close();
    assert!(open.is_closed() && !open.is_usable());
}
