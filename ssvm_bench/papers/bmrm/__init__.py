"""The bundle-method report: Uřičář and Franc 2012."""
