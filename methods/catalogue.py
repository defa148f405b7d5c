"""The memory methods of this project: name → "module:class"."""

CATALOGUE: dict[str, str] = {
    "chatdev": "methods.chatdev:ChatDev",
    "generative": "methods.generative:Generative",
    "generative_full": "methods.generative_full.method:GenerativeFull",
    "gmemory": "methods.gmemory.method:GMemory",
    "memorybank": "methods.summaries:MemoryBank",
    "metagpt": "methods.metagpt:MetaGPT",
    "metagpt_pool": "methods.metagpt_pool.method:MetaGPTPool",
    "none": "methods.none:NoMemory",
    "sepm": "methods.sepm.memory:Sepm",
    "voyager": "methods.summaries:Voyager",
}
