package workspace

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"sallyport/internal/sanitize"
)

// Origin is a workspace that several machines use: a sequence of commits, and the contents that they name. Each machine has
// a [Copy] of it in a directory. An error is one of those below, or that of the network.
type Origin interface {
	// Head returns the newest commit, the zero Point for a workspace without commits.
	Head(ctx context.Context) (Point, error)
	// Since returns what has changed after a commit.
	Since(ctx context.Context, after Point) (Delta, error)
	// Commit makes all changes of a commit, or none: [ErrOutdated] if there is a commit after the given one.
	Commit(ctx context.Context, after Point, c Commit) (Point, error)
	// Save stores a content before the commit that names it by ref. hash is its SHA-256 in hexadecimal digits.
	Save(ctx context.Context, hash string, size int64, content io.Reader) (ref string, err error)
	// Fetch writes the content of a file, which may be wrong if there is an error.
	Fetch(ctx context.Context, e Entry, to io.Writer) error
	// Compact makes the sequence of commits shorter if that is worthwhile, and removes contents that no file has. files
	// returns those after the commit. If it is not the newest one, nothing is done.
	Compact(ctx context.Context, at Point, files func() []Entry) (Point, error)
}

// Errors of an [Origin], for use with errors.Is.
var (
	// ErrOutdated: there are newer commits.
	ErrOutdated = errors.New("others have changed the workspace meanwhile")
	// ErrPartial: not all changes can be made, for example because a file has changed; none is.
	ErrPartial = errors.New("not all changes can be made")
	// ErrDamaged: a record or a content of the workspace cannot be read.
	ErrDamaged = errors.New("a record of the workspace is damaged")
	// ErrNewer: a record was written by a newer version.
	ErrNewer = errors.New("a record of the workspace is of a newer version")
	// ErrStoreFull: there is no room for a content.
	ErrStoreFull = errors.New("the store has no more room for files")
)

// Point is a commit. The zero value comes before the first one.
type Point struct {
	// Revision is the number of its last record, Tail that of the last record at all, which may belong to no commit.
	Revision uint64 `json:"revision"`
	Tail     uint64 `json:"tail"`
	// ID is unique.
	ID string `json:"id"`
	// Depth is the number of commits since all files were written as one, Dropped the size of the contents that no file has
	// since then.
	Depth   uint32 `json:"depth"`
	Dropped int64  `json:"dropped"`
}

// Delta is what has changed.
type Delta struct {
	// Head is the newest commit.
	Head Point
	// Whole means that Entries are all files, and not only the changed ones, in order.
	Whole   bool
	Entries []Entry
}

// Commit is a set of changes.
type Commit struct {
	Entries []Entry
	// Dropped is the size of the contents that no file has after it, Empty that no file or folder is left.
	Dropped int64
	Empty   bool
}

// Entry is a file or folder in an [Origin], or its removal.
type Entry struct {
	Path       string `json:"path"`
	Folder     bool   `json:"folder,omitempty"`
	Executable bool   `json:"exec,omitempty"`
	Gone       bool   `json:"gone,omitempty"`
	Size       int64  `json:"size,omitempty"`
	// Modified is in nanoseconds since 1970.
	Modified int64 `json:"modified,omitempty"`
	// Hash is the SHA-256 of the content, in hexadecimal digits; Ref is what Save returned.
	Hash string `json:"hash,omitempty"`
	Ref  string `json:"ref,omitempty"`
	// By is the id of the commit that wrote it.
	By string `json:"by,omitempty"`
}

// Check returns an [ErrDamaged] for an entry that no gateway wrote.
func (e Entry) Check() error {
	if err := Check(e.Path); err != nil {
		return fmt.Errorf("%w: the path %q: %w", ErrDamaged, sanitize.Line(e.Path, 80), err)
	}
	if e.Folder || e.Gone {
		return nil
	}
	if sum, err := hex.DecodeString(e.Hash); err != nil || len(sum) != 32 || e.Size < 0 {
		return fmt.Errorf("%w: %q has no valid content", ErrDamaged, sanitize.Line(e.Path, 80))
	}
	return nil
}

func (e Entry) modified() time.Time { return time.Unix(0, e.Modified) }
