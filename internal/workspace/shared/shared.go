// Package shared keeps workspaces in a store that several gateways use. Its main type is [Workspaces].
//
// A workspace is a log of commits. Each is appended after the one that its writer has seen, so of two concurrent writers
// one is refused, and looks at the files again. Contents are stored before the commit that names them, by their SHA-256
// and a number of their own; the same content is stored once in a workspace. From time to time all files are written as
// one record, and the commits before it are removed.
package shared

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"sallyport/internal/store"
	"sallyport/internal/workspace"
)

const (
	// maxBytes bounds the contents of all workspaces, maxLogBytes their commits.
	maxBytes, maxLogBytes = 4 << 30, 256 << 20
	// maxSkillBytes bounds the contents of all skills.
	maxSkillBytes = 512 << 20
	// chunkSize is the maximum size of a record, in bytes.
	chunkSize = 1 << 20
)

// Workspaces are the workspaces in a store. It is safe for concurrent use.
type Workspaces struct {
	name     string // "workspaces" or "skills"
	log      *store.Log
	contents *store.Bucket
	claims   *store.Claims
	clock    *store.Bucket
}

// ID names a workspace.
type ID struct {
	// Folder is that of the principal.
	Folder, Name string
}

func (id ID) key() store.Key { return store.Key{id.Folder, id.Name} }

// Open returns the workspaces in a store; nil for a store of one process.
func Open(in *store.Store) (*Workspaces, error) {
	return open(in, "workspaces", "contents", maxBytes)
}

// OpenSkills returns the folders of skills in a store, as workspaces with the name [SkillsName]; nil for a store of one process.
func OpenSkills(in *store.Store) (*Workspaces, error) {
	return open(in, "skills", "skill_contents", maxSkillBytes)
}

// SkillsName is the name of the folders of skills.
const SkillsName = "skills"

func open(in *store.Store, name, contentsName string, size int64) (*Workspaces, error) {
	if !in.Shared() {
		return nil, nil
	}
	log, err := in.Log(store.FilesPrefix+name, store.Limits{Records: 1_000_000, Bytes: maxLogBytes, Record: chunkSize + headSize, Keep: true})
	if err != nil {
		return nil, err
	}
	contents, err := in.Bucket(store.FilesPrefix+contentsName, store.Limits{Records: 4_000_000, Bytes: size, Record: chunkSize, Keep: true})
	if err != nil {
		return nil, err
	}
	clock, err := in.Bucket(store.FilesPrefix+"clock", store.Limits{Records: 10, Bytes: 1 << 20})
	if err != nil {
		return nil, err
	}
	claims, err := in.Claims(name)
	return &Workspaces{name, log, contents, claims, clock}, err
}

// Names returns the names of the workspaces of a principal's folder that have files, sorted.
func (w *Workspaces) Names(ctx context.Context, folder string) (names []string, err error) {
	lasts, err := w.log.Lasts(ctx, store.Key{folder})
	if err != nil {
		return nil, storeError(err)
	}
	for _, last := range lasts {
		h, _, err := parse(last.Value)
		if len(last.Key) == 2 && workspace.Name(last.Key[1]) == nil && (err != nil || !h.has(isEmpty)) {
			names = append(names, last.Key[1])
		}
	}
	slices.Sort(names)
	return names, nil
}

// folderName matches the names that [workspace.Folder] returns, and those of the folders of shared skills.
var folderName = regexp.MustCompile(`^([a-z0-9][a-z0-9_-]{0,63}|\+[0-9a-f]{32}|\+[a-z]{1,31})$`)

// All returns all workspaces.
func (w *Workspaces) All(ctx context.Context) (all []ID, err error) {
	keys, err := w.log.Keys(ctx)
	if err != nil {
		return nil, storeError(err)
	}
	for _, key := range keys {
		if len(key) == 2 && folderName.MatchString(key[0]) && workspace.Name(key[1]) == nil {
			all = append(all, ID{key[0], key[1]})
		}
	}
	return all, nil
}

// Origin returns a workspace.
func (w *Workspaces) Origin(id ID) workspace.Origin { return &origin{w, id.key()} }

// storeError returns an error of the store as one of package workspace.
func storeError(err error) error {
	switch {
	case errors.Is(err, store.ErrConflict):
		return workspace.ErrOutdated
	case errors.Is(err, store.ErrFull):
		return fmt.Errorf("%w: %w", workspace.ErrStoreFull, err)
	case errors.Is(err, store.ErrCorrupt):
		return fmt.Errorf("%w: %w", workspace.ErrDamaged, err)
	}
	return err
}
