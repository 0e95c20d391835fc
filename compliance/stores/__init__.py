"""PostgreSQL and Redis: every way to reach them."""
