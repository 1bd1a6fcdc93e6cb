"""The site that `make docs` has built, as Chromium shows it from the disk, and by HTTP.

Without a site in `site/`, or in the folder `$SSVM_BENCH_SITE`, most tests are skipped; so are those
of a browser without Chromium, and those of accessibility without the file `$SSVM_BENCH_AXE`, which
is `axe.min.js` of the package axe-core. Screenshots go to the folder `$SSVM_BENCH_SCREENSHOTS`.
"""

import json
import os
import re
import runpy
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
SITE = Path(os.environ.get("SSVM_BENCH_SITE", ROOT / "site")).absolute()
AXE = os.environ.get("SSVM_BENCH_AXE")
WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")
REPORT = "results/report/mpbcfw_fig4.html"
"""One page of many that `ssvm-bench report` makes by one template."""

SHOWN = (
    *("index.html", "options.html", "which_solver.html", "faq.html", "history.html"),
    *("learn/problem.html", "learn/glossary.html", "algorithms/mpbcfw.html", "api/python.html"),
    *("examples/gallery/index.html", "files/examples/gallery/digits.py.html"),
    *("papers/mpbcfw.html", "results/index.html", "results/mpbcfw.html", "components.html"),
    *("results/report/index.html", REPORT, "files/docs/conda/meta.yaml.html"),
)
"""Pages of each kind, which a test of minutes looks at."""

PICTURED = (
    "index.html",
    "which_solver.html",
    "options.html",
    "examples/gallery/index.html",
    REPORT,
)
"""Pages of which screenshots are kept, for people to look at."""

COLOURS = 30
"""A picture with fewer colours is blank, or nearly so."""


def module(name):
    """Return what a module of the site's defines."""
    return runpy.run_path(str(ROOT / "docs" / "site" / f"{name}.py"))


faults = module("checked")["faults"]

of_a_site = pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="no site: make docs")


def pages():
    """Return the places of all pages, those of one template once."""
    found = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
    found.remove("404.html")  # its links are those of a server's root
    of_reports = [place for place in found if place.startswith("results/report/")]
    return [place for place in found if place not in of_reports or place == REPORT]


@pytest.fixture
def opened(browser):
    """Returns a function that opens a page of the site; and what its console said."""
    contexts = []

    def open_(place, width=1280, scheme="light", base=""):
        view = {"width": width, "height": 900}
        contexts.append(browser.new_context(viewport=view, color_scheme=scheme))
        page = contexts[-1].new_page()
        page.said = []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.goto(f"{base or SITE.as_uri()}/{place}")
        return page

    yield open_
    for context in contexts:
        context.close()


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="sub/b.html#there">1</a><a href="sub/b.html#gone">2</a><a href="gone.html">3</a>'
        '<img src="sub/a%20b.png"><a href="https://example.org/gone">4</a><a href="#top">5</a>'
    )
    (tmp_path / "sub" / "b.html").write_text('<h2 id="there">x</h2><a href="../index.html">6</a>')
    (tmp_path / "sub" / "a b.png").touch()
    assert [*faults(tmp_path)] == [
        "index.html links to sub/b.html#gone, where no such place is",
        "index.html links to gone.html, where no file is",
        "index.html links to #top, where no such place is",
    ]


def test_a_large_page_is_found(tmp_path):
    (tmp_path / "index.html").write_text("x" * 1_000_001)
    assert [*faults(tmp_path)] == ["index.html has 1,000,001 bytes, more than 1,000,000"]


def test_options_are_closed_and_whole():
    text = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    made = module("shaped")["closed"](text)
    families = re.findall(r"^### (.+)$", text, re.MULTILINE)
    assert len(families) > 20
    assert made.count("<details ") == made.count("</details>") == len(families)
    for title in families:
        assert f"**{title}**\n" in made  # what is seen
        assert f"\n### {title} {{ .heard }}\n" in made  # what a search finds
    rows = re.findall(r"^\|.*\|$", text, re.MULTILINE)
    assert re.findall(r"^\|.*\|$", made, re.MULTILINE) == rows
    outside = re.sub(r"<details .*?</details>", "", made, flags=re.DOTALL)
    assert "| option |" not in outside
    assert "## From Python\n" in outside


def test_the_gallery_is_cards_of_every_script():
    folder = ROOT / "examples" / "gallery"
    made = module("shaped")["cards"]((folder / "README.md").read_text(encoding="utf-8"))
    for script in folder.glob("*.py"):
        assert f"]({script.stem}.svg)" in made
        assert f'savefig("{script.stem}.svg")' in script.read_text(encoding="utf-8")
    assert "|" not in made


@pytest.mark.parametrize("script", sorted((ROOT / "examples" / "gallery").glob("*.py")))
def test_a_notebook_has_the_prose_and_the_code_of_its_script(script):
    text = script.read_text(encoding="utf-8")
    first, *cells = json.loads(module("notebooks")["notebook"](text))["cells"]
    title = text.split('"""')[1].partition("\n")[0]
    assert first["source"].startswith(f"# {title.rstrip('.')}\n")
    assert len(cells) > 2
    assert {cell["cell_type"] for cell in cells} == {"code"}
    for cell in cells:
        compile(cell["source"], script.name, "exec")
    joined = "\n\n".join(cell["source"] for cell in cells)
    assert re.sub(r"\n+", "\n", joined) in re.sub(r"\n+", "\n", text)


def test_the_first_page_has_three_doors_before_its_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    made = module("shaped")["doors"](text)
    assert made.index("crossover-0.01.png") < made.index("](own_data.md)") < made.index("make run ")
    assert made.count("-   **[") == 3


@of_a_site
def test_no_link_of_the_site_leads_nowhere():
    assert [*faults(SITE)] == []


@of_a_site
@pytest.mark.parametrize("scheme", SCHEMES)
def test_pages_fit_and_say_nothing(opened, scheme):
    """Nothing is wider than the window: on all pages in one scheme, on some in the other."""
    wide, said = [], []
    page = opened("index.html", scheme=scheme)
    for place in pages() if scheme == "light" else SHOWN:
        page.set_viewport_size({"width": WIDTHS[0], "height": 900})
        page.goto((SITE / place).as_uri())
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            if (needs := page.evaluate("document.documentElement.scrollWidth")) > width:
                wide.append(f"{place}: {needs} in {width}")
        said += [f"{place}: {text}" for text in page.said]
        page.said.clear()
    assert (wide, said) == ([], [])


@of_a_site
def test_no_picture_is_a_white_sheet_in_the_dark(opened):
    page = opened("index.html", scheme="dark")
    filters = {}
    for place in (*SHOWN, "results/bmrm.html", "algorithms/dcadmm.html"):
        page.goto((SITE / place).as_uri())
        filters[place] = page.evaluate(
            "[...document.querySelectorAll('article img, figure img')]"
            ".map(image => getComputedStyle(image).filter)"
        )
    assert sum(map(len, filters.values())) > 20
    assert [place for place, of in filters.items() if "none" in of] == []
    of_photographs = [*filters["results/bmrm.html"], *filters["algorithms/dcadmm.html"]]
    assert not any("invert" in of for of in of_photographs)


@of_a_site
@pytest.mark.skipif(not AXE, reason="SSVM_BENCH_AXE names no axe.min.js")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_are_accessible(opened, width, scheme):
    """Axe finds nothing that it calls serious or critical."""
    found = []
    page = opened("index.html", width, scheme)
    for place in SHOWN:
        page.goto((SITE / place).as_uri())
        page.add_script_tag(path=AXE)
        violations = page.evaluate(
            "axe.run({resultTypes: ['violations'], preload: false}).then(found => found.violations)"
        )
        found += [
            f"{place}: {each['id']}: {node['html'][:120]} {node.get('failureSummary', '')}"
            for each in violations
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"][:3]
        ]
    assert found == []


@of_a_site
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("place", PICTURED)
def test_screenshots_are_not_blank_and_dark_ones_are_darker(opened, place, width, tmp_path):
    folder = Path(os.environ.get("SSVM_BENCH_SCREENSHOTS", tmp_path))
    brightness = []
    for scheme in SCHEMES:
        page = opened(place, width, scheme)
        page.wait_for_load_state("networkidle")
        path = folder / f"{place.removesuffix('.html').replace('/', '-')}-{width}-{scheme}.png"
        page.screenshot(path=path)
        with Image.open(path) as picture:
            pixels = np.asarray(picture.convert("RGB")).reshape(-1, 3)
        assert len(np.unique(pixels, axis=0)) > COLOURS, path.name
        brightness.append(pixels.mean())
    light, dark = brightness
    assert light > 1.2 * dark


def search(page, words):
    """Type words into the search; return its answers' links once they are there."""
    page.get_by_role("textbox", name="Search").press_sequentially(words)
    answers = page.locator(".md-search-result__link")
    answers.first.wait_for(state="attached")
    return answers


@of_a_site
def test_search_answers_from_the_disk(opened):
    page = opened("index.html")
    assert search(page, "working sets").count() > 3
    assert page.said == []


@of_a_site
def test_search_answers_by_http(opened):
    """A server gives the search a worker, which pages from the disk have none of."""
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            page = opened("index.html", base=f"http://127.0.0.1:{server.server_port}")
            answers = search(page, "working sets")
            assert answers.count() > 3
            with page.expect_navigation():
                answers.first.click()
            assert "working set" in page.locator("article").inner_text().lower()
            assert page.said == []
        finally:
            server.shutdown()


@of_a_site
@pytest.mark.parametrize("width", WIDTHS)
def test_search_finds_an_option_and_opens_its_table(opened, width):
    page = opened("index.html", width)
    if width < 500:
        page.locator("label.md-icon[for=__search]").first.click()
    answers = search(page, "newton_share")
    to = [link.get_attribute("href") for link in answers.all()]
    place = next(each for each in to if "options.html#solvers-" in each)
    page.goto(place if "://" in place else (SITE / place).as_uri())
    row = page.get_by_role("cell", name="solver.newton_share", exact=True)
    row.wait_for()
    closed = page.get_by_role("cell", name="dataset.separator", exact=True)
    assert not closed.is_visible()


@of_a_site
@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_page_has_figure_doors_and_commands(opened, width):
    page = opened("index.html", width)
    picture = page.locator("article img").first
    assert picture.evaluate("image => image.complete && image.naturalWidth > 500")
    below = picture.bounding_box()["y"]
    for name in ("Train on my data", "Compare solvers", "Read the results"):
        door = page.get_by_role("link", name=name, exact=True)
        assert door.bounding_box()["y"] > below
        assert (SITE / door.get_attribute("href")).is_file()
    assert "make run" in page.locator("article pre").first.inner_text()


@of_a_site
def test_a_card_of_the_gallery_has_a_picture_and_its_page_a_notebook(opened):
    page = opened("examples/gallery/index.html")
    for card in page.locator(".pictures li").all():
        card.scroll_into_view_if_needed()
        drawn = card.locator("img").evaluate(
            "image => image.decode().then(() => image.naturalWidth)"
        )
        assert drawn > 100
    page.get_by_role("link", name="digits.py").last.click()
    notebook = page.get_by_role("link", name="as a notebook").get_attribute("href")
    file = (SITE / "files/examples/gallery" / notebook).resolve()
    assert json.loads(file.read_text(encoding="utf-8"))["nbformat"] == 4
