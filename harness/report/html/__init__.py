"""The report: runs as one HTML file that needs no server, no network and no other file (`harness.report.html.page.build`).

The page holds a summary (what the tables and figures show) as plain JSON, and each task's transcript as a compressed chunk that
is unpacked when somebody opens the task. A single file, because a phone that opens a file it was sent cannot load the files
beside it.
"""
