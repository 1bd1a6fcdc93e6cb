"""The BCFW poster: Jaggi, Lacoste-Julien, Schmidt and Pletscher, ICML 2013."""
