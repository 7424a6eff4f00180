# provision.sh lima|wsl: root runs it in the virtual machine, at each `sallyport vm up`.
set -eu

interpreters() {
	command -v python3 >/dev/null && command -v node >/dev/null && return
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q
	apt-get install -q -y --no-install-recommends ca-certificates python3 nodejs
}

# The worker is an ordinary user, and Windows is out of reach: no drive is mounted, and no program of it can be started.
confine_wsl() {
	id sallyport >/dev/null 2>&1 || useradd --create-home --shell /bin/bash sallyport
	cat >/etc/wsl.conf <<-'CONF'
		[automount]
		enabled=false
		[interop]
		enabled=false
		appendWindowsPath=false
		[user]
		default=sallyport
	CONF
}

main() {
	interpreters
	[ "$1" != wsl ] || confine_wsl
}

# apt-get must not read this script from stdin.
main "$@" </dev/null
