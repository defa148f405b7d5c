"""WebArena-Verified: WebArena's 812 tasks in their verified wording, graded from the network's record and a structured answer."""
