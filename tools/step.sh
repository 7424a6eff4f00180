#!/bin/sh
# step.sh TITLE COMMAND...: runs the command and tells of it in one line: what, dots while it lasts, how long it took.
# The command's output is shown only when it fails, without the hosts of package registries.
title=$1
shift
log=$(mktemp) || exit 1
printf '==> %s ' "$title"

# The sleep must hold neither end of a pipe, or `make demo | cat` would wait for it.
(while sleep 5 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do printf .; done) &
ticker=$!
trap 'kill $ticker 2>/dev/null; rm -f "$log"' EXIT
trap 'exit 130' INT TERM

start=$(date +%s)
"$@" >"$log" 2>&1
status=$?
took=$(($(date +%s) - start))
if [ $status -eq 0 ]; then
	printf ' %d s\n' "$took"
else
	printf ' failed after %d s\n' "$took"
	sed -E 's#[a-z]+://[^/ "]+#(registry)#g' "$log" >&2
fi
exit $status
