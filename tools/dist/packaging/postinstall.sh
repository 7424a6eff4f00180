#!/bin/sh
# The user of the service. It is kept when the package is removed, since its data are.
set -e
if ! getent passwd sallyport >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/sallyport --no-create-home --shell /usr/sbin/nologin sallyport
fi
install -d -o root -g root -m 700 /etc/sallyport/credentials
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
