"""How many events the service takes: `./run bench ingest`, and its parts that can be run alone."""
