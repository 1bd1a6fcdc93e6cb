"""What runs leave behind: traces, run folders, the best values seen, where numbers come from."""
