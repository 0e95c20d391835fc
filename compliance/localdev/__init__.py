"""The stack behind `./run` and `./test`: private PostgreSQL, Valkey and SoftHSM, and the service on them.

Standard library only, since it runs before Django is installed; Linux only, since it reads `/proc`.
"""
