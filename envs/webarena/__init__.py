"""WebArena: 812 tasks on six web sites that a user hosts, through BrowserGym and its evaluators."""
