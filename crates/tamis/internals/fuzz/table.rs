//! Tables for fuzzing: a valid table is written, some of its bytes are changed, and every checksum is corrected, so that
//! the decoders behind the checksums are reached. The same for filter files.

use std::{ops::Range, path::Path, sync::Arc};

use tamis_filter::{Digester, Probe};
use tamis_vfs::{Access, MemVfs, Vfs};

use super::{FOLDER, files, folder_in, pieces};
use crate::{
    cache::{block::BlockCache, pinned_cache::PinnedCache},
    coding::{Decoder, checksum},
    cursor::Cursor,
    error::Result,
    file_name::FileName,
    key::{BoundKind, Kind, SEQUENCE_MAX},
    observe::metrics::Metrics,
    options::{Compression, KeyspaceOptions, TableFilter},
    table::{
        environment::{ReadCost, TableEnvironment},
        filter_plan::{FilterPlan, GivenFilters},
        open_files::OpenFiles,
        properties::TableOrigin,
        reader::TableReader,
        refilter::write_filters_of,
        scrub::scrub_unreadable,
        writer::{TableOptions, TableWriter},
    },
};

const NUMBER: u64 = 5;
const FILTER_NUMBER: u64 = 6;

/// A table file of any bytes: an error, or entries in order. The first byte selects how the file is made.
pub fn table(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    if choice & 3 == 2 {
        filter_file(rest);
        return;
    }
    if choice & 7 == 4 {
        outside(rest);
        return;
    }
    if choice & 1 == 0 {
        let _ = read(rest, Access::Buffered);
        let _ = read(rest, Access::Mapped);
        return;
    }
    let compression = [Compression::None, Compression::Lz4, Compression::Zstd(1), Compression::None];
    let compression = compression.get(usize::from(choice >> 1) % 4).copied().unwrap_or(Compression::None);
    let (changes, entries) = rest.split_at_checked(usize::from(choice >> 3) * 4).unwrap_or((&[], rest));
    let Some((mut file, entry_count)) = written(entries, compression) else { return };
    if !change(&mut file, changes) {
        assert_eq!(read(&file, Access::Buffered).expect("a valid table can be read"), entry_count);
    }
    let (buffered, mapped) = (read(&file, Access::Buffered), read(&file, Access::Mapped));
    assert_eq!(buffered.ok(), mapped.ok(), "both access modes read the same");
}

/// A filter file of any bytes, or one that was changed with correct checksums: the table opens, and reads end.
fn filter_file(data: &[u8]) {
    let text: Vec<u8> = (0..200_u8).collect();
    let Some((table, _)) = written(&text, Compression::None) else { return };
    let vfs = files(&[("000005.table", &table)]);
    let reader =
        TableReader::open(&environment(&vfs, Access::Buffered), NUMBER, None).expect("the table is valid");
    let filters = vec![TableFilter::bits(10.0), surf()];
    let given = GivenFilters { filters, ..GivenFilters::default() };
    write_filters_of(&reader, FILTER_NUMBER, &given, 1, &|| Ok(())).expect("memory takes bytes");
    let path = FileName::Filter(FILTER_NUMBER).path(Path::new(FOLDER));
    let mut changed = vfs.read(&path).expect("the filter file was published");
    change(&mut changed, data);
    for bytes in [data, &changed] {
        let vfs = files(&[("000005.table", &table), ("000006.filter", bytes)]);
        for access in [Access::Buffered, Access::Mapped] {
            let environment = environment(&vfs, access);
            let opened = TableReader::open(&environment, NUMBER, Some(FILTER_NUMBER));
            let reader = opened.expect("a damaged filter is ignored");
            let digester = Digester::new(1);
            for key in [b"".as_slice(), b"a", &[7; 40]] {
                reader.may_contain(&Probe::new(key, &digester));
            }
            reader.verify();
        }
    }
}

/// A filter that answers ranges, too.
fn surf() -> TableFilter {
    "surf-mixed:hash=2,real=4".parse().expect("the name of a family")
}

/// A table built outside of a store, of any bytes or changed with correct checksums: an error, or entries in order.
fn outside(data: &[u8]) {
    let Some((&count, rest)) = data.split_first() else { return };
    let (changes, entries) = rest.split_at_checked(usize::from(count) * 4).unwrap_or((&[], rest));
    let mut all = pieces(entries);
    all.retain(|key| !key.is_empty());
    all.sort_unstable();
    all.dedup();
    if all.is_empty() {
        return;
    }
    let vfs: Arc<dyn Vfs> = Arc::new(files(&[]));
    let path = Path::new(FOLDER).join("outside");
    let mut writer = crate::admin::table_writer::TableWriter::create_on(
        Arc::clone(&vfs),
        &path,
        &KeyspaceOptions::default(),
    )
    .expect("memory takes files");
    all.iter().for_each(|key| writer.put(key, key).expect("keys ascend"));
    writer.finish().expect("memory takes bytes");
    let whole = vfs.read(&path).expect("the table was published");
    let mut file = whole.clone();
    let is_changed = change(&mut file, changes);
    let open = |bytes: &[u8]| {
        let vfs = files(&[("000005.table", bytes)]);
        TableReader::open_unnamed(&environment(&vfs, Access::Buffered), NUMBER, 77)
    };
    let _ = open(entries);
    let found = open(&file).and_then(|reader| read_all(&reader, file.len()));
    assert!(is_changed || found.is_ok_and(|count| count == all.len()), "a valid table can be read");
}

/// The bytes of a table whose keys and values are pieces of the input, and its number of entries.
fn written(data: &[u8], compression: Compression) -> Option<(Vec<u8>, usize)> {
    let all = pieces(data);
    let mut entries: Vec<(&[u8], u64, &[u8])> = Vec::new();
    for (sequence, pair) in (1..).zip(all.chunks_exact(2)) {
        if let [key, value] = pair {
            entries.push((key, sequence, value));
        }
    }
    entries.retain(|(key, ..)| !key.is_empty());
    entries.sort_by(|left, right| left.0.cmp(right.0).then(right.1.cmp(&left.1)));
    let vfs = files(&[]);
    let options = TableOptions {
        block_bytes: 4096,
        compression,
        filters: FilterPlan::given(vec![TableFilter::bits(10.0), surf()]),
        filter_seed: 1,
        origin: TableOrigin::default(),
        is_direct: false,
        listener: None,
    };
    let mut writer = TableWriter::create(&folder_in(&vfs), NUMBER, options).expect("memory takes files");
    for (key, sequence, value) in &entries {
        let kind = if value.is_empty() { Kind::Tombstone } else { Kind::Put };
        writer.add(key, *sequence, kind, value).expect("entries come in order");
    }
    if entries.is_empty() {
        writer.abandon().expect("memory removes files");
        return None;
    }
    writer.finish().expect("memory takes bytes");
    let path = FileName::Table(NUMBER).path(Path::new(FOLDER));
    Some((vfs.read(&path).expect("the table was published"), entries.len()))
}

/// Changes bytes of the file, four of the input each (offset, value), and corrects the checksums of all parts. Returns
/// whether anything changed.
fn change(file: &mut [u8], changes: &[u8]) -> bool {
    let parts = parts(file).expect("a valid table has all its parts");
    let before = file.to_vec();
    for change in changes.chunks_exact(4) {
        let mut source = Decoder::new(change);
        let (Some(low), Some(high), Some(value)) = (source.take_u16(), source.take_u8(), source.take_u8())
        else {
            continue;
        };
        let offset = (usize::from(low) | usize::from(high) << 16) % file.len();
        if let Some(byte) = file.get_mut(offset) {
            *byte ^= value;
        }
    }
    let is_changed = file != before;
    for part in parts {
        fix_checksum(file, part);
    }
    is_changed
}

/// The checksum of a block or section is its first field, that of the footer its last.
fn fix_checksum(file: &mut [u8], part: Range<usize>) {
    let (offset, is_footer) = (part.start as u64, part.end == file.len());
    let Some(bytes) = file.get_mut(part) else { return };
    if is_footer {
        if let Some((covered, stored)) = bytes.split_last_chunk_mut::<8>() {
            *stored = checksum(offset, covered).to_le_bytes();
        }
    } else if let Some((stored, covered)) = bytes.split_first_chunk_mut::<8>() {
        *stored = checksum(offset, covered).to_le_bytes();
    }
}

/// The blocks, sections, directory and footer of a valid table.
fn parts(file: &[u8]) -> Option<Vec<Range<usize>>> {
    let range = |offset: u64, length: u64| offset as usize..(offset + length) as usize;
    let footer = file.len().checked_sub(64)?..file.len();
    let mut source = Decoder::new(file.get(footer.start + 16..)?);
    let directory = range(source.take_u64()?, source.take_u64()?);
    let mut found = vec![footer, directory.clone()];
    let mut records = Decoder::new(file.get(directory)?.get(64..)?);
    while let (Some(kind), Some(_), Some(offset), Some(length)) =
        (records.take_u32(), records.take_u32(), records.take_u64(), records.take_u64())
    {
        let section = range(offset, length);
        if kind == 1 {
            found.extend(blocks(file.get(section.clone())?.get(64..)?)?);
        }
        found.push(section);
    }
    Some(found)
}

/// The extents of the blocks in an index.
fn blocks(index: &[u8]) -> Option<Vec<Range<usize>>> {
    let mut source = Decoder::new(index);
    let (count, _, flags, block_bytes) =
        (source.take_u32()? as usize, source.take_u32()?, source.take_u32()?, source.take_u32()? as usize);
    let mut positions = Decoder::new(index.get(32 + 8 * count..)?);
    let mut take = || {
        if flags & 1 == 1 {
            positions.take_u64().map(|position| position as usize)
        } else {
            positions.take_u32().map(|position| position as usize * block_bytes)
        }
    };
    let ends: Vec<usize> = (0..=count).map(|_| take()).collect::<Option<_>>()?;
    Some(ends.windows(2).filter_map(|pair| Some(*pair.first()?..*pair.last()?)).collect())
}

pub(super) fn environment(vfs: &MemVfs, access: Access) -> Arc<TableEnvironment> {
    let metrics = Arc::new(Metrics::default());
    Arc::new(TableEnvironment {
        folder: folder_in(vfs),
        access,
        open_files: OpenFiles::new(vfs),
        cache: Arc::new(BlockCache::new(1 << 20)),
        pinned_cache: PinnedCache::new(1 << 20, &Arc::default(), &metrics, None),
        metrics,
        listener: None,
    })
}

/// Opens a table and reads it in every way; returns the number of entries of a scan.
fn read(bytes: &[u8], access: Access) -> Result<usize> {
    let vfs = files(&[("000005.table", bytes)]);
    let environment = environment(&vfs, access);
    let opened = TableReader::open(&environment, NUMBER, None);
    let reader = opened.inspect_err(|why| drop(scrub_unreadable(&environment, NUMBER, why.clone())))?;
    read_all(&reader, bytes.len())
}

fn read_all(reader: &Arc<TableReader>, length: usize) -> Result<usize> {
    let mut cursor = reader.cursor();
    let mut count = 0_usize;
    cursor.seek_first()?;
    while cursor.is_valid() {
        count += 1;
        assert!(count <= length * 256, "a walk ends");
        let key = cursor.key().to_vec();
        let _ = reader.get(&key, SEQUENCE_MAX, &mut ReadCost::default());
        cursor.next()?;
    }
    for key in [b"".as_slice(), b"a", &[0xFF; 40]] {
        let _ = reader.get(key, SEQUENCE_MAX, &mut ReadCost::default());
        let _ = reader.cursor().seek(key, 0);
        let _ = reader.cursor().seek_for_prev(key, BoundKind::Included);
    }
    let mut back = reader.cursor();
    let mut back_count = 0_usize;
    back.seek_last()?;
    while back.is_valid() {
        back_count += 1;
        assert!(back_count <= length * 256, "a walk ends");
        back.prev()?;
    }
    reader.verify();
    Ok(count)
}
