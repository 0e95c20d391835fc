"""Makes a release: `./run release` (docs/deployment.md, Releases)."""
