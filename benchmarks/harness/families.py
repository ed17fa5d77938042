"""The groups of models that the report has a chart for each, in its order."""

FAMILIES = {
    "small": "small models",
    "convolutional": "convolutional networks",
    "transformer": "transformers",
    "recurrent": "recurrent networks",
    "llm": "the language model",
}
