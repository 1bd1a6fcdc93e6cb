"""The report: what is on its pages, and that a browser shows them without network."""

import base64
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
from program import call, error_of
from traces import make_trace, set_columns

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.figures import document, targets
from ssvm_bench.figures.convergence import SUBOPTIMALITY
from ssvm_bench.figures.document import Heading, List, Table, Warning
from ssvm_bench.figures.kind import Switched
from ssvm_bench.report import contents, groups, packed
from ssvm_bench.report import page as one_page
from ssvm_bench.report import pages as report
from ssvm_bench.results import stored_traces
from ssvm_bench.results.folder import MARKER, SkippedFiles
from ssvm_bench.results.table import Best, Runs, instance_of
from ssvm_bench.results.trace import read_trace, write_partial, write_run

NAN = float("nan")
SOLVERS = {"bcfw": "BCFW", "bcfw_avg": "BCFW-avg", "mpbcfw": "MP-BCFW", "mpbcfw_avg": "MP-BCFW-avg"}
ODD = 'evil"><script>alert(1)</script><b>&amp;'
VOID = {"meta", "link", "br", "input", "img", "hr"}


class Page(HTMLParser):
    """Elements with their attributes, the text outside scripts and styles, and unclosed tags."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def store(root, trace, dataset="toy", config="0123456789ab", partial=None):
    """Write a hand-made run where a run of that dataset and solver would be."""
    about = trace.metadata
    config_ = {"dataset": {"name": dataset, "source": about["dataset"]["source"]}}
    config_["oracle"] = {"name": "multiclass", "kind": "multiclass"}
    config_ |= {"budget": {"max_iterations": 3}, **about["config"]}
    fingerprint = about["dataset"]["fingerprint"] + dataset
    data = {**about["dataset"], "name": dataset, "n": 50, "fingerprint": fingerprint}
    metadata = {**about, "config": config_, "dataset": data}
    solver, seed = config_["solver"]["name"], config_["seed"]
    folder = root / "runs" / dataset.replace("/", "") / solver / config / f"seed={seed}"
    best = {"best_primal": trace["primal"].min(), "best_dual": trace["dual"].max()}
    summary = {**trace.frame.iloc[-1].to_dict(), **best, "train_loss": 0.25}
    summary["stop_reason"] = partial or "max_iterations"
    if partial:
        error = "Traceback\nOops: <it broke>\n"
        return write_partial(folder, trace.frame, metadata, summary, error)
    write_run(folder, trace.frame, metadata, config_, summary, np.zeros(3))
    return folder


def run_of(solver, seed=0, speed=1.0, source="real", **more):
    steps = np.arange(5)
    primal, dual = 1 + 2.0 ** (-speed * steps * (1 + seed / 10)), 1 - 3.0 ** (-speed * steps)
    trace = make_trace(primal, dual, solver=solver, seed=seed, source=source, lam=0.02, **more)
    if solver.startswith("mp"):
        set_columns(trace, working_set_mean=1.0 + steps)
        set_columns(trace, approx_calls=3 * steps)
    return trace


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A results folder with real and synthetic data, odd names, failures, and its report."""
    tmp_path = tmp_path_factory.mktemp("results")
    for k, solver in enumerate(SOLVERS):
        for seed in range(3):
            store(tmp_path, run_of(solver, seed, 1 + k), "ocr")
    store(tmp_path, run_of("bcfw", source="synthetic"), "usps")
    store(tmp_path, run_of(ODD.replace("/", "")), ODD)
    store(tmp_path, run_of("fw", seed=7), "ocr", partial="error")
    damaged = store(tmp_path, run_of("fw", seed=8), "ocr")
    (damaged / "trace.parquet").write_bytes(b"PAR1 cut short")
    assert report.report(tmp_path).path == tmp_path / "report.html"
    return tmp_path


@pytest.fixture(scope="module")
def text(results):
    return (results / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def built(folder):
    return Page(report.report(folder).path.read_text(encoding="utf-8"))


def html(block):
    return document.block(block).strip()


def table_in(block):
    """Return the attributes of the only table of a block."""
    (found,) = Page(html(block)).all("table")
    return found


def groups_of(folder):
    return groups.group(contents.own(folder, SkippedFiles()))


def test_statements_compare_the_largest_setting_of_each_variant():
    start, costs = {"start": "oracle"}, {"cost_call": 1.0, "cost_plane": 1.0, "cost_visit": 1.0}
    many = [make_trace([1.0], [0.0]), make_trace([1.0], [0.0], solver="mpbcfw", options=start)]
    few = [make_trace([2.0], [0.0]), make_trace([2.0], [0.0], clock="work")]
    few[1].metadata["config"]["oracle"] = costs
    chosen = one_page._largest([groups.Group(many), groups.Group(few)])
    assert list(map(id, chosen)) == list(map(id, [*many, few[1]]))


def test_page_is_complete_and_loads_nothing(text, page):
    assert page.open == []
    for _, attributes in page.elements:
        for key in ("src", "href", "action", "data", "srcset", "poster"):
            assert not (attributes.get(key) or "").lower().startswith(("http", "//"))
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("title")) == len(page.all("h1")) == 1
    assert len(page.all("table")) == len(page.all("caption")) == len(page.all("thead"))
    assert all(header.get("scope") for header in page.all("th"))
    ids = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    links = [link["href"] for link in page.all("a")]
    assert {link[1:] for link in links} <= set(ids)
    assert {section["aria-labelledby"] for section in page.all("section")} <= set(ids)
    for name in (*SOLVERS.values(), "OCR", "USPS"):
        assert name in page.text


def test_names_are_escaped_everywhere(text, page):
    assert ODD in page.text  # as text: shown as it is
    assert not page.all("b")
    assert "alert(1)</script>" not in text
    assert [script.get("type") for script in page.all("script")].count(None) == 1


def test_failures_are_listed_with_their_reasons(results, page):
    failures = page.text[page.text.index("What gave no finished run") :]
    assert "runs/ocr/fw/0123456789ab/seed=7.partial" in failures
    assert "error: Oops: <it broke>" in failures
    assert "runs/ocr/fw/0123456789ab/seed=8 cannot be read" in failures
    assert str(results) not in page.text
    assert "2 failed or incomplete" in page.text


def test_synthetic_data_are_marked_and_apart(results, page):
    assert "USPS (SYNTHETIC)" in page.text
    assert "USPS, synthetic, no real data: n = 50, d = 1, λ = 1/n = 0.02." in page.text
    (warning,) = [p for p in page.all("p") if p.get("class") == "warning"]
    assert warning["role"] == "note"
    for parts in groups_of(results).values():
        for part in parts:
            assert len({trace.metadata["dataset"]["source"] for trace in part.runs}) == 1


def test_each_paper_has_its_claims_where_its_solvers_ran(tmp_path):
    # ssg is a baseline of the dual-coordinate paper's, too
    for count, solver in enumerate(("bcfw", "ssg", "dcd", "mpbcfw")):
        store(tmp_path, run_of(solver), "ocr")
        text = built(tmp_path).text
        assert text.count("pairs of claim and dataset are left out") == count
        assert "claims, and what we measure" not in text  # no run has a paper's settings


def test_metadata_that_a_page_needs_are_checked(tmp_path):
    folder = store(tmp_path, run_of("bcfw"))
    trace = read_trace(folder)
    broken = {key: value for key, value in trace.metadata.items() if key != "lam"}
    write_run(folder, trace.frame, broken, {}, trace.end, np.zeros(3))
    page = built(tmp_path)
    assert "trace.parquet: it has no lam." in page.text
    assert "No run has finished." in page.text


def test_stored_traces_stand_in_for_missing_runs(tmp_path):
    folders = [store(tmp_path, run_of(solver, seed)) for solver in SOLVERS for seed in (0, 1)]
    traces = [read_trace(folder) for folder in folders]
    stored_traces.write(traces, tmp_path, "kept")
    before = contents.own(tmp_path, SkippedFiles())
    shutil.rmtree(tmp_path / "runs")
    after = contents.own(tmp_path, SkippedFiles())
    assert (before.stored, after.stored) == (0, 8)
    assert [trace.folder for trace in after.runs] == [trace.folder for trace in before.runs]
    assert "0 runs as they were written, 8 as they were stored" in built(tmp_path).text
    next(tmp_path.glob("traces/kept/*")).write_bytes(b"nothing")
    assert (
        contents.own(tmp_path, SkippedFiles())
        .failures[0]
        .path.is_relative_to(tmp_path / "traces" / "kept")
    )


def test_command(tmp_path):
    message = error_of(call("report", f"results_dir={tmp_path}"), 1)
    assert f"There are no runs in {tmp_path}" in message
    assert list(tmp_path.iterdir()) == []
    store(tmp_path, run_of("bcfw"))
    called = call("report", f"results_dir={tmp_path}")
    assert called.exit_code == 0
    assert called.stdout == f"report: {tmp_path / 'report.html'}\n"
    assert "Page 1 of 1: Your runs" in called.stderr
    assert "takes only results_dir=" in error_of(call("report", "solver=bcfw"), 2)
    assert "leave --experiment out" in error_of(call("report", "--all", "--experiment", "main"), 2)
    asked = ("report", "--experiment", "quickstart", f"results_dir={tmp_path}")
    assert "No run of the experiment quickstart has finished" in error_of(call(*asked), 1)


def test_what_is_committed_is_on_pages_of_experiments_alone(tmp_path):
    runs = [read_trace(store(tmp_path, run_of(solver), "ocr")) for solver in SOLVERS]
    stored_traces.write(runs, tmp_path, "kept")
    shutil.rmtree(tmp_path / "runs")
    (tmp_path / MARKER).touch()
    with pytest.raises(RunFailedError, match=r"no runs of your own in .* --all"):
        report.report(tmp_path)
    index = report.report(tmp_path, every=True).path
    assert index == tmp_path / "report/index.html"
    links = [link["href"] for link in Page(index.read_text()).all("a")]
    assert links == ["#content", "kept.html"]
    kept = Page((index.parent / "kept.html").read_text())
    assert "Runs stored as kept" in kept.text
    assert {"href": "index.html"} in kept.all("a")


def test_pages_are_listed_by_paper(tmp_path):
    runs = [read_trace(store(tmp_path, run_of("bcfw", source="synthetic"), "ocr"))]
    for name in ("mpbcfw_mine", "bmrm_mine", "kept"):
        stored_traces.write(runs, tmp_path, name)
    page = Page(report.report(tmp_path, every=True).path.read_text())
    links = [link["href"] for link in page.all("a")[1:]]
    groups = ["#group-0", "#group-1", "#group-2", "#group-3"]
    assert links == [*groups, "own.html", "kept.html", "mpbcfw_mine.html", "bmrm_mine.html"]
    others = "Experiments of other files"  # of no file of the program
    headings = "Your runs", others, "The MP-BCFW paper", "The bundle-method report"
    places = [page.text.rindex(heading) for heading in headings]
    assert places == sorted(places)
    assert "OCR (SYNTHETIC)" in page.text


NAMES = (
    *(
        "index",
        "own",
        "report",
        "Kept",
        "kept",
        "KEPT",
        "a#b",
        "a?b",
        "a%41",
        "aA",
        "a&amp;b",
        "名",
    ),
    *(
        "javascript:alert(1)",
        "data:text",
        "'\" onclick=alert(1) x='",
        "a b",
        "<b>",
        "-",
        "[*]",
        "é",
    ),
)


def test_a_link_leads_to_the_page_of_its_name_alone(tmp_path):
    runs = [read_trace(store(tmp_path, run_of("bcfw"), "ocr"))]
    for name in NAMES:
        stored_traces.write(runs, tmp_path, name)
    index = report.report(tmp_path, every=True).path
    links = [link["href"] for link in Page(index.read_text()).all("a")[1:]]
    links = [link for link in links if not link.startswith("#group-")]
    files = [path.name for path in index.parent.iterdir()]
    assert sorted([*links, "index.html"]) == sorted(files)  # each as it stands in the address
    assert len({file.lower() for file in files}) == len(NAMES) + 2  # own runs, and the list
    assert all(re.fullmatch(r"[a-z0-9_-]+(\.[0-9a-f]{8})?\.html", file) for file in files)
    for name in NAMES:
        titles = [Page((index.parent / link).read_text()).text for link in links]
        assert sum(f"Runs stored as {name} –" in title for title in titles) == 1
    assert "All experiments" in index.read_text()
    assert "Your runs" in (index.parent / "own.html").read_text()


def test_a_page_of_ones_own_experiment_replaces_no_other(tmp_path):
    store(tmp_path, run_of("bcfw"))
    kept = report.report(tmp_path, every=True).path
    pages = {path.name for path in kept.parent.iterdir()}
    for name in ("index", "own", "A#b", "two?%41"):
        assert contents.file_of(name) not in pages
        path = tmp_path / "figures" / name / "a#b?c%41 'd.png"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"")
        (link,) = re.findall('href="([^"]*)"', one_page._picture(path, kept.parent).markup)
        assert (kept.parent / unquote(link)).resolve() == path
        assert not {*"#?:'\"&"} & {*link}


def test_headings_are_for_people_and_differ(tmp_path):
    for k, lam in enumerate((0.02, 1.0, 0.004)):
        run = run_of("bcfw")
        run.metadata["lam"] = lam
        store(tmp_path, run, config=f"a{k}")
    again = run_of("bcfw")
    again.metadata["dataset"]["fingerprint"] = "other"
    store(tmp_path, again, config="b")
    titles = sorted(groups.titles(groups_of(tmp_path)).values())
    assert titles == [*("toy (λ = 0.004)", "toy (λ = 1)", "toy (λ = 1/n)", "toy (λ = 1/n, data 2)")]


def test_other_budgets_are_apart_of_the_same_solver_alone(tmp_path):
    def budget(iterations, solver="bcfw"):
        return run_of(solver, config={"budget": {"max_iterations": iterations}})

    store(tmp_path, budget(9, "mpbcfw"), config="c")
    store(tmp_path, run_of("bcfw"), config="d")
    ((only,),) = groups_of(tmp_path).values()
    assert (len(only.runs), only.setting) == (2, "")
    shutil.rmtree(tmp_path / "runs")

    store(tmp_path, budget(3), config="a")
    store(tmp_path, budget(9), config="b")
    store(tmp_path, run_of("mpbcfw"), config="c")  # with max_iterations=3
    ((first, second),) = groups_of(tmp_path).values()
    settings = ["budget.max_iterations=3", "budget.max_iterations=9"]
    assert [first.setting, second.setting] == settings
    assert (len(first.runs), len(second.runs)) == (2, 1)


def test_other_options_that_set_runs_apart_do_not_set_budgets_apart(tmp_path):
    def made(solver, iterations, every):
        config = {"budget": {"max_iterations": iterations}, "eval": {"every": every}}
        store(tmp_path, run_of(solver, config=config), config=f"{solver}{every}")

    made("bcfw", 9, 1)
    made("mpbcfw", 3, 1)  # in one figure with the former
    made("bcfw", 3, 5)
    ((first, second),) = groups_of(tmp_path).values()
    assert [first.setting, second.setting] == ["eval.every=1", "eval.every=5"]
    assert [[run.solver for run in of.runs] for of in (first, second)] == [
        ["bcfw", "mpbcfw"],
        ["bcfw"],
    ]


def test_table_to_gap_has_medians_ranges_and_ratios():
    def reached(solver, seed, end, calls):
        spent = {"time": [0, end], "oracle_calls": [0, calls]}
        return make_trace([1.0, 1.0], [0.0, 0.95], solver=solver, seed=seed, **spent)

    traces = [reached("bcfw", 0, 4.0, 40), reached("bcfw", 1, 6.0, 60)]
    traces += [reached("mpbcfw", 0, 1.0, 10), reached("mpbcfw", 1, 1.5, 10)]
    traces.append(make_trace([2.0, 1.0], [NAN, NAN], time=[0, 3], solver="ssg"))
    best = {instance_of(traces[0].metadata): Best(1.0, 0.95)}
    labels = {name: targets.axis_label(traces, name) for name in targets.COSTS}
    page = Page(html(targets.spent(targets.targets(Runs(traces, best), (0.1, 0.01)), labels)))
    assert len(page.all("strong")) == 2  # time of MP-BCFW, calls of SSG
    for row in (
        "0.1 SSG† 1 of 1 3 0.6 1 0.02 ",
        "0.1 BCFW 2 of 2 5 (4 to 6) 1 50 (40 to 60) 1 ",
        "0.1 MP-BCFW 2 of 2 1.25 (1 to 1.5) 0.25 10 (10 to 10) 0.2 ",
        "0.01 MP-BCFW 0 of 2 – – – –",
    ):
        assert row in page.text


def test_what_nobody_reached_is_no_target():
    def finding(*shares):
        runs = [
            make_trace([1.0, 1.0], [0.0, 1 - share], solver=of, seed=seed)
            for seed, (of, share) in enumerate(shares)
        ]
        best = {instance_of(runs[0].metadata): Best(1.0, 1.0)}
        return one_page._finding(targets.targets(Runs(runs, best), ()))

    found = finding(("bcfw", 0.62), ("mpbcfw", 0.31))
    assert found.startswith("MP-BCFW is first at a relative gap of 0.4, after 1 s")
    assert found.endswith(". 1 other solver did not get there.")
    more = "yet: more iterations (budget.max_iterations) show who is ahead."
    nobody = finding(("bcfw", 0.97), ("mpbcfw", 3.0))  # 0.97 is below 1, and not at most 0.9
    assert nobody == f"no solver got to a relative gap of 0.9 {more}"
    assert (
        finding(("bcfw", 0.9)) == "BCFW is first at a relative gap of 0.9, after 1 s, 0.5 passes."
    )
    some = finding(("bcfw", 0.97), ("bcfw", 0.5))
    assert some == f"no solver got to a relative gap of 0.9 in most of its runs {more}"


def test_a_finding_says_by_how_much_the_first_one_is_ahead():
    def finding(**spent):
        runs = [
            make_trace([1.0, 1.0], [0.0, 0.95], solver=of, time=[0, time], oracle_calls=[0, calls])
            for of, (time, calls) in spent.items()
        ]
        best = {instance_of(runs[0].metadata): Best(1.0, 1.0)}
        return one_page._finding(targets.targets(Runs(runs, best), (0.1,)))

    first = "MP-BCFW is first at a relative gap of 0.1, after 2 s, 2 passes"
    assert finding(bcfw=(5.0, 6), mpbcfw=(2.0, 4), fw=(9.0, 20)) == (
        f"{first}; next is BCFW, after 5 s, 3 passes, 2.5 times as long."
    )
    fewer = " BCFW made the fewest calls of the oracle: 1 passes."
    assert finding(bcfw=(500.0, 2), mpbcfw=(2.0, 4)) == (
        f"{first}; next is BCFW, after 500 s, 1 passes, 250 times as long.{fewer}"
    )
    draw = finding(bcfw=(2.01, 4), mpbcfw=(2.0, 4))
    assert draw == f"{first}; next is BCFW, after 2.01 s, 2 passes, which is a draw."


def test_a_page_of_own_runs_begins_with_who_was_first(tmp_path):
    for k, solver in enumerate(("bcfw", "mpbcfw")):
        for seed in range(2):
            store(tmp_path, run_of(solver, seed, 1 + k))
    page = built(tmp_path)
    places = [
        page.text.index(text) for text in ("is first at", "First most often", "Buttons choose")
    ]
    assert places == sorted(places)
    assert "in time, MP-BCFW (" in page.text
    assert "Profiles: the share of all targets reached" in page.text  # the numbers, as a table
    (image,) = page.all("img")
    assert image["src"].startswith("data:image/svg+xml;base64,")


def test_what_all_runs_share_is_said_once(tmp_path):
    for solver in ("bcfw", "mpbcfw"):
        store(tmp_path, run_of(solver))
    page = built(tmp_path)
    assert page.text.count("n = 50, d = 1, λ = 1/n = 0.02.") == 1
    assert page.text.count("Primal suboptimality is measured from") == 1
    assert "The same in all: seed 0, " in page.text
    assert "Options that all runs share" in page.text
    rows = [{"run": 1, "of": "a", "seed": 0, "n": 5}, {"run": 2, "of": "a", "seed": 0, "n": 6}]
    table = one_page._once("Runs.", rows)
    assert (table.title, table.header) == ("Runs. The same in all: seed 0.", ["run", "of", "n"])
    assert one_page._once("Runs.", rows[:1]).header == ["run", "of", "seed", "n"]


def unpacked(text, ends):
    codes = np.frombuffer(base64.b64decode(text), "<u2").astype(float)
    codes[codes == packed.GONE] = np.nan
    return ends[0] + (ends[1] - ends[0]) * codes / packed.STEPS


def drawn(traces, best, *axes):
    made = {axis: SUBOPTIMALITY.tabulate(Runs(traces, best), axis) for axis in axes}
    return packed.packed_figure(Switched("it", made, {axis: axis for axis in made}, [], log=True))


def test_a_figure_has_the_curves_of_every_axis():
    traces = [
        make_trace([3, 2, 1.5], [0, 0, 0.5], solver=solver, seed=seed, oracle_calls=[0, 7, 14])
        for solver in ("bcfw", "mpbcfw")
        for seed in (0, 1)
    ]
    set_columns(traces[1], 1, primal=2.5, gap=2.5)
    best = {instance_of(traces[0].metadata): Best(1.5, 0.5)}
    figure = json.loads(json.dumps(drawn(traces, best, "iteration", "calls", "time")))
    assert [axis["button"] for axis in figure["axes"]] == ["iterations", "oracle calls", "time"]
    assert [curve["name"] for curve in figure["curves"]] == ["BCFW", "MP-BCFW"]
    iterations, calls, _ = figure["axes"]
    (x, panels), (_, others) = iterations["curves"]
    assert unpacked(x, iterations["x"]) == pytest.approx([0, 1, 2], abs=1e-4)
    shown = [10 ** unpacked(values, iterations["y"][0]) for values in panels[0]]
    expected = ([2.5, 1.75, 1.0], [2.5, 1.5, 1.0], [2.5, 2.0, 1.0])
    for values, numbers in zip(shown, expected, strict=True):
        assert values == pytest.approx(numbers, rel=1e-4)
    assert [len(values) for values in panels] == [3, 1, 3]  # repeats do not differ in their dual
    assert [len(values) for values in others] == [1, 1, 1]
    assert unpacked(calls["curves"][0][0], calls["x"]) == pytest.approx([0, 7, 14], abs=1e-3)
    # what a curve has on the first axis is not said again
    assert [panels for _, panels in calls["curves"]] == [[0, 0, 0], [0, 0, 0]]


def test_lines_and_bands_are_interrupted_where_values_are_not_positive():
    trace = make_trace([3, 2, 1.5, 1.2, 1.1], [0, 0, 1.6, 0, 0])
    other = make_trace([4, 3, 1.5, 1.3, 1.2], [0, 0, 1.6, 0, 0], seed=1)
    best = {instance_of(trace.metadata): Best(1.0, 0.0)}
    (axis,) = drawn([trace, other], best, "iteration")["axes"]
    ((_, panels),) = axis["curves"]
    for values in panels[2]:
        gone = np.isnan(unpacked(values, axis["y"][2]))
        assert np.flatnonzero(gone).tolist() == [2]
        assert gone.size == 5


def test_texts_of_documents_have_the_marks_of_markdown():
    text = document.marked("**holds** at *any* F*, `a<b` and F*: P(w) − F*")
    code = "<code>a&lt;b</code> and F*: P(w) − F*"
    assert text == f"<strong>holds</strong> at <em>any</em> F*, {code}"
    assert table_in(Table("`t`", ["a", "b"], [["**1**", "|"]])) == {}
    assert table_in(Table("t", ["a", "b"], [["b", "1"], ["a", "2"]])) == {"class": "sortable"}
    # the second row goes on with the row above
    assert table_in(Table("t", ["a", "b"], [["b", "1"], ["", "2"]])) == {}
    listed = html(List(["one", "*two*"], numbered=True))
    assert listed == "<ol><li>one</li><li><em>two</em></li></ol>"
    assert html(Heading("On it")) == "<h3>On it</h3>"
    assert "<strong>Stop</strong>" in html(Warning("Stop"))


@pytest.fixture
def opened(browser):
    """Returns a function that opens a page; what it says, and asks for, must be nothing."""
    said, pages, mine = [], [], {"data:,"}

    def open_(path, width=1280, view="", **options):
        page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        pages.append(page)
        mine.add(path.as_uri())
        mine.add(path.as_uri() + view)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url))
        page.goto(path.as_uri() + view)
        return page

    yield open_
    for page in pages:
        page.close()
    # a picture that is saved is drawn from the page's own content
    assert {text for text in said if not text.startswith("data:image/svg+xml,")} <= mine


def test_page_works_in_a_browser(results, opened):
    page = opened(results / "report.html")
    plot = first_plot(page)  # of most solvers
    legend = plot.locator(".legend button")
    assert legend.all_text_contents() == ["BCFW", "BCFW-avg", "MP-BCFW", "MP-BCFW-avg"]
    assert plot.locator(".panels h4").count() == 3
    lines = plot.locator(".panels .line")
    assert lines.count() == 3 * 4
    legend.first.click()  # hides BCFW
    assert lines.count() == 3 * 3
    plot.get_by_role("button", name="time", exact=True).click()
    assert lines.count() == 3 * 3  # stays hidden
    panel = plot.get_by_role("img").first
    assert "against time [s] (wall clock). BCFW-avg ends at" in panel.get_attribute("aria-label")
    legend.nth(3).dblclick()  # alone
    assert lines.count() == 3

    panel.focus()
    panel.press("ArrowRight")
    said = plot.locator(".said").text_content()
    assert said.startswith("MP-BCFW-avg: primal suboptimality 1, at")
    panel.press("+")
    box, before = panel.bounding_box(), lines.first.get_attribute("d")
    page.mouse.move(box["x"] + 80, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 120)
    page.mouse.up()
    assert lines.first.get_attribute("d") != before
    panel.press("Escape")

    page.locator("summary", has_text="Every run").click()
    head = page.get_by_role("columnheader", name="seed")
    seeds = head.locator("xpath=ancestor::table").locator("tbody tr td:nth-child(3)")
    for order in ("ascending", "descending"):
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == order
        shown = [int(text) for text in seeds.all_text_contents()]
        assert shown == sorted(shown, reverse=order == "descending")


def first_plot(page):
    """Return the first figure of curves, drawn."""
    plot = page.locator("figure.plot").first
    plot.scroll_into_view_if_needed()
    plot.locator(".legend button").first.wait_for()
    plot.locator(".panels .line").first.wait_for(state="attached")
    return plot


def seen(plot):
    """Return what a reader sees of a figure: its buttons that are pressed, panels, lines, label."""
    pressed = plot.locator("button[aria-pressed=true]:visible").all_text_contents()
    panels = plot.locator(".panels h4:visible").all_text_contents()
    lines = plot.locator(".panels .line:visible").count()
    drawn = plot.locator(".panels svg[role=img]:visible").first
    return pressed, panels, lines, drawn.locator(".grid text").all_text_contents()


def test_the_view_is_in_the_address(results, opened):
    page = opened(results / "report.html")
    plot = first_plot(page)
    before = views = [(page.url, seen(plot))]
    for button in ("time", "log x", "log y", "MP-BCFW-avg"):
        plot.get_by_role("button", name=button, exact=True).click()
        views = [*views, (page.url, seen(plot))]
    plot.get_by_role("button", name="Alone: primal suboptimality").click()
    views = [*views, (page.url, seen(plot))]
    assert seen(plot)[1:3] == (["primal suboptimality"], 3)
    assert len({url for url, _ in views}) == len(views)
    assert "yscale=linear" in page.url
    assert "hide=MP-BCFW-avg" in page.url
    other = first_plot(opened(results / "report.html", view=f"#{page.url.partition('#')[2]}"))
    assert seen(other) == seen(plot)
    page.reload()
    assert seen(first_plot(page)) == views[-1][1]
    for view in views[-2::-1]:
        page.go_back()
        assert (page.url, seen(plot)) == view
    assert views[0] == before[0]
    page.go_forward()
    assert (page.url, seen(plot)) == views[1]
    page.locator("nav a", has_text="Tables").click()  # a place on the page is no other view
    assert seen(plot) == views[1][1]
    plot.locator(".legend button").nth(1).dblclick()  # one change of the view
    assert seen(plot)[2] == 3
    page.go_back()
    assert page.url.endswith("#numbers")
    assert seen(plot) == views[1][1]
    page.go_back()
    assert (page.url, seen(plot)) == views[1]


def test_a_zoomed_panel_is_in_the_address(results, opened):
    page = opened(results / "report.html")
    plot = first_plot(page)
    panel = plot.get_by_role("img").first
    panel.focus()
    panel.press("+")
    zoomed = seen(plot)
    assert "zoom=primal+suboptimality%2C" in page.url
    page.reload()
    assert seen(first_plot(page)) == zoomed
    page.locator("figure.plot").first.get_by_role("img").first.press("Escape")
    assert "zoom=" not in page.url


@pytest.mark.parametrize(
    "view",
    [
        "#%",
        "#in=nothing&hide=BCFW",
        "#in=OCR+%28%CE%BB+%3D+1%2Fn%29&x=nothing&xscale=cubic&panel=x&hide=y&show=z&zoom=,,,,",
        "#filter=no+such+words&in=&in=<b>",
        "#x=time&in",
        "#__proto__",
    ],
)
def test_an_address_that_names_nothing_is_the_first_view(results, opened, view):
    page = opened(results / "report.html", view=view)
    if "filter" in view:
        page.get_by_text(re.compile(r"^0 of \d+ figures")).wait_for()
        page.get_by_role("searchbox").fill("")
    assert seen(first_plot(page)) == seen(first_plot(opened(results / "report.html")))


def test_curves_and_figures_are_filtered(tmp_path, opened):
    for k in range(7):
        store(tmp_path, run_of("bcfw"), f"data{k}")
        store(tmp_path, run_of("bcfw_avg"), f"data{k}")
    page = opened(report.report(tmp_path).path)
    plots, search = page.locator("figure.plot:visible"), page.get_by_role("searchbox")
    lines = page.locator("figure.plot:visible").first.locator(".panels .line")
    first_plot(page)
    lines.nth(5).wait_for(state="attached")
    assert (plots.count(), lines.count()) == (4, 6)
    search.press_sequentially("DATA6 bcfwa")  # in a closed section: it opens
    page.get_by_text(re.compile(r"^1 of \d+ figures")).wait_for()
    plots.locator(".legend").wait_for()
    assert (plots.count(), lines.count()) == (1, 3)
    assert page.url.endswith("#filter=DATA6+bcfwa")
    assert page.locator("figure.plot:visible .legend button:visible").all_text_contents() == [
        "BCFW-avg"
    ]
    page.reload()
    page.locator("figure.plot:visible .legend").wait_for()
    assert (search.input_value(), plots.count(), lines.count()) == ("DATA6 bcfwa", 1, 3)
    search.fill("")
    first_plot(page)
    lines.nth(5).wait_for(state="attached")
    assert lines.count() == 6
    page.go_back()
    page.get_by_text(re.compile(r"^1 of \d+ figures")).wait_for()


def test_a_panel_is_saved_as_it_is_shown(results, opened):
    page = opened(results / "report.html", color_scheme="dark")
    plot = first_plot(page)
    plot.locator(".legend button").first.click()  # hides BCFW
    files = {}
    for kind in ("SVG", "PNG"):
        with page.expect_download() as download:
            plot.get_by_role("button", name=f"{kind}: dual suboptimality").click()
        name = download.value.suggested_filename
        assert name == f"OCR_dual_suboptimality.{kind.lower()}"
        files[kind] = Path(download.value.path()).read_bytes()
    root = ElementTree.fromstring(files["SVG"])
    name = "{http://www.w3.org/2000/svg}"
    texts = [text.text for text in root.iter(f"{name}text")]
    assert texts[0] == "OCR: dual suboptimality"
    assert texts[-3:] == ["BCFW-avg", "MP-BCFW", "MP-BCFW-avg"]
    assert "iteration" in texts
    lines = [path for path in root.iter(f"{name}path") if path.get("stroke-width") == "2px"]
    assert len(lines) == 3
    assert not any("var(" in value for node in root.iter() for value in node.attrib.values())
    assert root.find(f"{name}rect").get("fill") == "#fff"  # paper, also of a dark page
    assert files["PNG"].startswith(b"\x89PNG")
    width, height = (int.from_bytes(files["PNG"][at : at + 4], "big") for at in (16, 20))
    assert (width, height) == (3 * int(root.get("width")), 3 * int(root.get("height")))
    with page.expect_download() as download:
        plot.get_by_role("button", name="Numbers (CSV)").click()
    rows = Path(download.value.path()).read_text().splitlines()
    assert rows[0] == 'solver,quantity,"iteration",median,min,max'
    assert {row.split(",")[0] for row in rows[1:]} == {'"BCFW-avg"', '"MP-BCFW"', '"MP-BCFW-avg"'}


def test_a_page_without_scripts_says_what_it_lacks(results, opened):
    page = opened(results / "report.html", java_script_enabled=False)
    said = page.locator("noscript p")
    assert said.is_visible()
    assert "Without JavaScript, this page shows no curves" in said.inner_text()
    assert not page.locator("#theme").is_visible()
    assert not page.locator("figure.plot .here").first.is_visible()


def test_a_page_is_light_or_dark_and_fits_a_telephone(results, opened):
    background = "() => getComputedStyle(document.body).backgroundColor"
    page = opened(results / "report.html", 390, color_scheme="dark")
    assert page.evaluate(background) == "rgb(20, 23, 26)"
    page.get_by_role("button", name="Light page").click()
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.reload()
    assert page.evaluate(background) == "rgb(255, 255, 255)"  # as it was chosen
    page.locator("figure.plot").first.scroll_into_view_if_needed()
    page.locator("figure.plot .line").first.wait_for(state="attached")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_figures_are_drawn_when_they_are_seen(tmp_path, opened):
    for k in range(7):
        store(tmp_path, run_of("bcfw"), f"data{k}")
    page = opened(report.report(tmp_path).path)
    page.locator(".legend").first.wait_for()
    assert page.locator("figure.plot").count() == 7
    assert page.locator(".legend").count() < 5
    last = page.locator("details", has=page.locator("figure.plot")).last
    last.locator("summary").click()
    last.locator(".legend").wait_for()


def test_a_printed_page_has_its_figures(tmp_path, opened):
    """Figures that nobody has scrolled to are drawn when they are printed; closed ones are not."""
    for k in range(7):
        store(tmp_path, run_of("bcfw"), f"data{k}")
    page = opened(report.report(tmp_path).path, color_scheme="dark")
    page.locator(".legend").first.wait_for()
    assert page.locator(".legend").count() < one_page.FIRST
    page.pdf(path=tmp_path / "page.pdf", width="400px", print_background=True)
    assert page.locator(".legend").count() == one_page.FIRST
    for panel in page.locator("figure.plot .panels svg[role=img]").all():
        assert panel.locator(".line").count() == 1
        _, _, width, height = map(float, panel.get_attribute("viewBox").split())
        assert width > 100 < height
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_a_committed_experiment_is_a_small_page(tmp_path, opened):
    committed = Path(__file__).parents[2] / "results"
    if not (committed / "traces/mpbcfw_fig4").is_dir():
        pytest.skip("no committed results")
    for folder in ("traces/mpbcfw_fig4", "reference"):
        shutil.copytree(committed / folder, tmp_path / folder)
    path = report.report(tmp_path, "mpbcfw_fig4").path
    assert path.stat().st_size < 1_000_000
    page = opened(path)
    page.locator("figure.plot .line").first.wait_for(state="attached")
    assert page.locator("h3").all_text_contents() == ["USPS", "OCR", "Weizmann", "Stanford"]
    found = page.locator("main li").all_text_contents()
    assert sum("MP-BCFW-avg is first at a relative gap of" in text for text in found) == 3
