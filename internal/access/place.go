package access

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sallyport/internal/filelock"
	"sallyport/internal/tool"
)

// Place is where the tokens of sallyport token are: a data directory ([InFolder]) or a store that several gateways share ([InRecords]).
type Place interface {
	// tokens returns the tokens by their ids, for reading only. With fresh they are not those of a moment ago.
	tokens(ctx context.Context, fresh bool) (map[string]Token, error)
	// edit changes the tokens.
	edit(ctx context.Context, change func(all []Token) ([]Token, error)) error
	// used returns when each token was used last, by its id; it is empty if that is not known.
	used(ctx context.Context) map[string]time.Time
	// saveUsed adds to when the tokens were used last, and forgets that of tokens that do not exist.
	saveUsed(ctx context.Context, used map[string]time.Time, known map[string]Token) error
}

// folder has the tokens of a data directory. It reloads them when another process changes the file; if the file cannot be read, there
// are none.
type folder struct {
	dir string
	log *slog.Logger

	mu       sync.Mutex
	lastInfo os.FileInfo // of the file when it was last read; nil: it did not exist
	byID     map[string]Token
}

// InFolder returns the place of the tokens in a data directory, nil for "". A nil log discards.
func InFolder(dataDir string, log *slog.Logger) Place {
	if dataDir == "" {
		return nil
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &folder{dir: filepath.Join(dataDir, Folder), log: log, byID: map[string]Token{}}
}

func (f *folder) tokens(context.Context, bool) (map[string]Token, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reload()
	return f.byID, nil
}

// reload reads the file if it has changed. It is called with mu held.
func (f *folder) reload() {
	path := filepath.Join(f.dir, tokensFile)
	info, err := os.Stat(path)
	if err != nil {
		if f.lastInfo != nil || !errors.Is(err, os.ErrNotExist) {
			f.lastInfo, f.byID = nil, map[string]Token{}
		}
		return
	}
	if f.lastInfo != nil && os.SameFile(info, f.lastInfo) && info.ModTime().Equal(f.lastInfo.ModTime()) && info.Size() == f.lastInfo.Size() {
		return
	}
	f.lastInfo, f.byID = info, map[string]Token{}
	all, err := readTokens(f.dir)
	if err != nil {
		f.log.Error("all tokens of sallyport token are refused", "error", err)
		return
	}
	f.byID = byID(all)
}

func byID(all []Token) map[string]Token {
	found := make(map[string]Token, len(all))
	for _, one := range all {
		found[one.ID] = one
	}
	return found
}

func (f *folder) edit(_ context.Context, change func(all []Token) ([]Token, error)) error {
	return editTokens(f.dir, change)
}

func (f *folder) used(context.Context) map[string]time.Time { return readUsed(f.dir) }

func (f *folder) saveUsed(_ context.Context, used map[string]time.Time, known map[string]Token) error {
	unlock, err := filelock.Dir(f.dir, time.Second)
	if err != nil {
		return nil // not worth a longer wait
	}
	defer unlock()
	return writeChecked(f.dir, usedFile, mergeUsed(readUsed(f.dir), used, known))
}

// mergeUsed returns the later times of known tokens.
func mergeUsed(before, used map[string]time.Time, known map[string]Token) map[string]time.Time {
	merged := map[string]time.Time{}
	for _, times := range []map[string]time.Time{before, used} {
		for id, at := range times {
			if _, ok := known[id]; ok && at.After(merged[id]) {
				merged[id] = at
			}
		}
	}
	return merged
}

// readUsed returns when each token was used last, by its id. It is empty if the file cannot be read.
func readUsed(dir string) map[string]time.Time {
	used := map[string]time.Time{}
	if readChecked(dir, usedFile, &used) != nil || used == nil {
		return map[string]time.Time{}
	}
	return used
}

// errNoPlace is the error without a data directory.
var errNoPlace = &tool.Error{Kind: tool.Failed, Message: "there is no data directory for tokens"}
