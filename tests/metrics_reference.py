# SPDX-License-Identifier: Apache-2.0
"""Compares /metrics with docs/metrics.md, and rules and dashboard with both.

    python3 metrics_reference.py pages docs/metrics.md PAGE...   names, types and labels of the pages' metrics are those of the tables
    python3 metrics_reference.py uses docs/metrics.md FILE...    the files name only metrics that are in the tables
    python3 metrics_reference.py alerts RULES docs/alerts.md     each alert has its heading, and each heading its alert
    python3 metrics_reference.py cases RULES TESTS...            each alert begins in one of the tests of promtool
    python3 metrics_reference.py kinds docs/metrics.md src       its kinds of operations are those that the program resumes, and all are counted
    python3 metrics_reference.py expressions DASHBOARD           prints the dashboard's expressions, with its variable filled in
"""
import json
import pathlib
import re
import sys

SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="(?:[^"\\]|\\.)*"')


def read_tables(path):
    """name -> (type, set of labels)"""
    metrics = {}
    for line in open(path, encoding="utf-8"):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        name = re.fullmatch(r"`((?:skycap|process)_[a-z_]+)`", cells[0])
        if not name or len(cells) != 4:
            continue
        if name[1] in metrics:
            sys.exit(f"{path} has {name[1]} twice")
        metrics[name[1]] = cells[1], frozenset(re.findall(r"`([a-z]+)`", cells[2]))
    return metrics


def base_of(name, types):
    """The family of a sample."""
    for suffix in ("_bucket", "_sum", "_count"):
        family = name.removesuffix(suffix)
        if family != name and types.get(family) == "histogram":
            return family
    return name


def read_page(path, types, helps, labels, problems):
    seen = set()
    for line in open(path, encoding="utf-8").read().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            if name in seen:
                problems.append(f"{path}: {name} is there twice")
            seen.add(name)
            types[name] = kind
        elif line.startswith("# HELP "):
            helps.add(line.split(" ", 3)[2])
        else:
            sample = SAMPLE.match(line)
            if not sample:
                problems.append(f"{path}: no sample: {line}")
                continue
            family = base_of(sample[1], types)
            if family not in seen:
                problems.append(f"{path}: {sample[1]} has no TYPE before it")
            found = {match[1] for match in LABEL.finditer(sample[2] or "")}
            labels.setdefault(family, set()).add(frozenset(found - ({"le"} if types.get(family) == "histogram" else set())))


def compare_pages(reference, pages):
    tables = read_tables(reference)
    types, helps, labels, problems = {}, set(), {}, []
    for page in pages:
        read_page(page, types, helps, labels, problems)
    for name, kind in sorted(types.items()):
        if name not in tables:
            problems.append(f"{name} is not in {reference}")
        elif tables[name][0] != kind:
            problems.append(f"{name} is a {kind}, {reference} says {tables[name][0]}")
        if name not in helps:
            problems.append(f"{name} has no HELP")
    for name, (_, wanted) in sorted(tables.items()):
        if name not in labels:
            problems.append(f"{name} is in {reference}, but no server has told it")
        for found in labels.get(name, ()):
            if found != wanted:
                problems.append(f"{name} has the labels {sorted(found)}, {reference} says {sorted(wanted)}")
    return problems, len(types)


def compare_uses(reference, files):
    tables = read_tables(reference)
    types = {name: kind for name, (kind, _) in tables.items()}
    problems, uses = [], set()
    for path in files:
        for name in re.findall(r"\b(?:skycap|process)_[a-z0-9_]+[a-z]\b", open(path, encoding="utf-8").read()):
            uses.add(name)
            if base_of(name, types) not in tables:
                problems.append(f"{path}: {name} is not in {reference}")
    return problems, len(uses)


def compare_alerts(rules, document):
    text = open(rules, encoding="utf-8").read()
    alerts = re.findall(r"- alert: (\w+)", text)
    urls = re.findall(r"runbook_url: docs/alerts\.md#(\S+)", text)
    headings = re.findall(r"^## (\w+)$", open(document, encoding="utf-8").read(), re.M)
    problems = [f"{alert} has no heading in {document}" for alert in alerts if alert not in headings]
    problems += [f"{heading} in {document} is no alert" for heading in headings if heading not in alerts]
    if urls != [alert.lower() for alert in alerts]:
        problems.append(f"the runbook_urls are {urls}, the alerts {alerts}")
    return problems, len(alerts)


def compare_cases(rules, tests):
    alerts = re.findall(r"- alert: (\w+)", open(rules, encoding="utf-8").read())
    beginning = {alert for path in tests
                 for alert in re.findall(r"alertname: (\w+)\n +exp_alerts:\n +- exp_labels:", open(path, encoding="utf-8").read())}
    return [f"{alert} begins in no test" for alert in alerts if alert not in beginning], len(alerts)


def compare_kinds(reference, folders):
    """Each kind stands in a table of struct ops_kind, as a macro."""
    texts = [path.read_text(encoding="utf-8") for folder in folders for path in sorted(pathlib.Path(folder).rglob("*.[ch]"))]
    whole = "\n".join(texts)
    limit = int(re.search(r"#define OPS_MOST_KINDS (\d+)", whole)[1])
    known = set()
    for text in texts:
        for table in re.findall(r"struct ops_kind \w+\[\] = \{(.*?)\};", text, re.S):
            for name in re.findall(r"\{(\w+),", table):
                macro = rf'#define {name} "([a-z-]+)"'
                known.add((re.search(macro, text) or re.search(macro, whole))[1])  # the file's own before that of a header
    paragraph = re.search(r"^Kinds of operations: (.*?)\. If there are ever more than (\d+) kinds", open(reference, encoding="utf-8").read(), re.M | re.S)
    if not paragraph:
        return [f"{reference} does not list the kinds of operations"], 0
    told = set(re.findall("`([a-z-]+)`", paragraph[1]))
    problems = [f"{kind} is in {reference}, and the program has none" for kind in sorted(told - known)]
    problems += [f"{kind} is not in {reference}" for kind in sorted(known - told)]
    if int(paragraph[2]) != limit or len(known) > limit:
        problems.append(f"{len(known)} kinds, of which {limit} are counted one by one, and {reference} says {paragraph[2]}")
    return problems, len(known)


def main():
    command, *paths = sys.argv[1:]
    if command == "expressions":
        for panel in json.load(open(paths[0], encoding="utf-8"))["panels"]:
            for target in panel.get("targets", []):
                print(target["expr"].replace("$instance", ".+"))
        return
    compare = {"pages": compare_pages, "uses": compare_uses, "cases": compare_cases, "kinds": compare_kinds}.get(command)
    problems, count = compare(paths[0], paths[1:]) if compare else compare_alerts(*paths)
    print(*problems, sep="\n")
    if problems or not count:
        sys.exit(f"{len(problems)} problems")
    print(f"{count} compared")


main()
