package access

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/filelock"
	"sallyport/internal/tool"
)

// Records are records that several gateways read and write. A *sharedrecords.Records implements it.
type Records interface {
	// Get returns a record, with the revision 0 if there is none. With fresh it is not that of a moment ago.
	Get(ctx context.Context, fresh bool, key ...string) (data []byte, revision uint64, err error)
	// Put writes a record in place of the one with a revision. It returns false if another process was faster.
	Put(ctx context.Context, data []byte, revision uint64, key ...string) (ok bool, err error)
	// Delete deletes a record, if there is one.
	Delete(ctx context.Context, key ...string) error
	// Lock waits until no other process has the lock of a key.
	Lock(ctx context.Context, key ...string) (unlock func(), err error)
}

// The keys of the records with tokens.
const tokensKey, usedKey = "tokens", "used"

// attempts is how often a record is written again when another process was faster.
const attempts = 10

// shared has the tokens that several gateways share, in one record.
type shared struct {
	records Records

	mu       sync.Mutex
	revision uint64 // of the record with byID
	byID     map[string]Token
}

// InRecords returns the place of the tokens in a store.
func InRecords(records Records) Place { return &shared{records: records} }

// tokenRecord is a record with tokens or with when they were used.
type tokenRecord struct {
	Version int                  `json:"version"`
	Tokens  []Token              `json:"tokens,omitempty"`
	Used    map[string]time.Time `json:"used,omitempty"`
}

// unavailable is the error of a store that does not answer, or of a record that cannot be read.
func unavailable(err error) error {
	return &tool.Error{Kind: tool.Busy, Retryable: true, Message: "the tokens in the store cannot be used: " + err.Error(), Err: errors.Join(ErrUnavailable, err)}
}

func decodeTokens(data []byte) (r tokenRecord, err error) {
	switch err := json.Unmarshal(data, &r); {
	case err != nil:
		return r, unavailable(errors.New("the record is damaged"))
	case r.Version > fileVersion:
		return r, unavailable(errors.New("the record is of a newer version"))
	}
	return r, nil
}

func (s *shared) tokens(ctx context.Context, fresh bool) (map[string]Token, error) {
	data, revision, err := s.records.Get(ctx, fresh, tokensKey)
	if err != nil {
		return nil, unavailable(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID != nil && revision == s.revision {
		return s.byID, nil
	}
	r := tokenRecord{}
	if revision > 0 {
		if r, err = decodeTokens(data); err != nil {
			return nil, err
		}
	}
	s.revision, s.byID = revision, byID(r.Tokens)
	return s.byID, nil
}

func (s *shared) edit(ctx context.Context, change func(all []Token) ([]Token, error)) error {
	return s.update(ctx, tokensKey, func(r *tokenRecord) (err error) {
		r.Tokens, err = change(r.Tokens)
		return err
	})
}

// update changes a record.
func (s *shared) update(ctx context.Context, key string, change func(r *tokenRecord) error) error {
	return changeRecord(ctx, s.records, key, func(data []byte) ([]byte, error) {
		var r tokenRecord
		if data != nil {
			var err error
			if r, err = decodeTokens(data); err != nil {
				return nil, err
			}
		}
		if err := change(&r); err != nil {
			return nil, err
		}
		r.Version = fileVersion
		return json.Marshal(r)
	})
}

// changeRecord changes a record by compare-and-swap; change gets nil if there is none. The error is that of change, or says that the store
// cannot be used.
func changeRecord(ctx context.Context, in Records, key string, change func(data []byte) ([]byte, error)) error {
	for range attempts {
		data, revision, err := in.Get(ctx, true, key)
		if err != nil {
			return unavailable(err)
		}
		if revision == 0 {
			data = nil
		}
		if data, err = change(data); err != nil {
			return err
		}
		if ok, err := in.Put(ctx, data, revision, key); err != nil {
			return unavailable(err)
		} else if ok {
			return nil
		}
	}
	return unavailable(errors.New("other processes write them all the time"))
}

func (s *shared) used(ctx context.Context) map[string]time.Time {
	data, revision, err := s.records.Get(ctx, false, usedKey)
	if err != nil || revision == 0 {
		return map[string]time.Time{}
	}
	r, err := decodeTokens(data)
	if err != nil || r.Used == nil {
		return map[string]time.Time{}
	}
	return r.Used
}

func (s *shared) saveUsed(ctx context.Context, used map[string]time.Time, known map[string]Token) error {
	return s.update(ctx, usedKey, func(r *tokenRecord) error {
		r.Used = mergeUsed(r.Used, used, known)
		return nil
	})
}

// movedFile has the tokens of a data directory that are in a store since.
const movedFile = "tokens.moved.json"

// MoveTokens moves the tokens of a data directory to another place, once: all but those with a name that is taken there.
func MoveTokens(ctx context.Context, dataDir string, to Place, log *slog.Logger) error {
	dir := filepath.Join(dataDir, Folder)
	if _, err := os.Stat(filepath.Join(dir, tokensFile)); dataDir == "" || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	unlock, err := filelock.Dir(dir, lockTimeout)
	if err != nil {
		return fmt.Errorf("move tokens: %w", err)
	}
	defer unlock()
	own, err := readTokens(dir)
	if err != nil {
		return err
	}
	var moved, left []string
	if err := to.edit(ctx, func(all []Token) ([]Token, error) {
		all, moved, left = addTokens(all, own)
		return all, nil
	}); err != nil {
		return fmt.Errorf("move tokens: %w", err)
	}
	if err := os.Rename(filepath.Join(dir, tokensFile), filepath.Join(dir, movedFile)); err != nil {
		return fmt.Errorf("move tokens: %w", err)
	}
	log.Info("the tokens of the data directory are in the store now", "tokens", len(moved))
	if len(left) > 0 {
		log.Warn("the store has other tokens of these names: those of the data directory are refused", "names", strings.Join(left, " "))
	}
	if err := to.saveUsed(ctx, readUsed(dir), byID(own)); err != nil {
		log.Debug("when the tokens were used is not in the store", "error", err)
	}
	return nil
}

// addTokens adds tokens to others, and returns the names of those that it has added and of those whose names are taken.
func addTokens(all, more []Token) (both []Token, added, taken []string) {
	for _, one := range more {
		at := slices.IndexFunc(all, func(t Token) bool { return t.ID == one.ID || t.Name == one.Name })
		switch {
		case at < 0 && len(all) < maxTokens:
			all, added = append(all, one), append(added, one.Name)
		case at < 0 || all[at].ID != one.ID:
			taken = append(taken, one.Name)
		}
	}
	return all, added, taken
}

// sorted returns tokens by name, with when they were used.
func sorted(all map[string]Token, used map[string]time.Time) []Token {
	list := slices.SortedFunc(maps.Values(all), func(a, b Token) int { return cmp.Compare(a.Name, b.Name) })
	for i := range list {
		if at, ok := used[list[i].ID]; ok {
			list[i].Used = &at
		}
	}
	return list
}
