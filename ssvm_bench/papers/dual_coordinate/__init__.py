"""The dual-coordinate paper: Ramanan 2013."""
