"""Lets programs of mcp_code_executor use the full paths that its answers have."""

import json as _json
import os as _os
import re as _re

_settings = _json.loads("SETTINGS")
_os.environ.update(_settings["env"])


def _source(code):
    """The folder of the host is at /workspace here."""
    return _re.sub(r"(?<![\w./-])" + _re.escape(_settings["folder"]) + r"(?![\w.-])", "/workspace", code)
