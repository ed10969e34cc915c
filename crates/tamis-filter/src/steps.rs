//! Counts the steps of searches for tests: a step is an elementary operation, about a nanosecond. Otherwise nothing is counted.

#[cfg(test)]
thread_local! {
    static COUNT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Adds steps of this thread.
#[inline]
pub(crate) fn count(steps: usize) {
    #[cfg(test)]
    COUNT.with(|count| count.set(count.get() + steps));
    #[cfg(not(test))]
    let _ = steps;
}

/// The steps that `work` takes.
#[cfg(test)]
pub(crate) fn of<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = COUNT.with(std::cell::Cell::get);
    let result = work();
    (COUNT.with(std::cell::Cell::get) - before, result)
}
