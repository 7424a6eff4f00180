#!/bin/sh
# pictures.sh BIN: makes the pictures of the pages anew. BIN has sallyport, runsc and freeze.
set -e
cd "$(dirname "$0")/../.."
bin=$1
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
export SALLYPORT_REQUIRE=1 SALLYPORT_TEST_PICTURES="$bin"

# shoot PACKAGE TESTS TITLE: runs tests that leave pictures.
shoot() {
	./tools/step.sh "$3" go test -count=1 -vet=off -timeout 3m -run "$2" -artifacts -outputdir "$new" "$1"
	find "$new/_artifacts" -type f -exec mv -f {} "$new" \;
}

shoot ./gateway/dashboard '^TestScreenshots$' "the dashboard, light and dark"
chmod 644 "$new"/*.png
mv "$new"/*.png docs/dashboard/

shoot ./tools/pictures '^(TestSession|TestApproval)$' "what terminals show of real runs"
for name in session approval; do
	./tools/pictures/terminal.sh "$bin/freeze" "$new/$name.ansi" "docs/pictures/$name.svg"
done
find docs/pictures docs/dashboard -type f -size +300000c -exec echo "over 300 KB: {}" \; | { ! grep .; }
