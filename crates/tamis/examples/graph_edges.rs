//! Edges of a graph: neighbours of a vertex by one prefix scan, in both directions, and a breadth-first search.
//!
//! An edge is two keys: `out | from | to` and `in | to | from`, big-endian numbers. A vertex without edges costs no block read:
//! filters reject its prefix.
//!
//! Run it: `cargo run --release -p tamis --example graph_edges`

use std::{
    collections::{BTreeSet, VecDeque},
    error::Error,
};

use tamis::{Db, Keyspace, KeyspaceOptions, WriteBatch};

struct Graph {
    db: Db,
    outgoing: Keyspace,
    incoming: Keyspace,
}

fn edge(one: u32, other: u32) -> [u8; 8] {
    (u64::from(one) << 32 | u64::from(other)).to_be_bytes()
}

fn neighbours(edges: &Keyspace, vertex: u32) -> Result<Vec<u32>, Box<dyn Error>> {
    let mut found = Vec::new();
    let mut scan = edges.prefix(vertex.to_be_bytes());
    // Steps without copies: key and value stay in the block.
    while scan.move_next()? {
        found.push(u64::from_be_bytes(scan.key().try_into()?) as u32);
    }
    Ok(found)
}

impl Graph {
    fn open(db: Db) -> tamis::Result<Self> {
        let outgoing = db.get_or_create_keyspace("out", KeyspaceOptions::default())?;
        let incoming = db.get_or_create_keyspace("in", KeyspaceOptions::default())?;
        Ok(Self { db, outgoing, incoming })
    }

    fn connect(&self, edges: impl Iterator<Item = (u32, u32)>) -> tamis::Result<()> {
        let mut batch = WriteBatch::new();
        for (from, to) in edges {
            batch.put(&self.outgoing, edge(from, to), "")?;
            batch.put(&self.incoming, edge(to, from), "")?;
        }
        self.db.write(batch)
    }

    /// Vertices that can be reached within `depth_max` steps.
    fn reachable(&self, start: u32, depth_max: u32) -> Result<BTreeSet<u32>, Box<dyn Error>> {
        let mut seen = BTreeSet::from([start]);
        let mut queue = VecDeque::from([(start, 0)]);
        while let Some((vertex, depth)) = queue.pop_front() {
            if depth == depth_max {
                continue;
            }
            for next in neighbours(&self.outgoing, vertex)? {
                if seen.insert(next) {
                    queue.push_back((next, depth + 1));
                }
            }
        }
        Ok(seen)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let graph = Graph::open(Db::open(folder.path())?)?;
    // Every vertex points to its double and to its double plus one: a binary tree below 1.
    graph.connect((1..20_000).flat_map(|vertex| [(vertex, 2 * vertex), (vertex, 2 * vertex + 1)]))?;
    graph.db.flush()?;

    assert_eq!(neighbours(&graph.outgoing, 7)?, [14, 15]);
    assert_eq!(neighbours(&graph.incoming, 7)?, [3]);
    assert!(neighbours(&graph.outgoing, 1_000_000)?.is_empty());
    let reached = graph.reachable(1, 10)?;
    println!("{} vertices within ten steps of vertex 1", reached.len());
    assert_eq!(reached.len(), (1 << 11) - 1);
    Ok(())
}
