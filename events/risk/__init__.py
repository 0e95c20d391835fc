"""The scorer, and what it stores: states, snapshots, baselines, marks, reviews, rolling risk."""
