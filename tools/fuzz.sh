#!/bin/sh
# fuzz.sh TIME: runs every fuzzer of the project for TIME, one after the other; go test -fuzz takes one at a time.
# Inputs are made smaller in few tries: with the default of a minute each, a fuzzer of archives does nothing else.
set -e
cd "$(dirname "$0")/.."
grep -rHoE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' --exclude-dir='.?*' --exclude-dir=node_modules . |
	sort | while IFS=: read -r file func; do
	echo "==> ${func#func } in $(dirname "$file")"
	go test -run '^$' -fuzz "^${func#func }\$" -fuzztime "$1" -fuzzminimizetime 10x "$(dirname "$file")"
done
