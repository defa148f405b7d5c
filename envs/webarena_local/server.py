"""The server of the double: `python -m envs.webarena_local.server`, one process an environment, all seven sites and
their reset server on free ports.

The first line on stdout is {"urls": {site: address}}. Then every line on stdin is an order that is answered by a line:

    {"op": "reset"}                                        → {"ok": true}
    {"op": "fault", "site": …, "kind": …, "path": …, …}    → {"ok": true}; kind null takes the fault away
    {"op": "state"}                                        → {"ok": {"resets": n, …}}: what tests ask the world

Faults are planted on this pipe only, so that no page and no agent can reach them. The process ends when stdin closes, and so
with its parent, however that ends.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from typing import Any

from werkzeug.serving import BaseWSGIServer, make_server

from envs.webarena_local.site.app import create_app
from envs.webarena_local.site.world import SERVED, Fault, World

HOST = "127.0.0.1"


def start_sites(world: World) -> tuple[dict[str, str], list[BaseWSGIServer]]:
    """Serve every site on a free port of the loopback interface, in threads that end with the process."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    urls: dict[str, str] = {}
    servers = []
    for site in SERVED:
        server = make_server(HOST, 0, create_app(site, world, urls), threaded=True)
        urls[site] = f"http://{HOST}:{server.server_port}"
        servers.append(server)
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    return urls, servers


def obey(world: World, order: dict[str, Any]) -> Any:
    """Carry out one order; what is answered."""
    match order.pop("op"):
        case "reset":
            world.reset()
        case "fault":
            site = order.pop("site")
            if order.get("kind") is None:
                world.faults.pop(site, None)
            else:
                world.faults[site] = Fault(**order)
        case "state":
            return {
                "resets": world.resets,
                "orders": len(world.orders),
                "biography": world.biography,
                "faults": len(world.faults),
            }
        case other:
            raise ValueError(f"there is no order {other!r}")
    return True


def main() -> None:
    world = World()
    urls, _servers = start_sites(world)
    print(json.dumps({"urls": urls}), flush=True)
    for line in sys.stdin:
        print(json.dumps({"ok": obey(world, json.loads(line))}), flush=True)


if __name__ == "__main__":
    main()
