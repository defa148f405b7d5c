"""The memory methods of this project: name → "module:class"."""

CATALOGUE: dict[str, str] = {
    "none": "methods.none:NoMemory",
    "generative": "methods.generative:Generative",
    "metagpt": "methods.metagpt:MetaGPT",
}
