package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"sallyport/internal/sanitize"
)

// Kind is the kind of an event.
type Kind string

// The kinds of events.
const (
	// ExecutionStart and ExecutionEnd are of a program. The end is missing if the gateway was killed while it ran.
	ExecutionStart Kind = "execution.start"
	ExecutionEnd   Kind = "execution.end"
	// ExecutionTaken: this gateway recorded that a program was interrupted, because the gateway that ran it was lost.
	ExecutionTaken Kind = "execution.taken"
	// Call is the decision about a call, before it is made; Result is its outcome, if it was not refused.
	Call   Kind = "call"
	Result Kind = "result"
	// ApprovalAsked and ApprovalAnswered: a person was asked about a call, and the answer.
	ApprovalAsked    Kind = "approval.asked"
	ApprovalAnswered Kind = "approval.answered"
	// PolicyChanged and SettingsChanged have digests in Before and After.
	PolicyChanged   Kind = "policy.changed"
	SettingsChanged Kind = "settings.changed"
	// DefinitionApproved and DefinitionRejected: a person decided about the definition of a tool. SkillShared: a skill was offered to all; SkillApproved: that was approved.
	DefinitionApproved Kind = "definition.approved"
	DefinitionRejected Kind = "definition.rejected"
	SkillShared        Kind = "skill.shared"
	SkillApproved      Kind = "skill.approved"
	SkillRemoved       Kind = "skill.removed"
	// Login and LoginRefused are of clients over HTTP.
	Login        Kind = "login"
	LoginRefused Kind = "login.refused"
	// UpstreamLogin and UpstreamLogout are of a principal, or of an operator for all, at the upstream in Tool.
	UpstreamLogin  Kind = "upstream.login"
	UpstreamLogout Kind = "upstream.logout"
	// TokenMade and TokenRevoked are about tokens for HTTP.
	TokenMade    Kind = "token.made"
	TokenRevoked Kind = "token.revoked"
	// LogOpened: a process began to write. LogPruned: a file of old records was removed, up to record Through with the hash
	// Before. LogTorn: a crash left an incomplete record. LogGap: records up to Through are missing.
	LogOpened Kind = "log.opened"
	LogPruned Kind = "log.pruned"
	LogTorn   Kind = "log.torn"
	LogGap    Kind = "log.gap"
)

// Kinds returns all kinds.
func Kinds() []string {
	return []string{
		string(ExecutionStart), string(ExecutionEnd), string(ExecutionTaken), string(Call), string(Result), string(ApprovalAsked), string(ApprovalAnswered),
		string(PolicyChanged), string(SettingsChanged), string(DefinitionApproved), string(DefinitionRejected), string(SkillShared), string(SkillApproved), string(SkillRemoved),
		string(Login), string(LoginRefused), string(UpstreamLogin), string(UpstreamLogout), string(TokenMade), string(TokenRevoked), string(LogOpened), string(LogPruned), string(LogTorn), string(LogGap),
	}
}

// Event is one record. Fields that do not apply are empty. No field holds an argument, a result, a secret or the text
// of an error, only digests, sizes and kinds of them. Texts are truncated and sanitized when the event is written.
type Event struct {
	// Seq numbers the records of a log, from 1. Time is when it was written. Append sets both.
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`

	// Principal is the caller, Session a keyed digest of the client's session, Client its name and version.
	Principal string `json:"principal,omitempty"`
	Session   string `json:"session,omitempty"`
	Client    string `json:"client,omitempty"`
	// From is where a login came from: an address without a port.
	From string `json:"from,omitempty"`

	Execution string `json:"execution,omitempty"`
	// Resumes is the execution that this one resumes.
	Resumes     string `json:"resumes,omitempty"`
	Language    string `json:"language,omitempty"`
	Environment string `json:"environment,omitempty"`
	Workspace   string `json:"workspace,omitempty"`
	// Gateway is the one that was lost, by its id in the shared store.
	Gateway string `json:"gateway,omitempty"`
	// Code is the SHA-256 of the program in hex, Text the program itself if the settings enable that.
	Code string `json:"code,omitempty"`
	Text string `json:"text,omitempty"`
	// Output is the output of a program, if the settings enable that.
	Output string `json:"output,omitempty"`
	Limits string `json:"limits,omitempty"`

	Tool string `json:"tool,omitempty"`
	// Definition is the digest of the tool's definition. Arguments is the keyed digest of a call's arguments, see [Log.Digest].
	Definition string `json:"definition,omitempty"`
	Arguments  string `json:"arguments,omitempty"`
	// Decision is allow, deny or ask; Rule is the rule that decided, Approval the id of an approval, By the person who answered or changed something.
	Decision string `json:"decision,omitempty"`
	Rule     string `json:"rule,omitempty"`
	Approval string `json:"approval,omitempty"`
	By       string `json:"by,omitempty"`

	// Outcome is the outcome in a word; Exit a program's exit status.
	Outcome string `json:"outcome,omitempty"`
	Exit    int    `json:"exit,omitempty"`
	// Micros is the duration in microseconds.
	Micros int64 `json:"duration_us,omitempty"`
	// Calls is the number of calls of an execution. Bytes is the size of the text of a result or an answer.
	Calls int   `json:"calls,omitempty"`
	Bytes int64 `json:"bytes,omitempty"`
	// Saved estimates the tokens (o200k_base) that a model did not read: those of the bytes that stayed in the program, at the ratio of
	// tokens to bytes that was counted so far.
	Saved int64 `json:"tokens_saved,omitempty"`

	// Kept reports that the gateway also stores a record of the execution or approval in its data directory.
	Kept bool `json:"kept,omitempty"`

	// Before and After are digests of what changed. Through is the last record that a log.pruned or log.gap is about.
	Before  string `json:"before,omitempty"`
	After   string `json:"after,omitempty"`
	Through uint64 `json:"through,omitempty"`
	Note    string `json:"note,omitempty"`
}

const (
	// maxField and maxNote bound the texts in a record, in runes, maxText a program or an output, in bytes.
	maxField = 200
	maxNote  = 400
	maxText  = 64 << 10
)

// limitFields returns the event with every text truncated, valid UTF-8, and in one line unless it is a program or an output.
func (e Event) limitFields() Event {
	for _, field := range []*string{
		(*string)(&e.Kind), &e.Principal, &e.Session, &e.Client, &e.From, &e.Execution, &e.Resumes, &e.Language, &e.Environment, &e.Workspace, &e.Gateway, &e.Code, &e.Limits,
		&e.Tool, &e.Definition, &e.Arguments, &e.Decision, &e.Rule, &e.Approval, &e.By, &e.Outcome, &e.Before, &e.After,
	} {
		*field = limitText(*field, maxField)
	}
	e.Note = limitText(e.Note, maxNote)
	e.Text, e.Output = limitLines(e.Text), limitLines(e.Output)
	return e
}

// limitLines truncates a text of several lines.
func limitLines(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + "\n[cut, " + sum(text) + "]"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// limitText returns a text unchanged if it is short and printable, else a sanitized and truncated one with a digest of the original.
func limitText(text string, limit int) string {
	if len(text) <= limit && isWord(text) {
		return text // the common case
	}
	short := sanitize.Line(text, limit)
	if short == text {
		return text
	}
	return short + " [" + sum(text) + "]"
}

// isWord reports whether a text has only printable ASCII characters without spaces.
func isWord(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] >= 0x7f {
			return false
		}
	}
	return true
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(digest[:8])
}
