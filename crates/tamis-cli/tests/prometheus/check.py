"""Parses a file of metrics with the client of Prometheus, and checks names, types, labels and values."""

import math
import re
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict
from prometheus_client.parser import text_string_to_metric_families

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
families = list(text_string_to_metric_families(text))
# OpenMetrics names the family of a counter without `_total`, and ends with a line.
list(strict(re.sub(r"^(# (?:HELP|TYPE) \S+)_total ", r"\1 ", text, flags=re.M) + "# EOF\n"))
samples = [(family, sample) for family in families for sample in family.samples]
assert len(families) > 50 and len(samples) > len(families), (len(families), len(samples))
seen = set()
for family, sample in samples:
    assert family.type in ("counter", "gauge") and family.documentation.endswith("."), family
    assert (family.type == "counter") == sample.name.endswith("_total"), sample
    assert re.fullmatch(r"tamis_[a-z0-9_]+", sample.name) and not re.search("micro|milli|nano", sample.name), sample
    assert math.isfinite(sample.value) and sample.value >= 0, sample
    series = (sample.name, tuple(sorted(sample.labels.items())))
    assert series not in seen, f"{series} occurs twice"
    seen.add(series)
keyspaces = {sample.labels["keyspace"] for _, sample in samples if "keyspace" in sample.labels}
assert keyspaces == {"default", 'a\\b"c'}, keyspaces
print(f"{len(families)} families, {len(samples)} series")
