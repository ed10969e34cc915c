// Tests tamis_rocksdb.h with the installed RocksDB: FOLDER OPERATIONS SEED.
//
// - same_results: random writes against a map. Each read runs with and without filters, and both must return the entries of the map.
// - damage: a property that is truncated, damaged, or of a later version never skips its table; neither does a damaged file.
// - other cases: tables without the property, other comparators, filters that cannot be built, invalid parameters.

#include "tamis_rocksdb.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <rocksdb/comparator.h>
#include <rocksdb/db.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/slice_transform.h>

namespace {

using Map = std::map<std::string, std::string>;
using Entry = std::pair<std::string, std::string>;
using Entries = std::vector<Entry>;

void require(bool condition, const std::string &what) {
    if (condition)
        return;
    std::cerr << "failed: " << what << std::endl;
    std::exit(1);
}

void require(const rocksdb::Status &status, const std::string &what) { require(status.ok(), what + ": " + status.ToString()); }

// Appends operands, so that the result depends on each of them and on their order.
class Append : public rocksdb::AssociativeMergeOperator {
public:
    bool Merge(const rocksdb::Slice &, const rocksdb::Slice *existing, const rocksdb::Slice &value, std::string *result,
               rocksdb::Logger *) const override {
        *result = (existing == nullptr ? "" : existing->ToString()) + value.ToString();
        return true;
    }
    const char *Name() const override { return "Append"; }
};

// A table filter in the options: a function, from RocksDB 11.9 on a pointer to one.
using TableFilter = std::function<bool(const rocksdb::TableProperties &)>;
template <typename Option>
TableFilter given(const Option &option) {
    if constexpr (std::is_pointer_v<Option>)
        return *option;
    else
        return option;
}
template <typename Option>
void replace(Option &option, const TableFilter &filter) {
    if constexpr (std::is_pointer_v<Option>)
        option = &filter;
    else
        option = filter;
}

// Tables that filters skipped, by what they contain.
struct Skipped {
    uint64_t tables = 0, with_deletes = 0, with_merges = 0, with_range_deletes = 0, checked = 0;

    void add(const rocksdb::TableProperties &table, bool is_read) {
        ++checked;
        if (is_read)
            return;
        ++tables;
        with_deletes += table.num_deletions > table.num_range_deletions ? 1 : 0;
        with_merges += table.num_merge_operands > 0 ? 1 : 0;
        with_range_deletes += table.num_range_deletions > 0 ? 1 : 0;
    }
};

rocksdb::Options small_tables(const std::shared_ptr<tamis::RangeFilterFactory> &filters) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.merge_operator = std::make_shared<Append>();
    options.write_buffer_size = 64 << 10;
    options.target_file_size_base = 32 << 10;
    options.max_bytes_for_level_base = 256 << 10;
    options.max_bytes_for_level_multiplier = 4;
    options.level0_file_num_compaction_trigger = 6;
    options.max_background_jobs = 2;
    if (filters != nullptr)
        options.table_properties_collector_factories.push_back(filters);
    return options;
}

std::unique_ptr<rocksdb::DB> open(const rocksdb::Options &options, const std::string &folder) {
#if ROCKSDB_MAJOR >= 11
    std::unique_ptr<rocksdb::DB> db;
    require(rocksdb::DB::Open(options, folder, &db), "open " + folder);
    return db;
#else
    rocksdb::DB *db = nullptr;
    require(rocksdb::DB::Open(options, folder, &db), "open " + folder);
    return std::unique_ptr<rocksdb::DB>(db);
#endif
}

std::shared_ptr<tamis::RangeFilterFactory> make_filters(double bits_per_key, const std::string &specification = "auto") {
    std::shared_ptr<tamis::RangeFilterFactory> filters;
    require(tamis::RangeFilterFactory::Create(bits_per_key, &filters, specification), "create the filters");
    return filters;
}

Entries entries_forward(rocksdb::Iterator &iterator) {
    Entries found;
    for (iterator.SeekToFirst(); iterator.Valid(); iterator.Next())
        found.emplace_back(iterator.key().ToString(), iterator.value().ToString());
    require(iterator.status(), "forward");
    return found;
}

Entries entries_backward(rocksdb::Iterator &iterator) {
    Entries found;
    for (iterator.SeekToLast(); iterator.Valid(); iterator.Prev())
        found.emplace_back(iterator.key().ToString(), iterator.value().ToString());
    require(iterator.status(), "backward");
    return {found.rbegin(), found.rend()};
}

// Random writes and reads of one database, and the map that it must equal.
class Model {
public:
    Model(const std::string &folder, uint64_t operation_count, uint64_t seed, std::shared_ptr<tamis::RangeFilterFactory> filters)
        : operation_count_(operation_count), random_(seed), filters_(std::move(filters)),
          db_(open(small_tables(filters_), folder)) {}

    ~Model() {
        for (const auto &[snapshot, map] : snapshots_)
            db_->ReleaseSnapshot(snapshot);
    }

    void run() {
        for (uint64_t operation = 1; operation <= operation_count_; ++operation) {
            step();
            if (operation % 20000 == 0)
                maintain();
        }
        check_all();
        std::cout << "  " << operation_count_ << " operations, " << read_count_ << " reads, " << map_.size() << " entries left; of " << skipped_.checked
                  << " tables filters skipped " << skipped_.tables << " (with deletes " << skipped_.with_deletes << ", merges "
                  << skipped_.with_merges << ", range deletes " << skipped_.with_range_deletes << ")" << std::endl;
        require(skipped_.with_deletes > 0 && skipped_.with_merges > 0 && skipped_.with_range_deletes > 0,
                "filters skip tables with deletes, merges and range deletes");
        require(skipped_.tables * 4 > skipped_.checked, "filters skip a quarter of the tables");
    }

private:
    uint64_t below(uint64_t limit) { return random_() % limit; }

    // Users with sparse numbers, so that many ranges of a user are empty; keys with bytes 0 and 255; the empty key; long keys.
    std::string random_key() {
        char text[32];
        switch (below(40)) {
        case 0: return std::string(below(4), '\0');
        case 1: return std::string(1 + below(4), '\xff') + static_cast<char>(below(256));
        case 2: return std::string(1000, 'l') + std::to_string(below(100));
        default:
            std::snprintf(text, sizeof text, "user/%02u/%05u", static_cast<unsigned>(below(20)),
                          static_cast<unsigned>(below(300) * 331));
            return text;
        }
    }

    // Keys that are written once before each single delete, as RocksDB demands.
    std::string once_key() { return "once/" + std::to_string(below(1000) * 7); }

    // A key near an existing or possible key, which mostly is absent.
    std::string near_key() {
        std::string key = below(8) == 0 ? once_key() : random_key();
        if (!key.empty() && below(2) == 0)
            key.back() = static_cast<char>(key.back() + 1 + static_cast<char>(below(3)));
        else if (below(2) == 0)
            key += static_cast<char>(below(256));
        return key;
    }

    std::pair<std::string, std::string> random_range() {
        std::string lower = near_key();
        std::string upper = lower;
        switch (below(40)) {
        case 0: upper = near_key(); break; // any length
        case 1: break;                     // no key at all
        case 2:
        case 3: upper += '\xff'; break; // keys that begin with the bound
        default:                        // a short range
            upper += static_cast<char>('0' + below(10));
            if (lower.size() > 8 && below(2) == 0)
                upper = lower.substr(0, lower.size() - 2) + "~";
        }
        if (upper < lower)
            std::swap(lower, upper);
        return {lower, upper};
    }

    void step() {
        const uint64_t kind = below(100);
        const std::string key = random_key();
        const std::string value = std::to_string(random_()).substr(0, 6);
        if (kind < 35) {
            require(db_->Put({}, key, value), "put");
            map_[key] = value;
        } else if (kind < 60) {
            require(db_->Delete({}, key), "delete");
            map_.erase(key);
        } else if (kind < 75) {
            std::string &found = map_[key];
            if (found.size() > 30) { // values stay short
                require(db_->Put({}, key, value), "put");
                found = value;
            } else {
                require(db_->Merge({}, key, value), "merge");
                found += value;
            }
        } else if (kind < 80) {
            put_or_delete_once();
        } else if (kind < 82) {
            delete_range();
        } else if (kind < 98) {
            check_range();
        } else {
            check_prefix();
        }
    }

    void put_or_delete_once() {
        const std::string key = once_key();
        if (map_.erase(key) > 0) {
            require(db_->SingleDelete({}, key), "single delete");
        } else {
            require(db_->Put({}, key, "once"), "put");
            map_[key] = "once";
        }
    }

    void delete_range() {
        std::string lower = random_key(), upper = lower + static_cast<char>(below(256));
        if (below(4) == 0 && lower.size() > 7)
            upper = lower.substr(0, 7) + "~";
        if (lower.compare(0, 5, "user/") != 0 || !(lower < upper))
            return;
        require(db_->DeleteRange({}, db_->DefaultColumnFamily(), lower, upper), "delete range");
        map_.erase(map_.lower_bound(lower), map_.lower_bound(upper));
    }

    void check_range() {
        const auto [lower, upper] = random_range();
        tamis::RangeRead read(lower, upper);
        if (read_count_ % 16 == 0)
            filters_->AddSample(lower, upper);
        check(read, lower, &upper);
    }

    void check_prefix() {
        std::string prefix = near_key();
        prefix.resize(std::min<size_t>(prefix.size(), below(20) == 0 ? below(6) : 6 + below(8)));
        tamis::RangeRead read = tamis::RangeRead::Prefix(prefix);
        const std::string upper = read.options().iterate_upper_bound == nullptr ? "" : read.options().iterate_upper_bound->ToString();
        check(read, prefix, upper.empty() ? nullptr : &upper);
    }

    // Compares an iterator with filters, one without, and the map, now or at a snapshot.
    void check(tamis::RangeRead &read, const std::string &lower, const std::string *upper) {
        ++read_count_;
        const Map *map = &map_;
        if (!snapshots_.empty() && below(3) == 0) {
            const auto &taken = snapshots_[below(snapshots_.size())];
            read.options().snapshot = taken.first;
            map = &taken.second;
        }
        const TableFilter filter = given(read.options().table_filter);
        const TableFilter counted = [&](const rocksdb::TableProperties &table) {
            const bool is_read = filter(table);
            skipped_.add(table, is_read);
            return is_read;
        };
        rocksdb::ReadOptions plain = read.options();
        plain.table_filter = {};
        replace(read.options().table_filter, counted);

        const std::unique_ptr<rocksdb::Iterator> filtered(db_->NewIterator(read.options()));
        const std::unique_ptr<rocksdb::Iterator> unfiltered(db_->NewIterator(plain));
        const auto first = map->lower_bound(lower);
        const auto last = upper == nullptr ? map->end() : map->lower_bound(*upper);
        const Entries expected = upper != nullptr && *upper < lower ? Entries() : Entries(first, last);
        const std::string place = "[" + lower + ", " + (upper == nullptr ? "end" : *upper) + ")";
        require(entries_forward(*unfiltered) == expected, "RocksDB itself, forward " + place);
        require(entries_forward(*filtered) == expected, "forward " + place);
        require(entries_backward(*filtered) == expected, "backward " + place);
        wander(*filtered, *unfiltered, lower, place);
    }

    // The same seeks and steps with both iterators, in both directions.
    void wander(rocksdb::Iterator &filtered, rocksdb::Iterator &unfiltered, const std::string &lower, const std::string &place) {
        for (int turn = 0; turn < 4; ++turn) {
            const std::string target = lower + static_cast<char>(below(256));
            const uint64_t kind = below(4);
            for (rocksdb::Iterator *iterator : {&filtered, &unfiltered}) {
                if (kind == 0)
                    iterator->Seek(target);
                else if (kind == 1)
                    iterator->SeekForPrev(target);
                else if (iterator->Valid())
                    kind == 2 ? iterator->Next() : iterator->Prev();
            }
            require(filtered.status(), "status " + place);
            require(filtered.Valid() == unfiltered.Valid(), "position " + place);
            if (filtered.Valid())
                require(filtered.key() == unfiltered.key() && filtered.value() == unfiltered.value(), "entry " + place);
        }
    }

    void maintain() {
        if (snapshots_.size() == 3) {
            db_->ReleaseSnapshot(snapshots_.front().first);
            snapshots_.erase(snapshots_.begin());
        }
        snapshots_.emplace_back(db_->GetSnapshot(), map_);
        require(db_->Flush({}), "flush");
        if (below(4) == 0) {
            const auto [lower, upper] = std::minmax(random_key(), random_key());
            const rocksdb::Slice first(lower), last(upper);
            require(db_->CompactRange({}, &first, &last), "compact");
        }
        check_all();
    }

    void check_all() {
        tamis::RangeRead read = tamis::RangeRead::Prefix("");
        check(read, "", nullptr);
    }

    const uint64_t operation_count_;
    std::mt19937_64 random_;
    std::shared_ptr<tamis::RangeFilterFactory> filters_;
    std::unique_ptr<rocksdb::DB> db_;
    Map map_;
    std::vector<std::pair<const rocksdb::Snapshot *, Map>> snapshots_;
    uint64_t read_count_ = 0;
    Skipped skipped_;
};

// Fills a database with one table of even numbers and closes it.
void fill(const rocksdb::Options &options, const std::string &folder, int count) {
    const auto db = open(options, folder);
    for (int number = 0; number < count; ++number) {
        char key[16];
        std::snprintf(key, sizeof key, "%08d", 2 * number);
        require(db->Put({}, key, "value"), "put");
    }
    require(db->Flush({}), "flush");
}

rocksdb::TableProperties properties_of(rocksdb::DB &db) {
    rocksdb::TablePropertiesCollection all;
    require(db.GetPropertiesOfAllTables(&all), "properties");
    require(all.size() == 1, "one table");
    return *all.begin()->second;
}

void test_damaged_properties(const std::string &folder) {
    const rocksdb::Options options = small_tables(make_filters(16));
    fill(options, folder, 300);
    const auto db = open(options, folder);
    const rocksdb::TableProperties table = properties_of(*db);
    const std::string &name = tamis::range_filter::property;
    const std::string intact = table.user_collected_properties.at(name);
    const tamis::RangeRead empty("00000051", "00000052"), present("00000050", "00000052");
    require(!empty.Reads(table) && present.Reads(table), "the intact filter skips the table for an empty range only");

    // All copies stay in memory: RocksDB does not change a property at its address either.
    std::vector<std::unique_ptr<rocksdb::TableProperties>> copies;
    const auto must_read = [&](const std::string &bytes, const std::string &what) {
        copies.push_back(std::make_unique<rocksdb::TableProperties>(table));
        copies.back()->user_collected_properties[name] = bytes;
        require(empty.Reads(*copies.back()) && present.Reads(*copies.back()), what);
        require(empty.Reads(*copies.back()), what + ", the second time");
    };
    for (size_t length = 0; length < intact.size(); ++length)
        must_read(intact.substr(0, length), "truncated to " + std::to_string(length) + " bytes");
    must_read(intact + '\0', "a byte more");
    for (size_t bit = 0; bit < 8 * intact.size(); ++bit) {
        std::string bytes = intact;
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
        must_read(bytes, "bit " + std::to_string(bit) + " flipped");
    }
    std::string later = intact;
    later[4] = static_cast<char>(later[4] + 1);
    must_read(later, "a later version");
    copies.push_back(std::make_unique<rocksdb::TableProperties>(table));
    copies.back()->comparator_name = "another comparator";
    require(empty.Reads(*copies.back()), "another comparator");
    copies.back()->user_collected_properties.erase(name);
    require(empty.Reads(*copies.back()), "no property");
    require(!empty.Reads(table), "the intact filter skips the table at the end");
}

// The path of the only table of a closed database.
std::string table_file(const rocksdb::Options &options, const std::string &folder) {
    std::vector<std::string> names;
    require(options.env->GetChildren(folder, &names), "list " + folder);
    for (const std::string &name : names)
        if (name.size() > 4 && name.compare(name.size() - 4, 4, ".sst") == 0)
            return folder + "/" + name;
    require(false, "a table in " + folder);
    return {};
}

// A flipped byte in the block of the properties: an error, or all entries.
void test_damaged_files(const std::string &folder) {
    const rocksdb::Options options = small_tables(make_filters(16));
    fill(options, folder, 300);
    const std::string path = table_file(options, folder);
    const size_t length = properties_of(*open(options, folder)).user_collected_properties.at(tamis::range_filter::property).size();
    std::ifstream input(path, std::ios::binary);
    const std::string intact((std::istreambuf_iterator<char>(input)), std::istreambuf_iterator<char>());
    const size_t filter = intact.find("TFLT");
    require(filter != std::string::npos, "the filter is in the file");
    size_t error_count = 0;
    for (size_t offset = filter - 24; offset < filter + length; offset += 11) {
        std::string bytes = intact;
        bytes[offset] = static_cast<char>(bytes[offset] ^ 0x10);
        std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        rocksdb::Options reopen = options;
        reopen.paranoid_checks = false;
        const auto db = open(reopen, folder);
        for (int number = 0; number < 300; number += 50) {
            char lower[16], upper[16];
            std::snprintf(lower, sizeof lower, "%08d", 2 * number);
            std::snprintf(upper, sizeof upper, "%08d", 2 * number + 1);
            tamis::RangeRead read(lower, upper);
            const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator(read.options()));
            iterator->SeekToFirst();
            error_count += iterator->status().ok() ? 0 : 1;
            require(!iterator->status().ok() || iterator->Valid(), "an entry is missing, damaged at " + std::to_string(offset));
        }
    }
    std::cout << "  damaged files: " << error_count << " reads returned an error, all others their entry" << std::endl;
}

void test_tables_without_filters(const std::string &folder) {
    fill(small_tables(nullptr), folder, 300);
    const auto db = open(small_tables(make_filters(16)), folder);
    const tamis::RangeRead empty("00000051", "00000052");
    require(empty.Reads(properties_of(*db)), "a table without a filter is read");
    rocksdb::CompactRangeOptions compact;
    compact.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    require(db->CompactRange(compact, nullptr, nullptr), "compact");
    require(!empty.Reads(properties_of(*db)), "a compaction gives it a filter");

    tamis::RangeRead read("00000050", "00000060");
    const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator(read.options()));
    require(entries_forward(*iterator).size() == 5, "five even numbers");
    require(read.checked_tables() == 1 && read.skipped_tables() == 0, "the counters of a range with entries");
    tamis::RangeRead other("00000051", "00000052");
    const std::unique_ptr<rocksdb::Iterator> nothing(db->NewIterator(other.options()));
    require(entries_forward(*nothing).empty() && other.skipped_tables() == 1, "the counters of an empty range");
}

// Filters sort keys as bytes: tables in another order have none.
void test_other_comparators(const std::string &folder) {
    rocksdb::Options options = small_tables(make_filters(16));
    options.comparator = rocksdb::ReverseBytewiseComparator();
    fill(options, folder, 300);
    const auto db = open(options, folder);
    require(properties_of(*db).user_collected_properties.count(tamis::range_filter::property) == 0, "no filter in reverse order");
    tamis::RangeRead read("00000060", "00000050");
    const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator(read.options()));
    require(entries_forward(*iterator).size() == 5, "five even numbers in reverse order");
}

void test_filters_that_cannot_be_built(const std::string &folder) {
    fill(small_tables(make_filters(1, "surf")), folder, 300);
    const auto db = open(small_tables(nullptr), folder);
    const rocksdb::TableProperties table = properties_of(*db);
    require(table.user_collected_properties.count(tamis::range_filter::property) == 0, "one bit per key is too few for a trie");
    require(tamis::RangeRead("00000051", "00000052").Reads(table), "its table is read");
}

void test_invalid_parameters() {
    std::shared_ptr<tamis::RangeFilterFactory> filters;
    const auto message_of = [&](double bits_per_key, const std::string &specification) {
        const rocksdb::Status status = tamis::RangeFilterFactory::Create(bits_per_key, &filters, specification);
        require(status.IsInvalidArgument() && filters == nullptr, "rejected: " + specification);
        return status.ToString();
    };
    require(message_of(16, "cuckoo").find("cuckoo") != std::string::npos, "the message has the unknown name");
    message_of(16, "surf:bats=1");
    message_of(-1, "auto");
    message_of(0, "auto");
    message_of(0, "proteus");
}

void test_same_results(const std::string &folder, uint64_t operation_count, uint64_t seed) {
    int number = 0;
    for (const auto &[bits_per_key, specification] :
         std::vector<std::pair<double, std::string>>{{16, "auto"}, {14, "grafite"}, {0, "surf-real:bits=4"}, {18, "rosetta"}}) {
        const uint64_t count = number == 0 ? operation_count - operation_count / 5 * 3 : operation_count / 5;
        std::cout << "  filters \"" << specification << "\", seed " << seed + number << std::endl;
        Model(folder + std::to_string(number), count, seed + number, make_filters(bits_per_key, specification)).run();
        ++number;
    }
}

} // namespace

int main(int count, char **arguments) {
    // With fewer operations there are too few tables to skip.
    const uint64_t operation_count = count == 4 ? std::strtoull(arguments[2], nullptr, 10) : 0;
    if (operation_count < 20000) {
        std::cerr << "usage: test FOLDER OPERATIONS SEED; give at least 20,000 operations" << std::endl;
        return 2;
    }
    const std::string folder = arguments[1];
    test_invalid_parameters();
    test_damaged_properties(folder + "/damaged-properties");
    test_damaged_files(folder + "/damaged-files");
    test_tables_without_filters(folder + "/without");
    test_other_comparators(folder + "/comparator");
    test_filters_that_cannot_be_built(folder + "/not-built");
    test_same_results(folder + "/same-results-", operation_count, std::strtoull(arguments[3], nullptr, 10));
    std::cout << "tamis_rocksdb.h with RocksDB " << ROCKSDB_MAJOR << "." << ROCKSDB_MINOR << ": all tests passed" << std::endl;
    return 0;
}
