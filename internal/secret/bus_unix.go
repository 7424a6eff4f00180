//go:build !darwin && !windows

package secret

import (
	"errors"
	"fmt"
	"os"
)

var errNoBus = errors.New("there is no D-Bus session")

// checkReachable returns an error without a session bus. The library would otherwise start its own daemon, which would
// never stop and has no keyring.
func checkReachable() error {
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" && address != "autolaunch:" {
		return nil
	}
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat(fmt.Sprintf("/run/user/%d/%s", os.Getuid(), name)); err == nil {
			return nil
		}
	}
	return errNoBus
}
