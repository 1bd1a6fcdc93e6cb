"""Datasets that are read from a file in chunks, without ever being in memory as a whole.

``layout`` says how examples lie in the file, ``header`` what the file says of itself, ``export``
writes it, ``jitter`` deforms images on the way, and ``data_stream`` reads it.
"""
