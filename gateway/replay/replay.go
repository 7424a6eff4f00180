// Package replay resumes executions: it keeps a journal of the calls of each program, and answers the calls of a resuming program
// from the journal of the resumed execution. Its main type is [Replay].
package replay

import (
	"log/slog"

	"sallyport/gateway/catalog"
	"sallyport/gateway/guard"
	"sallyport/gateway/history"
	"sallyport/gateway/privacy"
	"sallyport/internal/config"
)

// Options are the dependencies of a [Replay]. All are required.
type Options struct {
	Settings config.Source
	Logger   *slog.Logger
	Catalog  *catalog.Catalog
	History  *history.History
	Guard    *guard.Guard
	Privacy  *privacy.Tokenizer
}

// Replay resumes executions: it keeps a journal of the calls of each program, and answers the calls of a resuming program
// from the journal of the resumed execution. It is safe for concurrent use.
type Replay struct{ opts Options }

// New returns a Replay.
func New(opts Options) *Replay { return &Replay{opts} }
