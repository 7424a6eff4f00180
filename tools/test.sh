#!/bin/sh
# test.sh RACE: runs all tests, with the race detector (RACE is -race, or empty) where it can find something and without it elsewhere.
# Both runs go on at the same time, since many tests wait for timers and processes; the output of the second follows the first's.
race=$1

# Tested without the race detector: packages that start no goroutine; the command, whose tests start a process per line; and
# tests that look at thousands of tools or megabytes one after the other.
plain_packages='./cmd/sallyport ./codegen ./codegen/runtime ./internal/pii ./internal/clients ./internal/jsontype ./internal/config ./bench/search'
plain_tests='^(TestArgumentsArriveAsTheyWereMeant|TestClicksPay|TestCatalogIsClean|TestBoundsOfAFile|TestManyFindings|TestTalker|TestReader|TestEmitHoldsNoMore|TestKilledAtEachWrite|TestLoopHoldsNoMore|TestQuality|TestShortQueries)$'
plain_tests_in='./gateway ./gateway/trust ./gateway/resultschema ./gateway/typecheck ./index ./sandbox/bridge ./gateway/workflow'

# The longest first: go test starts packages in this order.
longest='./sandbox ./gateway ./sandbox/deps ./gateway/typecheck'

# make check has vetted everything. Without debug information a binary is linked in a third of the time.
options='-vet=off -ldflags=-w -parallel 6 -timeout 30m'

# A package may be named twice; go test runs it once.
# shellcheck disable=SC2086 # lists of words
raced=$(go list ./... | grep -vxF "$(go list $plain_packages)") || exit 1

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
trap 'trap "" INT TERM; kill 0; exit 130' INT TERM

# shellcheck disable=SC2086
{
	go test $options -p 1 $plain_packages
	first=$?
	go test $options -p 1 -run "$plain_tests" $plain_tests_in && exit $first
} >"$log" 2>&1 &
plain=$!

echo "==> go test $race ./..."
# shellcheck disable=SC2086
go test $options -p 2 $race -skip "$plain_tests" $longest $raced
status=$?
wait $plain || status=1
echo "==> go test ./... (what is tested without the race detector)"
cat "$log"
exit $status
