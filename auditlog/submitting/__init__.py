"""The log's side of its witnesses: submit checkpoints to them and gather their cosignatures."""
