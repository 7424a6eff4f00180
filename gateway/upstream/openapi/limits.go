package openapi

import (
	"context"
	"errors"
	"fmt"
)

// Limits of a document. The largest of the real ones that the tests read have 13 MB and 1,200 operations.
const (
	maxFile       = 32 << 20  // bytes of one file
	maxFiles      = 200       // files of one document
	maxTotal      = 64 << 20  // bytes of all files
	maxNodes      = 2_000_000 // values in all files
	maxDepth      = 200       // levels of nesting
	maxHops       = 50        // references that lead to references
	maxWork       = 1_000_000
	maxOperations = 5000
	maxParameters = 200
	maxConverted  = 10_000   // values of one schema; what follows is of any type
	maxSchema     = 48 << 10 // bytes of the schema of arguments or results; see schemas.build
	maxDefinition = 1 << 20  // bytes of the definition of one tool, as a session accepts
	maxOffered    = 56 << 20 // bytes of all definitions
)

// A limitError reports that a document is too large in some respect. It concerns the document as a whole.
type limitError struct{ what string }

func (e *limitError) Error() string { return "the OpenAPI document " + e.what }

func beyond(format string, args ...any) error { return &limitError{fmt.Sprintf(format, args...)} }

func isLimit(err error) bool {
	_, ok := errors.AsType[*limitError](err)
	return ok
}

// meter counts down what reading a document may cost.
type meter struct {
	ctx         context.Context //nolint:containedctx // of one Load
	nodes, work int
}

func newMeter(ctx context.Context) *meter { return &meter{ctx, maxNodes, maxWork} }

// node accounts for one value of a file.
func (m *meter) node() error {
	if m.nodes--; m.nodes < 0 {
		return beyond("has more than %d values", maxNodes)
	}
	return nil
}

// step accounts for one value that is converted. References let a small document have many.
func (m *meter) step() error {
	if m.work--; m.work < 0 {
		return beyond("repeats its parts by references more than %d times", maxWork)
	}
	if m.work%1024 == 0 && m.ctx.Err() != nil {
		return beyond("takes too long to read: %v", m.ctx.Err())
	}
	return nil
}
