"""The console's pages over a full database: rows by SQL, every address, queries, and requests over HTTP."""
