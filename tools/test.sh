#!/bin/sh
# test.sh RACE: runs all tests, with the race detector (RACE is -race, or empty) where it can find something and without it elsewhere.
race=$1

# Tested without the race detector: packages that start no goroutine; the command, whose tests start a process per line;
# benchmarks, which use packages that have race tests of their own; and tests that look at thousands of tools or megabytes one
# after the other. TestConformanceShared has each case of the suites of ./sandbox with the race detector, and
# TestHostileUpstreamsThatWait some of the hostile upstreams.
plain_packages='./cmd/sallyport ./codegen ./codegen/runtime ./internal/pii ./internal/clients ./internal/jsontype ./internal/config ./gateway/upstream/openapi ./bench/agent ./bench/local ./bench/search ./bench/tokens'
plain_tests='^(TestHostileUpstream|TestLoginOverEachTransport|TestRecognizedLocally|TestGluedTokens|TestFunctionsKeepOutOfRealQueries|TestHostileSchemasAreHarmless|TestNoCallIsMadeTwice|TestArgumentsArriveAsTheyWereMeant|TestClicksPay|TestObservedHostileResults|TestOpenAPITypeChecks|TestCatalogIsClean|TestBoundsOfAFile|TestManyFindings|TestTalker|TestReader|TestEmitHoldsNoMore|TestKilledAtEachWrite|TestLoopHoldsNoMore|TestQuality|TestShortQueries)$'
plain_tests_in='./gateway ./gateway/catalog ./gateway/trust ./gateway/resultschema ./gateway/typecheck ./index ./sandbox/bridge ./gateway/workflow ./internal/names'

# The longest first: go test starts packages in this order. A package that is named twice is tested once.
longest='./gateway ./sandbox/deps ./gateway/typecheck'

# Tests of ./sandbox run one after the other and mostly wait, so they run at the same time as all others, in two halves.
alone='./sandbox'
plain_tests_alone='^(TestAttacks|TestAttacksShared|TestConformance|TestConformanceRootless|TestApart|TestImage|TestImageEnvironment|TestEveryWayToTheSameLimits)$'

# make check has vetted everything. Without debug information a binary is linked in a third of the time. Many tests wait for
# timers and processes: more packages and tests at a time than there are processors keep these busy.
options="-vet=off -ldflags=-w -timeout 45m -parallel 6"
cores=$(getconf _NPROCESSORS_ONLN)
# The compiler and the linker collect garbage less often, which takes a fifth less processor time, and more memory. Caches stay valid.
GOFLAGS="$(go env GOFLAGS) '-toolexec=env GOGC=400'"
export GOFLAGS
export GORACE="atexit_sleep_ms=100 $GORACE" # a process with the race detector otherwise sleeps for a second before it ends

raced=$(go list ./... | grep -vxF "$(go list $plain_packages $alone)") || exit 1

# Tests share snapshots of interpreters: the making of one costs two programs.
SALLYPORT_TEST_SNAPSHOTS=$(mktemp -d) || exit 1
export SALLYPORT_TEST_SNAPSHOTS
trap 'rm -rf "$SALLYPORT_TEST_SNAPSHOTS"' EXIT
trap 'trap "" TERM; kill 0; exit 130' INT TERM # a background command ignores Ctrl-C

echo "==> go test $race ./..."
# shellcheck disable=SC2086
go test $options $race -skip "$plain_tests_alone" $alone &
alone_raced=$!
# shellcheck disable=SC2086
go test $options -run "$plain_tests_alone" $alone &
alone_plain=$!
# shellcheck disable=SC2086
go test $options -p "$cores" $race -skip "$plain_tests" $longest $raced
raced_status=$?
echo "==> go test ./... (what is tested without the race detector)"
# shellcheck disable=SC2086
go test $options -p $((cores + 1)) $plain_packages
plain_status=$?
# shellcheck disable=SC2086
go test $options -p $((cores + 1)) -run "$plain_tests" $plain_tests_in || plain_status=$?
wait $alone_raced
alone_status=$?
wait $alone_plain && [ "$alone_status" = 0 ] && [ "$raced_status" = 0 ] && [ "$plain_status" = 0 ]
