"""Users' YAML files: regular, small, of plain values, and nothing in them is interpolated."""

import pytest
from program import at_most_calls, put_odd

from ssvm_bench.base.errors import ConfigError, readable
from ssvm_bench.config import catalog
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.report.experiment_files import load

SECRET = "hunter2-of-the-environment"


def message(words, config_dirs):
    with pytest.raises(ConfigError) as caught:
        compose_runs(words, config_dirs=config_dirs)
    return str(caught.value)


@pytest.fixture
def mine(tmp_path):
    """Return a function that writes an experiment file and reads it as the program does."""

    def write(text):
        file = tmp_path / "mine.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load(str(file))

    return write


GRID = "grid: {seed: 0}\nfigures: {}\n"


@pytest.mark.parametrize("text", ["title: {}\n", "grid: {{results_dir: '{}'}}\n", "'{}': 1\n"])
def test_nothing_is_interpolated_in_a_file(text, monkeypatch, mine, tmp_path):
    monkeypatch.setenv("SSVM_BENCH_SECRET", SECRET)
    with pytest.raises(ConfigError, match=r"line \d: interpolations") as caught:
        mine(text.format("${oc.env:SSVM_BENCH_SECRET}"))
    assert SECRET not in str(caught.value)
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver" / "odd.yaml").write_text("name: odd\nkind: ${oc.env:SSVM_BENCH_SECRET}\n")
    text = message(["solver=odd"], [tmp_path])
    assert "interpolations" in text
    assert SECRET not in text


LAUGHS = "\n".join(f"a{k}: &a{k} [{f'*a{k - 1},' * 9 if k else ''}]" for k in range(30))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (LAUGHS, "anchors and aliases"),
        ("a: &a [*a]", "anchors and aliases"),
        ("grid: {<<: {seed: 1}}", "a key has to be text"),
        ("1: 2", "a key has to be text"),
        ("? [a]\n: 1", "a key has to be text"),
        ("title: a\ntitle: b", "line 2: the key title stands twice"),
        ("a: !!python/name:os.abort", "tags"),
        ("[" * 20_000, "nested deeper than"),
        ("{a: " * 9_000, "nested deeper than"),
        ("#" * 60_000, "too large"),
        ("a: " + "9" * 5000, "64 bits"),
        ("a: 0x" + "f" * 9000, "64 bits"),
        ("a: 2020-99-99", "Cannot read"),
        ("a: [", "line 1"),
        (b"a: \xff", "Cannot read"),
        ("--- 1\n--- 2\n", "Cannot read|single document"),
    ],
)
def test_a_yaml_file_holds_plain_values_only(mine, text, part):
    with at_most_calls(2_000_000), pytest.raises(ConfigError, match=part) as caught:
        mine(text)
    assert len(readable(str(caught.value))) < 1000


def test_an_experiment_is_called_like_its_folder(tmp_path):
    (tmp_path / "-\n.yaml").write_text(GRID)
    with pytest.raises(ConfigError, match="Rename the file"):
        load(str(tmp_path / "-\n.yaml"))


def test_only_regular_files_are_read(tmp_path):
    folder = tmp_path / "solver"
    folder.mkdir()
    kinds = ("pipe", "folder", "endless", "loop")
    for kind in kinds:
        put_odd(folder / f"{kind}.yaml", kind)
    (folder / "mine.yaml").write_text("# mine\x1b[2J\n")
    found = catalog.entries("solver", [tmp_path])
    assert "mine" in found
    assert not {*kinds} & set(found)
    assert catalog.description(found["mine"]) == r"mine\x1b[2J"
    for name in kinds:
        with pytest.raises(ConfigError, match="no regular file"):
            catalog.read_yaml(folder / f"{name}.yaml")
        with pytest.raises(ConfigError, match="no such file"):
            load(str(folder / f"{name}.yaml"))


@pytest.mark.parametrize(
    "defaults",
    ["[../../x]", "[{/hydra/launcher: x}]", "3", "[mpbcfw, bcfw]", "[3]", "[odd]", "{a: b}"],
)
def test_a_users_file_inherits_from_one_other_at_most(tmp_path, defaults):
    (tmp_path / "solver").mkdir()
    text = f"name: odd\nkind: mpbcfw\ndefaults: {defaults}\n"
    (tmp_path / "solver" / "odd.yaml").write_text(text)
    assert "odd.yaml" in message(["solver=odd"], [tmp_path])


def test_a_config_folder_whose_name_hydra_would_read(tmp_path, monkeypatch):
    monkeypatch.setenv("SSVM_BENCH_SECRET", SECRET)
    folder = tmp_path / "${oc.env:SSVM_BENCH_SECRET}"
    folder.mkdir()
    text = message(["seed=1"], [folder])
    assert "give it another name" in text
    assert SECRET not in text


@pytest.mark.parametrize(
    ("text", "oracle"),
    [
        ("oracle: multiclass\n", "multiclass"),
        ("defaults: [override /oracle@_global_.oracle: multiclass]\n", "multiclass"),
        ("defaults: [ocr]\n", "viterbi"),
        ("defaults: [ocr]\noracle: multiclass\n", "multiclass"),
        ("defaults: [ocr, override /oracle@_global_.oracle: multiclass]\n", "multiclass"),
    ],
)
def test_the_file_of_a_dataset_names_its_oracle_also_as_version_1_0_did(tmp_path, text, oracle):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "mine.yaml").write_text(f"kind: ocr\n{text}")
    (config,) = compose_runs(["dataset=mine"], config_dirs=[tmp_path])
    assert (config.dataset.name, config.oracle.name) == ("mine", oracle)


def test_an_oracle_that_is_no_name_is_refused(tmp_path):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "mine.yaml").write_text("kind: ocr\noracle: [viterbi]\n")
    with pytest.raises(ConfigError, match="dataset=mine: oracle must be a name"):
        compose_runs(["dataset=mine"], config_dirs=[tmp_path])
