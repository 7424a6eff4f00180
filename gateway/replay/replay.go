// Package replay resumes executions: it keeps a journal of the calls of each program, and answers the calls of a program that is
// resumed from the journal of the execution before. Its owner is [Replay].
package replay

import (
	"log/slog"

	"sallyport/gateway/catalog"
	"sallyport/gateway/guard"
	"sallyport/gateway/history"
	"sallyport/gateway/privacy"
	"sallyport/internal/config"
)

// Options are what calls are replayed with. All are required.
type Options struct {
	Settings config.Source
	Logger   *slog.Logger
	Catalog  *catalog.Catalog
	History  *history.History
	Guard    *guard.Guard
	Privacy  *privacy.Tokenizer
}

// Replay resumes executions: it keeps a journal of the calls of each program, and answers those of a program that is resumed
// from the journal of the execution before. It is safe for concurrent use.
type Replay struct{ opts Options }

// New returns a replayRoom.
func New(opts Options) *Replay { return &Replay{opts} }
