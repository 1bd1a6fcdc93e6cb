"""The report: what is on the page, and that a browser shows it without network."""

import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from program import call, error_of
from traces import make_trace

from ssvm_bench.figures import targets
from ssvm_bench.figures.convergence import suboptimality
from ssvm_bench.figures.document import Heading, List, Table, Warning
from ssvm_bench.figures.kind import FigureData
from ssvm_bench.report import contents, interactive
from ssvm_bench.report import page as report
from ssvm_bench.report.kinds import kinds
from ssvm_bench.report.page import sections
from ssvm_bench.results import stored_traces
from ssvm_bench.results.files import SkippedFiles
from ssvm_bench.results.problem_instance import Best, instance_of
from ssvm_bench.results.reading import read_trace
from ssvm_bench.results.trace import write_partial, write_run

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
    config_ = {
        "dataset": {"name": dataset, "source": trace.metadata["dataset"]["source"]},
        "oracle": {"name": "multiclass", "kind": "multiclass"},
        "budget": {"max_iterations": 3},
        **trace.metadata["config"],
    }
    data = {**trace.metadata["dataset"], "name": dataset, "n": 50}
    data["fingerprint"] += dataset
    metadata = {**trace.metadata, "config": config_, "dataset": data}
    solver, seed = config_["solver"]["name"], config_["seed"]
    folder = root / "runs" / dataset.replace("/", "") / solver / config / f"seed={seed}"
    last = trace.frame.iloc[-1].to_dict()
    best = {"best_primal": trace.frame["primal"].min(), "best_dual": trace.frame["dual"].max()}
    summary = {**last, **best, "stop_reason": partial or "max_iterations", "train_loss": 0.25}
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
        trace.frame["working_set_mean"] = 1.0 + steps
        trace.frame["approx_calls"] = 3 * steps
    trace.frame["gap"] = trace.frame["primal"] - trace.frame["dual"]
    return trace


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A results folder with real data, stand-ins, odd names, failures, and its report."""
    tmp_path = tmp_path_factory.mktemp("results")
    for k, solver in enumerate(SOLVERS):
        for seed in range(3):
            store(tmp_path, run_of(solver, seed, 1 + k), "ocr")
    store(tmp_path, run_of("bcfw", source="synthetic"), "usps")
    store(tmp_path, run_of(ODD.replace("/", "")), ODD)
    store(tmp_path, run_of("fw", seed=7), "ocr", partial="error")
    damaged = store(tmp_path, run_of("fw", seed=8), "ocr")
    (damaged / "trace.parquet").write_bytes(b"PAR1 cut short")
    assert report.build(tmp_path) == tmp_path / "report.html"
    return tmp_path


@pytest.fixture(scope="module")
def text(results):
    return (results / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def built(folder):
    return Page(report.build(folder).read_text(encoding="utf-8"))


def html(block):
    return report.template().module.block(block).strip()


# ---- the page ---------------------------------------------------------------------------------


def test_statements_compare_the_largest_setting_of_each_variant():
    start, costs = {"start": "oracle"}, {"cost_call": 1.0, "cost_plane": 1.0, "cost_visit": 1.0}
    many = [make_trace([1.0], [0.0]), make_trace([1.0], [0.0], solver="mpbcfw", options=start)]
    few = [make_trace([2.0], [0.0]), make_trace([2.0], [0.0], clock="work")]
    few[1].metadata["config"]["oracle"] = costs
    chosen = report._largest([contents.Group(many), contents.Group(few)])
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
    assert text.count("plotly.js v") == 1
    assert "sendChartToCloud" in str(interactive.CONFIG["modeBarButtonsToRemove"])
    for name in (*SOLVERS.values(), "OCR", "USPS"):
        assert name in page.text


def test_names_are_escaped_everywhere(text, page):
    assert ODD in page.text  # as text: shown as it is
    assert not page.all("b")
    assert "alert(1)</script>" not in text


def test_failures_are_listed_with_their_reasons(results, page):
    failures = page.text[page.text.index("What gave no finished run") :]
    assert "runs/ocr/fw/0123456789ab/seed=7.partial" in failures
    assert "error: Oops: <it broke>" in failures
    assert "runs/ocr/fw/0123456789ab/seed=8 cannot be read" in failures
    assert str(results) not in page.text
    assert "2 failed or incomplete" in page.text


def test_synthetic_data_are_marked_and_apart(results, page):
    assert "USPS (STAND-IN, n = 50, λ = 1/n)" in page.text
    assert "OCR (n = 50, λ = 1/n)" in page.text
    marked = [attributes for _, attributes in page.elements if attributes.get("class") == "standin"]
    assert len(marked) >= 3  # above all, in the overview, above the figures
    groups = contents.group(contents.read(results, SkippedFiles()).traces)
    sources = [
        {trace.metadata["dataset"]["source"] for trace in part.traces}
        for parts in groups.values()
        for part in parts
    ]
    assert all(len(found) == 1 for found in sources)


def test_each_paper_has_its_claims_where_its_solvers_ran(tmp_path):
    def headings():
        return [h["id"] for h in built(tmp_path).all("h3") if h["id"].startswith("claims-")]

    store(tmp_path, run_of("bcfw"), "ocr")
    assert headings() == []
    assert "no runs of the papers' solvers" in built(tmp_path).text
    store(tmp_path, run_of("ssg"), "ocr")  # a baseline of the dual-coordinate paper's, too
    assert headings() == ["claims-poster"]
    store(tmp_path, run_of("dcd"), "ocr")
    assert headings() == ["claims-poster", "claims-dual_coordinate"]
    store(tmp_path, run_of("mpbcfw"), "ocr")
    assert headings() == ["claims-mpbcfw", "claims-poster", "claims-dual_coordinate"]


def test_metadata_that_a_page_needs_are_checked(tmp_path):
    folder = store(tmp_path, run_of("bcfw"))
    trace = read_trace(folder)
    broken = {key: value for key, value in trace.metadata.items() if key != "lam"}
    write_run(folder, trace.frame, broken, {}, trace.summary, np.zeros(3))
    page = built(tmp_path)
    assert "trace.parquet: it has no lam." in page.text
    assert "No run has finished." in page.text


def test_stored_traces_stand_in_for_missing_runs(tmp_path):
    folders = [store(tmp_path, run_of(solver, seed)) for solver in SOLVERS for seed in (0, 1)]
    traces = [read_trace(folder) for folder in folders]
    stored_traces.write(traces, tmp_path, "kept")
    before = contents.read(tmp_path, SkippedFiles())
    shutil.rmtree(tmp_path / "runs")
    after = contents.read(tmp_path, SkippedFiles())
    assert (before.stored, after.stored) == (0, 8)
    assert [trace.folder for trace in after.traces] == [trace.folder for trace in before.traces]
    assert "0 runs as they were written, 8 as they were stored" in built(tmp_path).text
    next(tmp_path.glob("traces/kept/*")).write_bytes(b"nothing")
    assert contents.read(tmp_path, SkippedFiles()).failures[0].place == "traces/kept"


def test_command(tmp_path):
    message = error_of(call("report", f"results_dir={tmp_path}"), 1)
    assert f"There are no runs in {tmp_path}" in message
    assert list(tmp_path.iterdir()) == []
    store(tmp_path, run_of("bcfw"))
    called = call("report", f"results_dir={tmp_path}")
    assert called.exit_code == 0
    assert called.stdout == f"report: {tmp_path / 'report.html'}\n"
    assert "takes only results_dir=" in error_of(call("report", "solver=bcfw"), 2)


# ---- groups, tables, figures ------------------------------------------------------------------


def budget(iterations, solver="bcfw"):
    trace = run_of(solver)
    trace.metadata["config"]["budget"] = {"max_iterations": iterations}
    return trace


def test_other_budgets_are_apart_of_the_same_solver_alone(tmp_path):
    store(tmp_path, budget(9, "mpbcfw"), config="c")
    store(tmp_path, run_of("bcfw"), config="d")
    ((only,),) = contents.group(contents.read(tmp_path, SkippedFiles()).traces).values()
    assert (len(only.traces), only.setting) == (2, "")
    shutil.rmtree(tmp_path / "runs")

    store(tmp_path, budget(3), config="a")
    store(tmp_path, budget(9), config="b")
    store(tmp_path, run_of("mpbcfw"), config="c")  # with max_iterations=3
    ((first, second),) = contents.group(contents.read(tmp_path, SkippedFiles()).traces).values()
    settings = ["budget.max_iterations=3", "budget.max_iterations=9"]
    assert [first.setting, second.setting] == settings
    assert (len(first.traces), len(second.traces)) == (2, 1)


def test_table_to_gap_has_medians_ranges_and_ratios():
    traces = [
        make_trace([1.0, 1.0], [0.0, 0.95], time=[0, end], oracle_calls=[0, calls], **of)
        for end, calls, of in (
            *((4.0, 40, {"seed": 0}), (6.0, 60, {"seed": 1})),
            *((1.0, 10, {"seed": 0, "solver": "mpbcfw"}), (1.5, 10, {"solver": "mpbcfw"})),
        )
    ]
    for trace in traces:
        trace.frame["gap"] = trace.frame["primal"] - trace.frame["dual"]
    traces[3].metadata["config"]["seed"] = 1
    traces.append(make_trace([2.0, 1.0], [NAN, NAN], time=[0, 3], solver="ssg"))
    traces[4].frame["gap"] = NAN
    best = {instance_of(traces[0].metadata): Best(1.0, 0.95)}
    (table,) = targets.KIND.of_instance(FigureData(traces, best))
    page = Page(html(table))
    text = page.text
    assert "0.1 SSG† 1 of 1 3 0.6 1 0.02 " in text
    assert len(page.all("strong")) == 2  # time of MP-BCFW, calls of SSG
    assert "0.1 BCFW 2 of 2 5 (4 to 6) 1 50 (40 to 60) 1 " in text
    assert "0.1 MP-BCFW 2 of 2 1.25 (1 to 1.5) 0.25 10 (10 to 10) 0.2 " in text
    assert "0.01 MP-BCFW 0 of 2 – – – –" in text


def test_figure_exchanges_the_curves_of_every_axis():
    traces = [
        make_trace([3, 2, 1.5], [0, 0, 0.5], solver=solver, seed=seed, oracle_calls=[0, 7, 14])
        for solver in ("bcfw", "mpbcfw")
        for seed in (0, 1)
    ]
    traces[1].frame.loc[1, "primal"] = 2.5
    for trace in traces:
        trace.frame["gap"] = trace.frame["primal"] - trace.frame["dual"]
    best = {instance_of(traces[0].metadata): Best(1.5, 0.5)}
    made = {axis: suboptimality(traces, best, axis) for axis in ("iteration", "calls", "time")}
    drawn = interactive.figure(made, {axis: axis for axis in made}, log=True)
    data, (menu,) = drawn["data"], drawn["layout"]["updatemenus"]
    assert [button["label"] for button in menu["buttons"]] == ["iterations", "oracle calls", "time"]
    assert len(data) == 2 * 3 * 2  # solvers, panels, band and line
    line = data[1]
    assert line["x"] == [0, 1, 2]
    assert line["y"] == pytest.approx([2.5, 1.75, 1.0])
    assert data[0]["y"][:3] == pytest.approx([2.5, 2.0, 1.0])
    dual = data[3]
    assert dual["y"] == [1.5, 1.5, 1.0]
    values, layout = menu["buttons"][1]["args"]
    assert values["x"][1] == [0, 7, 14]
    assert layout["xaxis3.title.text"] == "calls"
    assert len(values["x"]) == len(values["y"]) == len(data)
    assert sum(trace["showlegend"] for trace in data) == 2
    assert {trace["legendgroup"] for trace in data} == {"bcfw", "mpbcfw"}


def test_lines_and_bands_are_interrupted_where_values_are_not_positive():
    trace = make_trace([3, 2, 1.5, 1.2, 1.1], [0, 0, 1.6, 0, 0])
    other = make_trace([4, 3, 1.5, 1.3, 1.2], [0, 0, 1.6, 0, 0], seed=1)
    for run in (trace, other):
        run.frame["gap"] = run.frame["primal"] - run.frame["dual"]
    best = {instance_of(trace.metadata): Best(1.0, 0.0)}
    made = {"iteration": suboptimality([trace, other], best, "iteration")}
    drawn = interactive.figure(made, {"iteration": "iteration"}, log=True)
    band, line = drawn["data"][4:6]
    assert line["y"][2] is None
    assert line["connectgaps"] is False
    assert band["x"].count(None) == 2


def test_texts_of_documents_have_the_marks_of_markdown():
    text = report.marked("**holds** at *any* F*, `a<b` and F*: P(w) − F*")
    code = "<code>a&lt;b</code> and F*: P(w) − F*"
    assert text == f"<strong>holds</strong> at <em>any</em> F*, {code}"
    assert Page(html(Table("`t`", ["a", "b"], [["**1**", "|"]]))).all("table") == [{}]
    listed = html(List(["one", "*two*"], numbered=True))
    assert listed == "<ol><li>one</li><li><em>two</em></li></ol>"
    assert html(Heading("On it")) == "<h4>On it</h4>"
    assert "<strong>Stop</strong>" in html(Warning("Stop"))


def test_every_kind_of_figure_is_shown_in_one_section_or_none():
    assert list(kinds()) == [kind.name for kind in kinds().values()]
    assert all(kind.choices.names for kind in kinds().values())
    assert [section.id for section in sections()] == [
        *("convergence", "selection", "claims", "targets", "bundles", "coordinate"),
        "transduction",
    ]


# ---- in a browser -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    binary = next(filter(None, map(shutil.which, names)), None)
    with sync_api.sync_playwright() as playwright:
        binary = binary or playwright.chromium.executable_path
        if not Path(binary).exists():
            pytest.skip("no Chromium")
        chromium = playwright.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def test_page_works_in_a_browser(results, browser):
    path = results / "report.html"
    page = browser.new_page()
    said, requests = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    odd, plot = page.locator("#suboptimality-0-0"), page.locator("#suboptimality-1-0")
    plot.locator(".legendtext").first.wait_for()
    assert odd.locator(".legendtext").all_text_contents() == [ODD.replace("/", "")]
    names = ["BCFW", "BCFW-avg", "MP-BCFW", "MP-BCFW-avg"]
    assert plot.locator(".legendtext").all_text_contents() == names
    assert plot.locator(".cartesianlayer .subplot").count() == 3

    state = "node => [node.data[1].x.length, node.layout.xaxis.title.text, node.data[1].visible]"
    assert plot.evaluate(state)[1] == "iteration"
    plot.locator(".legendtoggle").first.click()  # hide BCFW
    page.wait_for_function(
        "document.querySelector('#suboptimality-1-0').data[1].visible == 'legendonly'"
    )
    hidden = plot.evaluate("node => node.data.filter(t => t.visible == 'legendonly').length")
    assert hidden == 6  # band and line of three panels
    plot.locator(".updatemenu-button").nth(2).click()
    page.wait_for_function(
        "document.querySelector('#suboptimality-1-0').layout.xaxis.title.text.startsWith('time')"
    )
    assert plot.evaluate(state)[2] == "legendonly"  # stays hidden
    assert plot.locator(".modebar-btn[data-title*='hare']").count() == 0

    page.locator("details summary").first.click()
    assert page.locator("details table").first.is_visible()
    assert said == []
    assert requests == [path.as_uri()]
    page.close()
