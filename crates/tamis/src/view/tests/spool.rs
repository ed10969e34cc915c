//! Views whose page index exceeds the memory of its spool: their bytes are the same, and no file is left.

use std::io::ErrorKind;

use tamis_vfs::{FaultVfs, OperationKind, Rule};

use super::{model::with_segments, *};
use crate::view::check::check_view;

/// Runs of `count` keys, and of two keys that have many versions: one in the middle, and the last one.
fn runs_of(count: usize, version_count: usize) -> Vec<MemoryRun> {
    let mut random = SplitMix64::new(count as u64);
    let versions = |key: &[u8]| std::iter::repeat_n(key.to_vec(), version_count);
    let mut keys: Vec<_> = (0..count).map(|_| hostile_key(&mut random)).collect();
    keys.extend(versions(b"many").chain(versions(&[0xFF; 40])));
    distribute(&mut random, 4, keys.into_iter()).into_iter().map(MemoryRun::new).collect()
}

/// The view of all runs but the last one, and the one to which that is added. Spools keep `memory` bytes.
fn views(vfs: &Arc<dyn Vfs>, memory: usize, runs: &[MemoryRun]) -> Result<[Vec<u8>; 2]> {
    let spool = || Spool::new(vfs, || "/index".into()).with_memory(memory);
    let named: Vec<_> = (100..).zip(runs.iter().cloned()).collect();
    let (new, old) = named.split_last().unwrap();
    let (mut built, mut rebuilt) = (Vec::new(), Vec::new());
    build_view(with_segments(16), old, spool(), &mut |part| {
        built.extend_from_slice(part);
        Ok(())
    })?;
    let (owner, view, old) = (options().owner, open(&built)?, runs[..old.len()].into());
    let new = std::slice::from_ref(new);
    rebuild_view(owner, &view, &old, new, spool(), &mut |part| {
        rebuilt.extend_from_slice(part);
        Ok(())
    })?;
    Ok([built, rebuilt])
}

#[test]
fn a_view_that_exceeds_the_memory_of_its_spools_has_the_same_bytes() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    for (count, version_count) in [(0, 0), (1, 0), (0, 3_000), (500, 700), (6_000, 0), (6_000, 3_000)] {
        let runs = runs_of(count, version_count);
        let in_memory = views(&vfs, usize::MAX, &runs).unwrap();
        let view = open(&in_memory[1]).unwrap();
        assert!(check_view(&view, &runs).unwrap().is_empty());
        assert!(count < 6_000 || view.page_count() > 20, "{} pages", view.page_count());
        for memory in [0, 100, 1_000, 10_000] {
            let spilled = views(&vfs, memory, &runs).unwrap();
            assert!(spilled == in_memory, "{count} keys, {version_count} versions, {memory} bytes of memory");
        }
    }
    assert!(vfs.list(Path::new("/")).unwrap().is_empty(), "spools remove their files");
}

#[test]
fn a_build_whose_spools_fail_leaves_no_file() {
    let runs = runs_of(400, 100);
    let fault = FaultVfs::new(Arc::new(MemVfs::new()));
    let vfs: Arc<dyn Vfs> = Arc::new(fault.clone());
    for nth in 1.. {
        let kinds = [OperationKind::Create, OperationKind::Append, OperationKind::Read];
        let rule = fault.add_rule(Rule::error(ErrorKind::Other).on(&kinds).nth(nth));
        let written = views(&vfs, 0, &runs);
        let is_hit = fault.hit_count(rule) > 0;
        fault.remove_rule(rule);
        assert!(vfs.list(Path::new("/")).unwrap().is_empty(), "operation {nth}");
        if !is_hit {
            assert!(nth > 100 && written.is_ok(), "{nth} operations");
            return;
        }
        assert!(matches!(written, Err(Error::Io { .. })), "operation {nth}");
    }
}
