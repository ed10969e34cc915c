// The C interface of Tamis, an embedded, ordered key-value store with range filters.
//
// Results. A function that can fail returns a tamis_code, TAMIS_CODE_OK (0) for success. Its last parameter may point to a text:
// after a failure that is a sentence for people, which the caller frees with tamis_text_free; after a success it is NULL.
// Results are stored through pointers: after a failure they are NULL, 0 or false.
//
// Handles. Any number of threads may use a handle at once, but for batches, scans, writers, builders and options: a second
// thread gets TAMIS_CODE_BUSY. Handles may be freed on any thread and in any order: each keeps what it needs. A database is closed by
// tamis_close, or when the last of its handles is freed. A handle must not be used or freed after, or while, it is freed.
//
// Arguments. A pointer that is not NULL points to what its type and its length say. Keys have 1 to 65,535 bytes in the order of
// memcmp, values up to 256 MiB; NULL with the length 0 is the empty string. Texts are UTF-8 and end with a zero byte.
//
// Fork. In a child process the handles of its parent fail with TAMIS_CODE_FORKED; freeing them there does nothing.


#ifndef TAMIS_H
#define TAMIS_H

// Written by cbindgen from bindings/c/src: change it there.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The number of the interface that this header describes. It is raised when a program must be compiled again; functions that are
// added do not raise it.
#define TAMIS_ABI_VERSION 1

// The reason of a failure. The numbers are part of the C interface and never change their meaning.
enum tamis_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // No failure.
    TAMIS_CODE_OK = 0,
    // An argument is outside its bounds; the message names it and what is possible.
    TAMIS_CODE_INVALID_ARGUMENT = 1,
    // The operating system refused a file operation.
    TAMIS_CODE_IO = 2,
    // No space is left on the disk. Nothing was written; reads go on.
    TAMIS_CODE_DISK_FULL = 3,
    // Bytes on disk, or of a filter, are damaged.
    TAMIS_CODE_CORRUPTION = 4,
    // The files were written by a newer version, or by one from before the first release.
    TAMIS_CODE_UNKNOWN_FORMAT = 5,
    // The folder holds no database.
    TAMIS_CODE_NOT_A_DATABASE = 6,
    // A file that the database needs is missing.
    TAMIS_CODE_MISSING_FILE = 7,
    // Another process or handle has the database open.
    TAMIS_CODE_LOCKED = 8,
    // The database was opened read-only, or its folder can't be written.
    TAMIS_CODE_READ_ONLY = 9,
    // An earlier sync failed: writes are refused, reads go on.
    TAMIS_CODE_WRITES_REFUSED = 10,
    // The database was closed.
    TAMIS_CODE_CLOSED = 11,
    // No keyspace has this name.
    TAMIS_CODE_KEYSPACE_NOT_FOUND = 12,
    // A keyspace has this name already.
    TAMIS_CODE_KEYSPACE_EXISTS = 13,
    // The keyspace was dropped.
    TAMIS_CODE_KEYSPACE_DROPPED = 14,
    // A key, a value or a batch is too long, or a key is empty.
    TAMIS_CODE_SIZE = 15,
    // A filter can't be built for these keys with these parameters.
    TAMIS_CODE_FILTER_BUILD = 16,
    // The caller's buffer is too small; the length that is needed was stored.
    TAMIS_CODE_BUFFER_TOO_SMALL = 17,
    // The handle was made before a fork and is used in the child process.
    TAMIS_CODE_FORKED = 18,
    // The handle is used by another thread at this moment.
    TAMIS_CODE_BUSY = 19,
    // A bug in Tamis: a panic was caught at the boundary.
    TAMIS_CODE_PANIC = 20,
    // A failure that has no code of its own.
    TAMIS_CODE_OTHER = 21,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tamis_code tamis_code;
#else
typedef int32_t tamis_code;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The kinds of bounds.
enum tamis_bound_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // No bound.
    TAMIS_BOUND_KIND_UNBOUNDED = 0,
    // Up to the key and with it.
    TAMIS_BOUND_KIND_INCLUDED = 1,
    // Up to the key and without it.
    TAMIS_BOUND_KIND_EXCLUDED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tamis_bound_kind tamis_bound_kind;
#else
typedef int32_t tamis_bound_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A filter's knowledge of the first key that a scan would meet.
enum tamis_candidate
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Nothing.
    TAMIS_CANDIDATE_UNKNOWN = 0,
    // There certainly is no such key.
    TAMIS_CANDIDATE_ABSENT = 1,
    // Forward: no key is smaller than the bytes. Backward: every key is smaller than the bytes, or begins with them.
    TAMIS_CANDIDATE_BYTES = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tamis_candidate tamis_candidate;
#else
typedef int32_t tamis_candidate;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How durable a write is when the call returns.
enum tamis_durability
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Buffered in the process: a crash of the process may lose it.
    TAMIS_DURABILITY_DEFERRED = 0,
    // Survives a crash of the process, not of the machine.
    TAMIS_DURABILITY_BUFFERED = 1,
    // Survives a crash of the machine.
    TAMIS_DURABILITY_SYNCED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tamis_durability tamis_durability;
#else
typedef int32_t tamis_durability;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A write batch. One thread uses it at a time.
typedef struct tamis_batch tamis_batch;

// An open database.
typedef struct tamis_db tamis_db;

// Options of a database and of its default keyspace.
typedef struct tamis_options tamis_options;

// Builds filters of one family. One thread uses it at a time.
typedef struct tamis_filter_builder tamis_filter_builder;

// An open filter over bytes that the caller keeps as they are until the filter is freed. Any number of threads may use it.
typedef struct tamis_filter tamis_filter;

// A named, ordered map of a database.
typedef struct tamis_keyspace tamis_keyspace;

// Options of a keyspace.
typedef struct tamis_keyspace_options tamis_keyspace_options;

// The owner of a value's bytes.
typedef struct tamis_owner tamis_owner;

// A scan. It holds the entries as they were when it was made, and needs neither the handle of its keyspace nor of its snapshot. One
// thread uses it at a time.
typedef struct tamis_scan tamis_scan;

// All keyspaces as they were at one moment.
typedef struct tamis_snapshot tamis_snapshot;

// A table that is being built. One thread uses it at a time. A writer that is freed before tamis_table_writer_finish leaves nothing.
typedef struct tamis_table_writer tamis_table_writer;

// Bytes that the caller owns, as an argument. Null is possible with the length 0.
typedef struct tamis_bytes {
    // The first byte.
    const uint8_t *data;
    // How many bytes there are.
    size_t length;
} tamis_bytes;

// A bound of a range: TAMIS_BOUND_KIND_UNBOUNDED (0), TAMIS_BOUND_KIND_INCLUDED (1) or TAMIS_BOUND_KIND_EXCLUDED (2) with its key.
typedef struct tamis_bound {
    // A value of tamis_bound_kind.
    int32_t kind;
    // The key; ignored where there is no bound.
    struct tamis_bytes key;
} tamis_bound;

// Bytes that the library gave to the caller, who frees them with tamis_value_free. `data` is null where there is no value; the
// value of no bytes has a pointer and the length 0.
typedef struct tamis_value {
    // The first byte.
    const uint8_t *data;
    // How many bytes there are.
    size_t length;
    // The owner of the bytes, which keeps them alive.
    struct tamis_owner *owner;
} tamis_value;

// Entries of a scan, in memory of the scan: valid until its next call. The key of entry `i` is `key_bytes[key_ends[i - 1]]` up to
// `key_bytes[key_ends[i]]`, excluded; that of entry 0 begins at 0. Values likewise.
typedef struct tamis_chunk {
    // How many entries there are.
    size_t count;
    // Whether the scan has no more entries in this direction.
    bool is_finished;
    // The bytes of all keys.
    const uint8_t *key_bytes;
    // Where each key ends.
    const size_t *key_ends;
    // The bytes of all values.
    const uint8_t *value_bytes;
    // Where each value ends.
    const size_t *value_ends;
} tamis_chunk;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes an empty batch. Free it with tamis_batch_free.
tamis_code tamis_batch_new(struct tamis_batch **batch, char **message);

// Adds a put to a batch. All keyspaces of a batch belong to one database.
tamis_code tamis_batch_put(const struct tamis_batch *batch,
                           const struct tamis_keyspace *keyspace,
                           const uint8_t *key,
                           size_t key_length,
                           const uint8_t *value,
                           size_t value_length,
                           char **message);

// Adds a delete to a batch.
tamis_code tamis_batch_delete(const struct tamis_batch *batch,
                              const struct tamis_keyspace *keyspace,
                              const uint8_t *key,
                              size_t key_length,
                              char **message);

// How many writes a batch has.
tamis_code tamis_batch_count(const struct tamis_batch *batch, size_t *count, char **message);

// Takes all writes out of a batch; the memory is kept.
tamis_code tamis_batch_clear(const struct tamis_batch *batch, char **message);

// Writes a batch, all of it or nothing, at a durability of tamis_durability. The batch is empty afterwards, whether the write
// succeeded or not.
tamis_code tamis_write(const struct tamis_db *database,
                       const struct tamis_batch *batch,
                       int32_t durability,
                       char **message);

// Frees a batch. Null is possible.
void tamis_batch_free(struct tamis_batch *batch);

// Opens the database in a folder, or makes one there. `options` may be null. Close it with tamis_close or tamis_db_free.
tamis_code tamis_open(const char *folder,
                      const struct tamis_options *options,
                      struct tamis_db **database,
                      char **message);

// Closes a database: the log is synced, running jobs end. Other handles of it get TAMIS_CODE_CLOSED from now on; begun scans
// can be read to their end. The handle must still be freed.
tamis_code tamis_close(const struct tamis_db *database,
                       char **message);

// Frees the handle of a database. The database is closed when its last handle (keyspaces, snapshots) is freed. Null is possible.
void tamis_db_free(struct tamis_db *database);

// The keyspace that every database has. Free it with tamis_keyspace_free.
tamis_code tamis_default_keyspace(const struct tamis_db *database,
                                  struct tamis_keyspace **keyspace,
                                  char **message);

// The keyspace of a name. Free it with tamis_keyspace_free.
tamis_code tamis_keyspace_open(const struct tamis_db *database,
                               const char *name,
                               struct tamis_keyspace **keyspace,
                               char **message);

// Makes a keyspace; it survives a crash of the machine when the call returns. `options` may be null.
tamis_code tamis_keyspace_create(const struct tamis_db *database,
                                 const char *name,
                                 const struct tamis_keyspace_options *options,
                                 struct tamis_keyspace **keyspace,
                                 char **message);

// Drops a keyspace with all its data. Its handles get TAMIS_CODE_KEYSPACE_DROPPED from now on.
tamis_code tamis_keyspace_drop(const struct tamis_db *database, const char *name, char **message);

// The names of all keyspaces, sorted, as a JSON array. Free it with tamis_text_free.
tamis_code tamis_keyspace_names(const struct tamis_db *database, char **json, char **message);

// All keyspaces as they are at this moment. Free it with tamis_snapshot_free.
tamis_code tamis_snapshot_new(const struct tamis_db *database,
                              struct tamis_snapshot **snapshot,
                              char **message);

// Makes all writes that returned before as durable as `durability` says.
tamis_code tamis_persist(const struct tamis_db *database, int32_t durability, char **message);

// Writes the memtables of all keyspaces into tables, and waits for it.
tamis_code tamis_flush(const struct tamis_db *database, char **message);

// Waits until no flush or compaction is due.
tamis_code tamis_wait_for_compactions(const struct tamis_db *database, char **message);

// Makes a copy of the database, as it is at this moment, in a folder that is new or empty. `json` gets a report and may be null.
tamis_code tamis_checkpoint(const struct tamis_db *database,
                            const char *folder,
                            char **json,
                            char **message);

// Reads every byte of every live file. All damage is in the report (JSON); the call fails only where it can't continue.
tamis_code tamis_verify(const struct tamis_db *database,
                        char **json,
                        char **message);

// As tamis_verify, for a database that is not open and may be damaged.
tamis_code tamis_verify_folder(const char *folder, char **json, char **message);

// Makes a damaged database open again from all that can be read. Nothing is deleted; the report (JSON) names every range in which
// writes may be lost.
tamis_code tamis_repair(const char *folder,
                        char **json,
                        char **message);

// The findings and actions of the open, as JSON.
tamis_code tamis_open_report(const struct tamis_db *database, char **json, char **message);

// Counters since the open, and the state of log, cache and levels, as JSON.
tamis_code tamis_statistics(const struct tamis_db *database, char **json, char **message);

// Makes a builder for a filter such as "surf@16" or "binary-fuse:bits=8": NAME[:param=value,...][@BITS_PER_KEY]. Filters of one seed
// share digests. Free it with tamis_filter_builder_free.
tamis_code tamis_filter_builder_new(const char *specification,
                                    uint64_t seed,
                                    struct tamis_filter_builder **builder,
                                    char **message);

// Adds a key; keys come in ascending order, a repeated one is ignored.
tamis_code tamis_filter_builder_add(const struct tamis_filter_builder *builder,
                                    const uint8_t *key,
                                    size_t key_length,
                                    char **message);

// Adds a query from which families that design themselves (surf, rosetta, proteus, 1pbf, 2pbf) learn.
tamis_code tamis_filter_builder_sample(const struct tamis_filter_builder *builder,
                                       struct tamis_bound lower,
                                       struct tamis_bound upper,
                                       char **message);

// The encoded filter, with `bits_per_key` or, where that is 0, with the budget of the specification. The builder may build again.
// Free the bytes with tamis_value_free.
tamis_code tamis_filter_builder_finish(const struct tamis_filter_builder *builder,
                                       double bits_per_key,
                                       struct tamis_value *filter,
                                       char **message);

// Frees a builder. Null is possible.
void tamis_filter_builder_free(struct tamis_filter_builder *builder);

// Opens an encoded filter in place; reads its header only. The bytes are borrowed: they must stay, and must not change, until the
// filter is freed with tamis_filter_free.
tamis_code tamis_filter_open(const uint8_t *data,
                             size_t length,
                             struct tamis_filter **filter,
                             char **message);

// Frees an open filter; its bytes stay the caller's. Null is possible.
void tamis_filter_free(struct tamis_filter *filter);

// Whether a key may be among the keys. False: it certainly is not.
tamis_code tamis_filter_may_contain(const struct tamis_filter *filter,
                                    const uint8_t *key,
                                    size_t key_length,
                                    bool *answer,
                                    char **message);

// As tamis_filter_may_contain, for `count` keys at once: overlaps their cache misses.
tamis_code tamis_filter_may_contain_many(const struct tamis_filter *filter,
                                         const struct tamis_bytes *keys,
                                         size_t count,
                                         bool *answers,
                                         char **message);

// Whether a key may be between two bounds. False: certainly none does.
tamis_code tamis_filter_may_contain_range(const struct tamis_filter *filter,
                                          struct tamis_bound lower,
                                          struct tamis_bound upper,
                                          bool *answer,
                                          char **message);

// Whether a key may begin with a prefix. False: certainly none does.
tamis_code tamis_filter_may_contain_prefix(const struct tamis_filter *filter,
                                           const uint8_t *prefix,
                                           size_t prefix_length,
                                           bool *answer,
                                           char **message);

// The knowledge about the first key that a scan between two bounds would meet, forward or (`is_backward` not 0) backward: a value of
// tamis_candidate, and its bytes. Free the bytes with tamis_value_free.
tamis_code tamis_filter_candidate(const struct tamis_filter *filter,
                                  struct tamis_bound lower,
                                  struct tamis_bound upper,
                                  int32_t is_backward,
                                  int32_t *kind,
                                  struct tamis_value *candidate,
                                  char **message);

// An estimate of how many keys are between two bounds, and how far the true number may be from it. `is_known` is false where the family
// can't count.
tamis_code tamis_filter_count(const struct tamis_filter *filter,
                              struct tamis_bound lower,
                              struct tamis_bound upper,
                              bool *is_known,
                              uint64_t *count,
                              uint64_t *error_max,
                              char **message);

// Family, number of keys, size, predicted rate of false positives and design, as JSON. Free it with tamis_text_free.
tamis_code tamis_filter_describe(const struct tamis_filter *filter,
                                 char **json,
                                 char **message);

// Compares the checksum of all bytes of a filter: TAMIS_CODE_CORRUPTION where it does not fit.
tamis_code tamis_filter_verify(const struct tamis_filter *filter, char **message);

// The name of a keyspace. Free it with tamis_text_free.
tamis_code tamis_keyspace_name(const struct tamis_keyspace *keyspace, char **name, char **message);

// Frees the handle of a keyspace; the keyspace stays. Null is possible.
void tamis_keyspace_free(struct tamis_keyspace *keyspace);

// Sets the value of a key, at TAMIS_DURABILITY_BUFFERED; other durabilities: tamis_write.
tamis_code tamis_put(const struct tamis_keyspace *keyspace,
                     const uint8_t *key,
                     size_t key_length,
                     const uint8_t *value,
                     size_t value_length,
                     char **message);

// Deletes a key, whether it is there or not.
tamis_code tamis_delete(const struct tamis_keyspace *keyspace,
                        const uint8_t *key,
                        size_t key_length,
                        char **message);

// The value of a key, as of a snapshot or (null) as of now; `value->data` is null where the key is absent. Long values are not
// copied: the value holds their block. Free it with tamis_value_free.
tamis_code tamis_get(const struct tamis_keyspace *keyspace,
                     const struct tamis_snapshot *snapshot,
                     const uint8_t *key,
                     size_t key_length,
                     struct tamis_value *value,
                     char **message);

// As tamis_get, into the caller's buffer, without an allocation. `is_found` says whether the key is there, `value_length` how long
// its value is. TAMIS_CODE_BUFFER_TOO_SMALL: the buffer has less than `value_length` bytes; call again with a larger one.
tamis_code tamis_get_into(const struct tamis_keyspace *keyspace,
                          const struct tamis_snapshot *snapshot,
                          const uint8_t *key,
                          size_t key_length,
                          uint8_t *buffer,
                          size_t buffer_length,
                          size_t *value_length,
                          bool *is_found,
                          char **message);

// Whether a key is there.
tamis_code tamis_contains(const struct tamis_keyspace *keyspace,
                          const struct tamis_snapshot *snapshot,
                          const uint8_t *key,
                          size_t key_length,
                          bool *is_found,
                          char **message);

// About how many keys are between two bounds; reads no blocks.
tamis_code tamis_approximate_count(const struct tamis_keyspace *keyspace,
                                   struct tamis_bound lower,
                                   struct tamis_bound upper,
                                   uint64_t *count,
                                   char **message);

// Merges the entries between two bounds down to the deepest level, dropping tombstones and old versions, and waits for it.
tamis_code tamis_compact(const struct tamis_db *database,
                         const struct tamis_keyspace *keyspace,
                         struct tamis_bound lower,
                         struct tamis_bound upper,
                         char **message);

// The values of `count` keys as of one moment, in the order of the keys: an absent key's value has a null pointer. Free the values
// with tamis_values_free. After a failure all values are those of absent keys.
tamis_code tamis_multi_get(const struct tamis_keyspace *keyspace,
                           const struct tamis_snapshot *snapshot,
                           const struct tamis_bytes *keys,
                           size_t count,
                           struct tamis_value *values,
                           char **message);

// Makes options with all defaults; free them with tamis_options_free.
tamis_code tamis_options_new(struct tamis_options **options, char **message);

// Sets an option by name, such as "cache_bytes" to "512MiB" or "filters" to "surf@16". Options of a keyspace hold for the default
// keyspace of a database that the open makes. The guide docs/guide/c.md lists all names.
tamis_code tamis_options_set(const struct tamis_options *options,
                             const char *name,
                             const char *value,
                             char **message);

// Frees options. Null is possible.
void tamis_options_free(struct tamis_options *options);

// Makes options of a keyspace with all defaults; free them with tamis_keyspace_options_free.
tamis_code tamis_keyspace_options_new(struct tamis_keyspace_options **options, char **message);

// Sets an option of a keyspace by name.
tamis_code tamis_keyspace_options_set(const struct tamis_keyspace_options *options,
                                      const char *name,
                                      const char *value,
                                      char **message);

// Frees options of a keyspace. Null is possible.
void tamis_keyspace_options_free(struct tamis_keyspace_options *options);

// A scan of the entries between two bounds, as of a snapshot or (null) as of now. It begins before the first entry; nothing is read
// before the first step. Free it with tamis_scan_free.
tamis_code tamis_range(const struct tamis_keyspace *keyspace,
                       const struct tamis_snapshot *snapshot,
                       struct tamis_bound lower,
                       struct tamis_bound upper,
                       struct tamis_scan **scan,
                       char **message);

// A scan of the entries whose keys begin with a prefix.
tamis_code tamis_prefix(const struct tamis_keyspace *keyspace,
                        const struct tamis_snapshot *snapshot,
                        const uint8_t *prefix,
                        size_t prefix_length,
                        struct tamis_scan **scan,
                        char **message);

// To the next entry in key order; `has_entry` is false behind the last one.
tamis_code tamis_scan_next(const struct tamis_scan *scan, bool *has_entry, char **message);

// Back to the entry before; `has_entry` is false before the first one.
tamis_code tamis_scan_prev(const struct tamis_scan *scan, bool *has_entry, char **message);

// Moves, so that tamis_scan_next gives the first entry at or after a key, and tamis_scan_prev the last one before it.
tamis_code tamis_scan_seek(const struct tamis_scan *scan,
                           const uint8_t *key,
                           size_t key_length,
                           char **message);

// Moves, so that tamis_scan_prev gives the last entry at or before a key, and tamis_scan_next the first one after it.
tamis_code tamis_scan_seek_for_prev(const struct tamis_scan *scan,
                                    const uint8_t *key,
                                    size_t key_length,
                                    char **message);

// Moves before the first entry, so that tamis_scan_next gives it.
tamis_code tamis_scan_seek_to_first(const struct tamis_scan *scan, char **message);

// Moves behind the last entry, so that tamis_scan_prev gives it.
tamis_code tamis_scan_seek_to_last(const struct tamis_scan *scan, char **message);

// The key and the value of the entry that the last tamis_scan_next or tamis_scan_prev gave; of length 0 where it gave none. They are
// in memory of the scan: valid until its next call. `key` or `value` may be null.
tamis_code tamis_scan_entry(const struct tamis_scan *scan,
                            struct tamis_bytes *key,
                            struct tamis_bytes *value,
                            char **message);

// The next entries, forward or (`is_backward` not 0) backward: at most `count_max`, and none more once they have `bytes_max` bytes.
// An entry of this scan costs no allocation. The last entry of the chunk is the scan's entry afterwards.
tamis_code tamis_scan_chunk(const struct tamis_scan *scan,
                            int32_t is_backward,
                            size_t count_max,
                            size_t bytes_max,
                            struct tamis_chunk *chunk,
                            char **message);

// Frees a scan. Null is possible.
void tamis_scan_free(struct tamis_scan *scan);

// Frees a snapshot: old versions that only it needed can be dropped. Null is possible.
void tamis_snapshot_free(struct tamis_snapshot *snapshot);

// Begins a table at a path where there is no file, for tamis_ingest into the keyspace. Free it with tamis_table_writer_free.
tamis_code tamis_table_writer_new(const struct tamis_keyspace *keyspace,
                                  const char *file,
                                  struct tamis_table_writer **writer,
                                  char **message);

// Adds a key, greater than the one before, with its value.
tamis_code tamis_table_writer_put(const struct tamis_table_writer *writer,
                                  const uint8_t *key,
                                  size_t key_length,
                                  const uint8_t *value,
                                  size_t value_length,
                                  char **message);

// Adds a delete of a key: the ingest deletes it.
tamis_code tamis_table_writer_delete(const struct tamis_table_writer *writer,
                                     const uint8_t *key,
                                     size_t key_length,
                                     char **message);

// Ends the table: its file is there, and survives a crash of the machine. The handle must still be freed.
tamis_code tamis_table_writer_finish(const struct tamis_table_writer *writer,
                                     char **message);

// Frees a writer. Null is possible.
void tamis_table_writer_free(struct tamis_table_writer *writer);

// Takes finished tables into a keyspace, all of them or none, as one write that is newer than all before it. The files may be
// removed afterwards. `json` gets a report and may be null.
tamis_code tamis_ingest(const struct tamis_db *database,
                        const struct tamis_keyspace *keyspace,
                        const char *const *files,
                        size_t count,
                        char **json,
                        char **message);

// Frees the bytes of a value and makes it one without bytes, which may be freed again.
void tamis_value_free(struct tamis_value *value);

// Frees the values of an array, as tamis_value_free does for each.
void tamis_values_free(struct tamis_value *values, size_t count);

// Frees a text that a function of this library gave to the caller: a message or JSON. Null is possible.
void tamis_text_free(char *text);

// The version of the library, such as `0.1.0`. The text lives as long as the library.
const char *tamis_version(void);

// The number of the library's interface: compare it with TAMIS_ABI_VERSION, that of the header.
uint32_t tamis_abi_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TAMIS_H */
