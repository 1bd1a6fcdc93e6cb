"""Sequences of DAVIS 2016: the object's mask in the first frame is told, those of the rest not."""
