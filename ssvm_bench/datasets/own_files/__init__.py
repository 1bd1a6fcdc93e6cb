"""Files that users bring: columns of text, LIBSVM's format, npz."""
