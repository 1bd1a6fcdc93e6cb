"""What each paper says, and how our runs judge it."""
