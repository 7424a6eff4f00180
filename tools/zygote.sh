#!/bin/sh
# zygote.sh: compiles codegen/runtime/native/zygote.c for both architectures, with gcc 12 of Debian. The results are
# committed, so only who changes the source needs this. A cross compiler is unpacked below .cache where none is installed.
set -e
cd "$(dirname "$0")/.."
out=$PWD/codegen/runtime/guest
cross=$PWD/.cache/cross

# compiler ARCH prints a compiler for x86_64 or aarch64, and unpacks one that is not there.
compiler() {
	name=$1-linux-gnu-gcc-12
	if command -v "$name" >/dev/null; then
		echo "$name"
		return
	fi
	if [ ! -x "$cross/usr/bin/$name" ]; then
		package=$(echo "$1" | tr _ -)-linux-gnu
		rm -rf "$cross" && mkdir -p "$cross/debs"
		(cd "$cross/debs" && apt-get -qq download "gcc-12-$package" "cpp-12-$package" "binutils-$package" 2>/dev/null)
		for deb in "$cross"/debs/*.deb; do dpkg -x "$deb" "$cross"; done
		rm -r "$cross/debs"
	fi
	echo "$cross/usr/bin/$name"
}

# The assembler and linker of the unpacked compiler find their libraries here.
LD_LIBRARY_PATH=$cross/usr/lib/$(uname -m)-linux-gnu
export LD_LIBRARY_PATH

for arch in x86_64 aarch64; do
	codegen/runtime/native/build.sh "$(compiler $arch)" "$out/zygote-$arch.so"
done
