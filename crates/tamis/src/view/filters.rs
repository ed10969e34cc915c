//! The filters of a view: keys and ranges that they reject are in no run, so that no block is read for them.
//!
//! Filters that were built together have the keys of the same runs: a **group**. A rebuild copies the groups of the old view and
//! adds one with the keys of the new runs, so that it needs no key of the old runs. A group has its keys in **parts** of bounded size, one
//! after the other (`filter_builder.rs`). A key may be in the view if all filters of its part of one group admit it.
//!
//! A part begins with its first key, so a range that contains the first key of a part is not empty. Any other range is within one part
//! of a group. So one part per group is probed for a key or a range, for a view of any size.
//!
//! Filters are derived data: if one cannot be used, none is used, and answers stay the same.

use std::ops::{Bound, Range};

use tamis_filter::{Digester, KeyRange, Probe, RangeProbe};

use crate::{
    coding::Decoder,
    error::Result,
    options::TableFilter,
    query_sample::SampledQuery,
    table::{
        filter_block::FilterBlock,
        filter_choice::{FilterChoice, NamedChoice},
        format::{KIND_FILTER, KIND_VIEW_FILTER_CHOICES, KIND_VIEW_FILTER_PARTS},
        section::{SectionBytes, SectionRecord, Source},
    },
};

/// Consecutive keys of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilterPart {
    pub(super) first_key: Vec<u8>,
    /// The number of its filters. Without filters, it admits all keys from its first key on.
    pub(super) filter_count: u32,
    /// Why the filters were chosen ([`FilterChoice::encode`]); `None` if they were given.
    pub(super) choice: Option<Vec<u8>>,
}

/// A part, with the numbers of the runs whose keys it has.
pub(super) type PartOfRuns<'a> = (&'a Range<u32>, &'a FilterPart);

/// The parts whose filters the store chose, with their numbers and encoded choices.
pub(super) fn chosen<'a>(
    parts: impl Iterator<Item = PartOfRuns<'a>>,
) -> impl Iterator<Item = (usize, &'a Range<u32>, &'a [u8])> {
    parts
        .enumerate()
        .filter_map(|(number, (runs, part))| part.choice.as_deref().map(|choice| (number, runs, choice)))
}

/// Why the filters of a part were chosen.
pub(super) struct PartChoice<'a> {
    /// The numbers of the runs whose keys its group has.
    pub(super) runs: &'a Range<u32>,
    /// Parts of its group, of about equal size.
    pub(super) part_count: u64,
    pub(super) named: &'a NamedChoice,
}

/// A part that admits many of the sampled queries.
#[derive(Debug)]
pub(crate) struct AskedPart {
    /// The numbers of the runs whose keys it has, in the order of the view.
    pub(super) runs: Range<u32>,
    pub(super) first_key: Vec<u8>,
    /// The first key of the next part.
    pub(super) end: Option<Vec<u8>>,
    /// The specifications of its filters; `None` if they are not known.
    pub(crate) filters: Option<Vec<TableFilter>>,
}

#[derive(Debug)]
struct OpenFilter {
    filter: FilterBlock,
    bytes: SectionBytes,
}

#[derive(Debug)]
struct OpenPart {
    part: FilterPart,
    /// The decoded choice of the part.
    choice: Option<NamedChoice>,
    /// All of them have all keys of the part.
    filters: Vec<OpenFilter>,
}

#[derive(Debug)]
struct Group {
    runs: Range<u32>,
    /// In key order.
    parts: Vec<OpenPart>,
}

impl OpenPart {
    /// The specifications of its filters, if they were chosen, or are those that a rebuild adds.
    fn specifications(&self) -> Option<Vec<TableFilter>> {
        if let Some(named) = &self.choice {
            return Some(named.choice.chosen.filters.clone());
        }
        let given = TableFilter::for_ranges();
        let is_given = |filter: &OpenFilter| filter.filter.family() == given.spec().family();
        self.filters.iter().all(is_given).then(|| self.filters.iter().map(|_| given.clone()).collect())
    }
}

impl Group {
    /// The number of parts that begin at or before a key: the last of them has the key.
    fn parts_up_to(&self, key: &[u8]) -> usize {
        self.parts.partition_point(|open| open.part.first_key.as_slice() <= key)
    }

    /// Whether the filters of the last of these parts admit something. Without a part, no key is there.
    fn admits(&self, part_count: usize, admits: impl Fn(&FilterBlock) -> bool) -> bool {
        let part = part_count.checked_sub(1).and_then(|last| self.parts.get(last));
        part.is_some_and(|part| part.filters.iter().all(|filter| admits(&filter.filter)))
    }

    /// The false positives of ranges within one part that the filters expect; a part without filters for ranges admits all.
    fn expected_range_rate(&self) -> f64 {
        let of_part = |part: &OpenPart| {
            let rates = part.filters.iter().filter_map(|filter| filter.filter.expected_range_rate());
            rates.reduce(f64::min).unwrap_or(1.0)
        };
        self.parts.iter().map(of_part).sum::<f64>() / self.parts.len() as f64
    }

    /// The number of parts of which the last has all keys of a range; `None` for a range that contains the first key of a part.
    fn parts_before(&self, range: &KeyRange<'_>) -> Option<usize> {
        let part_count = self.parts_up_to(range.lower_bytes());
        let next = self.parts.get(part_count);
        (!next.is_some_and(|next| range.contains(&next.part.first_key))).then_some(part_count)
    }

    fn may_contain_range(&self, probe: &RangeProbe<'_>) -> bool {
        let part_count = self.parts_before(probe.range());
        part_count.is_none_or(|count| self.admits(count, |filter| filter.may_contain_range(probe)))
    }

    /// The number of the part whose filters admit a query; `None` without one, and for a query that contains the first key of a part.
    fn admitting_part(&self, query: &SampledQuery, digester: &Digester) -> Option<usize> {
        let range = query.range();
        let part_count = self.parts_before(&range).filter(|_| range.lower != Bound::Unbounded)?;
        let probe = RangeProbe::new(range, digester);
        self.admits(part_count, |filter| filter.may_contain_range(&probe)).then(|| part_count - 1)
    }

    /// For each part, the queries that its filters admit.
    fn admitted_counts(&self, queries: &[SampledQuery], digester: &Digester) -> Vec<u64> {
        let mut counts = vec![0; self.parts.len()];
        for query in queries {
            let part = self.admitting_part(query, digester);
            if let Some(count) = part.and_then(|part| counts.get_mut(part)) {
                *count += u64::from(query.weight);
            }
        }
        counts
    }
}

/// Takes the next part of the section that names them, and its runs.
fn take_part(source: &mut Decoder<'_>) -> Option<(Range<u32>, FilterPart)> {
    let runs = source.take_u32()?..source.take_u32()?;
    let filter_count = source.take_u32()?;
    let length = source.take_u32()? as usize;
    Some((runs, FilterPart { first_key: source.take(length)?.to_vec(), filter_count, choice: None }))
}

/// Takes the next choice of the section that has them: the number of a part, and its encoded choice.
fn take_choice<'a>(source: &mut Decoder<'a>) -> Option<(u32, &'a [u8])> {
    let (part, length) = (source.take_u32()?, source.take_u32()? as usize);
    Some((part, source.take(length)?))
}

/// See the head of this file. Groups follow each other.
#[derive(Debug, Default)]
pub(super) struct ViewFilters(Vec<Group>);

impl ViewFilters {
    /// Opens all filters. Refuses filters that do not have the keys of all runs.
    pub(super) fn open(source: &Source, records: &[SectionRecord], run_count: usize) -> Result<Self> {
        let Some(parts_record) = records.iter().find(|record| record.kind == KIND_VIEW_FILTER_PARTS) else {
            return Ok(Self::default());
        };
        let body = source.section(parts_record)?;
        let mut rest = Decoder::new(body.as_ref());
        let mut filter_records = records.iter().filter(|record| record.kind == KIND_FILTER);
        let mut groups: Vec<Group> = Vec::new();
        let damaged = |got: String| {
            source.damaged(parts_record.offset, "filter parts", format!("all of {run_count} runs"), got)
        };
        while !rest.rest().is_empty() {
            let (runs, part) = take_part(&mut rest).ok_or_else(|| damaged("half a part".to_owned()))?;
            let mut filters = Vec::new();
            for record in filter_records.by_ref().take(part.filter_count as usize) {
                let bytes = source.section(record)?;
                let filter = FilterBlock::open(bytes.clone())
                    .map_err(|reason| source.damaged(record.offset, "filter", "a known family", reason))?;
                filters.push(OpenFilter { filter, bytes });
            }
            if filters.len() != part.filter_count as usize {
                return Err(damaged(format!("{} filters of a part", filters.len())));
            }
            let part = OpenPart { part, choice: None, filters };
            match groups.last_mut().filter(|group| group.runs == runs) {
                Some(group) => group.parts.push(part),
                None => groups.push(Group { runs, parts: vec![part] }),
            }
        }
        let mut filters = Self(groups);
        filters.add_choices(source, records)?;
        if filter_records.next().is_none() && filters.have_all_runs(run_count) {
            return Ok(filters);
        }
        Err(damaged(format!("{:?}", filters.0.iter().map(|group| &group.runs).collect::<Vec<_>>())))
    }

    /// Reads why the filters were chosen. A choice that can't be decoded is ignored: later versions may write others.
    fn add_choices(&mut self, source: &Source, records: &[SectionRecord]) -> Result<()> {
        let Some(record) = records.iter().find(|record| record.kind == KIND_VIEW_FILTER_CHOICES) else {
            return Ok(());
        };
        let body = source.section(record)?;
        let mut rest = Decoder::new(body.as_ref());
        // Parts that have no choice yet, with their numbers: those of the choices ascend.
        let mut parts = (0_u32..).zip(self.0.iter_mut().flat_map(|group| &mut group.parts));
        while !rest.is_empty() {
            let taken = take_choice(&mut rest).and_then(|(part, choice)| {
                parts.find(|(number, _)| *number == part).map(|(_, open)| (open, choice))
            });
            let (open, choice) = taken.ok_or_else(|| {
                let expected = "choices of parts, in their order";
                source.damaged(record.offset, "filter choices", expected, "others")
            })?;
            open.choice = FilterChoice::decode(choice).map(NamedChoice::new);
            open.part.choice = open.choice.as_ref().map(|_| choice.to_vec());
        }
        Ok(())
    }

    fn have_all_runs(&self, run_count: usize) -> bool {
        let mut end = 0;
        for group in &self.0 {
            let is_in_order =
                group.parts.is_sorted_by(|before, after| before.part.first_key < after.part.first_key);
            if group.runs.start != end || group.runs.is_empty() || !is_in_order {
                return false;
            }
            end = group.runs.end;
        }
        end as usize == run_count
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn admit_in_part(&self, key: &[u8], admits: impl Fn(&FilterBlock) -> bool) -> bool {
        self.is_empty() || self.0.iter().any(|group| group.admits(group.parts_up_to(key), &admits))
    }

    /// Whether a run may have the key; `false` is certain. `true` without filters.
    pub(super) fn may_contain(&self, probe: &Probe<'_>) -> bool {
        self.admit_in_part(probe.key(), |filter| filter.may_contain(probe))
    }

    /// Whether a run may have a key of a range with a lower bound; `false` is certain. `true` without filters.
    pub(super) fn may_contain_range(&self, range: &KeyRange<'_>, digester: &Digester) -> bool {
        if self.is_empty() {
            return true;
        }
        let probe = RangeProbe::new(*range, digester);
        self.0.iter().any(|group| group.may_contain_range(&probe))
    }

    /// The false positives of closed ranges that the filters expect; NaN if that is not known.
    pub(super) fn expected_range_rate(&self) -> f64 {
        1.0 - self.0.iter().map(|group| 1.0 - group.expected_range_rate()).product::<f64>()
    }

    /// The names of the families of all filters.
    pub(super) fn families(&self) -> impl Iterator<Item = &'static str> {
        self.filters().map(|(_, filter)| filter.filter.family().name())
    }

    /// Whether they admit a key of the view, as a point and as ranges that contain it.
    pub(super) fn admit_key(&self, key: &[u8], digester: &Digester) -> bool {
        let probe = Probe::new(key, digester);
        self.admit_in_part(key, |filter| filter.admits(&probe, digester))
    }

    /// The parts of all groups, with the numbers of the runs whose keys they have.
    pub(super) fn parts(&self) -> impl Iterator<Item = PartOfRuns<'_>> {
        self.0.iter().flat_map(|group| group.parts.iter().map(|open| (&group.runs, &open.part)))
    }

    fn filters(&self) -> impl Iterator<Item = (&Range<u32>, &OpenFilter)> {
        self.0.iter().flat_map(|group| {
            group.parts.iter().flat_map(|open| &open.filters).map(|filter| (&group.runs, filter))
        })
    }

    /// The filters as they are written, in the order of the parts.
    pub(super) fn encoded(&self) -> impl Iterator<Item = &[u8]> {
        self.filters().map(|(_, filter)| filter.bytes.as_ref())
    }

    /// Bytes of the section that names the parts.
    pub(super) fn parts_bytes(&self) -> u64 {
        self.parts().map(|(_, part)| 16 + part.first_key.len() as u64).sum()
    }

    /// Bytes of the section that says why filters were chosen; `None` without one.
    pub(super) fn choices_bytes(&self) -> Option<u64> {
        chosen(self.parts()).map(|(.., choice)| 8 + choice.len() as u64).reduce(|sum, bytes| sum + bytes)
    }

    /// Why the filters of parts were chosen, each with the numbers of the runs.
    pub(super) fn choices(&self) -> Vec<(Range<u32>, FilterChoice)> {
        let found = self.named_choices();
        found.map(|PartChoice { runs, named, .. }| (runs.clone(), named.choice.clone())).collect()
    }

    /// The same with the names of the filters.
    pub(super) fn named_choices(&self) -> impl Iterator<Item = PartChoice<'_>> {
        self.0.iter().flat_map(|Group { runs, parts }| {
            let part_count = parts.len() as u64;
            let named = parts.iter().filter_map(|open| open.choice.as_ref());
            named.map(move |named| PartChoice { runs, part_count, named })
        })
    }

    /// The parts that admit the most queries: one of those whose filters were chosen, and one of the others. A part that admits none is
    /// left out.
    pub(super) fn most_asked_parts(&self, queries: &[SampledQuery], digester: &Digester) -> Vec<AskedPart> {
        let counted = self.0.iter().flat_map(|group| {
            let counts = group.admitted_counts(queries, digester);
            counts.into_iter().enumerate().map(move |(number, count)| (count, group, number))
        });
        let counted: Vec<_> = counted.filter(|(count, ..)| *count > 0).collect();
        let most_asked = |is_chosen: bool| {
            let parts = counted.iter().filter_map(|(count, group, number)| {
                let open = group.parts.get(*number)?;
                (open.part.choice.is_some() == is_chosen).then_some((*count, *group, *number, open))
            });
            let (_, group, number, open) = parts.max_by_key(|(count, ..)| *count)?;
            Some(AskedPart {
                runs: group.runs.clone(),
                first_key: open.part.first_key.clone(),
                end: group.parts.get(number + 1).map(|next| next.part.first_key.clone()),
                filters: open.specifications(),
            })
        };
        [true, false].into_iter().filter_map(most_asked).collect()
    }

    /// Descriptions, each with the numbers of the runs.
    pub(super) fn designs(&self) -> Vec<(Range<u32>, String)> {
        self.filters().map(|(runs, filter)| (runs.clone(), filter.filter.design())).collect()
    }
}
