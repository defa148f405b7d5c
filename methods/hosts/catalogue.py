"""The hosts of this project: name → "module:class"."""

CATALOGUE: dict[str, str] = {
    "autogen": "methods.hosts.autogen:AutoGen",
    "autogen_selector": "methods.hosts.autogen_selector:AutoGenSelector",
    "dylan": "methods.hosts.dylan:Dylan",
    "dylan_original": "methods.hosts.dylan_original:DylanOriginal",
    "single": "methods.hosts.single:SingleAgent",
}
