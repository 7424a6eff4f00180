package toolcall

import (
	"context"

	"sallyport/internal/journal"
	"sallyport/internal/tool"
)

// Attempt is one call of a program on its way down the chain.
type Attempt struct {
	Tool tool.ID
	// Definition and Arguments are digests; the latter is that of the canonical form, see [Canonical].
	Definition, Arguments string
	// Args is the arguments in compact JSON where the journal keeps them.
	Args []byte
	// Journaled says that the journal has it, Replayed that it was answered from the journal.
	Journaled, Replayed bool
	// Doubt says why it may have been done already; nil if it cannot have been.
	Doubt Doubt
	// Replaces returns the numbers of the journal's calls that it replaces; nil for none.
	Replaces func() []int
	// Decide puts what becomes of it into the execution's record.
	Decide func(Verdict)
}

// Doubt is why a call may have been done already. Only a person's answer about this call ends it, and the answer is on record
// before anything is done about it.
type Doubt interface {
	// Reason is one sentence for people, Origins the calls that it may repeat.
	Reason() string
	Origins() []string
	// Decide records an answer that does not make the call: its result, or failed for one that is left.
	Decide(ctx context.Context, decision journal.Decision, result tool.Result, failed *tool.Error) error
}

// AttemptOf returns the call of a program that is made with ctx, nil for none.
func AttemptOf(ctx context.Context) *Attempt { return ScopeOf(ctx).Attempt }
