"""Checkpoints that others have made: no code of theirs is run, and no kernel reads what they say.

What is changed here has the right checksums: they keep no one from writing what he likes.
"""

import hashlib
import io
import json
import logging
import pickle
import re
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
from program import USPS, config_of
from regression import reference
from test_checkpoints import WHOSE, begun, undisturbed_and_left
from traces import spoilt

import ssvm_bench
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.base.messages import shown_by
from ssvm_bench.results import checkpoint_file
from ssvm_bench.runs import checkpoints, runner

CASES = 20
SOLVERS = {
    "labelings": (*reference.PROBLEMS["ocr"], "solver=mpbcfw_fast", "solver.average=true"),
    "rows": (*USPS, "solver=mpbcfw_fast", "prior.mean=0.1"),
    "weights": (*USPS, "solver=dcd", "solver.planes=found"),
    "cache": (*USPS, "solver=dcd_online", "solver.schedule=larank"),
    "model": (*USPS, "solver=prox_bmrm"),
}


def test_nothing_in_the_package_unpickles_a_file():
    """Besides what ruff looks at, S301 and S403."""
    forbidden = re.compile(
        r"allow_pickle\s*=\s*(?!False)|read_pickle|joblib\.load|\b(shelve|marshal|dill)\b|cloudpickle\.load"
    )
    for path in Path(ssvm_bench.__file__).parent.rglob("*.py"):
        assert not forbidden.findall(path.read_text()), path


class Planted:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return subprocess.Popen, (["touch", str(self.marker)],)


def left_aside(tmp_path, content=None, **arrays):
    """Return why a checkpoint is left aside."""
    config, said = config_of(tmp_path, *USPS, "solver=fw", data=()), []
    if arrays:
        about = json.dumps(arrays.pop("about")).encode()
        np.savez(file := io.BytesIO(), about=np.frombuffer(about, np.uint8), **arrays)
        content = file.getvalue()
    (tmp_path / checkpoint_file.NAME).write_bytes(content)
    with shown_by(said.append):
        assert checkpoints.resume(tmp_path, WHOSE, begun(config)) is None
    (told,) = said
    return told


def test_a_pickle_is_never_read(tmp_path):
    marker = tmp_path / "marker"
    planted = pickle.dumps(Planted(marker))
    line = json.dumps({**WHOSE, "format": "1"}).encode() + b"\n" + planted
    told = left_aside(tmp_path, line + hashlib.sha256(line).digest())
    assert "it was written by another version of the program" in told
    about = {"whose": WHOSE, "state": {"solver": {"npy": "solver/w"}}}
    for name in ("solver/w", "more"):
        spoilt = {name: np.array([Planted(marker)], object)}
        assert "it is damaged" in left_aside(tmp_path, about=about, **spoilt)
    assert "it is damaged" in left_aside(tmp_path, planted)
    assert not marker.exists()


@pytest.mark.parametrize(
    "state",
    [
        *({}, [], {"npy": "solver/w"}, {"solver": {"npy": ["about"]}}),
        {"solver": 1, "of_all": 2, "record": 3, "progress": 4},
        {"solver": {}, "of_all": {}, "record": {"latent": None}, "progress": {}},
    ],
)
def test_another_state_is_told(tmp_path, state):
    assert "is left aside" in left_aside(tmp_path, about={"whose": WHOSE, "state": state})


def arrays_of(state):
    """Yield the mappings and keys of all arrays in a state."""
    for key, value in state.items():
        if isinstance(value, dict):
            yield from arrays_of(value)
        elif isinstance(value, np.ndarray) and value.size:
            yield state, key


@pytest.mark.parametrize("name", SOLVERS)
def test_a_spoilt_state_is_refused_or_goes_on(tmp_path, name):
    """All of it, or one array: a wrong index would be memory that is not the program's."""
    options = ("clock=work", "budget.max_iterations=14")
    config = config_of(tmp_path / "run", *options, *SOLVERS[name], data=())
    _, folders = undisturbed_and_left(config)
    refused = 0
    for case in range(CASES):
        rng = np.random.default_rng(case)
        state = checkpoint_file.read(folders[case % len(folders)], WHOSE)
        arrays = list(arrays_of(state["solver"] if case % 4 else state))
        for _ in range(int(rng.integers(1, 3))):
            where, key = arrays[rng.integers(len(arrays))]
            where[key] = spoilt(where[key], rng)
        with (tmp_path / checkpoint_file.NAME).open("wb") as file:
            checkpoint_file.write(file, WHOSE, state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numbers that are out of range are still numbers
            found = checkpoints.resume(tmp_path, WHOSE, begun(config))
            if found is None:
                refused += 1
                continue
            solver, recorder, progress = found
            solver.clock.start()
            progress.resumed = [{"iteration": progress.iteration}]
            try:
                runner.loop(config, solver, recorder, progress=progress)
            except RunFailedError as error:
                logging.getLogger(__name__).info("%s", error)
    assert 0 < refused < CASES


@pytest.mark.parametrize("error", [ZeroDivisionError, OverflowError, FloatingPointError])
def test_numbers_that_no_run_computes_end_a_resumed_run_in_one_sentence(tmp_path, error):
    """Whatever they are: as a division by 0 in a compiled pass."""
    config = config_of(tmp_path, *USPS, "solver=bcfw", "clock=work", data=())
    _, folders = undisturbed_and_left(config)
    solver, recorder, progress = begun(config)(checkpoint_file.read(folders[0], WHOSE))
    solver.clock.start()

    def divide():
        raise error("division by zero")

    solver.iterate = divide
    with pytest.raises(error):  # a fault of the program, or of a component, stays one
        runner.loop(config, solver, recorder, True, progress)
    progress.resumed = [{"iteration": progress.iteration}]
    with pytest.raises(RunFailedError, match=r"that no run computes \(.*\)\. Begin it anew with f"):
        runner.loop(config, solver, recorder, progress=progress)
