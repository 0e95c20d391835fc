"""The stack behind `./run` and `./test`: private PostgreSQL, Valkey and SoftHSM, and the service on them.

Linux only, since it reads `/proc`. `setup` runs before anything is installed.
"""
