//! Operations reach the parts of a store that they are made for.

use super::*;

fn put(key: u8) -> Operation {
    let write = Write { is_second: true, key, value: u16::from(key) + 1 };
    Operation::Put { write, durability: 2 }
}

/// Each layout, with views that are built, rebuilt, removed by a change of the options, and built again.
#[test]
fn operations_build_views_in_each_layout() {
    for layout in [0, 1, 2] {
        let setup = Setup { access: 1, compression: 0, has_filter: false, layout, views: 0, level0_runs: 8 };
        let mut run = Run::new(&setup);
        let built = |run: &Run| {
            let statistics = run.db.statistics();
            statistics.views_built + statistics.views_rebuilt
        };
        for round in 0..3 {
            (0..30).filter(|key| key % 3 >= round).for_each(|key| run.apply(&put(key)));
            run.apply(&Operation::Flush);
            run.apply(&Operation::Skip { is_second: true, counts: vec![0, 3, 17, 2, 9] });
            run.apply(&Operation::Verify);
        }
        let before = built(&run);
        assert!(before > 0, "layout {layout}");
        run.apply(&Operation::Change { is_second: true, layout: 0, views: 2, filters: 0 });
        run.apply(&Operation::Verify);
        assert_eq!(built(&run), before, "views are off");
        run.apply(&Operation::Change { is_second: true, layout: 0, views: 0, filters: 0 });
        run.apply(&Operation::LosePower { seed: 3 });
        run.apply(&Operation::Change { is_second: true, layout: 3 + (layout + 1) % 3, views: 0, filters: 0 });
        run.check_all();
    }
}
