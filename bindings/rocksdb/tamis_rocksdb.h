// Range filters of Tamis for RocksDB 7.8 to 11: iterators over a closed range skip the tables (SST files) without an entry in the range.
//
// Write path. `RangeFilterFactory` gives each new table a collector. It takes the keys while RocksDB writes the table, builds a filter of them at the
// end, and stores the filter as the property "tamis.range-filter" of the table.
// Read path. `RangeRead` sets the bounds and the table filter of one iterator; the table filter queries the property of each table.
//
// Invariant: with and without filters, an iterator returns the same entries. Let k be a key between the bounds and T a skipped table.
// 1. The filter has the keys of all point entries of T: puts, deletes, single deletes, merge operands, blob references. It rejects the range, so T has
//    no entry of k: no value, no tombstone that hides an older value, no operand of a merge.
// 2. A range tombstone of T may cover k. RocksDB applies it: TableCache::NewIterator gives a skipped table an iterator without point entries, and opens
//    its range tombstones as those of every other table. This holds in the sources of 7.8, 8.1, 9.9, 10.4, 11.8 and 11.9.
// 3. All other tables are read: without the property, with another comparator, or with a filter that is truncated, damaged, or of a later version.
//
// Cost. The property is in memory for as long as RocksDB keeps the table open, outside of the block cache. While a table is written, its keys are
// in memory, too. A query costs a fraction of a microsecond per table. The guide is docs/guide/rocksdb.md.

#ifndef TAMIS_ROCKSDB_H
#define TAMIS_ROCKSDB_H

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rocksdb/options.h>
#include <rocksdb/table_properties.h>

#include "tamis.h"

namespace tamis {

namespace rocks = ROCKSDB_NAMESPACE;

// The parts of RangeFilterFactory and RangeRead.
namespace range_filter {

inline const std::string property = "tamis.range-filter";

// The keys from `lower` up to `upper`, which is excluded; without `upper`, all keys from `lower` on.
struct KeyRange {
    std::string lower;
    std::string upper;
    bool has_upper = true;

    tamis_bound lower_bound() const { return bound(TAMIS_BOUND_KIND_INCLUDED, lower); }
    tamis_bound upper_bound() const {
        return bound(has_upper ? TAMIS_BOUND_KIND_EXCLUDED : TAMIS_BOUND_KIND_UNBOUNDED, upper);
    }
    static tamis_bound bound(tamis_bound_kind kind, const std::string &key) {
        return {kind, {reinterpret_cast<const uint8_t *>(key.data()), key.size()}};
    }
};

// Calls a function of tamis.h; `problem` receives the message of a failure.
template <typename Function, typename... Arguments>
tamis_code call(std::string *problem, Function function, Arguments... arguments) {
    char *message = nullptr;
    const tamis_code code = function(arguments..., &message);
    if (code != TAMIS_CODE_OK)
        *problem = message == nullptr ? "no message" : message;
    tamis_text_free(message);
    return code;
}

// Builds the filter of one table. RocksDB calls it on one thread, and may call Finish twice.
class Collector : public rocks::TablePropertiesCollector {
public:
    Collector(const std::string &specification, double bits_per_key, const std::vector<KeyRange> &sample)
        : bits_per_key_(bits_per_key) {
        const uint64_t seed = 0;
        call(&problem_, tamis_filter_builder_new, specification.c_str(), seed, &builder_);
        for (const KeyRange &query : sample)
            call(&problem_, tamis_filter_builder_sample, builder_, query.lower_bound(), query.upper_bound());
    }
    Collector(const Collector &) = delete;
    Collector &operator=(const Collector &) = delete;
    ~Collector() override { tamis_filter_builder_free(builder_); }

    const char *Name() const override { return property.c_str(); }

    // Range tombstones come after the points, and are not in the filter. After a failure (keys in another order) there is no filter.
    rocks::Status AddUserKey(const rocks::Slice &key, const rocks::Slice &, rocks::EntryType type, rocks::SequenceNumber,
                             uint64_t) override {
        if (type != rocks::kEntryRangeDeletion && problem_.empty())
            call(&problem_, tamis_filter_builder_add, builder_, reinterpret_cast<const uint8_t *>(key.data()), key.size());
        return rocks::Status::OK();
    }

    rocks::Status Finish(rocks::UserCollectedProperties *properties) override {
        if (builder_ != nullptr && problem_.empty()) {
            tamis_value filter{};
            if (call(&problem_, tamis_filter_builder_finish, builder_, bits_per_key_, &filter) == TAMIS_CODE_OK)
                filter_.assign(reinterpret_cast<const char *>(filter.data), filter.length);
            tamis_value_free(&filter);
        }
        tamis_filter_builder_free(builder_); // and the keys
        builder_ = nullptr;
        if (!filter_.empty())
            (*properties)[property] = filter_;
        return rocks::Status::OK();
    }

    // For the log of RocksDB.
    rocks::UserCollectedProperties GetReadableProperties() const override {
        return {{property, filter_.empty() ? "none: " + problem_ : std::to_string(filter_.size()) + " bytes"}};
    }

private:
    double bits_per_key_;
    tamis_filter_builder *builder_ = nullptr;
    std::string problem_;
    std::string filter_;
};

// Whether the checksum of a filter matches. All bytes are read the first time only: RocksDB verifies the block of the properties when it opens a table, and
// keeps them unchanged. So the result is remembered for the address and the header, which contains the checksum. A full set forgets an older result.
inline bool is_intact(const std::string &bytes) {
    constexpr size_t set_count = 2048, set_size = 8, header_bytes = 64;
    static std::array<std::atomic<uint64_t>, set_count * set_size> results{};
    const std::string_view header(bytes.data(), std::min(bytes.size(), header_bytes));
    const uint64_t address = reinterpret_cast<uintptr_t>(bytes.data());
    const uint64_t id = (std::hash<std::string_view>()(header) ^ (address * 0x9e3779b97f4a7c15)) | 1;
    std::atomic<uint64_t> *const set = &results[(id >> 32) % set_count * set_size];
    for (size_t index = 0; index < set_size; ++index) {
        const uint64_t result = set[index].load(std::memory_order_relaxed);
        if ((result | 1) == id)
            return (result & 1) != 0;
    }
    tamis_filter *filter = nullptr;
    const bool matches =
        tamis_filter_open(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size(), &filter, nullptr) == TAMIS_CODE_OK &&
        tamis_filter_verify(filter, nullptr) == TAMIS_CODE_OK;
    tamis_filter_free(filter);
    set[(id >> 8) % set_size].store(matches ? id : id - 1, std::memory_order_relaxed);
    return matches;
}

// Whether a table may have a point entry in the range. Every doubt is a yes.
inline bool may_contain(const rocks::TableProperties &table, const KeyRange &range) {
    const auto found = table.user_collected_properties.find(property);
    if (found == table.user_collected_properties.end() || table.comparator_name != "leveldb.BytewiseComparator")
        return true;
    const std::string &bytes = found->second;
    bool answer = true;
    const tamis_code code = tamis_filter_bytes_may_contain_range(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size(),
                                                                 range.lower_bound(), range.upper_bound(), &answer, nullptr);
    return code != TAMIS_CODE_OK || answer || !is_intact(bytes);
}

} // namespace range_filter

// Gives new tables a range filter: add it to ColumnFamilyOptions::table_properties_collector_factories. Any number of threads may use it.
class RangeFilterFactory : public rocks::TablePropertiesCollectorFactory {
public:
    // `specification` is a family of docs/guide/choosing-filters.md, such as "surf-real:bits=8", which may decide about the size: then give 0 bits per key.
    // "auto" is the cheapest range filter for the keys of the table and the sampled queries.
    static rocks::Status Create(double bits_per_key, std::shared_ptr<RangeFilterFactory> *factory,
                                const std::string &specification = "auto") {
        if (tamis_abi_version() != TAMIS_ABI_VERSION)
            return rocks::Status::InvalidArgument("libtamis is of another version than tamis.h: compile the program again");
        std::shared_ptr<RangeFilterFactory> made(new RangeFilterFactory(bits_per_key, specification));
        std::string problem;
        const tamis_code code = made->check(&problem);
        if (code != TAMIS_CODE_OK && code != TAMIS_CODE_FILTER_BUILD)
            return rocks::Status::InvalidArgument(problem);
        *factory = std::move(made);
        return rocks::Status::OK();
    }

    // Adds a typical query. The newest 1,024 choose the design of the filters of tables that are written from now on.
    void AddSample(const rocks::Slice &lower, const rocks::Slice &upper) {
        range_filter::KeyRange query{lower.ToString(), upper.ToString()};
        const std::lock_guard<std::mutex> lock(mutex_);
        if (sample_.size() < 1024)
            sample_.push_back(std::move(query));
        else
            sample_[sample_count_ % sample_.size()] = std::move(query);
        ++sample_count_;
    }

    const char *Name() const override { return "tamis.RangeFilterFactory"; }

    rocks::TablePropertiesCollector *CreateTablePropertiesCollector(Context) override {
        const std::lock_guard<std::mutex> lock(mutex_);
        return new range_filter::Collector(specification_, bits_per_key_, sample_);
    }

private:
    RangeFilterFactory(double bits_per_key, const std::string &specification)
        : bits_per_key_(bits_per_key), specification_(specification) {}

    // Builds the filter of one key. That a family needs more bits for it is no failure: it depends on the keys.
    tamis_code check(std::string *problem) const {
        tamis_filter_builder *builder = nullptr;
        const uint64_t seed = 0;
        tamis_code code = range_filter::call(problem, tamis_filter_builder_new, specification_.c_str(), seed, &builder);
        if (code == TAMIS_CODE_OK) {
            const uint8_t key = 'k';
            tamis_value filter{};
            tamis_filter_builder_add(builder, &key, 1, nullptr);
            code = range_filter::call(problem, tamis_filter_builder_finish, builder, bits_per_key_, &filter);
            tamis_value_free(&filter);
        }
        tamis_filter_builder_free(builder);
        return code;
    }

    const double bits_per_key_;
    const std::string specification_;
    std::mutex mutex_;
    std::vector<range_filter::KeyRange> sample_;
    uint64_t sample_count_ = 0;
};

// The options of one iterator over the keys from `lower` up to `upper`, which is excluded. It must live as long as the iterator, which may move in both
// directions. One thread uses both at a time.
class RangeRead {
public:
    RangeRead(const rocks::Slice &lower, const rocks::Slice &upper)
        : RangeRead(range_filter::KeyRange{lower.ToString(), upper.ToString()}) {}
    RangeRead(const RangeRead &) = delete;
    RangeRead &operator=(const RangeRead &) = delete;

    // All keys that begin with a prefix.
    static RangeRead Prefix(const rocks::Slice &prefix) {
        std::string upper = prefix.ToString();
        while (!upper.empty() && upper.back() == '\xff')
            upper.pop_back();
        if (!upper.empty())
            ++upper.back();
        const bool has_upper = !upper.empty();
        return RangeRead(range_filter::KeyRange{prefix.ToString(), std::move(upper), has_upper});
    }

    // For DB::NewIterator. A snapshot and other options can be set here; leave the bounds and the table filter.
    rocks::ReadOptions &options() { return options_; }

    // Whether the iterator reads the points of a table.
    bool Reads(const rocks::TableProperties &table) const { return range_filter::may_contain(table, range_); }

    // Tables that the iterator needed so far, and those of them that it skipped.
    uint64_t checked_tables() const { return checked_tables_; }
    uint64_t skipped_tables() const { return skipped_tables_; }

private:
    using TableFilter = std::function<bool(const rocks::TableProperties &)>;

    explicit RangeRead(range_filter::KeyRange range) : range_(std::move(range)), lower_(range_.lower), upper_(range_.upper) {
        filter_ = [this](const rocks::TableProperties &table) { return decide(table); };
        options_.iterate_lower_bound = &lower_;
        options_.iterate_upper_bound = range_.has_upper ? &upper_ : nullptr;
        set(options_.table_filter, filter_);
    }

    bool decide(const rocks::TableProperties &table) {
        // RocksDB passes a null reference for a table without properties, such as those of a LevelDB database. Compilers assume that there is no null
        // reference, hence volatile.
        const rocks::TableProperties *const volatile given = &table;
        const bool reads = given == nullptr || Reads(table);
        ++checked_tables_;
        skipped_tables_ += reads ? 0 : 1;
        return reads;
    }

    // RocksDB has the function in its options, from 11.9 on a pointer to it.
    static void set(TableFilter &option, const TableFilter &filter) { option = filter; }
    static void set(const TableFilter *&option, const TableFilter &filter) { option = &filter; }

    const range_filter::KeyRange range_;
    const rocks::Slice lower_;
    const rocks::Slice upper_;
    TableFilter filter_;
    rocks::ReadOptions options_;
    uint64_t checked_tables_ = 0;
    uint64_t skipped_tables_ = 0;
};

} // namespace tamis

#endif
