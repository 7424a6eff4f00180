#!/bin/sh
# golden.sh: runs the tests of the packages that have an -update flag, with it; the others would refuse the flag.
# They rewrite golden files and the pages of docs/reference.
set -e
cd "$(dirname "$0")/.."
dirs=$(grep -rlF -e '"sallyport/internal/testutil/golden"' -e '"sallyport/internal/testutil/refpage"' --include='*_test.go' --exclude-dir='.?*' --exclude-dir=node_modules . | xargs -r -n 1 dirname | sort -u)
[ -n "$dirs" ] || { echo "no test has an -update flag"; exit 0; }
# shellcheck disable=SC2086 # one argument a directory, none with a space: they are package names
go test -timeout 15m $dirs -update
git status --short -- '*testdata*' docs
