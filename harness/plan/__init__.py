"""What a sweep will cost, before anything is spent: from what runs have measured, what papers report, and the price file."""
