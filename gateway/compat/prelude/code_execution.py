"""The names that programs of code-execution-mcp have without imports. Each public name is predefined in the program."""

import collections
import json
import math
import re
import statistics
from datetime import date, datetime, timedelta

import sallyport as _sallyport

workspace = "/workspace"


def _path(name):
    import os

    path = os.path.realpath(os.path.join(workspace, name))
    if path != workspace and not path.startswith(workspace + "/"):
        raise PermissionError("Access denied: path outside workspace")
    return path


def _existing(name):
    import os

    path = _path(name)
    if not os.path.exists(path):
        raise FileNotFoundError(f"File not found: {name}")
    return path


def read_file(filename):
    """Returns the text of a file of the workspace."""
    with open(_existing(filename), encoding="utf-8") as file:
        return file.read()


def write_file(filename, content):
    """Writes a text to a file of the workspace."""
    import os

    path = _path(filename)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)
    return f"Written {len(content)} bytes to {filename}"


def list_files(subpath="."):
    """Returns the paths of the files below a folder of the workspace."""
    import os

    found = []
    for folder, _, names in os.walk(_path(subpath)):
        found += [os.path.relpath(os.path.join(folder, name), workspace) for name in names]
    return sorted(found)


def delete_file(filename):
    """Removes a file of the workspace."""
    import os

    os.unlink(_existing(filename))
    return f"Deleted {filename}"


def save_skill(name, code, description=""):
    """Saves code for later programs."""
    _sallyport.save_skill(name, code=code, description=description or name, language="python")
    return f"Skill '{name}' saved successfully"


def load_skill(name):
    """Returns the code of a skill, for exec()."""
    try:
        sent = json.loads(_sallyport.call("sallyport.import_skill", {"name": name, "language": "python"}))
    except _sallyport.ToolError as err:
        if err.code == "not_found":
            raise FileNotFoundError(f"Skill not found: {name}") from None
        raise
    return sent["files"][sent["code"]]


def list_skills():
    """Returns the skills, each with its name and description."""
    return json.loads(_sallyport.call("sallyport.skill_infos", {}))


_KINDS = {
    "EMAIL": r"[\w.%+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}",
    "API_KEY": r"\b(?:api[_-]?key|token|secret)\b\s*[=: ]\s*[\w-]{20,}",
    "CREDIT_CARD": r"(?<![\d-])\d{4}(?:[ -]?\d{4}){3}(?![\d-])",
    "SSN": r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])",
    "PHONE": r"(?<![\w-])(?:\+?1[-. ]?)?(?:\(\d{3}\) ?|\d{3}[-. ]?)\d{3}[-. ]?\d{4}(?![\w-])",
    "IP_ADDRESS": r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])",
}
_ANY = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()), re.IGNORECASE)
_tokens = {}


def tokenize_pii(text):
    """Replaces personal data by tokens; returns the text, and the values by token. Both stay in this program."""
    import secrets

    used = {}

    def swap(match):
        value = match.group()
        token = next((token for token, known in _tokens.items() if known == value), None)
        token = token or f"[{match.lastgroup}_{secrets.token_hex(4)}]"
        _tokens[token] = used[token] = value
        return token

    return _ANY.sub(swap, text), used


def detokenize_pii(text, tokens=None):
    """Puts the values back in place of the tokens of this program."""
    for token, value in (_tokens if tokens is None else tokens).items():
        text = text.replace(token, value)
    return text


def sanitize_pii(text):
    """Replaces personal data by tokens."""
    return tokenize_pii(text)[0]


restore_pii = detokenize_pii


def filter_by_field(data, field, value):
    """Returns the objects with a value in a field."""
    return [one for one in data if one.get(field) == value]


def summarize_list(data, limit=10):
    """Returns the length of a list and its first items."""
    return {"count": len(data), "sample": data[:limit]}


def aggregate_stats(data, numeric_fields=None):
    """Returns sum, average, minimum and maximum of the number fields of objects."""
    stats = {"count": len(data)}
    if not data:
        return stats
    if numeric_fields is None and isinstance(data[0], dict):
        numeric_fields = [name for name, value in data[0].items() if isinstance(value, (int, float))]
    for field in numeric_fields or []:
        values = [one.get(field, 0) for one in data if isinstance(one, dict)]
        if values:
            total = sum(values)
            stats.update({f"{field}_sum": total, f"{field}_avg": total / len(values), f"{field}_min": min(values), f"{field}_max": max(values)})
    return stats


def format_output(data, max_chars=5000):
    """Returns a value as JSON, at most max_chars characters."""
    return json.dumps(data, indent=2, default=str)[:max_chars]


def _answer(scope):
    """The value of a program is what it has assigned to result."""
    return json.loads(json.dumps(scope.get("result"), default=str))
