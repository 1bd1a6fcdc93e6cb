"""The results of runs: traces, run folders, the best values seen, provenance, scores."""
