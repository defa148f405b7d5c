"""WebArena on our own double of its sites: BrowserGym's task class and evaluators, our pages and tasks, no images to host."""
