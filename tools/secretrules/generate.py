"""Writes internal/pii/secretrules.json from gitleaks' rules (MIT). Usage: generate.py gitleaks.toml > secretrules.json

Left out: rules about names of keys alone (the detector's own labels know those), and rules without a keyword, which would cost
a regular expression for every text."""
import json
import re
import sys
import tomllib

SKIP = {"generic-api-key", "private-key", "jwt-base64", "curl-auth-header", "curl-auth-user", "kubernetes-secret-yaml", "sourcegraph-access-token"}


def main():
    with open(sys.argv[1], "rb") as file:
        config = tomllib.load(file)
    rules = []
    for rule in config["rules"]:
        if rule["id"] in SKIP or not rule.get("regex") or not rule.get("keywords"):
            continue
        keywords = sorted({word.lower() for word in rule["keywords"] if len(word) >= 3})
        if not keywords:
            continue
        rules.append({
            "id": rule["id"], "regex": rule["regex"], "keywords": keywords,
            "group": rule.get("secretGroup", 0), "entropy": rule.get("entropy", 0),
            "allow": [regex for allowlist in rule.get("allowlists", []) if not allowlist.get("condition") and not allowlist.get("regexTarget")
                      for regex in allowlist.get("regexes", [])],
        })
    json.dump(rules, sys.stdout, indent=0, sort_keys=True)
    print()


main()
