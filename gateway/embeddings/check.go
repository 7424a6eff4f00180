package embeddings

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Check requests one vector from the endpoint, with a timeout of 10 s, and returns its
// length and the duration. The error is for a person to read.
func Check(ctx context.Context, s Settings) (dim int, took time.Duration, err error) {
	c, err := newClient(s)
	if err != nil {
		return 0, 0, err
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, maxQueryTime)
	defer cancel()
	begin := time.Now()
	all, err := c.embed(ctx, []string{s.QueryPrefix + "find the tool for it"})
	if f, ok := errors.AsType[*fault](err); ok && f.message != "" {
		return 0, 0, fmt.Errorf("%w: %s", err, f.message)
	}
	if err != nil {
		return 0, 0, err
	}
	return len(all[0].values), time.Since(begin), nil
}
