"""The memory methods of this project: name → "module:class"."""

CATALOGUE: dict[str, str] = {
    "gmemory": "methods.gmemory.method:GMemory",
    "none": "methods.none:NoMemory",
    "generative": "methods.generative:Generative",
    "metagpt": "methods.metagpt:MetaGPT",
}
