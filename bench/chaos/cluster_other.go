//go:build unix && !linux

package main

import (
	"context"
	"errors"

	"sallyport/bench/chaos/killtest"
)

func cluster(context.Context, killtest.Options, string) error {
	return errors.New("a cluster in network namespaces needs Linux")
}
