// A store of fruits in C++: every wrapper of tamis.hpp. bindings/c/test compiles and runs it.

#include "tamis.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

static void require(bool condition, const char *text) {
    if (!condition) {
        std::cerr << "not true: " << text << '\n';
        std::exit(1);
    }
}

#define REQUIRE(condition) require(condition, #condition)

int main(int count, char **arguments) {
    const std::string folder = count > 1 ? arguments[1] : "fruits";
    std::atomic<int> flushes{0};
    tamis::options options;
    options.set("cache_bytes", "16MiB").on_event([&flushes](std::string_view json) {
        if (json.find("\"kind\":\"flushed\"") != std::string_view::npos)
            flushes++;
        throw std::runtime_error("ignored");
    });
    tamis::database db(folder, options);
    tamis::keyspace fruits = db.default_keyspace();
    fruits.put("apple", "red");
    fruits.put("banana", "yellow", tamis::durability::synced);
    fruits.put("pear", "green");

    const tamis::snapshot before = db.take_snapshot();
    tamis::batch batch;
    batch.put(fruits, "cherry", "red").remove(fruits, "apple").remove_prefix(fruits, "pe");
    REQUIRE(batch.size() == 3);
    db.write(batch);
    REQUIRE(batch.size() == 0);
    REQUIRE(!fruits.get("apple") && fruits.get("apple", &before).view() == "red");
    REQUIRE(fruits.contains("cherry") && !fruits.contains("pear"));
    REQUIRE(before.sequence() == 3);

    for (tamis::scan scan = fruits.range(tamis::bound::included("a"), tamis::bound::excluded("p"), &before); scan.next();)
        std::cout << scan.key() << ": " << scan.value() << '\n';

    tamis::scan scan = fruits.prefix("b");
    scan.seek_to_last();
    REQUIRE(scan.prev() && scan.key() == "banana" && !scan.prev() && scan.key().empty());
    const auto [first_key, first_value] = *fruits.first();
    REQUIRE(first_key.view() == "banana" && first_value.view() == "yellow" && fruits.last()->first.view() == "cherry");
    REQUIRE(fruits.multi_get({"cherry", "fig"})[0].view() == "red");
    std::vector<tamis::scan> scans = fruits.multi_range({{tamis::bound::included("b"), tamis::bound::excluded("c")}});
    REQUIRE(scans[0].next() && !scans[0].next());

    // A transaction that rolls back, one that commits, and one that runs again because another write has changed what it has read.
    {
        tamis::transaction dropped = db.begin(tamis::isolation::snapshot);
        dropped.put(fruits, "fig", "violet");
        REQUIRE(dropped.contains(fruits, "fig") && dropped.multi_get(fruits, {"fig", "kiwi"})[0]);
    }
    REQUIRE(!fruits.contains("fig"));
    tamis::transaction exclusive = db.begin_exclusive(tamis::durability::synced);
    exclusive.put(fruits, "fig", "violet");
    const uint64_t savepoint = exclusive.savepoint();
    exclusive.remove_prefix(fruits, "f");
    exclusive.remove_range(fruits, tamis::bound::unbounded(), tamis::bound::unbounded());
    exclusive.remove(fruits, "fig");
    exclusive.roll_back_to(savepoint);
    tamis::scan open = exclusive.prefix(fruits, "f");
    REQUIRE(open.next() && open.key() == "fig");
    exclusive.commit();
    REQUIRE(fruits.get("fig").view() == "violet");
    try {
        open.next();
        REQUIRE(false);
    } catch (const tamis::error &error) {
        REQUIRE(error.code() == TAMIS_CODE_TRANSACTION_ENDED);
    }
    int attempts = 0;
    const std::string color = db.transact([&](tamis::transaction &transaction) {
        const std::string found(transaction.get(fruits, "fig").view());
        if (attempts++ == 0)
            fruits.put("fig", "green");
        transaction.put(fruits, "color of figs", found);
        return found;
    });
    REQUIRE(attempts == 2 && color == "green" && fruits.get("color of figs").view() == "green");
    db.transact([&](tamis::transaction &transaction) {
        for (tamis::scan figs = transaction.range(fruits, tamis::bound::included("c"), tamis::bound::excluded("g")); figs.next();)
            if (figs.key() != "cherry")
                transaction.remove(fruits, figs.key());
    });
    REQUIRE(fruits.compare_and_put("kiwi", std::nullopt, "brown") && !fruits.compare_and_put("kiwi", "green", "red"));
    REQUIRE(fruits.compare_and_put("kiwi", "brown", std::nullopt) && fruits.last()->first.view() == "cherry");

    // Merge operands and expiry. The separator of the operator is a comma.
    tamis::keyspace sales = db.create_keyspace("sales", tamis::keyspace_options().set("merge", "append:2c"));
    const auto soon = std::chrono::system_clock::now() + std::chrono::milliseconds(200);
    const auto late = std::chrono::system_clock::now() + std::chrono::hours(1);
    sales.merge("apple", "ann");
    sales.put_until("offer", "fig", soon);
    batch.merge(sales, "apple", "bob").put_until(sales, "week", "kiwi", late);
    db.write(batch);
    db.transact([&](tamis::transaction &transaction) {
        transaction.merge(sales, "apple", "cem");
        transaction.put_until(sales, "month", "plum", late);
    });
    REQUIRE(sales.get("apple").view() == "ann,bob,cem" && sales.contains("week") && sales.contains("month"));
    while (std::chrono::system_clock::now() <= soon)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    REQUIRE(!sales.contains("offer"));
    try {
        sales.put_until("offer", "fig", std::chrono::system_clock::time_point::min());
        REQUIRE(false);
    } catch (const tamis::error &error) {
        REQUIRE(error.code() == TAMIS_CODE_INVALID_ARGUMENT);
    }

    tamis::keyspace trees = db.get_or_create_keyspace("trees", tamis::keyspace_options().set("filters", "surf@16"));
    trees.put("oak", "");
    REQUIRE(trees.name() == "trees" && trees.get("oak") && trees.get("oak").view().empty());
    db.flush();
    REQUIRE(flushes > 0);
    fruits.remove_range(tamis::bound::unbounded(), tamis::bound::included("banana"));
    fruits.remove("cherry");
    REQUIRE(!fruits.first());
    trees.clear();
    db.compact(trees);
    db.drop_keyspaces({"trees"});
    try {
        trees.put("elm", "");
        REQUIRE(false);
    } catch (const tamis::error &error) {
        REQUIRE(error.code() == TAMIS_CODE_KEYSPACE_DROPPED);
    }

    // A reader, usually in another process, and the changes that it follows.
    tamis::database reader(folder, tamis::options().set("read_only", "true"));
    REQUIRE(reader.is_reader() && !db.is_reader());
    tamis::change_feed feed = reader.changes(db.take_snapshot().sequence());
    batch.put(fruits, "lime", "green").put_until(fruits, "offer", "fig", late).remove(fruits, "apple");
    db.write(batch);
    REQUIRE(feed.next(std::chrono::seconds(10)) && feed.change().kind() == TAMIS_CHANGE_KIND_PUT && !feed.change().is_last());
    REQUIRE(feed.change().keyspace() == "default" && feed.change().key() == "lime" && feed.change().value() == "green");
    REQUIRE(feed.position() < feed.change().sequence());
    REQUIRE(feed.next() && feed.change().kind() == TAMIS_CHANGE_KIND_PUT_UNTIL && late - feed.change().expires_at() < std::chrono::seconds(1));
    REQUIRE(feed.next() && feed.change().kind() == TAMIS_CHANGE_KIND_DELETE && feed.change().is_last() && !feed.next());
    REQUIRE(feed.position() == db.take_snapshot().sequence());
    try {
        feed.ingested([](const tamis::change &) {});
        REQUIRE(false);
    } catch (const tamis::error &error) {
        REQUIRE(error.code() == TAMIS_CODE_INVALID_ARGUMENT);
    }
    const std::string table = folder + ".table";
    const char *const tables[] = {table.c_str()};
    tamis_table_writer *writer = nullptr;
    REQUIRE(tamis_table_writer_new(fruits.get(), tables[0], &writer, nullptr) == TAMIS_CODE_OK);
    REQUIRE(tamis_table_writer_put(writer, nullptr, 0, nullptr, 0, nullptr) == TAMIS_CODE_SIZE);
    for (const char *key : {"melon", "nut"})
        REQUIRE(tamis_table_writer_put(writer, reinterpret_cast<const uint8_t *>(key), std::string_view(key).size(), nullptr, 0, nullptr) == TAMIS_CODE_OK);
    REQUIRE(tamis_table_writer_finish(writer, nullptr) == TAMIS_CODE_OK);
    tamis_table_writer_free(writer);
    REQUIRE(tamis_ingest(db.get(), fruits.get(), tables, 1, false, nullptr, nullptr) == TAMIS_CODE_OK);
    REQUIRE(feed.next(std::chrono::seconds(10)) && feed.change().kind() == TAMIS_CHANGE_KIND_INGEST);
    std::string keys;
    feed.ingested([&keys](const tamis::change &write) { keys += write.key(); });
    REQUIRE(keys == "melonnut");
    try {
        feed.ingested([](const tamis::change &) { throw std::runtime_error("passed on"); });
        REQUIRE(false);
    } catch (const std::runtime_error &error) {
        REQUIRE(std::string_view(error.what()) == "passed on");
    }
    reader.refresh();
    REQUIRE(reader.default_keyspace().contains("lime"));
    reader.refresh_every(std::chrono::milliseconds(5));
    fruits.remove("lime");
    while (reader.default_keyspace().contains("lime"))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));

    REQUIRE(db.statistics().find("\"writes\":") != std::string::npos);
    db.close();
    return 0;
}
