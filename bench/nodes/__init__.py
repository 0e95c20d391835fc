"""Several web nodes beside one another: `./run bench nodes` compares what they answer."""
