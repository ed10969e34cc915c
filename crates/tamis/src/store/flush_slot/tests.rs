use super::FlushSlot;

/// Flushes that follow on one another would take the slot at each end of another, and the job would never have it.
#[test]
fn flushes_wait_for_a_job_that_requests_a_pause() {
    let slot = FlushSlot::new();
    assert!(slot.try_take_for_flush());
    let (request, other) = (slot.request_pause(), slot.request_pause());
    assert!(!slot.try_take_for_pause(), "a flush is running");
    slot.give_back();
    assert!(!slot.try_take_for_flush());
    assert!(slot.try_take_for_pause());
    drop(request);
    assert!(slot.is_taken() && !slot.try_take_for_pause());
    slot.give_back();
    assert!(!slot.try_take_for_flush(), "another job requests a pause");
    drop(other);
    assert!(slot.try_take_for_flush());
}
