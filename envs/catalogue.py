"""The environments that come with MemArena: name → "module:attribute", imported when first used."""

CATALOGUE: dict[str, str] = {
    "alfworld": "envs.alfworld.adapter:AlfWorld",
    "bbeh": "envs.bbeh.adapter:Bbeh",
    "officebench": "envs.officebench.adapter:OfficeBench",
    "kramabench": "envs.kramabench.adapter:KramaBench",
    "miniwob": "envs.miniwob.adapter:MiniWob",
    "webarena": "envs.webarena.adapter:WebArena",
    "webarena_verified": "envs.webarena_verified.adapter:WebArenaVerified",
    "webarena_local": "envs.webarena_local.adapter:WebArenaLocal",
}
