package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"sallyport/bench/stats"
	"sallyport/bench/table"
	"sallyport/internal/store"
)

// recordSize is that of a record, in bytes.
const recordSize = 1000

// record measures how long a record takes to be on disk, on the servers and, by turns, in a directory.
func record(ctx context.Context, b *bench) error {
	return b.withSite(ctx, func(s *site) error {
		local, err := store.Open(filepath.Join(s.dir, "records"), nil)
		if err != nil {
			return err
		}
		shared, err := store.Connect(store.Remote{Server: s.servers.Server("bench"), Replicas: min(3, b.servers), Prefix: prefix})
		if err != nil {
			return errors.Join(err, local.Close())
		}
		took, err := appendTo(ctx, b.n, map[string]*store.Store{here: local, there: shared})
		if err == nil {
			b.add(table.Row{Case: recordRow, Unit: "ms", Compared: stats.Compare(took[there], took[here]),
				Note: "1 KB, synced to disk, one after the other; bare: with the engine in the process"})
		}
		return errors.Join(err, shared.Close(), local.Close())
	})
}

// appendTo appends records to each store by turns, n to each that count, and returns how long each took, in milliseconds.
func appendTo(ctx context.Context, n int, stores map[string]*store.Store) (map[string][]float64, error) {
	logs, took := map[string]*store.Log{}, map[string][]float64{}
	for name, s := range stores {
		if err := s.Ready(ctx); err != nil {
			return nil, err
		}
		var err error
		if logs[name], err = s.Log("bench", store.Limits{}); err != nil {
			return nil, err
		}
	}
	value := []byte(strings.Repeat("x", recordSize))
	for i := range n + 1 {
		for name, log := range logs {
			begin := time.Now()
			if _, err := log.Append(ctx, store.Key{"bench"}, value); err != nil {
				return nil, err
			}
			if i > 0 { // the first one makes the stream
				took[name] = append(took[name], milliseconds(time.Since(begin)))
			}
		}
	}
	return took, nil
}
