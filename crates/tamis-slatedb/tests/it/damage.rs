//! Damaged and foreign filters: they are counted, and every query still finds its entries.

use std::sync::Arc;

use slatedb::bytes::{BufMut, Bytes};
use slatedb::object_store::{ObjectStore, memory::InMemory};
use slatedb::{Filter, FilterBuilder, FilterPolicy, FilterQuery, RowEntry};
use tamis_slatedb::{FilterPolicies, PolicyError, TamisPolicy};

use crate::filters::{built_and_read, may_have_key};
use crate::support::{
    Append, collect, designs, fill_tables, flush, open, open_reader, policies, policy, settings,
};

fn keys() -> Vec<Vec<u8>> {
    (0..40_u64).map(|number| (number << 33).to_be_bytes().to_vec()).collect()
}

fn assert_reads_all(filter: &dyn Filter, place: &str) {
    for key in keys() {
        assert!(may_have_key(filter, &key), "{place}: {key:?}");
        let prefix = Bytes::copy_from_slice(key.get(..5).unwrap_or_default());
        assert!(filter.might_match(&FilterQuery::prefix(prefix)), "{place}: a prefix of {key:?}");
        let bound = std::ops::Bound::Included(Bytes::from(key));
        assert!(filter.might_match(&FilterQuery::range(bound.clone(), bound)), "{place}");
    }
}

#[test]
fn every_damaged_byte_gives_a_filter_that_passes() {
    for design in designs() {
        let policy = policy(&design);
        let (_, bytes) = built_and_read(&policy, &keys());
        for index in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged.iter_mut().skip(index).take(1).for_each(|byte| *byte ^= 0x55);
            assert_reads_all(policy.decode(&damaged).as_ref(), &format!("{design}, byte {index}"));
            let cut = bytes.get(..index).unwrap_or_default();
            assert_reads_all(policy.decode(cut).as_ref(), &format!("{design}, {index} bytes"));
        }
        let values = policy.counters().values();
        assert!(values.damaged + values.unknown >= 2 * bytes.len() as u64, "{design}: {values}");
    }
}

#[test]
fn foreign_bytes_give_a_filter_that_passes() {
    let policy = policy("proteus@14");
    let foreign: [&[u8]; 6] =
        [b"", b"\x01", b"\x01\x01\xff\xff\xff\xff", b"\x01\x01\x04\0\0\0TFLT", &[0xff; 500], b"\x02\x00"];
    for bytes in foreign {
        let filter = policy.decode(bytes);
        assert_reads_all(filter.as_ref(), &format!("{bytes:?}"));
        let mut again = Vec::new();
        filter.encode(&mut again);
        assert_reads_all(policy.decode(&again).as_ref(), "encoded again");
    }
    let values = policy.counters().values();
    assert_eq!(values.damaged, 6, "{values}");
}

/// Another program that uses the name of this policy for other bytes.
struct Impostor;

impl FilterPolicy for Impostor {
    fn name(&self) -> &str {
        TamisPolicy::NAME
    }

    fn builder(&self) -> Box<dyn FilterBuilder> {
        Box::new(Self)
    }

    fn decode(&self, _: &[u8]) -> Arc<dyn Filter> {
        Arc::new(Self)
    }

    fn estimate_size(&self, _: usize) -> usize {
        100
    }
}

impl FilterBuilder for Impostor {
    fn add_entry(&mut self, _: &RowEntry) {}

    fn build(&mut self) -> Arc<dyn Filter> {
        Arc::new(Self)
    }
}

impl Filter for Impostor {
    fn might_match(&self, _: &FilterQuery) -> bool {
        true
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        writer.put_slice(&[7; 100]);
    }

    fn size(&self) -> usize {
        100
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        Arc::new(Self)
    }
}

#[tokio::test]
async fn a_database_with_foreign_filters_of_the_same_name_is_read() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let db = slatedb::Db::builder("db", Arc::clone(&store))
        .with_settings(settings())
        .with_merge_operator(Arc::new(Append))
        .with_filter_policies(vec![Arc::new(Impostor)])
        .build()
        .await
        .expect("the database can be created");
    fill_tables(&db, 3, 50).await;
    db.close().await.expect("it can be closed");
    let policies = policies("auto@16");
    let (reader, _) = open_reader(Some(&policies), &store).await;
    assert_eq!(collect(reader.scan::<std::ops::RangeFull>(..).await.expect("a scan")).await.len(), 150);
    let range = 0_u64.to_be_bytes()..=1000_u64.to_be_bytes();
    assert_eq!(collect(reader.scan(range).await.expect("a scan")).await.len(), 2);
    assert_eq!(
        reader.get(3000_u64.to_be_bytes()).await.expect("a lookup").as_deref(),
        Some(&b"value 3000"[..])
    );
    let values = policies.counters().values();
    assert!(values.damaged >= 3, "{values}");
}

#[tokio::test]
async fn filters_of_an_earlier_configuration_stay_in_use() {
    for (before, after) in
        [("proteus@14", "grafite@16"), ("auto@16", "rosetta@16"), ("surf-real:bits=6", "auto@10")]
    {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let writer = open(&policies(before), &store, settings()).await;
        fill_tables(&writer, 4, 500).await;
        writer.close().await.expect("it can be closed");
        let changed = FilterPolicies::new(policy(after).with_seed(99));
        let writer = open(&changed, &store, settings()).await;
        writer.put(b"new", b"table").await.expect("it can be written");
        flush(&writer).await;
        writer.close().await.expect("it can be closed");
        let (reader, recorder) = open_reader(Some(&changed), &store).await;
        for number in 0..300_u64 {
            let range = (number * 1000 + 300).to_be_bytes()..=(number * 1000 + 310).to_be_bytes();
            assert!(collect(reader.scan(range).await.expect("a scan")).await.is_empty());
            let key = (number * 1000).to_be_bytes();
            assert!(reader.get(key).await.expect("a lookup").is_some(), "{before}, then {after}: {number}");
        }
        let counts = tamis_slatedb::FilterMetrics::read(&recorder).ranges;
        assert!(counts.negatives > 1_000, "{before}, then {after}: {counts:?}");
        let values = changed.counters().values();
        assert_eq!((values.damaged, values.unknown), (0, 0), "{values}");
    }
}

#[test]
fn two_policies_of_one_name_are_an_error() {
    let error =
        policies("auto@16").with(Arc::new(policy("rosetta@16"))).expect_err("both have the same name");
    assert_eq!(error, PolicyError::DuplicateName { name: TamisPolicy::NAME.to_owned() });
    assert!(error.to_string().contains("Configure one policy with all filters"), "{error}");
    policies("auto@16").with(Arc::new(slatedb::BloomFilterPolicy::new(10))).expect("another name");
}
