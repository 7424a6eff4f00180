#!/bin/sh
# module.sh PATH URL: gives the module the path that `go install PATH/cmd/sallyport@latest` takes, and the project its
# home. Run it once, when there is a home.
set -e
cd "$(dirname "$0")/../.."
path=${1:?the module path, such as example.com/group/sallyport} url=${2:?the address of the project}
old=$(go list -m)
go mod edit -module "$path"
git ls-files -z '*.go' | xargs -0 sed -i -E "s#\"$old/(cmd|gateway|codegen|sandbox|index|internal|bench|tools)#\"$path/\1#"
sed -i "s#^\tHome = \".*\"#\tHome = \"$url\"#" internal/build/build.go
sed -i "s#\"$old/internal/build\.\"#\"$path/internal/build.\"#" tools/dist/compile.go
go build ./...
