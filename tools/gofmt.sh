#!/bin/sh
# gofmt.sh -l | -w: runs gofmt over the project's own files. With -l a file that differs is a failure.
cd "$(dirname "$0")/.." || exit 1
gofmt=$(go env GOROOT)/bin/gofmt
found=$(find . \( -name node_modules -o -name testdata -o -name '.?*' \) -prune -o -name '*.go' -print0 |
	xargs -0 -r "$gofmt" "$1" 2>&1) || { echo "$found"; exit 1; }
[ -z "$found" ] && exit 0
echo "$found"
echo "make fmt formats these files"
exit 1
