//! A secondary index: users by id, found by the city they live in.
//!
//! The index is a keyspace whose keys are `city | 0x00 | id` and whose values are empty. Row and index entry change in one
//! transaction, which reads the old row: of two threads that move the same user, one tries again. So the index always agrees with the rows, also after a crash.
//! Names are unique: the transaction that takes one has read that it is free.
//!
//! Run it: `cargo run --release -p tamis --example secondary_index`

use std::{error::Error, thread};

use tamis::{Db, Keyspace, KeyspaceOptions, Slice};

struct Users {
    db: Db,
    rows: Keyspace,
    by_city: Keyspace,
    /// A unique index: the id by name.
    by_name: Keyspace,
}

fn index_key(city: &[u8], id: u64) -> Vec<u8> {
    [city, &[0], &id.to_be_bytes()].concat()
}

impl Users {
    fn open(db: Db) -> tamis::Result<Self> {
        let rows = db.get_or_create_keyspace("users", KeyspaceOptions::default())?;
        let by_city = db.get_or_create_keyspace("users by city", KeyspaceOptions::default())?;
        let by_name = db.get_or_create_keyspace("users by name", KeyspaceOptions::default())?;
        Ok(Self { db, rows, by_city, by_name })
    }

    /// Inserts a user, or moves an existing one to another city.
    fn put(&self, id: u64, city: &str) -> tamis::Result<()> {
        self.db.transact(|transaction| {
            if let Some(old) = transaction.get(&self.rows, id.to_be_bytes())? {
                transaction.delete(&self.by_city, index_key(&old, id))?;
            }
            transaction.put(&self.rows, id.to_be_bytes(), city)?;
            transaction.put(&self.by_city, index_key(city.as_bytes(), id), "")
        })
    }

    /// Gives a name to a user, unless another one has it.
    fn take_name(&self, id: u64, name: &str) -> tamis::Result<bool> {
        self.by_name.compare_and_put(name, None, Some(&id.to_be_bytes()))
    }

    fn in_city(&self, city: &str) -> Result<Vec<u64>, Box<dyn Error>> {
        let prefix = [city.as_bytes(), &[0]].concat();
        let id_of = |key: Slice| {
            let id = key.get(prefix.len()..).ok_or("a key is too short")?;
            Ok::<_, Box<dyn Error>>(u64::from_be_bytes(id.try_into()?))
        };
        self.by_city.prefix(&prefix).map(|entry| id_of(entry?.0)).collect()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let users = Users::open(Db::open(folder.path())?)?;
    let cities = ["Bern", "Lyon", "Oslo", "Porto", "Riga"];
    for id in 0..5_000 {
        users.put(id, cities.get(id as usize % cities.len()).copied().unwrap_or_default())?;
    }
    let in_oslo = users.in_city("Oslo")?;
    println!("{} users live in Oslo", in_oslo.len());
    assert_eq!(in_oslo.len(), 1_000);

    // All users move from Oslo to Turku.
    for id in in_oslo {
        users.put(id, "Turku")?;
    }
    assert!(users.in_city("Oslo")?.is_empty());
    assert_eq!(users.in_city("Turku")?.len(), 1_000);

    // Read many rows by id at one point in time.
    let ids: Vec<[u8; 8]> = users.in_city("Turku")?.into_iter().take(3).map(u64::to_be_bytes).collect();
    let rows = users.rows.multi_get(&ids)?;
    assert!(rows.iter().all(|row| row.as_deref() == Some(b"Turku".as_slice())));

    // Two threads move the same users: each is in one city.
    thread::scope(|scope| {
        let movers = ["Bern", "Riga"].map(|city| {
            let users = &users;
            scope.spawn(move || (0..500).try_for_each(|id| users.put(id, city)))
        });
        movers.into_iter().try_for_each(|thread| thread.join().expect("a thread panicked"))
    })?;
    let indexed: usize = users.by_city.iter().count();
    assert_eq!(indexed, 5_000);
    for id in 0..500_u64 {
        let city = users.rows.get(id.to_be_bytes())?.ok_or("no row")?;
        assert!(users.by_city.contains(index_key(&city, id))?);
    }
    let taken: Vec<bool> = thread::scope(|scope| {
        let threads = [1, 2].map(|id| {
            scope.spawn({
                let users = &users;
                move || users.take_name(id, "ann")
            })
        });
        threads.into_iter().map(|thread| thread.join().expect("a thread panicked")).collect::<Result<_, _>>()
    })?;
    assert_eq!(taken.iter().filter(|is_taken| **is_taken).count(), 1);
    println!("the index agrees with the rows");
    Ok(())
}
