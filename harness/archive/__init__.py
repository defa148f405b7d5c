"""What can be done with runs that are there: pack, unpack, replay, tell their differences, grade anew, export.

Nothing here changes a run. What is made goes into a place of its own, complete or not at all.
"""
