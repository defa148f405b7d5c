"""The double of WebArena's six sites and its home page: one Flask application a site, one world behind them."""
