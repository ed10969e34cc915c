// Tests every function of tamis.h from C. bindings/c/test runs it plain, under valgrind, and with the sanitizers for
// addresses and undefined behaviour.

#define _POSIX_C_SOURCE 200809L

#include "tamis.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int check_count = 0;

#define CHECK(condition)                                                          \
    do {                                                                          \
        check_count++;                                                            \
        if (!(condition)) {                                                       \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

// A call that must succeed; `message` is the name of the last argument.
#define OK(call)                                                                  \
    do {                                                                          \
        char *message = NULL;                                                     \
        tamis_code code = (call);                                                 \
        check_count++;                                                            \
        if (code != TAMIS_CODE_OK || message != NULL) {                           \
            fprintf(stderr, "%s:%d: %d: %s\n", __FILE__, __LINE__, (int)code,     \
                    message == NULL ? "no message" : message);                    \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

// A call that must fail with a code and a message that contains a word.
#define FAILS(expected, word, call)                                               \
    do {                                                                          \
        char *message = NULL;                                                     \
        tamis_code code = (call);                                                 \
        check_count++;                                                            \
        if (code != (expected) || message == NULL || strstr(message, (word)) == NULL) { \
            fprintf(stderr, "%s:%d: %d: %s\n", __FILE__, __LINE__, (int)code,     \
                    message == NULL ? "no message" : message);                    \
            exit(1);                                                              \
        }                                                                         \
        tamis_text_free(message);                                                 \
    } while (0)

static const uint8_t *bytes(const char *text) { return (const uint8_t *)text; }

static tamis_bound unbounded(void) {
    tamis_bound bound = {TAMIS_BOUND_KIND_UNBOUNDED, {NULL, 0}};
    return bound;
}

static tamis_bound at(const char *key, int32_t kind) {
    tamis_bound bound = {kind, {(const uint8_t *)key, strlen(key)}};
    return bound;
}

static void put(const tamis_keyspace *keyspace, const char *key, const char *value) {
    OK(tamis_put(keyspace, bytes(key), strlen(key), bytes(value), strlen(value), &message));
}

static void expect(const tamis_keyspace *keyspace, const tamis_snapshot *snapshot, const char *key,
                   const char *expected) {
    tamis_value value;
    OK(tamis_get(keyspace, snapshot, bytes(key), strlen(key), &value, &message));
    CHECK((value.data == NULL) == (expected == NULL));
    CHECK(expected == NULL ||
          (value.length == strlen(expected) && memcmp(value.data, expected, value.length) == 0));
    tamis_value_free(&value);
    CHECK(value.data == NULL);
    tamis_value_free(&value);
}

static char *in_folder(const char *folder, const char *name) {
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = (char *)malloc(size);
    CHECK(path != NULL);
    snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static tamis_db *open_store(const char *path) {
    tamis_db *db;
    OK(tamis_open(path, NULL, &db, &message));
    return db;
}

static void test_versions(void) {
    CHECK(tamis_abi_version() == TAMIS_ABI_VERSION);
    CHECK(strchr(tamis_version(), '.') != NULL);
}

static void test_points(const char *folder) {
    char *path = in_folder(folder, "points");
    tamis_options *options;
    OK(tamis_options_new(&options, &message));
    OK(tamis_options_set(options, "cache_bytes", "16MiB", &message));
    OK(tamis_options_set(options, "filters", "surf@16", &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "cache_bytes", tamis_options_set(options, "cash_bytes", "1", &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "bytes", tamis_options_set(options, "cache_bytes", "lots", &message));
    tamis_db *db;
    OK(tamis_open(path, options, &db, &message));
    tamis_options_free(options);
    FAILS(TAMIS_CODE_LOCKED, "by this process", tamis_open(path, NULL, &(tamis_db *){NULL}, &message));

    tamis_keyspace *keyspace;
    OK(tamis_default_keyspace(db, &keyspace, &message));
    expect(keyspace, NULL, "apple", NULL);
    put(keyspace, "apple", "red");
    put(keyspace, "empty", "");
    expect(keyspace, NULL, "apple", "red");
    expect(keyspace, NULL, "empty", "");
    bool is_found;
    OK(tamis_contains(keyspace, NULL, bytes("apple"), 5, &is_found, &message));
    CHECK(is_found);

    char buffer[16];
    size_t length;
    OK(tamis_get_into(keyspace, NULL, bytes("apple"), 5, (uint8_t *)buffer, sizeof buffer, &length, &is_found, &message));
    CHECK(is_found && length == 3 && memcmp(buffer, "red", 3) == 0);
    FAILS(TAMIS_CODE_BUFFER_TOO_SMALL, "3 bytes",
          tamis_get_into(keyspace, NULL, bytes("apple"), 5, (uint8_t *)buffer, 2, &length, &is_found, &message));
    CHECK(length == 3 && is_found);
    OK(tamis_get_into(keyspace, NULL, bytes("none"), 4, NULL, 0, &length, &is_found, &message));
    CHECK(!is_found && length == 0);

    OK(tamis_delete(keyspace, bytes("apple"), 5, &message));
    expect(keyspace, NULL, "apple", NULL);

    FAILS(TAMIS_CODE_SIZE, "1 to 65,535", tamis_put(keyspace, NULL, 0, NULL, 0, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "key: the pointer is null", tamis_put(keyspace, NULL, 3, NULL, 0, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "negative", tamis_put(keyspace, bytes("a"), (size_t)-1, NULL, 0, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "keyspace: the pointer is null", tamis_put(NULL, bytes("a"), 1, NULL, 0, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "value: the pointer is null", tamis_get(keyspace, NULL, bytes("a"), 1, NULL, &message));
    CHECK(tamis_put(NULL, NULL, 0, NULL, 0, NULL) == TAMIS_CODE_INVALID_ARGUMENT);

    tamis_bytes keys[3] = {{bytes("empty"), 5}, {bytes("none"), 4}, {bytes("pear"), 4}};
    tamis_value values[3];
    put(keyspace, "pear", "a value that is longer than what is held without a pointer to its owner");
    OK(tamis_multi_get(keyspace, NULL, keys, 3, values, &message));
    CHECK(values[0].data != NULL && values[0].length == 0);
    CHECK(values[1].data == NULL);
    CHECK(values[2].length > 40);
    tamis_values_free(values, 3);
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "keys", tamis_multi_get(keyspace, NULL, NULL, 3, values, &message));
    CHECK(values[0].data == NULL && values[2].data == NULL);

    // Handles can be freed in any order, here the database first.
    tamis_db_free(db);
    expect(keyspace, NULL, "empty", "");
    FAILS(TAMIS_CODE_LOCKED, "by this process", tamis_open(path, NULL, &(tamis_db *){NULL}, &message));
    tamis_keyspace_free(keyspace);
    db = open_store(path);
    OK(tamis_default_keyspace(db, &keyspace, &message));
    expect(keyspace, NULL, "empty", "");

    OK(tamis_close(db, &message));
    FAILS(TAMIS_CODE_CLOSED, "open it again", tamis_put(keyspace, bytes("a"), 1, NULL, 0, &message));
    tamis_value value;
    FAILS(TAMIS_CODE_CLOSED, "open it again", tamis_get(keyspace, NULL, bytes("a"), 1, &value, &message));
    tamis_db_free(db);
    tamis_keyspace_free(keyspace);
    free(path);
}

static void test_batches_keyspaces_snapshots(const char *folder) {
    char *path = in_folder(folder, "batches"), *other_path = in_folder(folder, "other");
    tamis_db *db = open_store(path), *other = open_store(other_path);
    tamis_keyspace *first, *second, *foreign;
    tamis_keyspace_options *options;
    OK(tamis_keyspace_options_new(&options, &message));
    OK(tamis_keyspace_options_set(options, "memtable_bytes", "1MiB", &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "the options are", tamis_keyspace_options_set(options, "workers", "1", &message));
    OK(tamis_default_keyspace(db, &first, &message));
    OK(tamis_keyspace_create(db, "second", options, &second, &message));
    tamis_keyspace_options_free(options);
    OK(tamis_default_keyspace(other, &foreign, &message));
    char *name;
    OK(tamis_keyspace_name(second, &name, &message));
    CHECK(strcmp(name, "second") == 0);
    tamis_text_free(name);
    OK(tamis_keyspace_set_option(second, "layout", "tiered", &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "copy the entries", tamis_keyspace_set_option(second, "memtable_bytes", "2MiB", &message));

    tamis_batch *batch;
    OK(tamis_batch_new(&batch, &message));
    OK(tamis_batch_put(batch, first, bytes("a"), 1, bytes("1"), 1, &message));
    OK(tamis_batch_put(batch, second, bytes("a"), 1, bytes("2"), 1, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "another store", tamis_batch_put(batch, foreign, bytes("a"), 1, NULL, 0, &message));
    size_t count;
    OK(tamis_batch_count(batch, &count, &message));
    CHECK(count == 2);
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "durability", tamis_write(db, batch, 7, &message));
    OK(tamis_write(db, batch, TAMIS_DURABILITY_SYNCED, &message));
    OK(tamis_batch_count(batch, &count, &message));
    CHECK(count == 0);
    expect(first, NULL, "a", "1");
    expect(second, NULL, "a", "2");

    tamis_snapshot *snapshot;
    OK(tamis_snapshot_new(db, &snapshot, &message));
    OK(tamis_batch_delete(batch, first, bytes("a"), 1, &message));
    OK(tamis_batch_put(batch, first, bytes("b"), 1, bytes("3"), 1, &message));
    OK(tamis_write(db, batch, TAMIS_DURABILITY_BUFFERED, &message));
    OK(tamis_batch_put(batch, first, bytes("c"), 1, bytes("4"), 1, &message));
    OK(tamis_batch_clear(batch, &message));
    OK(tamis_write(db, batch, TAMIS_DURABILITY_DEFERRED, &message));
    OK(tamis_persist(db, TAMIS_DURABILITY_SYNCED, &message));
    expect(first, snapshot, "a", "1");
    expect(first, NULL, "a", NULL);
    expect(first, snapshot, "b", NULL);
    expect(first, NULL, "c", NULL);
    tamis_value value;
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "another store", tamis_get(foreign, snapshot, bytes("a"), 1, &value, &message));
    tamis_batch_free(batch);

    char *names;
    OK(tamis_keyspace_names(db, &names, &message));
    CHECK(strcmp(names, "[\"default\",\"second\"]") == 0);
    tamis_text_free(names);
    OK(tamis_keyspace_drop(db, "second", &message));
    FAILS(TAMIS_CODE_KEYSPACE_DROPPED, "dropped", tamis_put(second, bytes("a"), 1, NULL, 0, &message));
    FAILS(TAMIS_CODE_KEYSPACE_NOT_FOUND, "second", tamis_keyspace_open(db, "second", &(tamis_keyspace *){NULL}, &message));
    FAILS(TAMIS_CODE_KEYSPACE_EXISTS, "default", tamis_keyspace_create(db, "default", NULL, &(tamis_keyspace *){NULL}, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "UTF-8", tamis_keyspace_create(db, "\xff", NULL, &(tamis_keyspace *){NULL}, &message));

    tamis_db_free(db);
    tamis_keyspace_free(second);
    tamis_snapshot_free(snapshot);
    tamis_keyspace_free(first);
    tamis_keyspace_free(foreign);
    tamis_db_free(other);
    free(path);
    free(other_path);
}

static void number_key(uint8_t key[8], uint64_t number) {
    for (int index = 7; index >= 0; index--, number >>= 8)
        key[index] = (uint8_t)number;
}

static void expect_entry(const tamis_scan *scan, uint64_t number) {
    tamis_bytes key, value;
    uint8_t expected[8];
    number_key(expected, number);
    OK(tamis_scan_entry(scan, &key, &value, &message));
    CHECK(key.length == 8 && memcmp(key.data, expected, 8) == 0);
    CHECK(value.length == 8 && memcmp(value.data, expected, 8) == 0);
}

static void test_scans(const char *folder) {
    char *path = in_folder(folder, "scans");
    tamis_db *db = open_store(path);
    tamis_keyspace *keyspace;
    OK(tamis_default_keyspace(db, &keyspace, &message));
    uint8_t key[8];
    for (uint64_t number = 0; number < 1000; number++) {
        number_key(key, number);
        OK(tamis_put(keyspace, key, 8, key, 8, &message));
        if (number == 500)
            OK(tamis_flush(db, &message));
    }
    tamis_scan *scan;
    bool has_entry;
    OK(tamis_range(keyspace, NULL, unbounded(), unbounded(), &scan, &message));
    for (uint64_t number = 0; number < 1000; number++) {
        OK(tamis_scan_next(scan, &has_entry, &message));
        CHECK(has_entry);
        expect_entry(scan, number);
    }
    OK(tamis_scan_next(scan, &has_entry, &message));
    CHECK(!has_entry);
    for (uint64_t number = 1000; number-- > 0;) {
        OK(tamis_scan_prev(scan, &has_entry, &message));
        CHECK(has_entry);
        expect_entry(scan, number);
    }
    number_key(key, 700);
    OK(tamis_scan_seek(scan, key, 8, &message));
    OK(tamis_scan_next(scan, &has_entry, &message));
    expect_entry(scan, 700);
    OK(tamis_scan_seek_for_prev(scan, key, 8, &message));
    OK(tamis_scan_prev(scan, &has_entry, &message));
    expect_entry(scan, 700);
    OK(tamis_scan_seek_to_last(scan, &message));
    OK(tamis_scan_prev(scan, &has_entry, &message));
    expect_entry(scan, 999);

    OK(tamis_scan_seek_to_first(scan, &message));
    tamis_chunk chunk;
    uint64_t number = 0;
    do {
        OK(tamis_scan_chunk(scan, 0, 64, 1 << 20, &chunk, &message));
        for (size_t index = 0, start = 0; index < chunk.count; start = chunk.key_ends[index++], number++) {
            number_key(key, number);
            CHECK(chunk.key_ends[index] - start == 8 && memcmp(chunk.key_bytes + start, key, 8) == 0);
            CHECK(chunk.value_ends[index] == chunk.key_ends[index]);
            CHECK(memcmp(chunk.value_bytes + start, key, 8) == 0);
        }
    } while (!chunk.is_finished);
    CHECK(number == 1000);
    tamis_scan_free(scan);

    tamis_bound lower = {TAMIS_BOUND_KIND_EXCLUDED, {key, 8}};
    OK(tamis_range(keyspace, NULL, lower, unbounded(), &scan, &message));
    OK(tamis_scan_next(scan, &has_entry, &message));
    CHECK(!has_entry);
    tamis_scan_free(scan);
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "not a kind of bound", tamis_range(keyspace, NULL, at("a", 9), unbounded(), &scan, &message));
    CHECK(scan == NULL);

    uint8_t prefix[7];
    memset(prefix, 0, sizeof prefix);
    OK(tamis_prefix(keyspace, NULL, prefix, 7, &scan, &message));
    tamis_snapshot *snapshot;
    OK(tamis_snapshot_new(db, &snapshot, &message));
    uint64_t count;
    OK(tamis_approximate_count(keyspace, unbounded(), unbounded(), &count, &message));
    CHECK(count == 1000);
    OK(tamis_compact(db, keyspace, unbounded(), unbounded(), &message));
    OK(tamis_wait_for_compactions(db, &message));
    // A scan is independent of other handles, so all others are freed before.
    tamis_keyspace_free(keyspace);
    tamis_snapshot_free(snapshot);
    OK(tamis_close(db, &message));
    tamis_db_free(db);
    OK(tamis_scan_chunk(scan, 1, 1000, 1 << 20, &chunk, &message));
    CHECK(chunk.count == 0 && chunk.is_finished);
    OK(tamis_scan_chunk(scan, 0, 1000, 1 << 20, &chunk, &message));
    CHECK(chunk.count == 256);
    tamis_scan_free(scan);
    free(path);
}

static tamis_transaction *begin(const tamis_db *db) {
    tamis_transaction *transaction;
    OK(tamis_transaction_begin(db, TAMIS_ISOLATION_SERIALIZABLE, TAMIS_DURABILITY_BUFFERED, &transaction, &message));
    return transaction;
}

static void put_in(const tamis_transaction *transaction, const tamis_keyspace *keyspace, const char *key,
                   const char *value) {
    OK(tamis_transaction_put(transaction, keyspace, bytes(key), strlen(key), bytes(value), strlen(value), &message));
}

static bool has(const tamis_transaction *transaction, const tamis_keyspace *keyspace, const char *key) {
    bool is_found;
    OK(tamis_transaction_contains(transaction, keyspace, bytes(key), strlen(key), &is_found, &message));
    return is_found;
}

// Moves a scan of a transaction to the next entry, and compares its key; NULL is the end.
static void expect_next(const tamis_scan *scan, const char *expected) {
    bool has_entry;
    tamis_bytes key;
    OK(tamis_scan_next(scan, &has_entry, &message));
    CHECK(has_entry == (expected != NULL));
    OK(tamis_scan_entry(scan, &key, NULL, &message));
    CHECK(expected == NULL || (key.length == strlen(expected) && memcmp(key.data, expected, key.length) == 0));
}

static void test_transactions(const char *folder) {
    char *path = in_folder(folder, "transactions");
    char *other_path = in_folder(folder, "transactions-2");
    tamis_db *db = open_store(path), *other = open_store(other_path);
    tamis_keyspace *first, *second, *foreign;
    OK(tamis_default_keyspace(db, &first, &message));
    OK(tamis_keyspace_create(db, "second", NULL, &second, &message));
    OK(tamis_default_keyspace(other, &foreign, &message));
    put(first, "a", "1");
    put(first, "b", "2");

    // Own writes are visible inside and not outside; a commit is all, freeing is nothing.
    tamis_transaction *transaction = begin(db);
    put_in(transaction, first, "c", "3");
    put_in(transaction, second, "x", "9");
    OK(tamis_transaction_delete(transaction, first, bytes("a"), 1, &message));
    CHECK(has(transaction, first, "c") && !has(transaction, first, "a") && has(transaction, second, "x"));
    tamis_value value, values[3];
    OK(tamis_transaction_get(transaction, first, bytes("b"), 1, &value, &message));
    CHECK(value.length == 1 && value.data[0] == '2');
    tamis_value_free(&value);
    const tamis_bytes keys[] = {{bytes("c"), 1}, {bytes("a"), 1}, {bytes("b"), 1}};
    OK(tamis_transaction_multi_get(transaction, first, keys, 3, values, &message));
    CHECK(values[0].data[0] == '3' && values[1].data == NULL && values[2].data[0] == '2');
    tamis_values_free(values, 3);
    expect(first, NULL, "a", "1");
    expect(second, NULL, "x", NULL);
    OK(tamis_transaction_commit(transaction, &message));
    expect(first, NULL, "a", NULL);
    expect(first, NULL, "c", "3");
    expect(second, NULL, "x", "9");
    tamis_transaction *dropped = begin(db);
    put_in(dropped, first, "lost", "");
    tamis_transaction_free(dropped);
    expect(first, NULL, "lost", NULL);

    // After the end.
    uint64_t savepoint;
    tamis_scan *scan;
    FAILS(TAMIS_CODE_TRANSACTION_ENDED, "ended", tamis_transaction_commit(transaction, &message));
    FAILS(TAMIS_CODE_TRANSACTION_ENDED, "ended", tamis_transaction_get(transaction, first, bytes("a"), 1, &value, &message));
    FAILS(TAMIS_CODE_TRANSACTION_ENDED, "ended", tamis_transaction_put(transaction, first, bytes("a"), 1, NULL, 0, &message));
    FAILS(TAMIS_CODE_TRANSACTION_ENDED, "ended", tamis_transaction_savepoint(transaction, &savepoint, &message));
    FAILS(TAMIS_CODE_TRANSACTION_ENDED, "ended", tamis_transaction_range(transaction, first, unbounded(), unbounded(), &scan, &message));
    CHECK(scan == NULL);
    tamis_transaction_free(transaction);

    // Savepoints.
    transaction = begin(db);
    put_in(transaction, first, "d", "4");
    OK(tamis_transaction_savepoint(transaction, &savepoint, &message));
    OK(tamis_transaction_delete_prefix(transaction, first, bytes("d"), 1, &message));
    OK(tamis_transaction_delete_range(transaction, first, at("a", 1), at("c", 2), &message));
    CHECK(!has(transaction, first, "d") && !has(transaction, first, "b") && has(transaction, first, "c"));
    OK(tamis_transaction_roll_back_to(transaction, savepoint, &message));
    CHECK(has(transaction, first, "d") && has(transaction, first, "b"));
    dropped = begin(db);
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "savepoint", tamis_transaction_roll_back_to(dropped, savepoint, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "another store", tamis_transaction_put(transaction, foreign, bytes("a"), 1, NULL, 0, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "another store", tamis_transaction_get(transaction, foreign, bytes("a"), 1, &value, &message));
    tamis_transaction_free(dropped);
    OK(tamis_transaction_commit(transaction, &message));
    tamis_transaction_free(transaction);
    expect(first, NULL, "d", "4");

    // Conflicts: of a key, and of the part of a range that an open scan has passed. The end of a transaction ends its scans.
    transaction = begin(db);
    CHECK(!has(transaction, second, "free"));
    put_in(transaction, second, "mine", "");
    put(second, "free", "");
    FAILS(TAMIS_CODE_CONFLICT, "the key \"free\" of keyspace \"second\"", tamis_transaction_commit(transaction, &message));
    tamis_transaction_free(transaction);
    expect(second, NULL, "mine", NULL);
    for (int changes_passed = 0; changes_passed < 2; changes_passed++) {
        transaction = begin(db);
        tamis_scan *of_prefix;
        OK(tamis_transaction_range(transaction, first, unbounded(), unbounded(), &scan, &message));
        OK(tamis_transaction_prefix(transaction, second, bytes("x"), 1, &of_prefix, &message));
        expect_next(scan, "b");
        expect_next(scan, "c");
        expect_next(of_prefix, "x");
        expect_next(of_prefix, NULL);
        put_in(transaction, second, "mine", "");
        put(first, changes_passed ? "ba" : "ca", "");
        if (changes_passed)
            FAILS(TAMIS_CODE_CONFLICT, "keyspace \"default\"", tamis_transaction_commit(transaction, &message));
        else
            OK(tamis_transaction_commit(transaction, &message));
        bool has_entry;
        FAILS(TAMIS_CODE_TRANSACTION_ENDED, "ended", tamis_scan_next(scan, &has_entry, &message));
        FAILS(TAMIS_CODE_TRANSACTION_ENDED, "ended", tamis_scan_seek(of_prefix, bytes("x"), 1, &message));
        tamis_scan_free(scan);
        tamis_transaction_free(transaction);
        tamis_scan_free(of_prefix);
    }

    // Attempts, exclusive transactions, write skew.
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "isolation", tamis_transaction_begin(db, 2, 1, &transaction, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "durability", tamis_transaction_begin_exclusive(db, 3, &transaction, &message));
    int attempt = 0;
    for (tamis_code code = TAMIS_CODE_CONFLICT; code == TAMIS_CODE_CONFLICT; attempt++) {
        OK(tamis_transaction_begin_attempt(db, TAMIS_ISOLATION_SERIALIZABLE, TAMIS_DURABILITY_BUFFERED, (uint32_t)attempt,
                                           &transaction, &message));
        CHECK(has(transaction, first, "b"));
        put_in(transaction, second, "mine", "");
        code = tamis_put(first, bytes("b"), 1, NULL, 0, NULL);
        CHECK(code == (attempt < 8 ? TAMIS_CODE_OK : TAMIS_CODE_EXCLUSIVE_TRANSACTION));
        code = tamis_transaction_commit(transaction, NULL);
        tamis_transaction_free(transaction);
    }
    CHECK(attempt == 9);
    OK(tamis_transaction_begin_exclusive(db, TAMIS_DURABILITY_SYNCED, &transaction, &message));
    FAILS(TAMIS_CODE_EXCLUSIVE_TRANSACTION, "exclusive", tamis_transaction_begin_exclusive(db, 1, &dropped, &message));
    CHECK(dropped == NULL);
    tamis_transaction_free(transaction);
    OK(tamis_transaction_begin(db, TAMIS_ISOLATION_SNAPSHOT, TAMIS_DURABILITY_BUFFERED, &transaction, &message));
    CHECK(has(transaction, first, "b"));
    put_in(transaction, second, "mine", "");
    put(first, "b", "3");
    OK(tamis_transaction_commit(transaction, &message));
    tamis_transaction_free(transaction);

    const tamis_bytes three = {bytes("3"), 1}, four = {bytes("4"), 1};
    bool is_replaced;
    OK(tamis_compare_and_put(first, bytes("b"), 1, &four, &three, &is_replaced, &message));
    CHECK(!is_replaced);
    OK(tamis_compare_and_put(first, bytes("b"), 1, &three, &four, &is_replaced, &message));
    CHECK(is_replaced);
    expect(first, NULL, "b", "4");
    OK(tamis_compare_and_put(first, bytes("b"), 1, &four, NULL, &is_replaced, &message));
    OK(tamis_compare_and_put(first, bytes("b"), 1, NULL, &three, &is_replaced, &message));
    CHECK(is_replaced);
    expect(first, NULL, "b", "3");

    // After a close; handles are freed in any order.
    transaction = begin(db);
    put_in(transaction, first, "late", "");
    OK(tamis_transaction_range(transaction, first, unbounded(), unbounded(), &scan, &message));
    OK(tamis_close(db, &message));
    FAILS(TAMIS_CODE_CLOSED, "closed", tamis_transaction_put(transaction, first, bytes("a"), 1, NULL, 0, &message));
    FAILS(TAMIS_CODE_CLOSED, "closed", tamis_transaction_commit(transaction, &message));
    tamis_db_free(db);
    tamis_keyspace_free(first);
    tamis_keyspace_free(second);
    tamis_transaction_free(transaction);
    tamis_scan_free(scan);
    tamis_keyspace_free(foreign);
    tamis_db_free(other);
    free(path);
    free(other_path);
}

static void test_maintenance(const char *folder) {
    char *path = in_folder(folder, "maintenance"), *copy = in_folder(folder, "copy"), *file = in_folder(folder, "new.table");
    tamis_db *db = open_store(path);
    tamis_keyspace *keyspace;
    OK(tamis_default_keyspace(db, &keyspace, &message));
    put(keyspace, "b", "old");

    tamis_table_writer *writer;
    OK(tamis_table_writer_new(keyspace, file, &writer, &message));
    OK(tamis_table_writer_put(writer, bytes("a"), 1, bytes("1"), 1, &message));
    OK(tamis_table_writer_delete(writer, bytes("b"), 1, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "ascending", tamis_table_writer_put(writer, bytes("a"), 1, NULL, 0, &message));
    OK(tamis_table_writer_finish(writer, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "finished", tamis_table_writer_finish(writer, &message));
    tamis_table_writer_free(writer);
    const char *files[1] = {file};
    char *json;
    OK(tamis_ingest(db, keyspace, files, 1, false, &json, &message));
    CHECK(strstr(json, "\"entry_count\":2") != NULL);
    tamis_text_free(json);
    expect(keyspace, NULL, "a", "1");
    expect(keyspace, NULL, "b", NULL);
    files[0] = copy;
    FAILS(TAMIS_CODE_IO, "copy", tamis_ingest(db, keyspace, files, 1, true, NULL, &message));

    OK(tamis_checkpoint(db, copy, &json, &message));
    tamis_text_free(json);
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "copy", tamis_checkpoint(db, copy, NULL, &message));
    OK(tamis_verify(db, &json, &message));
    CHECK(strstr(json, "\"is_sound\":true") != NULL);
    tamis_text_free(json);
    OK(tamis_statistics(db, &json, &message));
    CHECK(strstr(json, "\"point_reads\":") != NULL && strstr(json, "\"keyspaces\":[") != NULL);
    tamis_text_free(json);
    OK(tamis_table_filters(db, keyspace, &json, &message));
    CHECK(strstr(json, "\"designs\":[") != NULL);
    tamis_text_free(json);
    OK(tamis_open_report(db, &json, &message));
    CHECK(strstr(json, "\"is_new\":true") != NULL);
    tamis_text_free(json);
    tamis_db_free(db);
    tamis_keyspace_free(keyspace);

    OK(tamis_verify_folder(copy, &json, &message));
    tamis_text_free(json);
    OK(tamis_repair(copy, &json, &message));
    CHECK(strstr(json, "\"was_sound\":true") != NULL);
    tamis_text_free(json);
    FAILS(TAMIS_CODE_NOT_A_DATABASE, "no file of a store", tamis_repair(folder, &json, &message));
    db = open_store(copy);
    OK(tamis_default_keyspace(db, &keyspace, &message));
    expect(keyspace, NULL, "a", "1");
    tamis_keyspace_free(keyspace);
    tamis_db_free(db);
    free(path);
    free(copy);
    free(file);
}

static size_t count_of(const tamis_keyspace *keyspace) {
    tamis_scan *scan;
    tamis_chunk chunk;
    OK(tamis_range(keyspace, NULL, unbounded(), unbounded(), &scan, &message));
    OK(tamis_scan_chunk(scan, 0, 1000, 1 << 20, &chunk, &message));
    tamis_scan_free(scan);
    return chunk.count;
}

static void put_letters(const tamis_keyspace *keyspace) {
    const char letters[] = "abcdefghij";
    for (size_t index = 0; index < 10; index++) {
        char key[3] = {letters[index], '1', 0};
        put(keyspace, key, "value");
    }
}

static void test_deletes(const char *folder) {
    char *path = in_folder(folder, "deletes");
    tamis_db *db = open_store(path);
    tamis_keyspace *keyspace;
    OK(tamis_default_keyspace(db, &keyspace, &message));
    put_letters(keyspace);
    OK(tamis_delete_range(keyspace, at("b", TAMIS_BOUND_KIND_INCLUDED), at("d", TAMIS_BOUND_KIND_EXCLUDED),
                          TAMIS_DURABILITY_BUFFERED, &message));
    CHECK(count_of(keyspace) == 8);
    OK(tamis_delete_range(keyspace, at("j", TAMIS_BOUND_KIND_INCLUDED), at("a", TAMIS_BOUND_KIND_INCLUDED),
                          TAMIS_DURABILITY_BUFFERED, &message));
    CHECK(count_of(keyspace) == 8);
    OK(tamis_delete_prefix(keyspace, bytes("e"), 1, TAMIS_DURABILITY_SYNCED, &message));
    expect(keyspace, NULL, "e1", NULL);
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "durability", tamis_clear(keyspace, 3, &message));
    CHECK(count_of(keyspace) == 7);
    OK(tamis_clear(keyspace, TAMIS_DURABILITY_DEFERRED, &message));
    CHECK(count_of(keyspace) == 0);

    OK(tamis_put_with(keyspace, bytes("k"), 1, bytes("v"), 1, TAMIS_DURABILITY_SYNCED, &message));
    expect(keyspace, NULL, "k", "v");
    OK(tamis_delete_with(keyspace, bytes("k"), 1, TAMIS_DURABILITY_DEFERRED, &message));
    expect(keyspace, NULL, "k", NULL);
    FAILS(TAMIS_CODE_SIZE, "key", tamis_put_with(keyspace, NULL, 0, NULL, 0, TAMIS_DURABILITY_SYNCED, &message));

    put_letters(keyspace);
    tamis_batch *batch;
    size_t size;
    OK(tamis_batch_new(&batch, &message));
    OK(tamis_batch_delete_range(batch, keyspace, unbounded(), at("c", TAMIS_BOUND_KIND_EXCLUDED), &message));
    OK(tamis_batch_delete_prefix(batch, keyspace, bytes("j"), 1, &message));
    OK(tamis_batch_size(batch, &size, &message));
    CHECK(size > 0);
    size_t writes;
    OK(tamis_batch_append(batch, batch, &message));
    OK(tamis_batch_count(batch, &writes, &message));
    CHECK(writes == 4);
    OK(tamis_write(db, batch, TAMIS_DURABILITY_BUFFERED, &message));
    tamis_batch_free(batch);
    CHECK(count_of(keyspace) == 7);
    OK(tamis_close(db, &message));
    FAILS(TAMIS_CODE_CLOSED, "closed", tamis_clear(keyspace, TAMIS_DURABILITY_BUFFERED, &message));
    tamis_keyspace_free(keyspace);
    tamis_db_free(db);
    free(path);
}

static uint64_t now_ms(void) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void wait_until(uint64_t time_ms) {
    const struct timespec pause = {0, 10000000};
    while (now_ms() <= time_ms)
        nanosleep(&pause, NULL);
}

static void test_merge(const char *folder) {
    char *path = in_folder(folder, "merge"), *file = in_folder(folder, "merge.table");
    tamis_db *db = open_store(path);
    tamis_keyspace *plain, *words, *sums;
    tamis_keyspace_options *options;
    OK(tamis_default_keyspace(db, &plain, &message));
    OK(tamis_keyspace_options_new(&options, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "add_u64", tamis_keyspace_options_set(options, "merge", "plus", &message));
    OK(tamis_keyspace_options_set(options, "merge", "append:2c", &message));
    OK(tamis_keyspace_create(db, "words", options, &words, &message));
    OK(tamis_keyspace_options_set(options, "merge", "add_u64", &message));
    OK(tamis_keyspace_create(db, "sums", options, &sums, &message));
    tamis_keyspace_options_free(options);

    put(words, "a", "1");
    OK(tamis_merge(words, bytes("a"), 1, bytes("2"), 1, &message));
    OK(tamis_merge(words, bytes("b"), 1, bytes("3"), 1, &message));
    expect(words, NULL, "a", "1,2");
    expect(words, NULL, "b", "3");
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "no merge operator", tamis_merge(plain, bytes("a"), 1, bytes("2"), 1, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "8 bytes", tamis_merge(sums, bytes("a"), 1, bytes("2"), 1, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "operand: the pointer is null", tamis_merge(words, bytes("a"), 1, NULL, 3, &message));

    tamis_batch *batch;
    OK(tamis_batch_new(&batch, &message));
    OK(tamis_batch_merge(batch, words, bytes("a"), 1, bytes("4"), 1, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "no merge operator", tamis_batch_merge(batch, plain, bytes("a"), 1, bytes("4"), 1, &message));
    OK(tamis_write(db, batch, TAMIS_DURABILITY_SYNCED, &message));
    tamis_batch_free(batch);
    expect(words, NULL, "a", "1,2,4");

    // Operands are no reads: both transactions commit.
    tamis_transaction *first = begin(db), *second = begin(db);
    OK(tamis_transaction_merge(first, words, bytes("a"), 1, bytes("5"), 1, &message));
    OK(tamis_transaction_merge(second, words, bytes("a"), 1, bytes("6"), 1, &message));
    tamis_value value;
    OK(tamis_transaction_get(first, words, bytes("b"), 1, &value, &message));
    tamis_value_free(&value);
    OK(tamis_transaction_commit(second, &message));
    OK(tamis_transaction_commit(first, &message));
    tamis_transaction_free(first);
    tamis_transaction_free(second);
    expect(words, NULL, "a", "1,2,4,6,5");

    tamis_table_writer *writer;
    OK(tamis_table_writer_new(words, file, &writer, &message));
    OK(tamis_table_writer_merge(writer, bytes("a"), 1, bytes("7"), 1, &message));
    OK(tamis_table_writer_finish(writer, &message));
    tamis_table_writer_free(writer);
    const char *files[1] = {file};
    OK(tamis_ingest(db, words, files, 1, false, NULL, &message));
    OK(tamis_compact(db, words, unbounded(), unbounded(), &message));
    expect(words, NULL, "a", "1,2,4,6,5,7");

    // A value that is no number of 8 bytes: the merge fails for this key, until it is put or deleted.
    const uint8_t one[8] = {0, 0, 0, 0, 0, 0, 0, 1};
    put(sums, "a", "text");
    OK(tamis_merge(sums, bytes("a"), 1, one, 8, &message));
    OK(tamis_merge(sums, bytes("b"), 1, one, 8, &message));
    FAILS(TAMIS_CODE_MERGE_FAILED, "\"add_u64\" of keyspace \"sums\"", tamis_get(sums, NULL, bytes("a"), 1, &value, &message));
    CHECK(value.data == NULL);
    OK(tamis_get(sums, NULL, bytes("b"), 1, &value, &message));
    CHECK(value.length == 8 && memcmp(value.data, one, 8) == 0);
    tamis_value_free(&value);
    OK(tamis_delete(sums, bytes("a"), 1, &message));
    expect(sums, NULL, "a", NULL);

    OK(tamis_close(db, &message));
    FAILS(TAMIS_CODE_CLOSED, "closed", tamis_merge(words, bytes("a"), 1, bytes("2"), 1, &message));
    tamis_keyspace_free(plain);
    tamis_keyspace_free(words);
    tamis_keyspace_free(sums);
    tamis_db_free(db);
    free(path);
    free(file);
}

static void test_expiry(const char *folder) {
    char *path = in_folder(folder, "expiry"), *file = in_folder(folder, "expiry.table");
    tamis_db *db = open_store(path);
    tamis_keyspace *keyspace, *sessions;
    OK(tamis_default_keyspace(db, &keyspace, &message));
    const uint64_t late = now_ms() + 3600000;
    put(keyspace, "a", "1");
    OK(tamis_put_until(keyspace, bytes("b"), 1, bytes("2"), 1, late, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "time in the future", tamis_put_until(keyspace, bytes("b"), 1, bytes("3"), 1, 1000, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "time", tamis_put_until(keyspace, bytes("b"), 1, bytes("3"), 1, UINT64_MAX, &message));
    FAILS(TAMIS_CODE_SIZE, "key", tamis_put_until(keyspace, NULL, 0, NULL, 0, late, &message));

    tamis_batch *batch;
    OK(tamis_batch_new(&batch, &message));
    OK(tamis_batch_put_until(batch, keyspace, bytes("c"), 1, bytes("3"), 1, late, &message));
    OK(tamis_write(db, batch, TAMIS_DURABILITY_BUFFERED, &message));
    tamis_batch_free(batch);
    tamis_transaction *transaction = begin(db);
    OK(tamis_transaction_put_until(transaction, keyspace, bytes("d"), 1, NULL, 0, late, &message));
    CHECK(has(transaction, keyspace, "d"));
    OK(tamis_transaction_commit(transaction, &message));
    tamis_transaction_free(transaction);
    tamis_table_writer *writer;
    OK(tamis_table_writer_new(keyspace, file, &writer, &message));
    OK(tamis_table_writer_put_until(writer, bytes("e"), 1, bytes("5"), 1, late, &message));
    OK(tamis_table_writer_finish(writer, &message));
    tamis_table_writer_free(writer);
    const char *files[1] = {file};
    OK(tamis_ingest(db, keyspace, files, 1, false, NULL, &message));
    expect(keyspace, NULL, "b", "2");
    expect(keyspace, NULL, "c", "3");
    expect(keyspace, NULL, "d", "");
    expect(keyspace, NULL, "e", "5");

    tamis_keyspace_options *options;
    OK(tamis_keyspace_options_new(&options, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "`ms`", tamis_keyspace_options_set(options, "expire_after", "1", &message));
    OK(tamis_keyspace_options_set(options, "expire_after", "100ms", &message));
    OK(tamis_keyspace_create(db, "sessions", options, &sessions, &message));
    tamis_keyspace_options_free(options);
    put(sessions, "a", "1");
    const uint64_t soon = now_ms() + 500;
    OK(tamis_put_until(keyspace, bytes("b"), 1, bytes("4"), 1, soon, &message));
    tamis_snapshot *snapshot;
    wait_until(soon);
    expect(keyspace, NULL, "b", NULL);
    expect(sessions, NULL, "a", NULL);
    CHECK(count_of(keyspace) == 4);
    OK(tamis_keyspace_set_option(sessions, "expire_after", "never", &message));
    put(sessions, "a", "2");
    OK(tamis_snapshot_new(db, &snapshot, &message));
    expect(sessions, snapshot, "a", "2");
    tamis_snapshot_free(snapshot);
    char *json;
    OK(tamis_statistics(db, &json, &message));
    CHECK(strstr(json, "\"expired_bytes\":") != NULL);
    tamis_text_free(json);
    tamis_keyspace_free(sessions);
    tamis_keyspace_free(keyspace);
    tamis_db_free(db);
    free(path);
    free(file);
}

static void test_many_ranges(const char *folder) {
    char *path = in_folder(folder, "ranges");
    tamis_db *db = open_store(path);
    tamis_keyspace *keyspace;
    OK(tamis_default_keyspace(db, &keyspace, &message));
    tamis_value first, last;
    OK(tamis_first(keyspace, NULL, &first, &last, &message));
    CHECK(first.data == NULL && last.data == NULL);
    put_letters(keyspace);
    tamis_snapshot *snapshot;
    uint64_t sequence;
    OK(tamis_snapshot_new(db, &snapshot, &message));
    OK(tamis_snapshot_sequence(snapshot, &sequence, &message));
    CHECK(sequence == 10);
    OK(tamis_clear(keyspace, TAMIS_DURABILITY_BUFFERED, &message));
    OK(tamis_first(keyspace, snapshot, &first, &last, &message));
    CHECK(first.length == 2 && first.data[0] == 'a' && last.length == 5);
    tamis_value_free(&first);
    tamis_value_free(&last);
    OK(tamis_last(keyspace, snapshot, &first, &last, &message));
    CHECK(first.data[0] == 'j');
    tamis_value_free(&first);
    tamis_value_free(&last);

    tamis_key_range ranges[2] = {{at("b", TAMIS_BOUND_KIND_INCLUDED), at("d", TAMIS_BOUND_KIND_EXCLUDED)},
                                 {at("i", TAMIS_BOUND_KIND_INCLUDED), unbounded()}};
    tamis_scan *scans[2];
    for (int as_of = 0; as_of < 2; as_of++) {
        OK(tamis_multi_range(keyspace, as_of == 1 ? snapshot : NULL, ranges, 2, scans, &message));
        for (int index = 0; index < 2; index++) {
            tamis_chunk chunk;
            OK(tamis_scan_chunk(scans[index], 0, 10, 1 << 20, &chunk, &message));
            CHECK(chunk.count == (as_of == 1 ? 2u : 0u));
            tamis_scan_free(scans[index]);
        }
    }
    ranges[1].upper.kind = 7;
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "upper", tamis_multi_range(keyspace, NULL, ranges, 2, scans, &message));
    CHECK(scans[0] == NULL && scans[1] == NULL);
    tamis_snapshot_free(snapshot);
    tamis_keyspace_free(keyspace);
    tamis_db_free(db);
    free(path);
}

static void test_keyspaces_and_filters(const char *folder) {
    char *path = in_folder(folder, "several"), *copy = in_folder(folder, "several-copy"), *text;
    tamis_db *db = open_store(path);
    tamis_keyspace *one, *two, *same;
    OK(tamis_keyspace_get_or_create(db, "one", NULL, &one, &message));
    OK(tamis_keyspace_get_or_create(db, "one", NULL, &same, &message));
    OK(tamis_keyspace_get_or_create(db, "two", NULL, &two, &message));
    put(one, "a", "1");
    expect(same, NULL, "a", "1");
    OK(tamis_flush(db, &message));
    OK(tamis_rebuild_filters(db, one, "blocked-bloom@10", &message));
    OK(tamis_rebuild_filters(db, one, NULL, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "filters", tamis_rebuild_filters(db, one, "none", &message));
    uint64_t replaced;
    OK(tamis_check_filters(db, one, &replaced, &message));
    OK(tamis_checkpoint_verified(db, copy, &text, &message));
    tamis_text_free(text);
    OK(tamis_db_path(db, &text, &message));
    CHECK(strstr(text, "several") != NULL);
    tamis_text_free(text);
    const char *names[3] = {"one", "two", "three"};
    FAILS(TAMIS_CODE_KEYSPACE_NOT_FOUND, "three", tamis_keyspaces_drop(db, names, 3, &message));
    expect(one, NULL, "a", "1");
    OK(tamis_keyspaces_drop(db, names, 2, &message));
    FAILS(TAMIS_CODE_KEYSPACE_DROPPED, "dropped", tamis_clear(two, TAMIS_DURABILITY_BUFFERED, &message));
    tamis_keyspace_free(one);
    tamis_keyspace_free(same);
    tamis_keyspace_free(two);
    tamis_db_free(db);

    tamis_bytes keys[3] = {{bytes("a1"), 2}, {bytes("b1"), 2}, {bytes("c1"), 2}};
    tamis_key_range queries[2] = {{at("a2", TAMIS_BOUND_KIND_INCLUDED), at("a9", TAMIS_BOUND_KIND_INCLUDED)},
                                  {at("b2", TAMIS_BOUND_KIND_INCLUDED), at("b9", TAMIS_BOUND_KIND_INCLUDED)}};
    OK(tamis_advise(keys, 3, queries, 2, 16.0, 20000.0, &text, &message));
    CHECK(strstr(text, "\"filter\":\"surf") != NULL && strstr(text, "\"cost_ns\":") != NULL);
    tamis_text_free(text);
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "at least one", tamis_advise(NULL, 0, queries, 2, 16.0, 1.0, &text, &message));
    free(path);
    free(copy);
}

// What a callback saw. The test reads it after the database is closed.
typedef struct seen {
    pthread_mutex_t lock;
    int flushed_count;
    const tamis_keyspace *keyspace;
    tamis_code code;
} seen;

static void on_event(void *context, const char *json) {
    seen *events = (seen *)context;
    pthread_mutex_lock(&events->lock);
    if (strstr(json, "\"kind\":\"flushed\"") != NULL) {
        events->flushed_count++;
        if (events->keyspace != NULL)
            events->code = tamis_put(events->keyspace, bytes("b"), 1, NULL, 0, NULL);
    }
    pthread_mutex_unlock(&events->lock);
}

static void test_events(const char *folder) {
    char *path = in_folder(folder, "events");
    seen events = {PTHREAD_MUTEX_INITIALIZER, 0, NULL, TAMIS_CODE_OK};
    tamis_options *options;
    tamis_db *db;
    tamis_keyspace *keyspace;
    OK(tamis_options_new(&options, &message));
    OK(tamis_options_set_event_callback(options, on_event, &events, &message));
    OK(tamis_open(path, options, &db, &message));
    OK(tamis_default_keyspace(db, &keyspace, &message));
    pthread_mutex_lock(&events.lock);
    events.keyspace = keyspace;
    pthread_mutex_unlock(&events.lock);
    put(keyspace, "a", "1");
    OK(tamis_flush(db, &message));
    OK(tamis_close(db, &message));
    // A callback that calls the library gets an error, not a deadlock.
    CHECK(events.flushed_count == 1 && events.code == TAMIS_CODE_BUSY);
    tamis_keyspace_free(keyspace);
    tamis_db_free(db);

    OK(tamis_options_set_event_callback(options, NULL, NULL, &message));
    OK(tamis_open(path, options, &db, &message));
    tamis_db_free(db);
    CHECK(events.flushed_count == 1);
    tamis_options_free(options);
    free(path);
}

static bool bytes_are(tamis_bytes found, const char *expected) {
    return found.length == strlen(expected) && memcmp(found.data, expected, found.length) == 0;
}

// The next change of a feed, which must be there within ten seconds.
static tamis_change next_change(const tamis_changes *feed, int32_t kind) {
    tamis_change change;
    bool has_change;
    OK(tamis_changes_next(feed, 10000, &change, &has_change, &message));
    CHECK(has_change && change.kind == kind);
    return change;
}

static bool has_no_change(const tamis_changes *feed) {
    tamis_change change;
    bool has_change = true;
    OK(tamis_changes_next(feed, 0, &change, &has_change, &message));
    return !has_change && change.key.data == NULL;
}

static uint64_t position_of(const tamis_changes *feed) {
    uint64_t position;
    OK(tamis_changes_position(feed, &position, &message));
    return position;
}

// Counts writes of an ingest; the feed is in use meanwhile. Ends the call after the number of writes at the context.
static int ingested_count;
static const tamis_changes *used_feed;

static bool on_ingested(void *context, const tamis_change *write) {
    uint64_t position;
    CHECK(tamis_changes_position(used_feed, &position, NULL) == TAMIS_CODE_BUSY);
    CHECK(bytes_are(write->keyspace, "words") && bytes_are(write->key, ingested_count == 0 ? "x" : "y"));
    CHECK(write->kind == (ingested_count == 0 ? TAMIS_CHANGE_KIND_PUT : TAMIS_CHANGE_KIND_DELETE));
    ingested_count++;
    return ingested_count < *(int *)context;
}

// A reader that a writer's process would not have, and the changes that it follows.
static void test_readers_and_changes(const char *folder) {
    char *path = in_folder(folder, "changes"), *file = in_folder(folder, "changes.table");
    tamis_options *options;
    OK(tamis_options_new(&options, &message));
    OK(tamis_options_set(options, "keep_changes_bytes", "64MiB", &message));
    OK(tamis_options_set(options, "keep_changes_seconds", "3600", &message));
    tamis_db *db, *reader;
    OK(tamis_open(path, options, &db, &message));
    OK(tamis_options_set(options, "read_only", "true", &message));
    tamis_keyspace *keyspace, *words, *seen;
    OK(tamis_default_keyspace(db, &keyspace, &message));
    put(keyspace, "a", "1");

    OK(tamis_open(path, options, &reader, &message));
    tamis_options_free(options);
    bool is_reader;
    OK(tamis_is_reader(reader, &is_reader, &message));
    CHECK(is_reader);
    OK(tamis_is_reader(db, &is_reader, &message));
    CHECK(!is_reader);
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "is_reader", tamis_is_reader(db, NULL, &message));
    char *json;
    OK(tamis_statistics(db, &json, &message));
    CHECK(strstr(json, "\"held_bytes\":") != NULL && strstr(json, "\"process_id\":") != NULL);
    tamis_text_free(json);
    OK(tamis_default_keyspace(reader, &seen, &message));
    FAILS(TAMIS_CODE_READ_ONLY, "read-only", tamis_put(seen, bytes("a"), 1, NULL, 0, &message));
    expect(seen, NULL, "a", "1");
    put(keyspace, "b", "2");
    expect(seen, NULL, "b", NULL);
    OK(tamis_refresh(reader, &message));
    expect(seen, NULL, "b", "2");
    OK(tamis_refresh(db, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "millisecond", tamis_refresh_every(reader, 0, &message));

    tamis_changes *feed;
    OK(tamis_changes_open(reader, 0, &feed, &message));
    tamis_change change = next_change(feed, TAMIS_CHANGE_KIND_PUT);
    CHECK(bytes_are(change.keyspace, "default") && bytes_are(change.key, "a") && bytes_are(change.value, "1"));
    CHECK(change.is_last && change.sequence == 1 && change.expires_at_ms == 0 && position_of(feed) == 1);
    CHECK(bytes_are(next_change(feed, TAMIS_CHANGE_KIND_PUT).key, "b") && has_no_change(feed));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "change", tamis_changes_next(feed, 0, NULL, &is_reader, &message));
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "has_change", tamis_changes_next(feed, 0, &change, NULL, &message));

    // A batch with a write of each kind.
    tamis_keyspace_options *append;
    OK(tamis_keyspace_options_new(&append, &message));
    OK(tamis_keyspace_options_set(append, "merge", "append:2c", &message));
    OK(tamis_keyspace_create(db, "words", append, &words, &message));
    tamis_keyspace_options_free(append);
    change = next_change(feed, TAMIS_CHANGE_KIND_KEYSPACE_CREATED);
    CHECK(bytes_are(change.keyspace, "words") && change.is_last && change.key.data == NULL);
    uint64_t before = position_of(feed), late = UINT64_C(1) << 46;
    tamis_batch *batch;
    OK(tamis_batch_new(&batch, &message));
    OK(tamis_batch_put(batch, keyspace, bytes("c"), 1, NULL, 0, &message));
    OK(tamis_batch_put_until(batch, keyspace, bytes("d"), 1, bytes("4"), 1, late, &message));
    OK(tamis_batch_merge(batch, words, bytes("e"), 1, bytes("5"), 1, &message));
    OK(tamis_batch_delete(batch, keyspace, bytes("a"), 1, &message));
    OK(tamis_batch_delete_range(batch, keyspace, at("f", TAMIS_BOUND_KIND_INCLUDED), at("g", TAMIS_BOUND_KIND_EXCLUDED), &message));
    OK(tamis_batch_delete_range(batch, words, at("h", TAMIS_BOUND_KIND_INCLUDED), unbounded(), &message));
    OK(tamis_write(db, batch, TAMIS_DURABILITY_BUFFERED, &message));
    tamis_batch_free(batch);
    change = next_change(feed, TAMIS_CHANGE_KIND_PUT);
    CHECK(!change.is_last && change.sequence == before + 6 && change.value.data != NULL && change.value.length == 0);
    change = next_change(feed, TAMIS_CHANGE_KIND_PUT_UNTIL);
    CHECK(change.expires_at_ms == late && bytes_are(change.value, "4"));
    change = next_change(feed, TAMIS_CHANGE_KIND_MERGE);
    CHECK(bytes_are(change.keyspace, "words") && bytes_are(change.key, "e") && bytes_are(change.value, "5"));
    change = next_change(feed, TAMIS_CHANGE_KIND_DELETE);
    CHECK(bytes_are(change.key, "a") && change.value.data == NULL);
    change = next_change(feed, TAMIS_CHANGE_KIND_DELETE_RANGE);
    CHECK(bytes_are(change.key, "f") && bytes_are(change.value, "g") && position_of(feed) == before);
    change = next_change(feed, TAMIS_CHANGE_KIND_DELETE_RANGE);
    CHECK(bytes_are(change.key, "h") && change.value.data == NULL && change.is_last && has_no_change(feed));
    CHECK(position_of(feed) == before + 6);

    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "no ingest", tamis_changes_ingested(feed, on_ingested, NULL, &message));
    tamis_table_writer *writer;
    OK(tamis_table_writer_new(words, file, &writer, &message));
    OK(tamis_table_writer_put(writer, bytes("x"), 1, bytes("7"), 1, &message));
    OK(tamis_table_writer_delete(writer, bytes("y"), 1, &message));
    OK(tamis_table_writer_finish(writer, &message));
    tamis_table_writer_free(writer);
    const char *files[1] = {file};
    OK(tamis_ingest(db, words, files, 1, false, NULL, &message));
    change = next_change(feed, TAMIS_CHANGE_KIND_INGEST);
    CHECK(bytes_are(change.keyspace, "words") && change.is_last);
    used_feed = feed;
    for (int wanted = 1; wanted <= 3; wanted++) {
        ingested_count = 0;
        OK(tamis_changes_ingested(feed, on_ingested, &wanted, &message));
        CHECK(ingested_count == (wanted < 2 ? wanted : 2));
    }
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "callback", tamis_changes_ingested(feed, NULL, NULL, &message));
    OK(tamis_keyspace_drop(db, "words", &message));
    CHECK(bytes_are(next_change(feed, TAMIS_CHANGE_KIND_KEYSPACE_DROPPED).keyspace, "words"));
    uint64_t stored = position_of(feed);
    tamis_changes_free(feed);

    // A feed continues at a stored position, in the process that writes, too; it refuses positions that no commit has reached.
    OK(tamis_changes_open(db, stored, &feed, &message));
    CHECK(has_no_change(feed));
    put(keyspace, "i", "9");
    CHECK(next_change(feed, TAMIS_CHANGE_KIND_PUT).sequence == stored + 1);
    tamis_changes *refused;
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "position", tamis_changes_open(db, stored + 100, &refused, &message));
    CHECK(refused == NULL);

    OK(tamis_refresh_every(reader, 2, &message));
    tamis_value value = {NULL, 0, NULL};
    for (int tries = 0; tries < 10000 && value.data == NULL; tries++) {
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        OK(tamis_get(seen, NULL, bytes("i"), 1, &value, &message));
    }
    CHECK(value.data != NULL);
    tamis_value_free(&value);
    OK(tamis_close(db, &message));
    bool has_change;
    FAILS(TAMIS_CODE_CLOSED, "closed", tamis_changes_next(feed, 10000, &change, &has_change, &message));
    tamis_keyspace_free(seen);
    tamis_keyspace_free(words);
    tamis_keyspace_free(keyspace);
    tamis_db_free(reader);
    tamis_db_free(db);
    tamis_changes_free(feed);

    // Without keep_changes_bytes a flush ends the log.
    db = open_store(path);
    OK(tamis_default_keyspace(db, &keyspace, &message));
    put(keyspace, "j", "10");
    OK(tamis_flush(db, &message));
    put(keyspace, "k", "11");
    OK(tamis_flush(db, &message));
    OK(tamis_wait_for_compactions(db, &message));
    FAILS(TAMIS_CODE_CHANGES_LOST, "first available position", tamis_changes_open(db, 0, &refused, &message));
    tamis_keyspace_free(keyspace);
    tamis_db_free(db);
    free(path);
    free(file);
}

static void test_filters(void) {
    tamis_filter_builder *builder;
    FAILS(TAMIS_CODE_INVALID_ARGUMENT, "there are", tamis_filter_builder_new("cuckoo", 0, &builder, &message));
    CHECK(builder == NULL);
    OK(tamis_filter_builder_new("surf-real:bits=8", 1, &builder, &message));
    const char *fruits[4] = {"apple", "banana", "pear", "plum"};
    for (int index = 0; index < 4; index++)
        OK(tamis_filter_builder_add(builder, bytes(fruits[index]), strlen(fruits[index]), &message));
    FAILS(TAMIS_CODE_FILTER_BUILD, "ascending", tamis_filter_builder_add(builder, bytes("a"), 1, &message));
    OK(tamis_filter_builder_sample(builder, at("c", TAMIS_BOUND_KIND_INCLUDED), at("d", TAMIS_BOUND_KIND_EXCLUDED), &message));
    tamis_value encoded;
    OK(tamis_filter_builder_finish(builder, 0.0, &encoded, &message));
    tamis_filter_builder_free(builder);

    // The filter borrows these bytes.
    uint8_t *copy = (uint8_t *)malloc(encoded.length);
    CHECK(copy != NULL);
    size_t length = encoded.length;
    memcpy(copy, encoded.data, length);
    tamis_value_free(&encoded);
    tamis_filter *filter;
    OK(tamis_filter_open(copy, length, &filter, &message));
    bool answer;
    OK(tamis_filter_may_contain(filter, bytes("pear"), 4, &answer, &message));
    CHECK(answer);
    OK(tamis_filter_may_contain(filter, bytes("cherry"), 6, &answer, &message));
    CHECK(!answer);
    OK(tamis_filter_may_contain_range(filter, at("c", TAMIS_BOUND_KIND_INCLUDED), at("o", TAMIS_BOUND_KIND_INCLUDED), &answer, &message));
    CHECK(!answer);
    answer = true;
    OK(tamis_filter_bytes_may_contain_range(copy, length, at("c", TAMIS_BOUND_KIND_INCLUDED), at("o", TAMIS_BOUND_KIND_INCLUDED), &answer, &message));
    CHECK(!answer);
    OK(tamis_filter_bytes_may_contain_range(copy, length, at("o", TAMIS_BOUND_KIND_INCLUDED), unbounded(), &answer, &message));
    CHECK(answer);
    FAILS(TAMIS_CODE_CORRUPTION, "filter", tamis_filter_bytes_may_contain_range(copy, 3, unbounded(), unbounded(), &answer, &message));
    OK(tamis_filter_may_contain_prefix(filter, bytes("pl"), 2, &answer, &message));
    CHECK(answer);
    tamis_bytes keys[2] = {{bytes("plum"), 4}, {bytes("zebra"), 5}};
    bool answers[2];
    OK(tamis_filter_may_contain_many(filter, keys, 2, answers, &message));
    CHECK(answers[0] && !answers[1]);
    int32_t kind;
    tamis_value candidate;
    OK(tamis_filter_candidate(filter, at("c", TAMIS_BOUND_KIND_INCLUDED), unbounded(), 0, &kind, &candidate, &message));
    CHECK(kind == TAMIS_CANDIDATE_BYTES && candidate.length > 0 && candidate.data[0] == 'p');
    tamis_value_free(&candidate);
    OK(tamis_filter_candidate(filter, at("q", TAMIS_BOUND_KIND_INCLUDED), unbounded(), 0, &kind, &candidate, &message));
    CHECK(kind == TAMIS_CANDIDATE_ABSENT && candidate.data == NULL);
    char *json;
    OK(tamis_filter_describe(filter, &json, &message));
    CHECK(strstr(json, "\"family\":\"surf-real\"") != NULL);
    tamis_text_free(json);
    OK(tamis_filter_verify(filter, &message));
    tamis_filter_free(filter);

    copy[length - 1] ^= 1;
    if (tamis_filter_open(copy, length, &filter, NULL) == TAMIS_CODE_OK) {
        FAILS(TAMIS_CODE_CORRUPTION, "damaged", tamis_filter_verify(filter, &message));
        tamis_filter_free(filter);
    }
    FAILS(TAMIS_CODE_CORRUPTION, "filter", tamis_filter_open(copy, 3, &filter, &message));
    CHECK(filter == NULL);
    free(copy);
}

#define THREAD_COUNT 4
#define THREAD_ENTRIES 500

struct worker {
    const tamis_keyspace *keyspace;
    tamis_scan *scan;
    uint64_t first;
};

static void *work(void *argument) {
    struct worker *worker = (struct worker *)argument;
    for (uint64_t number = worker->first; number < worker->first + THREAD_ENTRIES; number++) {
        uint8_t key[8];
        number_key(key, number);
        OK(tamis_put(worker->keyspace, key, 8, key, 8, &message));
        tamis_value value;
        OK(tamis_get(worker->keyspace, NULL, key, 8, &value, &message));
        CHECK(value.length == 8);
        tamis_value_free(&value);
    }
    // Handles may be freed on any thread.
    tamis_scan_free(worker->scan);
    return NULL;
}

static void test_threads(const char *folder) {
    char *path = in_folder(folder, "threads");
    tamis_db *db = open_store(path);
    tamis_keyspace *keyspace;
    OK(tamis_default_keyspace(db, &keyspace, &message));
    pthread_t threads[THREAD_COUNT];
    struct worker workers[THREAD_COUNT];
    for (int index = 0; index < THREAD_COUNT; index++) {
        workers[index].keyspace = keyspace;
        workers[index].first = (uint64_t)index * THREAD_ENTRIES;
        OK(tamis_range(keyspace, NULL, unbounded(), unbounded(), &workers[index].scan, &message));
        CHECK(pthread_create(&threads[index], NULL, work, &workers[index]) == 0);
    }
    for (int index = 0; index < THREAD_COUNT; index++)
        CHECK(pthread_join(threads[index], NULL) == 0);
    tamis_scan *scan;
    OK(tamis_range(keyspace, NULL, unbounded(), unbounded(), &scan, &message));
    int count = 0;
    bool has_entry = true;
    while (has_entry) {
        OK(tamis_scan_next(scan, &has_entry, &message));
        count += has_entry;
    }
    CHECK(count == THREAD_COUNT * THREAD_ENTRIES);
    tamis_scan_free(scan);
    tamis_keyspace_free(keyspace);
    tamis_db_free(db);
    free(path);
}

static void test_fork(const char *folder) {
    char *path = in_folder(folder, "fork");
    tamis_db *db = open_store(path);
    tamis_keyspace *keyspace;
    OK(tamis_default_keyspace(db, &keyspace, &message));
    put(keyspace, "key", "value");
    tamis_transaction *transaction;
    OK(tamis_transaction_begin_exclusive(db, TAMIS_DURABILITY_BUFFERED, &transaction, &message));
    put_in(transaction, keyspace, "in transaction", "");
    tamis_scan *scan;
    OK(tamis_transaction_range(transaction, keyspace, unbounded(), unbounded(), &scan, &message));
    tamis_changes *feed;
    OK(tamis_changes_open(db, 0, &feed, &message));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        tamis_value value;
        uint64_t position;
        bool is_refused =
            tamis_changes_position(feed, &position, NULL) == TAMIS_CODE_FORKED && tamis_refresh(db, NULL) == TAMIS_CODE_FORKED &&
            tamis_get(keyspace, NULL, bytes("key"), 3, &value, NULL) == TAMIS_CODE_FORKED &&
            tamis_put(keyspace, bytes("key"), 3, NULL, 0, NULL) == TAMIS_CODE_FORKED &&
            tamis_transaction_put(transaction, keyspace, bytes("key"), 3, NULL, 0, NULL) == TAMIS_CODE_FORKED &&
            tamis_transaction_commit(transaction, NULL) == TAMIS_CODE_FORKED &&
            tamis_scan_seek_to_first(scan, NULL) == TAMIS_CODE_FORKED && tamis_close(db, NULL) == TAMIS_CODE_FORKED;
        tamis_changes_free(feed);
        tamis_scan_free(scan);
        tamis_transaction_free(transaction);
        tamis_keyspace_free(keyspace);
        tamis_db_free(db);
        _exit(is_refused ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(tamis_transaction_commit(transaction, &message));
    CHECK(bytes_are(next_change(feed, TAMIS_CHANGE_KIND_PUT).key, "key"));
    CHECK(bytes_are(next_change(feed, TAMIS_CHANGE_KIND_PUT).key, "in transaction"));
    tamis_changes_free(feed);
    tamis_transaction_free(transaction);
    tamis_scan_free(scan);
    expect(keyspace, NULL, "key", "value");
    expect(keyspace, NULL, "in transaction", "");
    tamis_keyspace_free(keyspace);
    tamis_db_free(db);
    free(path);
}

// Handles that a process does not free: static, so that they are no leaks.
static tamis_db *left_db;
static tamis_keyspace *left_keyspace;
static tamis_scan *left_scan;
static tamis_transaction *left_transaction;

static void *scan_until_the_end(void *ready) {
    tamis_scan *scan;
    bool has_entry;
    for (;;) {
        OK(tamis_range(left_keyspace, NULL, unbounded(), unbounded(), &scan, &message));
        do
            OK(tamis_scan_next(scan, &has_entry, &message));
        while (has_entry);
        tamis_scan_free(scan);
        *(volatile bool *)ready = true;
    }
    return NULL;
}

// A process that ends with open handles, an open transaction and a thread that scans ends normally, loses no write, and commits nothing.
static void test_exit(const char *folder) {
    char *path = in_folder(folder, "exit");
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        volatile bool is_ready = false;
        bool has_entry;
        pthread_t thread;
        left_db = open_store(path);
        OK(tamis_default_keyspace(left_db, &left_keyspace, &message));
        put(left_keyspace, "a", "1");
        OK(tamis_flush(left_db, &message));
        put(left_keyspace, "b", "2");
        OK(tamis_range(left_keyspace, NULL, unbounded(), unbounded(), &left_scan, &message));
        OK(tamis_scan_next(left_scan, &has_entry, &message));
        CHECK(pthread_create(&thread, NULL, scan_until_the_end, (void *)&is_ready) == 0);
        while (!is_ready)
            sched_yield();
        OK(tamis_transaction_begin_exclusive(left_db, TAMIS_DURABILITY_SYNCED, &left_transaction, &message));
        put_in(left_transaction, left_keyspace, "c", "3");
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    tamis_db *db = open_store(path);
    tamis_keyspace *keyspace;
    OK(tamis_default_keyspace(db, &keyspace, &message));
    expect(keyspace, NULL, "a", "1");
    expect(keyspace, NULL, "b", "2");
    expect(keyspace, NULL, "c", NULL);
    tamis_keyspace_free(keyspace);
    tamis_db_free(db);
    free(path);
}

int main(int count, char **arguments) {
    if (count < 2) {
        fprintf(stderr, "usage: %s FOLDER [no-fork]\n", arguments[0]);
        return 2;
    }
    const char *folder = arguments[1];
    test_versions();
    test_points(folder);
    test_batches_keyspaces_snapshots(folder);
    test_scans(folder);
    test_transactions(folder);
    test_maintenance(folder);
    test_deletes(folder);
    test_merge(folder);
    test_expiry(folder);
    test_many_ranges(folder);
    test_keyspaces_and_filters(folder);
    test_events(folder);
    test_readers_and_changes(folder);
    test_filters();
    test_threads(folder);
    if (count < 3) {
        test_fork(folder);
        test_exit(folder);
    }
    // Freeing a null pointer does nothing.
    tamis_db_free(NULL);
    tamis_keyspace_free(NULL);
    tamis_snapshot_free(NULL);
    tamis_batch_free(NULL);
    tamis_scan_free(NULL);
    tamis_transaction_free(NULL);
    tamis_changes_free(NULL);
    tamis_table_writer_free(NULL);
    tamis_options_free(NULL);
    tamis_keyspace_options_free(NULL);
    tamis_filter_free(NULL);
    tamis_filter_builder_free(NULL);
    tamis_value_free(NULL);
    tamis_values_free(NULL, 0);
    tamis_text_free(NULL);
    printf("%d checks passed\n", check_count);
    return 0;
}
