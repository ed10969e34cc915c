//! The encoding of keyspace options in the manifest (`docs/format/manifest.md`, "Options").
//!
//! Each option has a tag, flags and a length. A flag allows a program that does not know the option to ignore it. A missing
//! option has its default. A value outside its bounds is refused like damage.

use std::time::Duration;

use super::tagged_record::{IGNORABLE, put_tagged, take_tagged};
use crate::{
    coding::{Decoder, put_bytes, put_u32, put_varint},
    merge_operator::MergeOperator,
    options::{
        Compression, FilterBudget, FilterSource, Filters, KeyspaceOptions, Layout, TableFilter, Views,
    },
};

const MEMTABLE_BYTES: u64 = 1;
const BLOCK_BYTES: u64 = 2;
const TABLE_BYTES: u64 = 3;
const COMPRESSION: u64 = 4;
const FILTERS: u64 = 5;
const SIZE_RATIO: u64 = 6;
const LEVEL0_RUNS: u64 = 7;
const LAYOUT: u64 = 8;
const VIEWS: u64 = 9;
const MERGE: u64 = 10;
const EXPIRE_AFTER: u64 = 11;
const KEY_CODEC: u64 = 12;

/// Kinds of layouts. The leveled layout is the one of keyspaces without the option.
const LAYOUT_TIERED: u8 = 1;
const LAYOUT_PARTITIONED: u8 = 2;

/// Kinds of [`FILTERS`].
const GIVEN: u8 = 0;
const AUTOMATIC_BITS: u8 = 1;
const AUTOMATIC_BYTES: u8 = 2;

/// A varint length and the tagged options.
pub(super) fn encode(options: &KeyspaceOptions, target: &mut Vec<u8>) {
    let numbers = [
        (MEMTABLE_BYTES, options.memtable_bytes),
        (BLOCK_BYTES, u64::from(options.block_bytes)),
        (TABLE_BYTES, options.table_bytes),
        (SIZE_RATIO, u64::from(options.size_ratio)),
        (LEVEL0_RUNS, u64::from(options.level0_runs)),
    ];
    let mut list = Vec::new();
    let mut body = Vec::new();
    for (tag, number) in numbers {
        body.clear();
        put_varint(&mut body, number);
        put_tagged(&mut list, tag, 0, &body);
    }
    body.clear();
    for compression in &options.compression {
        let (kind, level) = match compression {
            Compression::None => (0, 0),
            Compression::Lz4 => (1, 0),
            Compression::Zstd(level) => (2, *level),
        };
        body.extend_from_slice(&[kind, level]);
    }
    put_tagged(&mut list, COMPRESSION, 0, &body);
    body.clear();
    put_filters(&mut body, &options.filters);
    put_tagged(&mut list, FILTERS, 0, &body);
    let layout = match options.layout {
        Layout::Leveled => None,
        Layout::Tiered { runs_per_level, space_amplification_percent } => {
            Some((LAYOUT_TIERED, vec![runs_per_level, space_amplification_percent]))
        }
        Layout::Partitioned { tables_per_partition } => {
            Some((LAYOUT_PARTITIONED, vec![tables_per_partition]))
        }
    };
    if let Some((kind, parameters)) = layout {
        body.clear();
        body.push(kind);
        parameters.into_iter().for_each(|parameter| put_varint(&mut body, u64::from(parameter)));
        put_tagged(&mut list, LAYOUT, 0, &body);
    }
    if let Some(kind) = views_number(options.views) {
        put_tagged(&mut list, VIEWS, IGNORABLE, &[kind]);
    }
    if let Some(operator) = &options.merge {
        put_tagged(&mut list, MERGE, 0, operator.name().as_bytes());
    }
    if let Some(age) = options.expire_after {
        body.clear();
        put_varint(&mut body, u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        put_tagged(&mut list, EXPIRE_AFTER, 0, &body);
    }
    if !options.key_codec.is_empty() {
        put_tagged(&mut list, KEY_CODEC, IGNORABLE, options.key_codec.as_bytes());
    }
    put_bytes(target, &list);
}

/// `None` for the value of keyspaces without the option.
const fn views_number(views: Views) -> Option<u8> {
    match views {
        Views::Auto => None,
        Views::On => Some(1),
        Views::Off => Some(2),
    }
}

fn take_views(source: &mut Decoder<'_>) -> Option<Views> {
    let number = source.take_u8()?;
    [Views::On, Views::Off].into_iter().find(|&views| views_number(views) == Some(number))
}

fn put_filters(body: &mut Vec<u8>, filters: &Filters) {
    match filters.source() {
        FilterSource::Chosen(FilterBudget::BitsPerKey(bits)) => {
            body.push(AUTOMATIC_BITS);
            put_u32(body, bits.to_bits());
        }
        FilterSource::Chosen(FilterBudget::Bytes(bytes)) => {
            body.push(AUTOMATIC_BYTES);
            put_varint(body, *bytes);
        }
        FilterSource::Given(levels) => {
            body.push(GIVEN);
            for level in levels {
                put_varint(body, level.len() as u64);
                level.iter().for_each(|filter| put_bytes(body, filter.to_string().as_bytes()));
            }
        }
    }
}

/// `None` for bytes that [`encode`] can't have written.
pub(super) fn decode(source: &mut Decoder<'_>) -> Option<KeyspaceOptions> {
    let mut list = Decoder::new(source.take_bytes()?);
    let mut options = KeyspaceOptions::default();
    while !list.is_empty() {
        let (tag, flags, body) = take_tagged(&mut list)?;
        let mut body = Decoder::new(body);
        match tag {
            MEMTABLE_BYTES => options.memtable_bytes = body.take_varint()?,
            BLOCK_BYTES => options.block_bytes = u32::try_from(body.take_varint()?).ok()?,
            TABLE_BYTES => options.table_bytes = body.take_varint()?,
            COMPRESSION => options.compression = take_compression(&mut body)?,
            FILTERS => options.filters = take_filters(&mut body)?,
            SIZE_RATIO => options.size_ratio = u32::try_from(body.take_varint()?).ok()?,
            LAYOUT => options.layout = take_layout(&mut body)?,
            VIEWS => options.views = take_views(&mut body)?,
            LEVEL0_RUNS => options.level0_runs = u32::try_from(body.take_varint()?).ok()?,
            MERGE => {
                let name = std::str::from_utf8(body.take_rest()).ok()?;
                options.merge = Some(MergeOperator::stored(name)?);
            }
            EXPIRE_AFTER => options.expire_after = Some(Duration::from_millis(body.take_varint()?)),
            KEY_CODEC => options.key_codec = String::from_utf8(body.take_rest().to_vec()).ok()?,
            _ if flags & IGNORABLE != 0 => continue,
            _ => return None,
        }
        if !body.is_empty() {
            return None;
        }
    }
    options.check_bounds().is_ok().then_some(options)
}

/// An option, or a filter in an option, that this program does not know and must not ignore: which of both, and its tag or name.
pub(super) fn unknown_part(source: &mut Decoder<'_>) -> Option<(&'static str, String)> {
    let mut list = Decoder::new(source.take_bytes()?);
    while !list.is_empty() {
        let (tag, flags, body) = take_tagged(&mut list)?;
        if !(MEMTABLE_BYTES..=KEY_CODEC).contains(&tag) && flags & IGNORABLE == 0 {
            return Some(("option", tag.to_string()));
        }
        if tag == FILTERS
            && let Some(name) = unknown_filter(&mut Decoder::new(body))
        {
            return Some(("filter", name));
        }
    }
    None
}

/// The first filter of a list per level whose family or parameters this program does not know.
fn unknown_filter(body: &mut Decoder<'_>) -> Option<String> {
    if body.take_u8()? != GIVEN {
        return None;
    }
    while !body.is_empty() {
        for _ in 0..body.take_varint()? {
            let name = std::str::from_utf8(body.take_bytes()?).ok()?;
            if name.parse::<TableFilter>().is_err() {
                return Some(name.to_owned());
            }
        }
    }
    None
}

fn take_layout(body: &mut Decoder<'_>) -> Option<Layout> {
    let kind = body.take_u8()?;
    let mut parameter = || u32::try_from(body.take_varint()?).ok();
    match kind {
        LAYOUT_TIERED => {
            Some(Layout::Tiered { runs_per_level: parameter()?, space_amplification_percent: parameter()? })
        }
        LAYOUT_PARTITIONED => Some(Layout::Partitioned { tables_per_partition: parameter()? }),
        _ => None,
    }
}

fn take_compression(body: &mut Decoder<'_>) -> Option<Vec<Compression>> {
    let mut list = Vec::new();
    while !body.is_empty() {
        list.push(match (body.take_u8()?, body.take_u8()?) {
            (0, 0) => Compression::None,
            (1, 0) => Compression::Lz4,
            (2, level) => Compression::Zstd(level),
            _ => return None,
        });
    }
    Some(list)
}

fn take_filters(body: &mut Decoder<'_>) -> Option<Filters> {
    match body.take_u8()? {
        GIVEN => {}
        AUTOMATIC_BITS => return Some(Filters::auto(f32::from_bits(body.take_u32()?))),
        AUTOMATIC_BYTES => return Some(Filters::auto_bytes(body.take_varint()?)),
        _ => return None,
    }
    let mut levels = Vec::new();
    while !body.is_empty() {
        levels.push(take_level(body)?);
    }
    Some(Filters::per_level(levels))
}

fn take_level(body: &mut Decoder<'_>) -> Option<Vec<TableFilter>> {
    let mut level = Vec::new();
    for _ in 0..body.take_varint()? {
        level.push(std::str::from_utf8(body.take_bytes()?).ok()?.parse().ok()?);
    }
    Some(level)
}
