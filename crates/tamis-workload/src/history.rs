//! Histories of transactions, and the check that a store has isolated them as it promises.
//!
//! The check follows "Elle: Inferring Isolation Anomalies from Experimental Observations" (Kingsbury and Alvaro, VLDB 2020), for lists to
//! which transactions append and registers that they set. Each element is appended once, and each value set once, so that the last state of a list is the order of
//! its versions, and a transaction that reads a register before it sets it gives the order of two. A read contains the version that it saw:
//!
//! - of a list its length and the digest of its elements ([`list_digest`]), so that a history of a million transactions takes little memory;
//! - of a register its value.
//!
//! From the versions follow the dependencies: B overwrites A's version (ww), B reads it (wr), B overwrites what A has read (rw). A cycle is an anomaly:
//! for serializable transactions each one, for snapshots those in which no two rw follow each other ("Analysing Snapshot Isolation", Cerone and Gotsman, PODC 2016).
//! Reads of versions that were never committed, of a transaction in the middle of its appends, and lost appends are anomalies alone.
//!
//! ```
//! use std::collections::BTreeMap;
//! use tamis_workload::history::{History, Level, Step, list_digest};
//!
//! let mut history = History::default();
//! // Both read the empty list and append: an update is lost.
//! for element in [7, 8] {
//!     history.commit(vec![Step::ReadList { key: 1, length: 0, digest: list_digest(&[]) }, Step::Append { key: 1, element }]);
//! }
//! let lists = BTreeMap::from([(1, vec![7, 8])]);
//! assert!(history.check(&lists, Level::Snapshot).is_err());
//! ```

#![expect(
    clippy::indexing_slicing,
    reason = "numbers of transactions are positions in lists of the same length"
)]

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use crate::prng::mix64;

/// A read or a write of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It has read a list.
    ReadList {
        /// The list.
        key: u32,
        /// How many elements it had.
        length: u32,
        /// Its [`list_digest`].
        digest: u64,
    },
    /// It has appended an element, which no other step appends.
    Append {
        /// The list.
        key: u32,
        /// The element.
        element: u64,
    },
    /// It has read a register; 0 if it was never set.
    ReadRegister {
        /// The register.
        key: u32,
        /// Its value.
        value: u64,
    },
    /// It has set a register to a value that no other step sets.
    Set {
        /// The register.
        key: u32,
        /// The value.
        value: u64,
    },
}

/// The promise of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Some order of the transactions, one after the other, explains all reads.
    Serializable,
    /// Each transaction reads a snapshot, and of two that write the same the first one commits.
    Snapshot,
}

/// A proof that the promise is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Anomaly {
    /// The transaction has read a list that is no prefix of the last state: of an aborted transaction, or without an append that was lost later.
    NoPrefix {
        /// The number of the transaction.
        transaction: usize,
        /// The list.
        key: u32,
    },
    /// The transaction has read a list between two appends of another one.
    Intermediate {
        /// The number of the transaction.
        transaction: usize,
        /// The list.
        key: u32,
    },
    /// The transaction has read a value that no committed transaction has set.
    UnknownValue {
        /// The number of the transaction.
        transaction: usize,
        /// The register.
        key: u32,
    },
    /// Several transactions have read this value of a register and set it: all but one update are lost.
    LostUpdate {
        /// The register.
        key: u32,
        /// The value.
        value: u64,
    },
    /// A committed append is missing in the last state, or there is one that no committed transaction has made.
    LostAppend {
        /// The list.
        key: u32,
        /// The element.
        element: u64,
    },
    /// Transactions that depend on each other in a circle: each one on the next one.
    Cycle(Vec<usize>),
}

impl fmt::Display for Anomaly {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPrefix { transaction, key } => {
                write!(
                    formatter,
                    "transaction {transaction} has read a state of list {key} that never was committed"
                )
            }
            Self::Intermediate { transaction, key } => {
                write!(
                    formatter,
                    "transaction {transaction} has read list {key} between two appends of another one"
                )
            }
            Self::UnknownValue { transaction, key } => {
                write!(
                    formatter,
                    "transaction {transaction} has read a value of register {key} that never was committed"
                )
            }
            Self::LostUpdate { key, value } => {
                write!(formatter, "several transactions have replaced the value {value} of register {key}")
            }
            Self::LostAppend { key, element } => {
                write!(formatter, "list {key} and the committed transactions differ in element {element}")
            }
            Self::Cycle(transactions) => {
                write!(formatter, "transactions depend on each other: {transactions:?}")
            }
        }
    }
}

impl std::error::Error for Anomaly {}

/// The digest of a list's elements, in their order.
#[must_use]
pub fn list_digest(elements: &[u64]) -> u64 {
    elements.iter().fold(1, |digest, element| mix64(digest ^ mix64(*element)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dependency {
    Overwrites,
    Reads,
    Antidepends,
}

/// The committed transactions, with what each has read and written in its order. Reads of own writes are left out.
#[derive(Debug, Clone, Default)]
pub struct History {
    transactions: Vec<Vec<Step>>,
}

/// The writers of versions, and of the versions after them.
struct Versions {
    /// The writer of each element, in the order of the last state.
    writers: HashMap<u32, Vec<usize>>,
    /// The digest of each prefix.
    digests: HashMap<u32, Vec<u64>>,
    /// The transaction that set a value.
    setters: HashMap<(u32, u64), usize>,
    /// The transaction that has read a value, and set the register.
    successors: HashMap<(u32, u64), Vec<usize>>,
}

impl History {
    /// Adds a committed transaction; returns its number.
    pub fn commit(&mut self, steps: Vec<Step>) -> usize {
        self.transactions.push(steps);
        self.transactions.len() - 1
    }

    /// The number of transactions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.transactions.len()
    }

    /// Whether it has no transaction.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.transactions.is_empty()
    }

    /// Checks the promise; `lists` are the last states.
    ///
    /// # Errors
    /// The first anomaly.
    pub fn check(&self, lists: &BTreeMap<u32, Vec<u64>>, level: Level) -> Result<(), Anomaly> {
        let versions = self.versions(lists)?;
        let edges = self.dependencies(lists, &versions)?;
        let mut graph = vec![Vec::new(); self.len()];
        for &(from, to, kind) in &edges {
            match level {
                _ if from == to => {}
                Level::Serializable => graph[from].push(to),
                Level::Snapshot if kind == Dependency::Antidepends => {}
                Level::Snapshot => graph[from].push(to),
            }
        }
        if level == Level::Snapshot {
            let direct = graph.clone();
            let mut antidependencies = vec![Vec::new(); self.len()];
            for &(from, to, kind) in edges.iter().filter(|(from, to, _)| from != to) {
                if kind == Dependency::Antidepends {
                    antidependencies[from].push(to);
                }
            }
            for (successors, direct) in graph.iter_mut().zip(&direct) {
                successors.extend(direct.iter().flat_map(|&next| &antidependencies[next]));
            }
        }
        cycle_of(&graph).map_or(Ok(()), |cycle| Err(Anomaly::Cycle(cycle)))
    }

    fn versions(&self, lists: &BTreeMap<u32, Vec<u64>>) -> Result<Versions, Anomaly> {
        let (mut appenders, mut setters, mut successors) = (HashMap::new(), HashMap::new(), HashMap::new());
        for (transaction, steps) in self.transactions.iter().enumerate() {
            let mut read = HashMap::new();
            for step in steps {
                match *step {
                    Step::Append { key, element } => drop(appenders.insert((key, element), transaction)),
                    Step::ReadRegister { key, value } => drop(read.insert(key, value)),
                    Step::Set { key, value } => {
                        setters.insert((key, value), transaction);
                        if let Some(before) = read.remove(&key) {
                            successors.entry((key, before)).or_insert_with(Vec::new).push(transaction);
                        }
                    }
                    Step::ReadList { .. } => {}
                }
            }
        }
        let lost = successors.iter().find(|(_, transactions): &(_, &Vec<usize>)| transactions.len() > 1);
        if let Some((&(key, value), _)) = lost {
            return Err(Anomaly::LostUpdate { key, value });
        }
        let (mut writers, mut digests) = (HashMap::new(), HashMap::new());
        for (&key, elements) in lists {
            let mut writers_of = Vec::with_capacity(elements.len());
            let mut prefixes = vec![list_digest(&[])];
            for &element in elements {
                let writer = appenders.remove(&(key, element)).ok_or(Anomaly::LostAppend { key, element })?;
                writers_of.push(writer);
                prefixes.push(mix64(prefixes[prefixes.len() - 1] ^ mix64(element)));
            }
            writers.insert(key, writers_of);
            digests.insert(key, prefixes);
        }
        match appenders.keys().next() {
            Some(&(key, element)) => Err(Anomaly::LostAppend { key, element }),
            None => Ok(Versions { writers, digests, setters, successors }),
        }
    }

    fn dependencies(
        &self,
        lists: &BTreeMap<u32, Vec<u64>>,
        versions: &Versions,
    ) -> Result<Vec<(usize, usize, Dependency)>, Anomaly> {
        let mut edges = Vec::new();
        for key in lists.keys() {
            let pairs = versions.writers[key].windows(2);
            edges.extend(pairs.map(|pair| (pair[0], pair[1], Dependency::Overwrites)));
        }
        for (transaction, steps) in self.transactions.iter().enumerate() {
            for step in steps {
                match *step {
                    Step::ReadList { key, length, digest } => {
                        let length = length as usize;
                        if versions.digests.get(&key).map_or(Some(&1), |prefixes| prefixes.get(length))
                            != Some(&digest)
                        {
                            return Err(Anomaly::NoPrefix { transaction, key });
                        }
                        let writers = versions.writers.get(&key).map_or(&[][..], Vec::as_slice);
                        let (last, next) =
                            (length.checked_sub(1).map(|last| writers[last]), writers.get(length));
                        if last.is_some() && last == next.copied() && last != Some(transaction) {
                            return Err(Anomaly::Intermediate { transaction, key });
                        }
                        edges.extend(last.map(|last| (last, transaction, Dependency::Reads)));
                        edges.extend(next.map(|&next| (transaction, next, Dependency::Antidepends)));
                    }
                    Step::ReadRegister { key, value } => {
                        let setter = versions.setters.get(&(key, value));
                        if value != 0 && setter.is_none() {
                            return Err(Anomaly::UnknownValue { transaction, key });
                        }
                        edges.extend(setter.map(|&setter| (setter, transaction, Dependency::Reads)));
                        let next = versions.successors.get(&(key, value)).into_iter().flatten();
                        edges.extend(next.clone().map(|&next| (transaction, next, Dependency::Antidepends)));
                        let overwritten = setter
                            .into_iter()
                            .flat_map(|&setter| next.clone().map(move |&next| (setter, next)));
                        edges
                            .extend(overwritten.map(|(setter, next)| (setter, next, Dependency::Overwrites)));
                    }
                    Step::Append { .. } | Step::Set { .. } => {}
                }
            }
        }
        Ok(edges)
    }
}

/// A cycle of a graph, if it has one: a depth-first search finds an edge to a node that is still open.
fn cycle_of(graph: &[Vec<usize>]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; graph.len()];
    for root in 0..graph.len() {
        // The path from the root, with the position of the next edge of each node.
        let mut path = if states[root] == State::New { vec![(root, 0)] } else { Vec::new() };
        while let Some((node, position)) = path.last_mut() {
            let (from, edge) = (*node, *position);
            *position += 1;
            states[from] = State::Open;
            match graph[from].get(edge) {
                Some(&next) if states[next] == State::Open => {
                    let begin = path.iter().position(|(node, _)| *node == next).unwrap_or_default();
                    return Some(path[begin..].iter().map(|(node, _)| *node).collect());
                }
                Some(&next) if states[next] == State::New => path.push((next, 0)),
                Some(_) => {}
                None => {
                    states[from] = State::Done;
                    path.pop();
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests;
