#!/bin/sh
# build.sh CC OUT: compiles the zygote to a library without dependencies.
set -e
cd "$(dirname "$0")"
"$1" -std=c11 -Wall -Wextra -Werror -O2 -fPIC -shared -nostdlib -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables \
	-Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,max-page-size=4096 -s -o "$2" zygote.c
