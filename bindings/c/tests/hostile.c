// Random calls with null pointers, wrong lengths, damaged filters and handles in any state. Each call must return a code, and a
// message exactly if it failed. Arguments are allocated with their exact lengths, so that the sanitizers and valgrind find every
// access beyond them. bindings/c/test runs it; the seed is an argument.

#include "tamis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t state;

static uint64_t below(uint64_t limit) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % limit;
}

static bool one_in(uint64_t count) { return below(count) == 0; }

// The last arguments, which are freed after the call.
#define OWNED_MAX 64
static void *owned[OWNED_MAX];
static int owned_count = 0;

static void *own(size_t length) {
    void *memory = malloc(length == 0 ? 1 : length);
    if (memory == NULL || owned_count == OWNED_MAX)
        abort();
    owned[owned_count++] = memory;
    return memory;
}

static void free_owned(void) {
    while (owned_count > 0)
        free(owned[--owned_count]);
}

static int failures[32];

// Checks the result of a call and frees its message.
static void check(const char *call, tamis_code code, char **message) {
    if (message != NULL) {
        if ((code == TAMIS_CODE_OK) != (*message == NULL) || (*message != NULL && strlen(*message) < 10)) {
            fprintf(stderr, "%s: code %d with the message %s\n", call, (int)code, *message == NULL ? "none" : *message);
            exit(1);
        }
        tamis_text_free(*message);
    }
    if (code == TAMIS_CODE_PANIC || (int)code < 0 || (int)code > TAMIS_CODE_CHANGES_LOST) {
        fprintf(stderr, "%s: code %d\n", call, (int)code);
        exit(1);
    }
    failures[code]++;
    free_owned();
}

// Makes a call whose last argument is `message`: a pointer, or null.
#define CALL(call)                                          \
    do {                                                    \
        char *text = (char *)&state;                        \
        char **message = one_in(8) ? NULL : &text;          \
        tamis_code code = (call);                           \
        check(#call, code, message);                        \
    } while (0)

// Mostly bytes of their exact length; sometimes null or a length that no memory can have.
static tamis_bytes any_bytes(void) {
    tamis_bytes bytes = {NULL, below(9)};
    switch (below(12)) {
    case 0:
        return bytes;
    case 1:
        bytes.length = 0;
        return bytes;
    case 2:
        bytes.data = (uint8_t *)own(1);
        bytes.length = SIZE_MAX - below(2);
        return bytes;
    case 3:
        bytes.data = (uint8_t *)own(1);
        bytes.length = SIZE_MAX / 2 + 1 + below(100);
        return bytes;
    default: {
        uint8_t *data = (uint8_t *)own(bytes.length);
        for (size_t index = 0; index < bytes.length; index++)
            data[index] = (uint8_t)(one_in(4) ? 255 * below(2) : 'a' + below(3));
        bytes.data = data;
        return bytes;
    }
    }
}

static tamis_bound any_bound(void) {
    tamis_bound bound = {one_in(10) ? (int32_t)below(1 << 20) - 1000 : (int32_t)below(3), any_bytes()};
    return bound;
}

static const char *any_text(const char *const *texts, size_t count) {
    size_t index = below(count + 2);
    if (index == count)
        return NULL;
    const char *text = index < count ? texts[index] : "\xff\xfe";
    char *copy = (char *)own(strlen(text) + 1);
    strcpy(copy, text);
    return copy;
}

static tamis_db *db;
static tamis_keyspace *keyspaces[3];
static tamis_batch *batch;
static tamis_scan *scan;
static tamis_snapshot *snapshot;
static tamis_changes *feed;
static tamis_transaction *transaction;
static tamis_options *options;
static tamis_table_writer *writer;
static tamis_filter_builder *builder;
static tamis_filter *filter;
static uint8_t *filter_bytes;
static tamis_value encoded;
static const char *paths[3];

// A time of expiry in the past, soon, in the far future, or at an end of the numbers.
static uint64_t any_time(void) {
    switch (below(4)) {
    case 0:
        return below(1000);
    case 1:
        return UINT64_MAX - below(2);
    case 2:
        return (uint64_t)time(NULL) * 1000 + below(2000);
    default:
        return (UINT64_C(1) << 55) + below(1000);
    }
}

static const tamis_keyspace *any_keyspace(void) { return one_in(8) ? NULL : keyspaces[below(3)]; }

static const tamis_snapshot *any_snapshot(void) { return one_in(2) ? NULL : snapshot; }

static void open_and_close(void) {
    static const char *const names[] = {"k", "default", ""};
    static const char *const set_names[] = {"cache_bytes", "filters", "cash", "merge", "expire_after", "read_only", "keep_changes_bytes"};
    static const char *const values[] = {"1MiB", "surf@12", "-1", "", "max", "union", "5ms", "true", "false"};
    switch (below(8)) {
    case 0:
        tamis_options_free(options);
        options = NULL;
        CALL(tamis_options_new(one_in(8) ? NULL : &options, message));
        break;
    case 1:
        CALL(tamis_options_set(options, any_text(set_names, 7), any_text(values, 9), message));
        break;
    case 2: {
        tamis_db *opened = NULL;
        CALL(tamis_open(one_in(4) ? NULL : paths[below(2)], options, one_in(8) ? NULL : &opened, message));
        if (opened != NULL) {
            tamis_db_free(db);
            db = opened;
        }
        break;
    }
    case 3:
        if (one_in(8))
            CALL(tamis_close(db, message));
        break;
    case 4:
    case 5: {
        tamis_keyspace **place = &keyspaces[below(3)];
        tamis_keyspace_free(*place);
        *place = NULL;
        if (one_in(2))
            CALL(tamis_default_keyspace(db, one_in(8) ? NULL : place, message));
        else if (one_in(2))
            CALL(tamis_keyspace_open(db, any_text(names, 3), place, message));
        else
            CALL(tamis_keyspace_create(db, any_text(names, 3), NULL, place, message));
        break;
    }
    case 6:
        if (one_in(4))
            CALL(tamis_keyspace_drop(db, any_text(names, 3), message));
        break;
    default: {
        tamis_snapshot_free(snapshot);
        snapshot = NULL;
        CALL(tamis_snapshot_new(one_in(8) ? NULL : db, one_in(8) ? NULL : &snapshot, message));
    }
    }
}

static void write_entries(void) {
    tamis_bytes key = any_bytes(), value = any_bytes();
    switch (below(12)) {
    case 0:
        tamis_batch_free(batch);
        batch = NULL;
        CALL(tamis_batch_new(one_in(8) ? NULL : &batch, message));
        break;
    case 1:
    case 2:
        CALL(tamis_batch_put(batch, any_keyspace(), key.data, key.length, value.data, value.length, message));
        break;
    case 3:
        CALL(tamis_batch_delete(batch, any_keyspace(), key.data, key.length, message));
        break;
    case 4:
        CALL(tamis_write(db, batch, (int32_t)below(5) - 1, message));
        break;
    case 5:
        CALL(tamis_delete(any_keyspace(), key.data, key.length, message));
        break;
    case 6:
        CALL(tamis_merge(any_keyspace(), key.data, key.length, value.data, value.length, message));
        break;
    case 7:
        CALL(tamis_put_until(any_keyspace(), key.data, key.length, value.data, value.length, any_time(), message));
        break;
    case 8:
        CALL(tamis_batch_merge(batch, any_keyspace(), key.data, key.length, value.data, value.length, message));
        break;
    case 9:
        CALL(tamis_batch_put_until(batch, any_keyspace(), key.data, key.length, value.data, value.length, any_time(), message));
        break;
    default:
        CALL(tamis_put(any_keyspace(), key.data, key.length, value.data, value.length, message));
    }
    free_owned();
}

static void read_entries(void) {
    tamis_bytes key = any_bytes();
    tamis_value value = {NULL, 0, NULL};
    bool is_found;
    switch (below(5)) {
    case 0:
        CALL(tamis_get(any_keyspace(), any_snapshot(), key.data, key.length, one_in(8) ? NULL : &value, message));
        tamis_value_free(&value);
        break;
    case 1: {
        size_t length, room = below(12);
        uint8_t *buffer = one_in(8) ? NULL : (uint8_t *)own(room);
        CALL(tamis_get_into(any_keyspace(), any_snapshot(), key.data, key.length, buffer, one_in(12) ? SIZE_MAX : room,
                            one_in(8) ? NULL : &length, one_in(8) ? NULL : &is_found, message));
        break;
    }
    case 2:
        CALL(tamis_contains(any_keyspace(), any_snapshot(), key.data, key.length, one_in(8) ? NULL : &is_found, message));
        break;
    case 3: {
        size_t count = below(5);
        tamis_bytes *keys = (tamis_bytes *)own(count * sizeof(tamis_bytes));
        tamis_value *values = (tamis_value *)own(count * sizeof(tamis_value));
        for (size_t index = 0; index < count; index++) {
            keys[index] = any_bytes();
            memset(&values[index], 0, sizeof values[index]);
        }
        char *text = NULL;
        bool has_values = !one_in(8), is_whole = !one_in(12);
        tamis_code code = tamis_multi_get(any_keyspace(), any_snapshot(), one_in(8) ? NULL : keys,
                                          is_whole ? count : SIZE_MAX, has_values ? values : NULL, &text);
        if (has_values && code == TAMIS_CODE_OK)
            tamis_values_free(values, count);
        check("tamis_multi_get", code, &text);
        break;
    }
    default: {
        uint64_t count;
        CALL(tamis_approximate_count(any_keyspace(), any_bound(), any_bound(), one_in(8) ? NULL : &count, message));
    }
    }
    free_owned();
}

static void begin_and_end(void) {
    int32_t isolation = (int32_t)below(4) - 1, durability = (int32_t)below(5) - 1;
    tamis_transaction **place = one_in(8) ? NULL : &transaction;
    uint64_t action = below(8);
    if (action > 3) {
        CALL(tamis_transaction_commit(transaction, message));
        return;
    }
    tamis_transaction_free(transaction);
    transaction = NULL;
    if (action == 0)
        CALL(tamis_transaction_begin_exclusive(one_in(8) ? NULL : db, durability, place, message));
    else if (action == 1)
        CALL(tamis_transaction_begin_attempt(one_in(8) ? NULL : db, isolation, durability, (uint32_t)below(10), place, message));
    else
        CALL(tamis_transaction_begin(one_in(8) ? NULL : db, isolation, durability, place, message));
}

static void use_transaction(void) {
    static uint64_t savepoint;
    tamis_bytes key = any_bytes(), value = any_bytes();
    tamis_value found = {NULL, 0, NULL};
    bool is_found;
    switch (below(14)) {
    case 0:
        CALL(tamis_transaction_get(transaction, any_keyspace(), key.data, key.length, one_in(8) ? NULL : &found, message));
        tamis_value_free(&found);
        break;
    case 1:
        CALL(tamis_transaction_contains(transaction, any_keyspace(), key.data, key.length, one_in(8) ? NULL : &is_found, message));
        break;
    case 2: {
        tamis_value *values = (tamis_value *)own(sizeof(tamis_value));
        tamis_bytes *keys = (tamis_bytes *)own(sizeof(tamis_bytes));
        *keys = key;
        char *text = NULL;
        tamis_code code = tamis_transaction_multi_get(transaction, any_keyspace(), one_in(8) ? NULL : keys,
                                                      one_in(12) ? SIZE_MAX : 1, values, &text);
        if (code == TAMIS_CODE_OK)
            tamis_values_free(values, 1);
        check("tamis_transaction_multi_get", code, &text);
        break;
    }
    case 3:
        CALL(tamis_transaction_delete(transaction, any_keyspace(), key.data, key.length, message));
        break;
    case 4:
        CALL(tamis_transaction_delete_range(transaction, any_keyspace(), any_bound(), any_bound(), message));
        break;
    case 5:
        CALL(tamis_transaction_delete_prefix(transaction, any_keyspace(), key.data, key.length, message));
        break;
    case 6:
        CALL(tamis_transaction_savepoint(transaction, one_in(8) ? NULL : &savepoint, message));
        break;
    case 7:
        CALL(tamis_transaction_roll_back_to(transaction, one_in(4) ? below(9) : savepoint, message));
        break;
    case 8:
        tamis_scan_free(scan);
        scan = NULL;
        CALL(tamis_transaction_range(transaction, any_keyspace(), any_bound(), any_bound(), one_in(8) ? NULL : &scan, message));
        break;
    case 9:
        tamis_scan_free(scan);
        scan = NULL;
        CALL(tamis_transaction_prefix(transaction, any_keyspace(), key.data, key.length, one_in(8) ? NULL : &scan, message));
        break;
    case 10:
        CALL(tamis_compare_and_put(any_keyspace(), key.data, key.length, one_in(4) ? NULL : &value, one_in(4) ? NULL : &key,
                                   one_in(8) ? NULL : &is_found, message));
        break;
    case 11:
        CALL(tamis_transaction_merge(transaction, any_keyspace(), key.data, key.length, value.data, value.length, message));
        break;
    case 12:
        CALL(tamis_transaction_put_until(transaction, any_keyspace(), key.data, key.length, value.data, value.length, any_time(), message));
        break;
    default:
        CALL(tamis_transaction_put(transaction, any_keyspace(), key.data, key.length, value.data, value.length, message));
    }
    free_owned();
}

static void scan_entries(void) {
    tamis_bytes key = any_bytes();
    bool has_entry;
    switch (below(9)) {
    case 0:
        tamis_scan_free(scan);
        scan = NULL;
        CALL(tamis_range(any_keyspace(), any_snapshot(), any_bound(), any_bound(), one_in(8) ? NULL : &scan, message));
        break;
    case 1:
        tamis_scan_free(scan);
        scan = NULL;
        CALL(tamis_prefix(any_keyspace(), any_snapshot(), key.data, key.length, one_in(8) ? NULL : &scan, message));
        break;
    case 2:
        CALL(tamis_scan_prev(scan, one_in(8) ? NULL : &has_entry, message));
        break;
    case 3:
        CALL(tamis_scan_seek(scan, key.data, key.length, message));
        break;
    case 4:
        CALL(tamis_scan_seek_for_prev(scan, key.data, key.length, message));
        break;
    case 5: {
        tamis_bytes found, value;
        CALL(tamis_scan_entry(scan, one_in(8) ? NULL : &found, one_in(8) ? NULL : &value, message));
        break;
    }
    case 6: {
        tamis_chunk chunk;
        CALL(tamis_scan_chunk(scan, (int32_t)below(4) - 1, one_in(8) ? SIZE_MAX : below(5), one_in(8) ? SIZE_MAX : below(500),
                              one_in(8) ? NULL : &chunk, message));
        break;
    }
    default:
        CALL(tamis_scan_next(scan, one_in(8) ? NULL : &has_entry, message));
    }
    free_owned();
}

// Looks at every byte of a change.
static bool on_change(void *context, const tamis_change *change) {
    const tamis_bytes all[] = {change->keyspace, change->key, change->value};
    uint64_t *sum = (uint64_t *)context;
    for (int part = 0; part < 3; part++)
        for (size_t index = 0; index < all[part].length; index++)
            *sum += all[part].data[index];
    return !one_in(8);
}

static void follow_changes(void) {
    uint64_t position = 0, sum = 0;
    tamis_change change;
    bool answer;
    switch (below(8)) {
    case 0:
        CALL(tamis_refresh(one_in(8) ? NULL : db, message));
        break;
    case 1:
        CALL(tamis_refresh_every(one_in(8) ? NULL : db, one_in(2) ? below(3) : UINT64_MAX, message));
        break;
    case 2:
        CALL(tamis_is_reader(one_in(8) ? NULL : db, one_in(8) ? NULL : &answer, message));
        break;
    case 3:
        tamis_changes_free(feed);
        feed = NULL;
        CALL(tamis_changes_open(one_in(8) ? NULL : db, one_in(2) ? below(20) : UINT64_MAX - below(2), one_in(8) ? NULL : &feed, message));
        break;
    case 4:
        CALL(tamis_changes_ingested(feed, one_in(8) ? NULL : on_change, &sum, message));
        break;
    case 5:
        CALL(tamis_changes_position(feed, one_in(8) ? NULL : &position, message));
        break;
    default: {
        char *text = NULL;
        bool has_change = false;
        tamis_code code = tamis_changes_next(feed, below(2), one_in(8) ? NULL : &change, one_in(8) ? NULL : &has_change, &text);
        if (code == TAMIS_CODE_OK && has_change)
            on_change(&sum, &change);
        check("tamis_changes_next", code, &text);
    }
    }
}

static void maintain(void) {
    char *json = NULL;
    switch (below(5)) {
    case 0:
        CALL(tamis_flush(one_in(8) ? NULL : db, message));
        break;
    case 1:
        CALL(tamis_compact(one_in(8) ? NULL : db, any_keyspace(), any_bound(), any_bound(), message));
        break;
    case 2:
        CALL(tamis_statistics(one_in(8) ? NULL : db, one_in(8) ? NULL : &json, message));
        break;
    case 3:
        CALL(tamis_verify(one_in(8) ? NULL : db, one_in(8) ? NULL : &json, message));
        break;
    default:
        CALL(tamis_checkpoint(db, one_in(2) ? NULL : paths[0], one_in(8) ? NULL : &json, message));
    }
    tamis_text_free(json);
}

static void build_tables(void) {
    tamis_bytes key = any_bytes(), value = any_bytes();
    switch (below(8)) {
    case 0:
        tamis_table_writer_free(writer);
        writer = NULL;
        remove(paths[2]);
        CALL(tamis_table_writer_new(any_keyspace(), one_in(4) ? NULL : paths[2], one_in(8) ? NULL : &writer, message));
        break;
    case 1:
    case 2:
        CALL(tamis_table_writer_put(writer, key.data, key.length, value.data, value.length, message));
        break;
    case 3:
        CALL(tamis_table_writer_delete(writer, key.data, key.length, message));
        break;
    case 4:
        CALL(tamis_table_writer_merge(writer, key.data, key.length, value.data, value.length, message));
        break;
    case 5:
        CALL(tamis_table_writer_put_until(writer, key.data, key.length, value.data, value.length, any_time(), message));
        break;
    case 6:
        CALL(tamis_table_writer_finish(writer, message));
        break;
    default: {
        const char *files[2] = {paths[2], one_in(2) ? NULL : paths[0]};
        CALL(tamis_ingest(one_in(8) ? NULL : db, any_keyspace(), one_in(8) ? NULL : files, one_in(12) ? SIZE_MAX : below(3), one_in(2), NULL,
                          message));
    }
    }
    free_owned();
}

static void use_filters(void) {
    static const char *const specifications[] = {"surf-real:bits=8", "blocked-bloom", "proteus", "rosetta", "auto", "nosuch", ""};
    tamis_bytes key = any_bytes();
    bool answer, answers[4];
    switch (below(11)) {
    case 0:
        tamis_filter_builder_free(builder);
        builder = NULL;
        CALL(tamis_filter_builder_new(any_text(specifications, 7), below(3), one_in(8) ? NULL : &builder, message));
        break;
    case 1:
    case 2:
        CALL(tamis_filter_builder_add(builder, key.data, key.length, message));
        break;
    case 3:
        CALL(tamis_filter_builder_sample(builder, any_bound(), any_bound(), message));
        break;
    case 4: {
        tamis_value finished = {NULL, 0, NULL};
        CALL(tamis_filter_builder_finish(builder, (double)below(30) - 5.0, one_in(8) ? NULL : &finished, message));
        if (finished.data != NULL) {
            tamis_value_free(&encoded);
            encoded = finished;
        }
        break;
    }
    case 5: {
        // The bytes of the last filter: whole, cut, or with a changed byte.
        tamis_filter_free(filter);
        filter = NULL;
        free(filter_bytes);
        size_t length = one_in(3) ? below(encoded.length + 1) : encoded.length;
        filter_bytes = (uint8_t *)malloc(length == 0 ? 1 : length);
        if (filter_bytes == NULL)
            abort();
        if (length > 0)
            memcpy(filter_bytes, encoded.data, length);
        if (length > 0 && one_in(2))
            filter_bytes[below(length)] ^= (uint8_t)(1 + below(255));
        CALL(tamis_filter_bytes_may_contain_range(one_in(12) ? NULL : filter_bytes, one_in(12) ? SIZE_MAX : length, any_bound(), any_bound(),
                                                  one_in(8) ? NULL : &answer, message));
        CALL(tamis_filter_open(one_in(12) ? NULL : filter_bytes, one_in(12) ? SIZE_MAX : length, one_in(8) ? NULL : &filter, message));
        break;
    }
    case 6:
        CALL(tamis_filter_may_contain(filter, key.data, key.length, one_in(8) ? NULL : &answer, message));
        break;
    case 7:
        CALL(tamis_filter_may_contain_range(filter, any_bound(), any_bound(), one_in(8) ? NULL : &answer, message));
        break;
    case 8:
        CALL(tamis_filter_may_contain_prefix(filter, key.data, key.length, one_in(8) ? NULL : &answer, message));
        break;
    case 9: {
        size_t count = below(5);
        tamis_bytes *keys = (tamis_bytes *)own(count * sizeof(tamis_bytes));
        for (size_t index = 0; index < count; index++)
            keys[index] = any_bytes();
        CALL(tamis_filter_may_contain_many(filter, one_in(8) ? NULL : keys, one_in(12) ? SIZE_MAX : count,
                                           one_in(8) ? NULL : answers, message));
        break;
    }
    default: {
        int32_t kind;
        tamis_value candidate = {NULL, 0, NULL};
        CALL(tamis_filter_candidate(filter, any_bound(), any_bound(), (int32_t)below(4) - 1, one_in(8) ? NULL : &kind,
                                    one_in(8) ? NULL : &candidate, message));
        tamis_value_free(&candidate);
    }
    }
    free_owned();
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: %s FOLDER SEED CALLS\n", arguments[0]);
        return 2;
    }
    static const char *const names[] = {"first", "second", "table"};
    char texts[3][1024];
    for (int index = 0; index < 3; index++) {
        snprintf(texts[index], sizeof texts[index], "%s/%s", arguments[1], names[index]);
        paths[index] = texts[index];
    }
    state = strtoull(arguments[2], NULL, 10);
    static void (*const steps[])(void) = {open_and_close, write_entries, write_entries, read_entries, scan_entries,
                                          follow_changes, follow_changes, begin_and_end, use_transaction, use_transaction, maintain, build_tables, use_filters, use_filters};
    for (long left = strtol(arguments[3], NULL, 10); left > 0; left--) {
        // Maintenance takes much longer than other calls.
        uint64_t step = below(sizeof steps / sizeof steps[0]);
        if (steps[step] != maintain || one_in(20))
            steps[step]();
    }
    tamis_transaction_free(transaction);
    tamis_scan_free(scan);
    tamis_changes_free(feed);
    tamis_table_writer_free(writer);
    for (int index = 0; index < 3; index++)
        tamis_keyspace_free(keyspaces[index]);
    tamis_batch_free(batch);
    tamis_snapshot_free(snapshot);
    tamis_options_free(options);
    tamis_filter_builder_free(builder);
    tamis_filter_free(filter);
    free(filter_bytes);
    tamis_value_free(&encoded);
    tamis_db_free(db);
    int failure_count = 0;
    for (int code = 1; code < 32; code++)
        failure_count += failures[code];
    printf("%d calls succeeded, %d were refused\n", failures[0], failure_count);
    return failures[0] > 0 && failure_count > 0 ? 0 : 1;
}
