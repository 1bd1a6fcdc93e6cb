"""Cutting-plane methods: n-slack and 1-slack."""
