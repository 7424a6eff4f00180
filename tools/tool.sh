#!/bin/sh
# tool.sh NAME PACKAGE NOTE [VARIABLE]: builds .cache/bin/NAME from the module tools/NAME, which pins PACKAGE and all it
# needs. VARIABLE is the package variable in which the program expects its version. If the module has a main.go, that is built,
# with the version of PACKAGE.
# Nothing is done when the binary is there and was built from the same files.
set -e
cd "$(dirname "$0")/.."
name=$1 package=$2 note=$3 variable=${4-}
bin=$PWD/.cache/bin/$name
stamp=$bin.pin

pin=$(cat "tools/$name/go.mod" "tools/$name/go.sum" $(find "tools/$name" -name '*.go' | LC_ALL=C sort) | sha256sum)
if [ -x "$bin" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$pin" ]; then
	exit 0
fi

# Moved into place when whole: an interrupted build leaves nothing that looks like a binary.
mkdir -p .cache/bin
trap 'rm -f "$bin.$$"' EXIT
export CGO_ENABLED=0
./tools/step.sh "fetching the sources of $name" go -C "tools/$name" list -deps "$package"
main=$package
if [ -f "tools/$name/main.go" ]; then main=.; fi
version=$(go -C "tools/$name" list -f '{{.Module.Version}}' "$package")
./tools/step.sh "building $name ($note)" \
	go -C "tools/$name" build -buildvcs=false -trimpath -ldflags "-s -w ${variable:+-X $variable=$version}" -o "$bin.$$" "$main"
mv "$bin.$$" "$bin"
echo "$pin" >"$stamp"
