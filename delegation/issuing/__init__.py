"""Issuing tokens: what is read, what is asked for, and the transaction that stores one."""
