#!/bin/sh
# An upgrade keeps the service: Debian calls this with "upgrade", rpm with the number of versions that stay.
set -e
case ${1-} in
upgrade | failed-upgrade | 1) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl disable --now sallyport.service || true
fi
