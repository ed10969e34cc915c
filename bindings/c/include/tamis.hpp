// RAII wrappers of tamis.h for C++17, in one file without a library of its own.
//
// Errors are exceptions of the class tamis::error. Handles free themselves, can be moved and not copied, and follow the rules of tamis.h: any thread
// may use a database, a keyspace, a snapshot or a transaction; batches, scans and feeds serve one thread at a time. Keys and values are std::string_view of any
// bytes; a scan returns views that are valid until its next call.
//
//     tamis::database db("store");
//     tamis::keyspace fruits = db.default_keyspace();
//     fruits.put("apple", "red");
//     for (auto scan = fruits.prefix("a"); scan.next();)
//         std::cout << scan.key() << ": " << scan.value() << '\n';

#ifndef TAMIS_HPP
#define TAMIS_HPP

#include "tamis.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tamis {

// A failure of a call: its message and its code.
class error : public std::runtime_error {
public:
    error(tamis_code code, const std::string &message) : std::runtime_error(message), code_(code) {}
    tamis_code code() const noexcept { return code_; }

private:
    tamis_code code_;
};

enum class durability : int32_t {
    deferred = TAMIS_DURABILITY_DEFERRED,
    buffered = TAMIS_DURABILITY_BUFFERED,
    synced = TAMIS_DURABILITY_SYNCED,
};

enum class isolation : int32_t {
    serializable = TAMIS_ISOLATION_SERIALIZABLE,
    snapshot = TAMIS_ISOLATION_SNAPSHOT,
};

namespace detail {

// Receives the message of a call.
class receiver {
public:
    receiver() = default;
    receiver(const receiver &) = delete;
    receiver &operator=(const receiver &) = delete;
    ~receiver() { tamis_text_free(text_); }
    operator char **() noexcept { return &text_; }
    void check(tamis_code code) const {
        if (code != TAMIS_CODE_OK)
            throw error(code, text_ == nullptr ? "no message" : text_);
    }

private:
    char *text_ = nullptr;
};

// Calls a function of tamis.h, and throws if it fails. The message is the last argument of every function.
template <typename Function, typename... Arguments>
void call(Function function, Arguments... arguments) {
    receiver message;
    const tamis_code code = function(arguments..., message);
    message.check(code);
}

inline const uint8_t *data(std::string_view bytes) noexcept {
    return reinterpret_cast<const uint8_t *>(bytes.data());
}

// Milliseconds since 1970; 0 for earlier times.
inline uint64_t milliseconds(std::chrono::system_clock::time_point time) noexcept {
    const int64_t since = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
    return static_cast<uint64_t>(std::max<int64_t>(since, 0));
}

inline tamis_bytes bytes(std::string_view bytes) noexcept { return {data(bytes), bytes.size()}; }

inline std::string_view view(const uint8_t *data, size_t length) noexcept {
    return std::string_view(reinterpret_cast<const char *>(data), length);
}

// Takes a text of the library.
inline std::string take(char *text) {
    const std::unique_ptr<char, void (*)(char *)> owner(text, tamis_text_free);
    return text == nullptr ? std::string() : std::string(text);
}

template <typename Handle, void (*Free)(Handle *)>
struct deleter {
    void operator()(Handle *handle) const noexcept { Free(handle); }
};

template <typename Handle, void (*Free)(Handle *)>
using owner = std::unique_ptr<Handle, deleter<Handle, Free>>;

} // namespace detail

// A bound of a range. Its key must live until the call that takes it returns.
class bound {
public:
    static bound unbounded() noexcept { return bound(TAMIS_BOUND_KIND_UNBOUNDED, {}); }
    static bound included(std::string_view key) noexcept { return bound(TAMIS_BOUND_KIND_INCLUDED, key); }
    static bound excluded(std::string_view key) noexcept { return bound(TAMIS_BOUND_KIND_EXCLUDED, key); }
    operator tamis_bound() const noexcept { return bound_; }

private:
    bound(int32_t kind, std::string_view key) noexcept : bound_{kind, {detail::data(key), key.size()}} {}
    tamis_bound bound_;
};

// The bytes of a value, without a copy of long ones: the value keeps their block in memory.
class value {
public:
    explicit value(tamis_value owned = tamis_value{}) noexcept : owned_(owned) {}
    value(value &&other) noexcept : owned_(std::exchange(other.owned_, tamis_value{})) {}
    value &operator=(value &&other) noexcept {
        std::swap(owned_, other.owned_);
        return *this;
    }
    ~value() { tamis_value_free(&owned_); }
    std::string_view view() const noexcept { return detail::view(owned_.data, owned_.length); }
    operator std::string_view() const noexcept { return view(); }
    // Whether there is a value; an empty value is one.
    explicit operator bool() const noexcept { return owned_.data != nullptr; }

private:
    tamis_value owned_;
};

// Receives an event as JSON. It must not call the database; what it throws is ignored.
using listener = std::function<void(std::string_view json)>;

class snapshot {
public:
    explicit snapshot(tamis_snapshot *handle, std::shared_ptr<listener> listener = nullptr) noexcept
        : listener_(std::move(listener)), handle_(handle) {}
    tamis_snapshot *get() const noexcept { return handle_.get(); }
    uint64_t sequence() const {
        uint64_t sequence = 0;
        detail::call(tamis_snapshot_sequence, get(), &sequence);
        return sequence;
    }

private:
    // Freed after the handle, which may be the last one of the database.
    std::shared_ptr<listener> listener_;
    detail::owner<tamis_snapshot, tamis_snapshot_free> handle_;
};

// The entries of a range at one point in time. One thread uses it at a time.
class scan {
public:
    explicit scan(tamis_scan *handle) noexcept : handle_(handle) {}
    tamis_scan *get() const noexcept { return handle_.get(); }
    // Moves to the next entry; false after the last one.
    bool next() { return step(tamis_scan_next); }
    // Moves to the previous entry; false before the first one.
    bool prev() { return step(tamis_scan_prev); }
    void seek(std::string_view key) { detail::call(tamis_scan_seek, get(), detail::data(key), key.size()); }
    void seek_for_prev(std::string_view key) {
        detail::call(tamis_scan_seek_for_prev, get(), detail::data(key), key.size());
    }
    void seek_to_first() { detail::call(tamis_scan_seek_to_first, get()); }
    void seek_to_last() { detail::call(tamis_scan_seek_to_last, get()); }
    // Key and value of the entry, valid until the next call.
    std::string_view key() const noexcept { return detail::view(key_.data, key_.length); }
    std::string_view value() const noexcept { return detail::view(value_.data, value_.length); }

private:
    template <typename Step>
    bool step(Step function) {
        bool has_entry = false;
        key_ = value_ = tamis_bytes{};
        detail::call(function, get(), &has_entry);
        if (has_entry)
            detail::call(tamis_scan_entry, get(), &key_, &value_);
        return has_entry;
    }

    detail::owner<tamis_scan, tamis_scan_free> handle_;
    tamis_bytes key_{};
    tamis_bytes value_{};
};

// A write of a commit, or another change. Its bytes are valid until the next call with the feed.
class change {
public:
    explicit change(tamis_change fields = tamis_change{}) noexcept : fields_(fields) {}
    tamis_change_kind kind() const noexcept { return static_cast<tamis_change_kind>(fields_.kind); }
    // Whether it is the last write of its commit.
    bool is_last() const noexcept { return fields_.is_last; }
    // The position behind its commit.
    uint64_t sequence() const noexcept { return fields_.sequence; }
    std::string_view keyspace() const noexcept { return detail::view(fields_.keyspace.data, fields_.keyspace.length); }
    std::string_view key() const noexcept { return detail::view(fields_.key.data, fields_.key.length); }
    // The value, the operand, or the upper bound of a range delete, whose data() is null without an end.
    std::string_view value() const noexcept { return detail::view(fields_.value.data, fields_.value.length); }
    std::chrono::system_clock::time_point expires_at() const noexcept {
        return std::chrono::system_clock::time_point(std::chrono::milliseconds(fields_.expires_at_ms));
    }

private:
    tamis_change fields_;
};

// The changes behind a position, each once, in the order of the commits. One thread uses it at a time.
class change_feed {
public:
    explicit change_feed(tamis_changes *handle, std::shared_ptr<listener> listener) noexcept
        : listener_(std::move(listener)), handle_(handle) {}
    tamis_changes *get() const noexcept { return handle_.get(); }
    // Moves to the next write or other change; false if there is none after the wait.
    bool next(std::chrono::milliseconds wait = std::chrono::milliseconds(0)) {
        bool has_change = false;
        tamis_change fields{};
        detail::call(tamis_changes_next, get(), static_cast<uint64_t>(std::max<int64_t>(wait.count(), 0)), &fields, &has_change);
        change_ = tamis::change(fields);
        return has_change;
    }
    const tamis::change &change() const noexcept { return change_; }
    // Calls a function with each write of the ingest at which the feed is. What it throws ends the call and is passed on.
    template <typename Function>
    void ingested(Function function) {
        visitor<Function> state{function, nullptr};
        detail::call(tamis_changes_ingested, get(), &visitor<Function>::visit, static_cast<void *>(&state));
        if (state.thrown)
            std::rethrow_exception(state.thrown);
    }
    // The place behind the last commit that was returned with all its writes.
    uint64_t position() const {
        uint64_t position = 0;
        detail::call(tamis_changes_position, get(), &position);
        return position;
    }

private:
    template <typename Function>
    struct visitor {
        Function &function;
        std::exception_ptr thrown;
        static bool visit(void *context, const tamis_change *write) noexcept {
            visitor &self = *static_cast<visitor *>(context);
            try {
                self.function(tamis::change(*write));
                return true;
            } catch (...) {
                self.thrown = std::current_exception();
                return false;
            }
        }
    };

    std::shared_ptr<listener> listener_;
    detail::owner<tamis_changes, tamis_changes_free> handle_;
    tamis::change change_;
};

class keyspace_options {
public:
    keyspace_options() {
        tamis_keyspace_options *handle = nullptr;
        detail::call(tamis_keyspace_options_new, &handle);
        handle_.reset(handle);
    }
    keyspace_options &set(const std::string &name, const std::string &value) {
        detail::call(tamis_keyspace_options_set, get(), name.c_str(), value.c_str());
        return *this;
    }
    tamis_keyspace_options *get() const noexcept { return handle_.get(); }

private:
    detail::owner<tamis_keyspace_options, tamis_keyspace_options_free> handle_;
};

class options {
public:
    options() {
        tamis_options *handle = nullptr;
        detail::call(tamis_options_new, &handle);
        handle_.reset(handle);
    }
    options &set(const std::string &name, const std::string &value) {
        detail::call(tamis_options_set, get(), name.c_str(), value.c_str());
        return *this;
    }
    // The databases that are opened with these options share the function and keep it.
    options &on_event(listener function) {
        listener_ = std::make_shared<listener>(std::move(function));
        detail::call(tamis_options_set_event_callback, get(), &options::deliver, static_cast<void *>(listener_.get()));
        return *this;
    }
    tamis_options *get() const noexcept { return handle_.get(); }
    std::shared_ptr<listener> shared_listener() const noexcept { return listener_; }

private:
    static void deliver(void *context, const char *json) noexcept {
        try {
            (*static_cast<listener *>(context))(json);
        } catch (...) {
        }
    }

    detail::owner<tamis_options, tamis_options_free> handle_;
    std::shared_ptr<listener> listener_;
};

// A named, ordered map of a database.
class keyspace {
public:
    keyspace(tamis_keyspace *handle, std::shared_ptr<listener> listener) noexcept
        : listener_(std::move(listener)), handle_(handle) {}
    tamis_keyspace *get() const noexcept { return handle_.get(); }

    std::string name() const {
        char *name = nullptr;
        detail::call(tamis_keyspace_name, get(), &name);
        return detail::take(name);
    }

    void set_option(const std::string &name, const std::string &value) {
        detail::call(tamis_keyspace_set_option, get(), name.c_str(), value.c_str());
    }

    void put(std::string_view key, std::string_view value, durability kept = durability::buffered) {
        detail::call(tamis_put_with, get(), detail::data(key), key.size(), detail::data(value), value.size(),
                     static_cast<int32_t>(kept));
    }
    // Sets the value of a key until a time, from which on no reader finds it.
    void put_until(std::string_view key, std::string_view value, std::chrono::system_clock::time_point time) {
        detail::call(tamis_put_until, get(), detail::data(key), key.size(), detail::data(value), value.size(),
                     detail::milliseconds(time));
    }
    // Adds an operand to the value of a key, without a read; the option "merge" is the operator.
    void merge(std::string_view key, std::string_view operand) {
        detail::call(tamis_merge, get(), detail::data(key), key.size(), detail::data(operand), operand.size());
    }
    void remove(std::string_view key, durability kept = durability::buffered) {
        detail::call(tamis_delete_with, get(), detail::data(key), key.size(), static_cast<int32_t>(kept));
    }
    void remove_range(bound lower, bound upper, durability kept = durability::buffered) {
        detail::call(tamis_delete_range, get(), tamis_bound(lower), tamis_bound(upper), static_cast<int32_t>(kept));
    }
    void remove_prefix(std::string_view prefix, durability kept = durability::buffered) {
        detail::call(tamis_delete_prefix, get(), detail::data(prefix), prefix.size(), static_cast<int32_t>(kept));
    }
    void clear(durability kept = durability::buffered) {
        detail::call(tamis_clear, get(), static_cast<int32_t>(kept));
    }

    // Replaces the value of a key if it is the expected one, and returns whether it was; std::nullopt is an absent key.
    bool compare_and_put(std::string_view key, std::optional<std::string_view> expected,
                         std::optional<std::string_view> value) {
        const tamis_bytes before = detail::bytes(expected.value_or("")), after = detail::bytes(value.value_or(""));
        bool is_replaced = false;
        detail::call(tamis_compare_and_put, get(), detail::data(key), key.size(), expected ? &before : nullptr,
                     value ? &after : nullptr, &is_replaced);
        return is_replaced;
    }

    // The value of a key; empty if the key is absent.
    tamis::value get(std::string_view key, const snapshot *as_of = nullptr) const {
        tamis_value found{};
        detail::call(tamis_get, get(), of(as_of), detail::data(key), key.size(), &found);
        return tamis::value(found);
    }
    bool contains(std::string_view key, const snapshot *as_of = nullptr) const {
        bool is_found = false;
        detail::call(tamis_contains, get(), of(as_of), detail::data(key), key.size(), &is_found);
        return is_found;
    }
    // The values of keys at one point in time, in the order of the keys.
    std::vector<tamis::value> multi_get(const std::vector<std::string_view> &keys,
                                        const snapshot *as_of = nullptr) const {
        std::vector<tamis_bytes> given;
        for (const std::string_view key : keys)
            given.push_back(detail::bytes(key));
        std::vector<tamis_value> found(keys.size());
        detail::call(tamis_multi_get, get(), of(as_of), given.data(), given.size(), found.data());
        return std::vector<tamis::value>(found.begin(), found.end());
    }
    // The entry with the smallest or largest key.
    std::optional<std::pair<tamis::value, tamis::value>> first(const snapshot *as_of = nullptr) const {
        return end(tamis_first, as_of);
    }
    std::optional<std::pair<tamis::value, tamis::value>> last(const snapshot *as_of = nullptr) const {
        return end(tamis_last, as_of);
    }
    scan range(bound lower = bound::unbounded(), bound upper = bound::unbounded(),
               const snapshot *as_of = nullptr) const {
        tamis_scan *made = nullptr;
        detail::call(tamis_range, get(), of(as_of), tamis_bound(lower), tamis_bound(upper), &made);
        return scan(made);
    }
    // A scan for each range; the scans share reads of blocks.
    std::vector<scan> multi_range(const std::vector<std::pair<bound, bound>> &ranges,
                                  const snapshot *as_of = nullptr) const {
        std::vector<tamis_key_range> given;
        for (const auto &[lower, upper] : ranges)
            given.push_back({lower, upper});
        std::vector<tamis_scan *> made(ranges.size());
        detail::call(tamis_multi_range, get(), of(as_of), given.data(), given.size(), made.data());
        std::vector<scan> scans;
        scans.reserve(made.size());
        for (tamis_scan *one : made)
            scans.emplace_back(one);
        return scans;
    }
    scan prefix(std::string_view prefix, const snapshot *as_of = nullptr) const {
        tamis_scan *made = nullptr;
        detail::call(tamis_prefix, get(), of(as_of), detail::data(prefix), prefix.size(), &made);
        return scan(made);
    }
    uint64_t approximate_count(bound lower = bound::unbounded(), bound upper = bound::unbounded()) const {
        uint64_t count = 0;
        detail::call(tamis_approximate_count, get(), tamis_bound(lower), tamis_bound(upper), &count);
        return count;
    }

private:
    static tamis_snapshot *of(const snapshot *as_of) noexcept { return as_of == nullptr ? nullptr : as_of->get(); }
    template <typename Function>
    std::optional<std::pair<tamis::value, tamis::value>> end(Function function, const snapshot *as_of) const {
        tamis_value key{}, found{};
        detail::call(function, get(), of(as_of), &key, &found);
        if (key.data == nullptr)
            return std::nullopt;
        return std::make_pair(tamis::value(key), tamis::value(found));
    }

    std::shared_ptr<listener> listener_;
    detail::owner<tamis_keyspace, tamis_keyspace_free> handle_;
};

// Writes that database::write applies atomically. One thread uses it at a time.
class batch {
public:
    batch() {
        tamis_batch *handle = nullptr;
        detail::call(tamis_batch_new, &handle);
        handle_.reset(handle);
    }
    tamis_batch *get() const noexcept { return handle_.get(); }
    batch &put(const keyspace &into, std::string_view key, std::string_view value) {
        detail::call(tamis_batch_put, get(), into.get(), detail::data(key), key.size(), detail::data(value), value.size());
        return *this;
    }
    batch &put_until(const keyspace &into, std::string_view key, std::string_view value,
                     std::chrono::system_clock::time_point time) {
        detail::call(tamis_batch_put_until, get(), into.get(), detail::data(key), key.size(), detail::data(value), value.size(),
                     detail::milliseconds(time));
        return *this;
    }
    batch &merge(const keyspace &into, std::string_view key, std::string_view operand) {
        detail::call(tamis_batch_merge, get(), into.get(), detail::data(key), key.size(), detail::data(operand), operand.size());
        return *this;
    }
    batch &remove(const keyspace &from, std::string_view key) {
        detail::call(tamis_batch_delete, get(), from.get(), detail::data(key), key.size());
        return *this;
    }
    batch &remove_range(const keyspace &from, bound lower, bound upper) {
        detail::call(tamis_batch_delete_range, get(), from.get(), tamis_bound(lower), tamis_bound(upper));
        return *this;
    }
    batch &remove_prefix(const keyspace &from, std::string_view prefix) {
        detail::call(tamis_batch_delete_prefix, get(), from.get(), detail::data(prefix), prefix.size());
        return *this;
    }
    batch &append(const batch &other) {
        detail::call(tamis_batch_append, get(), other.get());
        return *this;
    }
    void clear() { detail::call(tamis_batch_clear, get()); }
    size_t size() const {
        size_t count = 0;
        detail::call(tamis_batch_count, get(), &count);
        return count;
    }

private:
    detail::owner<tamis_batch, tamis_batch_free> handle_;
};

// Reads and writes that are committed together, if nothing that they have read has changed. The destructor rolls back what was not committed. The end
// of a transaction ends its scans: they throw, and views that they have returned are invalid.
class transaction {
public:
    transaction(tamis_transaction *handle, std::shared_ptr<listener> listener) noexcept
        : listener_(std::move(listener)), handle_(handle) {}
    tamis_transaction *get() const noexcept { return handle_.get(); }

    // Throws an error with TAMIS_CODE_CONFLICT, after which nothing was written, if another write has changed what this one has read or written.
    void commit() { detail::call(tamis_transaction_commit, get()); }

    // The value of a key; empty if the key is absent.
    tamis::value get(const keyspace &of, std::string_view key) const {
        tamis_value found{};
        detail::call(tamis_transaction_get, get(), of.get(), detail::data(key), key.size(), &found);
        return tamis::value(found);
    }
    bool contains(const keyspace &of, std::string_view key) const {
        bool is_found = false;
        detail::call(tamis_transaction_contains, get(), of.get(), detail::data(key), key.size(), &is_found);
        return is_found;
    }
    std::vector<tamis::value> multi_get(const keyspace &of, const std::vector<std::string_view> &keys) const {
        std::vector<tamis_bytes> given;
        for (const std::string_view key : keys)
            given.push_back(detail::bytes(key));
        std::vector<tamis_value> found(keys.size());
        detail::call(tamis_transaction_multi_get, get(), of.get(), given.data(), given.size(), found.data());
        return std::vector<tamis::value>(found.begin(), found.end());
    }
    scan range(const keyspace &of, bound lower = bound::unbounded(), bound upper = bound::unbounded()) const {
        tamis_scan *made = nullptr;
        detail::call(tamis_transaction_range, get(), of.get(), tamis_bound(lower), tamis_bound(upper), &made);
        return scan(made);
    }
    scan prefix(const keyspace &of, std::string_view prefix) const {
        tamis_scan *made = nullptr;
        detail::call(tamis_transaction_prefix, get(), of.get(), detail::data(prefix), prefix.size(), &made);
        return scan(made);
    }

    void put(const keyspace &into, std::string_view key, std::string_view value) {
        detail::call(tamis_transaction_put, get(), into.get(), detail::data(key), key.size(), detail::data(value),
                     value.size());
    }
    void put_until(const keyspace &into, std::string_view key, std::string_view value,
                   std::chrono::system_clock::time_point time) {
        detail::call(tamis_transaction_put_until, get(), into.get(), detail::data(key), key.size(), detail::data(value),
                     value.size(), detail::milliseconds(time));
    }
    // It is not a read: two transactions that merge into one key do not conflict.
    void merge(const keyspace &into, std::string_view key, std::string_view operand) {
        detail::call(tamis_transaction_merge, get(), into.get(), detail::data(key), key.size(), detail::data(operand),
                     operand.size());
    }
    void remove(const keyspace &from, std::string_view key) {
        detail::call(tamis_transaction_delete, get(), from.get(), detail::data(key), key.size());
    }
    void remove_range(const keyspace &from, bound lower, bound upper) {
        detail::call(tamis_transaction_delete_range, get(), from.get(), tamis_bound(lower), tamis_bound(upper));
    }
    void remove_prefix(const keyspace &from, std::string_view prefix) {
        detail::call(tamis_transaction_delete_prefix, get(), from.get(), detail::data(prefix), prefix.size());
    }

    // The writes so far, for roll_back_to.
    uint64_t savepoint() {
        uint64_t made = 0;
        detail::call(tamis_transaction_savepoint, get(), &made);
        return made;
    }
    void roll_back_to(uint64_t savepoint) { detail::call(tamis_transaction_roll_back_to, get(), savepoint); }

private:
    std::shared_ptr<listener> listener_;
    detail::owner<tamis_transaction, tamis_transaction_free> handle_;
};

class database {
public:
    explicit database(const std::string &folder) : database(folder, nullptr, nullptr) {}
    database(const std::string &folder, const options &options)
        : database(folder, options.get(), options.shared_listener()) {}
    tamis_db *get() const noexcept { return handle_.get(); }

    // Ends running jobs and syncs the log; the destructor does it without reporting errors.
    void close() { detail::call(tamis_close, get()); }

    keyspace default_keyspace() const {
        tamis_keyspace *found = nullptr;
        detail::call(tamis_default_keyspace, get(), &found);
        return keyspace(found, listener_);
    }
    keyspace open_keyspace(const std::string &name) const {
        tamis_keyspace *found = nullptr;
        detail::call(tamis_keyspace_open, get(), name.c_str(), &found);
        return keyspace(found, listener_);
    }
    keyspace create_keyspace(const std::string &name, const keyspace_options &options = {}) {
        return make(tamis_keyspace_create, name, options);
    }
    keyspace get_or_create_keyspace(const std::string &name, const keyspace_options &options = {}) {
        return make(tamis_keyspace_get_or_create, name, options);
    }
    // All of these keyspaces or none.
    void drop_keyspaces(const std::vector<std::string> &names) {
        std::vector<const char *> given;
        for (const std::string &name : names)
            given.push_back(name.c_str());
        detail::call(tamis_keyspaces_drop, get(), given.data(), given.size());
    }
    // The batch is empty afterwards.
    void write(batch &writes, durability kept = durability::buffered) {
        detail::call(tamis_write, get(), writes.get(), static_cast<int32_t>(kept));
    }
    void persist(durability kept = durability::synced) {
        detail::call(tamis_persist, get(), static_cast<int32_t>(kept));
    }
    transaction begin(isolation level = isolation::serializable, durability kept = durability::buffered) {
        return begin_with(tamis_transaction_begin, static_cast<int32_t>(level), static_cast<int32_t>(kept));
    }
    // Waits for its turn; all other writers wait until the transaction ends.
    transaction begin_exclusive(durability kept = durability::buffered) {
        return begin_with(tamis_transaction_begin_exclusive, static_cast<int32_t>(kept));
    }
    // Calls a function with a transaction, commits it and returns the result. After a conflict the function is called again, from the ninth time on in an
    // exclusive transaction. What it throws rolls back and is passed on.
    template <typename Function>
    std::invoke_result_t<Function &, transaction &> transact(Function function, isolation level = isolation::serializable,
                                                             durability kept = durability::buffered) {
        for (uint32_t attempt = 0;; attempt++) {
            transaction begun = begin_with(tamis_transaction_begin_attempt, static_cast<int32_t>(level),
                                           static_cast<int32_t>(kept), attempt);
            if constexpr (std::is_void_v<std::invoke_result_t<Function &, transaction &>>) {
                function(begun);
                if (is_committed(begun))
                    return;
            } else {
                auto result = function(begun);
                if (is_committed(begun))
                    return result;
            }
        }
    }
    snapshot take_snapshot() const {
        tamis_snapshot *taken = nullptr;
        detail::call(tamis_snapshot_new, get(), &taken);
        return snapshot(taken, listener_);
    }
    // Lets a database that is open read-only see what was written before the call.
    void refresh() { detail::call(tamis_refresh, get()); }
    // The same in a thread, now and each time that the interval has passed.
    void refresh_every(std::chrono::milliseconds interval) {
        detail::call(tamis_refresh_every, get(), static_cast<uint64_t>(std::max<int64_t>(interval.count(), 0)));
    }
    bool is_reader() const {
        bool is_reader = false;
        detail::call(tamis_is_reader, get(), &is_reader);
        return is_reader;
    }
    // A feed of the changes behind a position: 0, that of a snapshot, or a stored one.
    change_feed changes(uint64_t position = 0) const {
        tamis_changes *opened = nullptr;
        detail::call(tamis_changes_open, get(), position, &opened);
        return change_feed(opened, listener_);
    }
    void flush() { detail::call(tamis_flush, get()); }
    void wait_for_compactions() { detail::call(tamis_wait_for_compactions, get()); }
    void compact(const keyspace &of, bound lower = bound::unbounded(), bound upper = bound::unbounded()) {
        detail::call(tamis_compact, get(), of.get(), tamis_bound(lower), tamis_bound(upper));
    }
    // Reports are JSON.
    std::string checkpoint(const std::string &folder) {
        char *json = nullptr;
        detail::call(tamis_checkpoint, get(), folder.c_str(), &json);
        return detail::take(json);
    }
    std::string statistics() const {
        char *json = nullptr;
        detail::call(tamis_statistics, get(), &json);
        return detail::take(json);
    }

private:
    database(const std::string &folder, const tamis_options *options, std::shared_ptr<listener> listener)
        : listener_(std::move(listener)) {
        tamis_db *opened = nullptr;
        detail::call(tamis_open, folder.c_str(), options, &opened);
        handle_.reset(opened);
    }
    template <typename Function>
    keyspace make(Function function, const std::string &name, const keyspace_options &options) {
        tamis_keyspace *made = nullptr;
        detail::call(function, get(), name.c_str(), options.get(), &made);
        return keyspace(made, listener_);
    }

    template <typename Function, typename... Arguments>
    transaction begin_with(Function function, Arguments... arguments) {
        tamis_transaction *begun = nullptr;
        detail::call(function, get(), arguments..., &begun);
        return transaction(begun, listener_);
    }
    // Commits; false after a conflict.
    static bool is_committed(transaction &ended) {
        try {
            ended.commit();
            return true;
        } catch (const error &failure) {
            if (failure.code() != TAMIS_CODE_CONFLICT)
                throw;
            return false;
        }
    }

    std::shared_ptr<listener> listener_;
    detail::owner<tamis_db, tamis_db_free> handle_;
};

} // namespace tamis

#endif
