#!/bin/sh
# prereq.sh NEED...: silent when this machine has every NEED; else one line that says what to install, and exit status 1.
# A NEED is go, node, python, git, userns or cc. For its own tests PREREQ_PYTHON and PREREQ_SYSCTL name other places to look.
cd "$(dirname "$0")/.." || exit 1
python=${PREREQ_PYTHON:-/usr/bin/python3}
sysctl=${PREREQ_SYSCTL:-/proc/sys}

missing() {
	echo "sallyport: $1" >&2
	exit 1
}

# at_least HAVE WANT: compares dotted versions.
at_least() {
	[ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

need_go() {
	want=$(cat go.mod tools/*/go.mod | sed -n 's/^go //p' | sort -V | tail -n 1)
	install="install Go $want or later (https://go.dev/dl/)"
	command -v go >/dev/null || missing "no go on the PATH: $install"
	# Inside the module an older go may fetch the toolchain that it asks for; outside it tells its own version.
	have=$(go -C tools/runsc env GOVERSION 2>/dev/null) || have=$(cd / && go env GOVERSION 2>/dev/null)
	at_least "${have#go}" "$want" || missing "${have:-this go} is too old: $install"
}

need_node() {
	install="install Node.js 20 or later, with npm (https://nodejs.org/en/download)"
	command -v node >/dev/null || missing "no node on the PATH: $install"
	have=$(node --version 2>/dev/null)
	at_least "${have#v}" 20 || missing "node ${have:-that answers no version} is too old: $install"
	command -v npm >/dev/null || missing "no npm on the PATH: install npm (apt-get install npm, if node came from there)"
}

need_python() {
	install="install Python 3.11 or later as $python (apt-get install python3)"
	[ -x "$python" ] || missing "no $python: $install"
	have=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null)
	at_least "${have:-0}" 3.11 || missing "$python ${have:-does not start} is too old: $install"
}

# The world of the benchmarks has a repository with a first branch that is named.
need_git() {
	install="install git 2.28 or later (apt-get install git)"
	command -v git >/dev/null || missing "no git on the PATH: $install"
	have=$(git --version 2>/dev/null)
	have=${have#git version }
	at_least "${have%% *}" 2.28 || missing "git ${have:-that answers no version} is too old: $install"
}

# The race detector is linked through cgo.
need_cc() {
	cc=$(go env CC)
	install="install a C compiler (apt-get install gcc libc6-dev), or run make test RACE= to test without the race detector"
	command -v "${cc%% *}" >/dev/null || missing "the race detector needs $cc: $install"
	echo '#include <stdlib.h>' | $cc -x c -fsyntax-only - 2>/dev/null || missing "$cc finds no C library headers: $install"
}

setting() {
	cat "$sysctl/$1" 2>/dev/null
}

# gVisor starts every sandbox in namespaces of its own; an ordinary user needs a user namespace for that.
need_userns() {
	if [ "$(id -u)" = 0 ]; then
		why=$(unshare --mount true 2>&1) || missing "root may not create namespaces here ($why): run on the host or in a privileged container"
		return
	fi
	allow="allow unprivileged user namespaces with sudo sysctl -w"
	[ "$(setting kernel/unprivileged_userns_clone)" != 0 ] || missing "$allow kernel.unprivileged_userns_clone=1"
	[ "$(setting user/max_user_namespaces)" != 0 ] || missing "$allow user.max_user_namespaces=15000"
	command -v unshare >/dev/null || missing "no unshare on the PATH: apt-get install util-linux"
	why=$(unshare --user --map-root-user --mount true 2>&1) && return
	[ "$(setting kernel/apparmor_restrict_unprivileged_userns)" != 1 ] ||
		missing "$allow kernel.apparmor_restrict_unprivileged_userns=0"
	missing "this user may not create user namespaces ($why): allow them on this machine or container, or run as root"
}

for need in "$@"; do
	case $need in
	go | node | python | git | userns | cc) "need_$need" ;;
	*) missing "prereq.sh knows no need named $need" ;;
	esac
done
