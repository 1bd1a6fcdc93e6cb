"""What ``--help`` shows below the options: examples, and the overrides of a run."""


def verbatim(text: str) -> str:
    """Mark every paragraph of an epilog as one that click must not wrap."""
    paragraphs = text.strip("\n").split("\n\n")
    return "\n\n".join(f"\b\n{paragraph}" for paragraph in paragraphs)


MAIN = verbatim("""
Examples:
  ssvm-bench run solver=mpbcfw dataset=ocr
  ssvm-bench run -m solver=bcfw,mpbcfw 'seed=range(10)' dataset=usps
  ssvm-bench experiment quickstart
  ssvm-bench list solvers
""")

RUN = verbatim("""
Examples:
  ssvm-bench run solver=mpbcfw dataset=ocr
  ssvm-bench run dataset=usps solver=bcfw budget.max_iterations=20 clock=cpu
  ssvm-bench run lam=1e-3 solver.T=5 dataset.source=synthetic
  ssvm-bench run -m solver=bcfw,mpbcfw 'seed=range(10)'
  ssvm-bench run dataset=usps 'path=[100/n,10/n]' lam=1/n budget.gap_tol=0.01

Overrides that always exist [default]:
  dataset, solver, oracle  by name, see 'ssvm-bench list'; a dataset brings its oracle
  seed                     of the solver's random choices [0]
  lam                      weight of the regulariser: a number, or K/n as in lam=10/n [null = 1/n]
  path                     larger λ to solve before, each from the end of the last one [[]]
  prior.mean               of a Gaussian prior of w: a number, a list, or a path of an .npy [0]
  prior.variance           the same of the diagonal of its Σ; an .npy may hold all of it [1]
  budget.max_iterations    outer iterations [50]
  budget.max_seconds       solver seconds on the run's clock [null = no limit]
  budget.gap_tol           relative duality gap at which to stop [0]
  eval.every               evaluate every k-th iteration [1]
  eval.growth              after iteration k, evaluate not before growth · k [1]
  eval.after_exact_pass    evaluate the iterate before approximate passes, too [false]
  checkpoint.every         seconds between two states to go on from; null = none [60]
  checkpoint.keep          a finished run keeps its last state, to be extended [false]
  clock                    wall | cpu | work (counted; the same on every machine) [wall]
  dataset.source           auto | real | synthetic [auto]
  dataset.n_samples        use only so many examples [null = all]
  results_dir              root of all results [results]
  force                    run again what has finished [false]
  quiet                    no status output [false]

Options of one solver, oracle or dataset, as in solver.T=5 or 'dataset.folds=[0]', are listed in
docs/options.md.
""")

EXPERIMENT = verbatim("""
Examples:
  ssvm-bench experiment quickstart
  ssvm-bench experiment quickstart dataset.source=synthetic budget.max_iterations=5
  ssvm-bench experiment mpbcfw_fig4 --jobs 2
  ssvm-bench experiment mpbcfw_fig4 --status
  ssvm-bench experiment mpbcfw_fig4 --shard 2/4 results_dir=part-2
  ssvm-bench experiment mpbcfw_fig4 --backend dask --address tcp://127.0.0.1:8786
  ssvm-bench experiment mpbcfw_fig4 --backend submitit --parallel 20 --time-limit 120
""")

MERGE = verbatim("""
Examples:
  ssvm-bench merge part-1 part-2 part-3 part-4 --into results
  ssvm-bench plot mpbcfw_fig4
""")

PLOT = verbatim("""
Examples:
  ssvm-bench plot quickstart
  ssvm-bench plot quickstart --format svg
""")

REPORT = verbatim("""
Examples:
  ssvm-bench report
  ssvm-bench report results_dir=/scratch/results
""")

DATA = verbatim("""
Examples:
  ssvm-bench data status
  ssvm-bench data fetch ocr
  ssvm-bench data check ocr
  ssvm-bench data prepare stanford
  ssvm-bench data show weizmann 17
  ssvm-bench data export ocr ocr.parquet

Raw files are looked for in $SSVM_BENCH_DATA, then in the user's cache folder.
""")

CHECK = verbatim("""
Examples:
  ssvm-bench check oracle viterbi
  ssvm-bench check solver mine --config-dir plugins
  ssvm-bench check oracle mine dataset=mine --config-dir plugins

  ✓ kept   ✗ broken   ! worth knowing   – not checked
""")

PREDICT = verbatim("""
Examples:
  ssvm-bench predict results/runs/file/mpbcfw_fast/…/seed=0 --data new.txt --out labels.txt
  ssvm-bench predict results/runs/conll2000/mpbcfw_fast/…/seed=0
""")

SCORE = verbatim("""
Examples:
  ssvm-bench score results/runs/conll2000/mpbcfw_fast/…/seed=0
  ssvm-bench score results/runs/file/mpbcfw_fast/…/seed=0 --data test.txt.gz --out scores.json
""")

SHOW = verbatim("""
Examples:
  ssvm-bench data show weizmann 17
  ssvm-bench data show stanford 0 8 15 --run results/runs/stanford/mpbcfw/…/seed=0
  ssvm-bench data show davis_car_shadow 3 39
  ssvm-bench data show plates 6788 6789 --run results/runs/plates/mpbcfw/…/seed=0
""")

EXPORT = verbatim("""
Examples:
  ssvm-bench data export ocr words.parquet 'dataset.folds=[0]'
  ssvm-bench data export usps digits.npz
  ssvm-bench data export mnist digits.parquet --repeat 34 --jitter shift=1,rotation=10,elastic=1.4
  ssvm-bench run dataset=stream dataset.path=digits.parquet dataset.n_samples=10000
""")
