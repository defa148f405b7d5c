"""Where model-written code runs: docker, bubblewrap, or (only by explicit choice) a plain process."""
