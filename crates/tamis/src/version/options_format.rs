//! The encoding of keyspace options in the manifest (`docs/format/manifest.md`, "Options").
//!
//! Each option has a tag, flags and a length. A flag allows a program that does not know the option to ignore it. A missing
//! option has its default. A value outside its bounds is refused like damage.

use std::time::Duration;

use super::tagged_record::{IGNORABLE, put_tagged, take_tagged};
use crate::{
    coding::{Decoder, numbered, put_bytes, put_u32, put_varint},
    merge_operator::MergeOperator,
    options::{
        Compression, FilterBudget, FilterSource, Filters, KeyspaceOptions, Layout, TableFilter, Views,
    },
};

numbered! {
    /// The tags of options.
    enum Tag: u64 {
        MemtableBytes = 1,
        BlockBytes = 2,
        TableBytes = 3,
        Compression = 4,
        Filters = 5,
        SizeRatio = 6,
        Level0Runs = 7,
        Layout = 8,
        Views = 9,
        Merge = 10,
        ExpireAfter = 11,
        KeyCodec = 12,
    }
}

numbered! {
    /// The layouts but the leveled one, which is that of keyspaces without the option.
    enum StoredLayout: u8 {
        Tiered = 1,
        Partitioned = 2,
    }
}

numbered! {
    /// How filters are given.
    enum StoredFilters: u8 {
        PerLevel = 0,
        BitsPerKey = 1,
        Bytes = 2,
    }
}

/// A varint length and the tagged options.
pub(super) fn encode(options: &KeyspaceOptions, target: &mut Vec<u8>) {
    let numbers = [
        (Tag::MemtableBytes, options.memtable_bytes),
        (Tag::BlockBytes, u64::from(options.block_bytes)),
        (Tag::TableBytes, options.table_bytes),
        (Tag::SizeRatio, u64::from(options.size_ratio)),
        (Tag::Level0Runs, u64::from(options.level0_runs)),
    ];
    let mut list = Vec::new();
    let mut body = Vec::new();
    for (tag, number) in numbers {
        body.clear();
        put_varint(&mut body, number);
        put_tagged(&mut list, tag as u64, 0, &body);
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
    put_tagged(&mut list, Tag::Compression as u64, 0, &body);
    body.clear();
    put_filters(&mut body, &options.filters);
    put_tagged(&mut list, Tag::Filters as u64, 0, &body);
    let layout = match options.layout {
        Layout::Leveled => None,
        Layout::Tiered { runs_per_level, space_amplification_percent } => {
            Some((StoredLayout::Tiered, vec![runs_per_level, space_amplification_percent]))
        }
        Layout::Partitioned { tables_per_partition } => {
            Some((StoredLayout::Partitioned, vec![tables_per_partition]))
        }
    };
    if let Some((kind, parameters)) = layout {
        body.clear();
        body.push(kind as u8);
        parameters.into_iter().for_each(|parameter| put_varint(&mut body, u64::from(parameter)));
        put_tagged(&mut list, Tag::Layout as u64, 0, &body);
    }
    if let Some(kind) = views_number(options.views) {
        put_tagged(&mut list, Tag::Views as u64, IGNORABLE, &[kind]);
    }
    if let Some(operator) = &options.merge {
        put_tagged(&mut list, Tag::Merge as u64, 0, operator.name().as_bytes());
    }
    if let Some(age) = options.expire_after {
        body.clear();
        put_varint(&mut body, u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        put_tagged(&mut list, Tag::ExpireAfter as u64, 0, &body);
    }
    if !options.key_codec.is_empty() {
        put_tagged(&mut list, Tag::KeyCodec as u64, IGNORABLE, options.key_codec.as_bytes());
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
            body.push(StoredFilters::BitsPerKey as u8);
            put_u32(body, bits.to_bits());
        }
        FilterSource::Chosen(FilterBudget::Bytes(bytes)) => {
            body.push(StoredFilters::Bytes as u8);
            put_varint(body, *bytes);
        }
        FilterSource::Given(levels) => {
            body.push(StoredFilters::PerLevel as u8);
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
        let Some(tag) = Tag::from_number(tag) else {
            if flags & IGNORABLE != 0 {
                continue;
            }
            return None;
        };
        match tag {
            Tag::MemtableBytes => options.memtable_bytes = body.take_varint()?,
            Tag::BlockBytes => options.block_bytes = u32::try_from(body.take_varint()?).ok()?,
            Tag::TableBytes => options.table_bytes = body.take_varint()?,
            Tag::Compression => options.compression = take_compression(&mut body)?,
            Tag::Filters => options.filters = take_filters(&mut body)?,
            Tag::SizeRatio => options.size_ratio = u32::try_from(body.take_varint()?).ok()?,
            Tag::Layout => options.layout = take_layout(&mut body)?,
            Tag::Views => options.views = take_views(&mut body)?,
            Tag::Level0Runs => options.level0_runs = u32::try_from(body.take_varint()?).ok()?,
            Tag::Merge => {
                let name = std::str::from_utf8(body.take_rest()).ok()?;
                options.merge = Some(MergeOperator::stored(name)?);
            }
            Tag::ExpireAfter => options.expire_after = Some(Duration::from_millis(body.take_varint()?)),
            Tag::KeyCodec => options.key_codec = String::from_utf8(body.take_rest().to_vec()).ok()?,
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
        let known = Tag::from_number(tag);
        if known.is_none() && flags & IGNORABLE == 0 {
            return Some(("option", tag.to_string()));
        }
        if known == Some(Tag::Filters)
            && let Some(name) = unknown_filter(&mut Decoder::new(body))
        {
            return Some(("filter", name));
        }
    }
    None
}

/// The first filter of a list per level whose family or parameters this program does not know.
fn unknown_filter(body: &mut Decoder<'_>) -> Option<String> {
    if body.take_u8()? != StoredFilters::PerLevel as u8 {
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
    let kind = StoredLayout::from_number(body.take_u8()?)?;
    let mut parameter = || u32::try_from(body.take_varint()?).ok();
    Some(match kind {
        StoredLayout::Tiered => {
            Layout::Tiered { runs_per_level: parameter()?, space_amplification_percent: parameter()? }
        }
        StoredLayout::Partitioned => Layout::Partitioned { tables_per_partition: parameter()? },
    })
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
    match StoredFilters::from_number(body.take_u8()?)? {
        StoredFilters::PerLevel => {}
        StoredFilters::BitsPerKey => return Some(Filters::auto(f32::from_bits(body.take_u32()?))),
        StoredFilters::Bytes => return Some(Filters::auto_bytes(body.take_varint()?)),
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
