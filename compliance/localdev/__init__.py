"""The stack behind `./run` and `./test`: private PostgreSQL, Valkey and SoftHSM, and what runs on them.

Standard library only, and Linux only: it runs before Django is installed and reads `/proc`.
"""
