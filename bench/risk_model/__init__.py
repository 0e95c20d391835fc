"""What `bench.risk` and `bench.fit_risk` share: public streams, and the ways in which an agent meets them."""
