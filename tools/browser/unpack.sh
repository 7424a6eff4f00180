#!/bin/sh
# unpack.sh: unpacks the Chromium of tools/browser/node_modules into .cache/browser, where that has not been done.
set -e
cd "$(dirname "$0")/../.."
pin=$(cat tools/browser/unpack.mjs tools/browser/node_modules/.pin | sha256sum)
if [ "$(cat .cache/browser/.pin 2>/dev/null)" = "$pin" ]; then
	exit 0
fi
new=.cache/browser.$$
trap 'rm -rf "$new"' EXIT
./tools/step.sh "unpacking Chromium" node tools/browser/unpack.mjs "$new"
cp tools/browser/node_modules/axe-core/axe.min.js "$new/axe.min.js"
echo "$pin" >"$new/.pin"
rm -rf .cache/browser
mv "$new" .cache/browser
