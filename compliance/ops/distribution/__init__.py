"""Where tables lie in a Citus cluster, and the statements that lay them there."""
