"""Settings of one of our runs."""


def read(path):
    """A run's config.yaml: one `name: value` per line, values as JSON or bare words."""
    out = {}
    with open(path) as f:
        for line in f:
            name, _, text = line.strip().partition(": ")
            if name and not name.startswith("#"):
                out[name.rstrip(":").replace("-", "_")] = value(text)
    return out


def value(text):
    """A setting's text as bool, int, float or str."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text.strip('"')
