"""MiniWoB++: 125 kinds of small browser tasks whose pages lie on this machine, through BrowserGym."""
