"""Dual coordinate descent: single and pair steps on the weights of planes."""
