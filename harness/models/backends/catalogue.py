"""The built-in back-ends by name; nothing is imported until one is used."""

CATALOGUE = {
    "litellm": "harness.models.backends.litellm:LiteLLMBackend",
    "embedded": "harness.models.backends.embedded:EmbeddedBackend",
    "scripted": "harness.models.backends.scripted:ScriptedBackend",
}
