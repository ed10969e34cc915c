//! A secondary index: users by id, found by the city they live in.
//!
//! The index is a keyspace whose keys are `city | 0x00 | id` and whose values are empty. Row and index entry change in one
//! batch, so the index always agrees with the rows, also after a crash.
//!
//! It needs one writer: `put` reads the old row and then writes. Two threads that change the same user at once could both read the same old
//! row, and leave an index entry that no row has. Until there are transactions, use one writing thread, or a mutex around `put`.
//!
//! Run it: `cargo run --release -p tamis --example secondary_index`

use std::error::Error;

use tamis::{Db, Keyspace, KeyspaceOptions, Slice, WriteBatch};

struct Users {
    db: Db,
    rows: Keyspace,
    by_city: Keyspace,
}

fn index_key(city: &[u8], id: u64) -> Vec<u8> {
    [city, &[0], &id.to_be_bytes()].concat()
}

impl Users {
    fn open(db: Db) -> tamis::Result<Self> {
        let rows = db.get_or_create_keyspace("users", KeyspaceOptions::default())?;
        let by_city = db.get_or_create_keyspace("users by city", KeyspaceOptions::default())?;
        Ok(Self { db, rows, by_city })
    }

    /// Inserts a user, or moves an existing one to another city. Called by one thread at a time; see the head of this file.
    fn put(&self, id: u64, city: &str) -> tamis::Result<()> {
        let mut batch = WriteBatch::new();
        if let Some(old) = self.rows.get(id.to_be_bytes())? {
            batch.delete(&self.by_city, index_key(&old, id))?;
        }
        batch.put(&self.rows, id.to_be_bytes(), city)?;
        batch.put(&self.by_city, index_key(city.as_bytes(), id), "")?;
        self.db.write(batch)
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
    println!("the index agrees with the rows");
    Ok(())
}
