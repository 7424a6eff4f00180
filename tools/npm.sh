#!/bin/sh
# npm.sh FOLDER TITLE: installs FOLDER/package-lock.json into FOLDER/node_modules, running no package's scripts.
# Nothing is done when the folder is there and was installed from the same lock file.
set -e
cd "$(dirname "$0")/.."
from=$1
pin=$(cat "$from/package.json" "$from/package-lock.json" | sha256sum)
if [ "$(cat "$from/node_modules/.pin" 2>/dev/null)" = "$pin" ]; then
	exit 0
fi

# Installed beside and moved into place when whole: without a network the old folder stays usable.
new=.cache/npm.$$
trap 'rm -rf "$new"' EXIT
mkdir -p "$new"
cp "$from/package.json" "$from/package-lock.json" "$from/.npmrc" "$new"
./tools/step.sh "$2" \
	npm ci --prefix "$new" --ignore-scripts --no-audit --no-fund --loglevel=error
echo "$pin" >"$new/node_modules/.pin"
rm -rf "$from/node_modules"
mv "$new/node_modules" "$from/node_modules"
