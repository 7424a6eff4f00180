#!/bin/sh
# module.sh PATH URL: gives the module the path that `go install PATH/cmd/sallyport@latest` takes, and the project its
# home. Run it once, when there is a home.
set -e
cd "$(dirname "$0")/../.."
path=${1:?the module path, such as example.com/group/sallyport} url=${2:?the address of the project}
old=$(go list -m)
go mod edit -module "$path"
# Lines of imports, and the script that finds tests by theirs: other texts that begin with the name are paths of other things.
grep -rlF --include='*.go' --exclude-dir='.?*' --exclude-dir=node_modules "\"$old/" . |
	xargs sed -i -E "s#^(import |\t)([A-Za-z0-9_.]+ )?\"$old/([^\"]*)\"( //.*)?\$#\1\2\"$path/\3\"\4#"
sed -i "s#\"$old/internal/testutil/#\"$path/internal/testutil/#g" tools/golden.sh
sed -i "s#^\tHome = \".*\"#\tHome = \"$url\"#" internal/build/build.go
gofmt -w $(grep -rlF --include='*.go' --exclude-dir='.?*' --exclude-dir=node_modules "\"$path/" .) # the order of imports
go list -deps ./... >/dev/null
