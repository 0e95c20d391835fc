"""The parts of `./run bench trust`."""
