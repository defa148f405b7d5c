"""What the browser benchmarks share: BrowserGym in a worker process, its sessions, and where the browser lies on this machine."""
