//! The model of the processor is known on x86-64.

use super::*;

#[test]
fn the_model_does_not_change_while_the_program_runs() {
    assert_eq!(processor_model(), processor_model());
    assert_eq!(processor_model() != 0, cfg!(all(target_arch = "x86_64", not(miri))));
}
