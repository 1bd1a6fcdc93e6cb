"""Papers: a folder each, with what it says and how that is measured, drawn and looks.

The module ``paper`` of a folder has ``PAPER``, a :class:`ssvm_bench.claims.paper.Paper`. Nothing
else lists the papers (:func:`ssvm_bench.config.registry.papers`).
"""
