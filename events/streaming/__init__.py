"""Events and audit entries for other systems: a feed, a form of OCSF, and a stream to a receiver."""
