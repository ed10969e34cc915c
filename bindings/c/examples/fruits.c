// A store of fruits: open, write, read a range, take a snapshot. bindings/c/test compiles and runs it.

#include "tamis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Exits if a call failed. `message` is the name of the last argument of the call.
#define CHECK(call)                                                \
    do {                                                           \
        char *message;                                             \
        tamis_code code = (call);                                  \
        if (code != TAMIS_CODE_OK) {                               \
            fprintf(stderr, "error %d: %s\n", (int)code, message); \
            tamis_text_free(message);                              \
            exit(1);                                               \
        }                                                          \
    } while (0)

static void put(const tamis_keyspace *keyspace, const char *key, const char *value) {
    CHECK(tamis_put(keyspace, (const uint8_t *)key, strlen(key), (const uint8_t *)value, strlen(value),
                    &message));
}

int main(int count, char **arguments) {
    const char *folder = count > 1 ? arguments[1] : "fruits";
    tamis_db *db;
    tamis_keyspace *fruits;
    CHECK(tamis_open(folder, NULL, &db, &message));
    CHECK(tamis_default_keyspace(db, &fruits, &message));
    put(fruits, "apple", "red");
    put(fruits, "banana", "yellow");
    put(fruits, "pear", "green");

    tamis_bound lower = {TAMIS_BOUND_KIND_INCLUDED, {(const uint8_t *)"a", 1}};
    tamis_bound upper = {TAMIS_BOUND_KIND_EXCLUDED, {(const uint8_t *)"p", 1}};
    tamis_scan *scan;
    bool has_entry;
    CHECK(tamis_range(fruits, NULL, lower, upper, &scan, &message));
    for (;;) {
        tamis_bytes key, value;
        CHECK(tamis_scan_next(scan, &has_entry, &message));
        if (!has_entry)
            break;
        CHECK(tamis_scan_entry(scan, &key, &value, &message));
        printf("%.*s: %.*s\n", (int)key.length, (const char *)key.data, (int)value.length,
               (const char *)value.data);
    }
    tamis_scan_free(scan);
    tamis_keyspace_free(fruits);
    CHECK(tamis_close(db, &message));
    tamis_db_free(db);
    return 0;
}
