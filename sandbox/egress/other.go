//go:build !linux

package egress

import (
	"errors"
	"os/exec"
)

var errUnsupported = errors.New("networks of sandboxes need Linux")

// Child does nothing.
func Child() {}

// Available returns an error.
func Available() error { return errUnsupported }

// Wrap returns an error.
func (n *Network) Wrap(*exec.Cmd) error { return errUnsupported }

// Start returns an error.
func (n *Network) Start() error { return errUnsupported }
