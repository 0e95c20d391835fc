"""Public streams, and the ways in which an agent meets them."""
