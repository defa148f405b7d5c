"""What a stream leaves on disk: one SQLite file in WAL mode, one append-only event log, one manifest."""
