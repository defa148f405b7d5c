"""What a run measured, beside what a paper reported: summaries, listings, tables and the statistics under them.

Reported (a paper's) numbers are data in results/reported/, never code, and are printed only under the word *reported*.
Importing this package loads neither scipy nor numpy; the functions that need them import them.
"""
