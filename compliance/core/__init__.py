"""Foundations that every room uses: environments, errors, time, ids, encryption, tasks, logs."""
