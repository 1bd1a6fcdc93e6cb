"""The benchmark of semi-supervised learning (Chapelle, Schölkopf, Zien 2006): five of its sets."""
