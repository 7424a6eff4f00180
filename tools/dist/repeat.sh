#!/bin/sh
# repeat.sh ARGS...: builds dist/ a second time, from a copy of the commit in another folder and without the cache of
# the compiler, and compares every file with dist/.
set -e
cd "$(dirname "$0")/../.."
copy=$(mktemp -d)
trap 'chmod -R u+w "$copy"; rm -rf "$copy"' EXIT
trap 'exit 130' INT TERM
git clone -q . "$copy/source"
git -C "$copy/source" checkout -q "$(git rev-parse HEAD)"
GOCACHE=$copy/cache go -C "$copy/source/tools/dist" run . -root "$copy/source" -out "$copy/dist" "$@"
diff -r dist "$copy/dist"
echo "all $(find dist -type f | wc -l) files of dist/ are byte-equal in a second build"
