//! Checks of the tree itself: every rule of the `tidy` crate over every file of the workspace.

use std::{path::Path, sync::LazyLock};

use tidy::{Finding, Tree, budgets, dead_files, formats, ranks, shape, text, unsafe_code, words};

static TREE: LazyLock<Tree> = LazyLock::new(|| {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in a folder of the workspace");
    Tree::load(root).expect("the workspace can be read")
});

fn check(rule: fn(&Tree) -> Vec<Finding>) {
    let tree = &*TREE;
    assert!(tree.rust_files().count() > 20, "the walk over the tree found next to nothing");
    let findings = rule(tree);
    let list: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(list.is_empty(), "\n{}\n", list.join("\n"));
}

macro_rules! rules {
    ($($name:ident: $rule:path;)*) => {
        $(
            #[test]
            fn $name() {
                check($rule);
            }
        )*
    };
}

rules! {
    files_are_short: shape::file_length;
    functions_are_short: shape::function_length;
    folders_keep_their_budgets: budgets::lines_are_within_budgets;
    the_engine_has_few_numbers: budgets::numbers_are_within_budget;
    files_begin_with_their_purpose: shape::head_comment;
    sources_are_ascii: shape::ascii;
    tests_have_their_own_files: shape::no_inline_tests;
    crates_import_lower_crates: ranks::crate_imports;
    modules_import_lower_ranks: ranks::module_ranks;
    imports_have_no_circles: ranks::no_circles;
    the_root_of_the_engine_is_a_list: ranks::root_is_a_list;
    names_and_prose_use_the_terms_of_the_field: words::unused_words;
    qualifiers_come_last: words::qualifiers_last;
    nothing_is_unfinished: text::nothing_unfinished;
    no_text_has_traces_of_its_author: text::no_traces;
    the_world_enters_through_seams: text::world_enters_through_seams;
    lengths_are_whole: text::lengths_are_whole;
    unsafe_is_local_and_justified: unsafe_code::unsafe_is_local_and_justified;
    no_source_is_dead: dead_files::dead_sources;
    no_page_is_dead: dead_files::dead_pages;
    format_pages_are_whole: formats::format_pages_are_whole;
    format_pages_have_golden_files: formats::format_pages_have_golden_files;
    options_have_docs_and_tests: formats::options_have_docs_and_tests;
    statistics_have_tests: formats::statistics_have_tests;
    dependencies_have_reasons_and_users: formats::dependencies_have_reasons_and_users;
    expected_files_are_there: formats::expected_files;
}
