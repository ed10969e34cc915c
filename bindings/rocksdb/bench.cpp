// Measures closed empty ranges of RocksDB with and without tamis_rocksdb.h: FOLDER [ENTRIES [BITS_PER_KEY [SPECIFICATION]]].
//
// Two databases get the same entries (16 hexadecimal digits, 100 bytes): one without filters, one with a filter in each table, for which the benchmark gives
// 1,000 sampled queries unless a specification is given. First their entries are in ten overlapping tables of level 0; then both are compacted.
// Each measurement takes 31 rounds of 0.1 s of processor time in turn, the median counts. One thread, 4 KiB blocks, no compression, a block cache of 512 MiB with
// the indexes and Bloom filters of 10 bits. "Reused" is one iterator without bounds that seeks again for each query, as programs do without filters.

#include "tamis_rocksdb.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/perf_level.h>
#include <rocksdb/table.h>

namespace {

using Database = std::unique_ptr<rocksdb::DB>;

constexpr int table_count = 10;
constexpr int round_count = 31;
// Shorter with fewer than ten million entries.
double round_seconds = 0.1;

// Processor time of this thread: other programs on the machine do not count, and neither do waits for the disk, which filters save, too.
double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double wall_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void require(const rocksdb::Status &status) {
    if (status.ok())
        return;
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::exit(1);
}

std::string key_of(uint64_t number) {
    char text[17];
    std::snprintf(text, sizeof text, "%016" PRIx64, number);
    return text;
}

// Ranges without a key: `length` numbers after a key, or anywhere.
struct Kind {
    const char *name;
    bool is_after_key;
    uint64_t length;
};
const Kind kinds[] = {
    {"after a key, 1,024 numbers", true, 1024},
    {"anywhere, 1,024 numbers", false, 1024},
};

struct Query {
    std::string lower, upper;
};

std::vector<Query> draw(const Kind &kind, const std::vector<uint64_t> &sorted, size_t count, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Query> queries;
    while (queries.size() < count) {
        const uint64_t lower = kind.is_after_key ? sorted[random() % sorted.size()] + 1 : random();
        const uint64_t upper = lower + kind.length;
        const auto next = std::lower_bound(sorted.begin(), sorted.end(), lower);
        if (upper > lower && (next == sorted.end() || *next >= upper))
            queries.push_back({key_of(lower), key_of(upper)});
    }
    return queries;
}

rocksdb::Options options_of(const std::shared_ptr<tamis::RangeFilterFactory> &filters) {
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(512 << 20);
    table.cache_index_and_filter_blocks = true;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    rocksdb::Options options;
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    options.write_buffer_size = size_t(2) << 30;
    options.disable_auto_compactions = true;
    options.level0_slowdown_writes_trigger = options.level0_stop_writes_trigger = 1000;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    if (filters != nullptr)
        options.table_properties_collector_factories.push_back(filters);
    return options;
}

Database fill(const rocksdb::Options &options, const std::string &folder, const std::vector<uint64_t> &sorted) {
#if ROCKSDB_MAJOR >= 11
    Database db;
    require(rocksdb::DB::Open(options, folder, &db));
#else
    rocksdb::DB *opened = nullptr;
    require(rocksdb::DB::Open(options, folder, &opened));
    Database db(opened);
#endif
    std::mt19937_64 random(7);
    rocksdb::WriteOptions write;
    write.disableWAL = true;
    std::string value(100, 'x');
    for (int table = 0; table < table_count; ++table) {
        for (size_t index = static_cast<size_t>(table); index < sorted.size(); index += table_count) {
            for (size_t part = 0; part < 48; part += 8) {
                const uint64_t bits = random();
                std::copy_n(reinterpret_cast<const char *>(&bits), 8, &value[part]);
            }
            require(db->Put(write, key_of(sorted[index]), value));
        }
        require(db->Flush({}));
    }
    return db;
}

struct Result {
    double queries_per_second = 0, blocks_read = 0, blocks_used = 0;
};

// Queries and the next one: no round repeats those of the round before, which are in the cache.
struct Queries {
    std::vector<Query> all;
    size_t next = 0;
};

// Runs queries for some time. `run` executes one query and must find nothing.
template <typename Run>
Result measure(Queries &queries, Run run) {
    rocksdb::PerfContext *const counts = rocksdb::get_perf_context();
    counts->Reset();
    const double start = now();
    size_t count = 0;
    double seconds = 0;
    do {
        for (int turn = 0; turn < 100; ++turn)
            run(queries.all[queries.next++ % queries.all.size()]);
        count += 100;
        seconds = now() - start;
    } while (seconds < round_seconds);
    const double all = static_cast<double>(count);
    return {all / seconds, static_cast<double>(counts->block_read_count) / all,
            static_cast<double>(counts->block_read_count + counts->block_cache_hit_count) / all};
}

void must_be_empty(rocksdb::Iterator &iterator) {
    require(iterator.status());
    if (iterator.Valid())
        require(rocksdb::Status::Corruption("the range has an entry", iterator.key()));
}

Result run_plain(rocksdb::DB &db, Queries &queries) {
    return measure(queries, [&](const Query &query) {
        const rocksdb::Slice lower(query.lower), upper(query.upper);
        rocksdb::ReadOptions options;
        options.iterate_lower_bound = &lower;
        options.iterate_upper_bound = &upper;
        const std::unique_ptr<rocksdb::Iterator> iterator(db.NewIterator(options));
        iterator->SeekToFirst();
        must_be_empty(*iterator);
    });
}

Result run_reused(rocksdb::DB &db, Queries &queries) {
    const std::unique_ptr<rocksdb::Iterator> iterator(db.NewIterator({}));
    return measure(queries, [&](const Query &query) {
        iterator->Seek(query.lower);
        if (!iterator->Valid() || iterator->key().compare(query.upper) < 0)
            must_be_empty(*iterator);
    });
}

Result run_filtered(rocksdb::DB &db, Queries &queries) {
    return measure(queries, [&](const Query &query) {
        tamis::RangeRead read(query.lower, query.upper);
        const std::unique_ptr<rocksdb::Iterator> iterator(db.NewIterator(read.options()));
        iterator->SeekToFirst();
        must_be_empty(*iterator);
    });
}

Result median(std::vector<Result> rounds) {
    std::sort(rounds.begin(), rounds.end(),
              [](const Result &left, const Result &right) { return left.queries_per_second < right.queries_per_second; });
    return rounds[rounds.size() / 2];
}

void compare(const char *state, rocksdb::DB &plain, rocksdb::DB &filtered, const std::vector<uint64_t> &sorted) {
    std::printf("\n%-8s %-28s %12s %12s %12s %8s   data and index blocks read (used) per query\n", state, "empty closed range", "without /s",
                "reused /s", "with /s", "ratio");
    for (const Kind &kind : kinds) {
        Queries for_plain{draw(kind, sorted, 500000, 3)}, for_reused{draw(kind, sorted, 500000, 4)}, for_filtered{for_plain};
        for (int round = 0; round < round_count; ++round) // fills the caches
            run_plain(plain, for_plain), run_filtered(filtered, for_filtered);
        std::vector<Result> without, reused, with;
        for (int round = 0; round < round_count; ++round) {
            without.push_back(run_plain(plain, for_plain));
            reused.push_back(run_reused(plain, for_reused));
            with.push_back(run_filtered(filtered, for_filtered));
        }
        const Result slow = median(without), seek = median(reused), fast = median(with);
        std::printf("%-8s %-28s %12.0f %12.0f %12.0f %8.1f   without %.3f (%.3f), with %.4f (%.4f)\n", "", kind.name, slow.queries_per_second,
                    seek.queries_per_second, fast.queries_per_second, fast.queries_per_second / slow.queries_per_second, slow.blocks_read,
                    slow.blocks_used, fast.blocks_read, fast.blocks_used);
        std::fflush(stdout);
    }
}

// The bytes of all filters, which RocksDB keeps in memory.
size_t filter_bytes(rocksdb::DB &db) {
    rocksdb::TablePropertiesCollection tables;
    require(db.GetPropertiesOfAllTables(&tables));
    size_t bytes = 0;
    for (const auto &[path, table] : tables) {
        const auto found = table->user_collected_properties.find(tamis::range_filter::property);
        bytes += found == table->user_collected_properties.end() ? 0 : found->second.size();
    }
    return bytes;
}

void compact(rocksdb::DB &db) {
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
    require(db.CompactRange(options, nullptr, nullptr));
}

} // namespace

int main(int count, char **arguments) {
    if (count < 2) {
        std::fprintf(stderr, "usage: bench FOLDER [ENTRIES [BITS_PER_KEY [SPECIFICATION]]]\n");
        return 2;
    }
    const std::string folder = arguments[1];
    const size_t entry_count = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 10000000;
    const double bits_per_key = count > 3 ? std::strtod(arguments[3], nullptr) : 20;
    const std::string specification = count > 4 ? arguments[4] : "auto";

    round_seconds *= std::min(1.0, static_cast<double>(entry_count) / 1e7);
    std::mt19937_64 random(1);
    std::vector<uint64_t> sorted(entry_count);
    for (uint64_t &number : sorted)
        number = random();
    std::sort(sorted.begin(), sorted.end());

    std::shared_ptr<tamis::RangeFilterFactory> filters;
    require(tamis::RangeFilterFactory::Create(bits_per_key, &filters, specification));
    if (count <= 4)
        for (const Kind &kind : kinds)
            for (const Query &query : draw(kind, sorted, 1000 / std::size(kinds), 2))
                filters->AddSample(query.lower, query.upper);

    rocksdb::SetPerfLevel(rocksdb::kEnableCount);
    double start = wall_seconds();
    const Database plain = fill(options_of(nullptr), folder + "/without", sorted);
    const double plain_fill = wall_seconds() - start;
    start = wall_seconds();
    const Database filtered = fill(options_of(filters), folder + "/with", sorted);
    std::printf("RocksDB %d.%d, %zu entries, %g bits per key: fill %.1f s without, %.1f s with filters; filters of %.1f MB\n", ROCKSDB_MAJOR,
                ROCKSDB_MINOR, entry_count, bits_per_key, plain_fill, wall_seconds() - start, static_cast<double>(filter_bytes(*filtered)) / 1e6);
    compare("10 files", *plain, *filtered, sorted);

    start = wall_seconds();
    compact(*plain);
    const double plain_compact = wall_seconds() - start;
    start = wall_seconds();
    compact(*filtered);
    std::printf("\ncompaction %.1f s without, %.1f s with filters; filters of %.1f MB\n", plain_compact, wall_seconds() - start,
                static_cast<double>(filter_bytes(*filtered)) / 1e6);
    compare("settled", *plain, *filtered, sorted);
    return 0;
}
