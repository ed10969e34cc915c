//! The model of the processor: stored next to times that were measured on it.

/// A number for the model of the processor; 0 if it is not known. Two models rarely have the same number.
pub fn processor_model() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        x86_64()
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        0
    }
}

/// From family, model and stepping, and the name.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn x86_64() -> u64 {
    const SIGNATURE: u32 = 1;
    const EXTENDED: u32 = 0x8000_0000;
    const NAME: std::ops::RangeInclusive<u32> = 0x8000_0002..=0x8000_0004;

    #[allow(
        unused_unsafe,
        reason = "the intrinsic is unsafe in the oldest supported version of the language"
    )]
    let query = |leaf: u32| {
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { core::arch::x86_64::__cpuid(leaf) }
    };
    let mut model = crate::mix64(u64::from(query(SIGNATURE).eax), 1);
    if query(EXTENDED).eax >= *NAME.end() {
        for leaf in NAME {
            let part = query(leaf);
            for register in [part.eax, part.ebx, part.ecx, part.edx] {
                model = crate::mix64(model ^ u64::from(register), u64::from(leaf));
            }
        }
    }
    model.max(1)
}

#[cfg(test)]
mod tests;
