package bridge

import (
	"iter"

	"sallyport/internal/workspace"
)

// Workspace keeps the files of /workspace from one program to the next. Its
// methods may be called by several programs at once.
type Workspace interface {
	// Files returns what it holds, folders before what is in them, without content. An error
	// beside a path says why that one is left out; without a path it is the end.
	Files() iter.Seq2[workspace.File, error]
	// Open returns one of the files with its content, which must be closed.
	Open(path string) (workspace.File, error)
	// Update takes what a program left: what is new, has changed or is gone. All of it is
	// untrusted; what cannot be taken is in the notes and does no harm to the rest. An error
	// of the changes ends them: what came before is taken, and the error returned.
	Update(changes iter.Seq2[workspace.File, error]) (workspace.Updated, error)
}
