"""Sets of points of which some are labelled, and the pictures that some of them are of."""
