package execution

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"sallyport/gateway/typecheck"
	"sallyport/internal/sanitize"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// maxNotes is the maximum number of notes, and of approvals, that a model reads.
const maxNotes = 10

// Failed reports whether the program did not succeed.
func (e Result) Failed() bool { return e.Status != sandbox.OK }

// Text returns what a model reads of an execution: its output, its value, the emitted
// items, and for a failure the reason, the place and a hint. It says nothing about
// success. It contains no invisible characters and no terminal escapes.
func (e Result) Text() string {
	var parts []string
	if out := Visible(e.Stdout.Text); out != "" {
		parts = append(parts, out)
	}
	if e.Value != nil {
		parts = append(parts, valueText(*e.Value, len(parts) > 0))
	}
	if errs := Visible(e.Stderr.Text); errs != "" {
		parts = append(parts, "stderr:\n"+errs)
	}
	if sent := emittedText(e.Emitted); sent != "" {
		parts = append(parts, sent)
	}
	if ending := e.Ending(); ending != "" {
		parts = append(parts, ending)
	}
	if e.Resume != "" && e.Status != Held {
		parts = append(parts, fmt.Sprintf("with resume=%q no call is repeated", e.Resume))
	}
	if e.Status == sandbox.OK && len(e.Warnings) > 0 {
		parts = append(parts, strings.TrimPrefix(warningLines(e.Warnings), "\n"))
	}
	for _, note := range e.Notes[:min(len(e.Notes), maxNotes)] {
		parts = append(parts, "note: "+sanitize.Line(note, 300))
	}
	if len(parts) == 0 {
		return "(no output: print something, or end with an expression)"
	}
	return strings.Join(parts, "\n")
}

// CleanOutput returns the program's output, truncated and cleaned as in Text.
func (e Result) CleanOutput() (stdout, stderr string) {
	return Visible(e.Stdout.Text), Visible(e.Stderr.Text)
}

// Truncated reports whether the output or the value was truncated.
func (e Result) Truncated() bool {
	return e.Stdout.Cut > 0 || e.Stderr.Cut > 0 || e.Value != nil && e.Value.Size > int64(len(e.Value.Text))
}

// Visible removes invisible characters, colours, and empty lines at the end.
func Visible(text string) string {
	text = strings.Map(VisibleRune, strings.ReplaceAll(strings.ToValidUTF8(sanitize.StripEscapes(text), "\uFFFD"), "\r\n", "\n"))
	return strings.TrimRight(text, "\n")
}

// VisibleRune maps a character of a program's output to its visible form, -1 for none.
func VisibleRune(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case r == '\r':
		return '\n'
	case sanitize.Hidden(r):
		return -1
	}
	return r
}

// valueText formats the value; with marked it follows other output and gets a marker.
func valueText(v bridge.Value, marked bool) string {
	text := Visible(valueString(v))
	if text == "" {
		text = `""` // an empty string is a value too
	}
	if cut := v.Size - int64(len(v.Text)); cut > 0 {
		text += fmt.Sprintf("\n[... %d bytes cut ...]", cut)
	}
	if marked {
		return "=> " + text
	}
	return text
}

// ValueText returns the value as text: a text value without quotes, "" for none.
func (e Result) ValueText() string {
	if e.Value == nil {
		return ""
	}
	return Visible(valueString(*e.Value))
}

// valueString returns a string value unquoted, and other values as the guest formatted them.
func valueString(v bridge.Value) string {
	var s string
	if v.Kind == "json" && strings.HasPrefix(v.Text, `"`) && json.Unmarshal([]byte(v.Text), &s) == nil {
		return s
	}
	return v.Text
}

// Ending describes how the program ended, "" if it succeeded.
func (e Result) Ending() string {
	switch e.Status {
	case sandbox.OK:
		return ""
	case sandbox.Failed:
		return faultText(e.Fault) + warningLines(e.Warnings)
	case sandbox.Exited:
		return fmt.Sprintf("exited with status %d", e.Exit)
	case sandbox.TimedOut:
		if e.Unanswered != "" {
			return fmt.Sprintf("stopped: it ran longer than %g s: %s. Ask it for less, or do without it.", e.Limits.Timeout.Seconds(), e.Unanswered)
		}
		return fmt.Sprintf("stopped: it ran longer than %g s. Do less at a time, or call tools in parallel.", e.Limits.Timeout.Seconds())
	case sandbox.OutOfCPU:
		return fmt.Sprintf("stopped: it used up %g s of processor time. Work on less data at a time, or find a quicker way.", e.Limits.CPU.Seconds())
	case sandbox.OutOfMemory:
		return fmt.Sprintf("stopped: it used more than %d MiB of memory. Work on smaller pieces.", e.Limits.Memory>>20)
	case sandbox.Flooded:
		return fmt.Sprintf("stopped: it printed without end; only %d KiB are kept. Print what you need.", e.Limits.Output>>10)
	case sandbox.Canceled:
		return "canceled"
	case Held:
		return e.heldText()
	case Interrupted:
		return "interrupted: the machine that ran it (" + sanitize.Line(e.Lost, 100) + ") was lost before it ended."
	default:
		return e.crash()
	}
}

func (e Result) crash() string {
	if e.Exit > 128 {
		return fmt.Sprintf("the program's process was killed (signal %d) before it could report. Nothing more is known; try again.", e.Exit-128)
	}
	return "the sandbox died before the program ended. Try again; calls that it had made are not undone."
}

func faultText(f *bridge.Fault) string {
	if f == nil {
		return "failed"
	}
	var b strings.Builder
	b.WriteString(sanitize.Line(f.Type, 100))
	if message := sanitize.Text(f.Message, 4000); message != "" {
		b.WriteString(": " + message)
	}
	for i, line := range f.Lines[:min(len(f.Lines), 12)] {
		if i > 0 && samePlace(line, f.Lines[i-1]) {
			continue
		}
		b.WriteString("\n  ")
		if file := sanitize.Line(line.File, 120); file != "" {
			b.WriteString(file + " ")
		}
		fmt.Fprintf(&b, "line %d", line.Line)
		if function := sanitize.Line(line.Function, 60); function != "" {
			b.WriteString(" in " + function)
		}
		if source := sanitize.Line(line.Source, 160); source != "" {
			b.WriteString(": " + source)
		}
	}
	if hint := sanitize.Line(f.Hint, 500); hint != "" {
		b.WriteString("\nhint: " + hint)
	}
	return b.String()
}

// samePlace reports whether two frames have the same line of code, as those of a comprehension and of its function.
func samePlace(a, b bridge.Line) bool {
	return a.File == b.File && a.Line == b.Line && a.Source == b.Source
}

// heldText describes what a person, and then the model, has to do.
func (e Result) heldText() string {
	var b strings.Builder
	b.WriteString("held: it needs approval, and nobody could be asked in time.")
	if len(e.Approvals) == 0 {
		b.WriteString(" It is answered now.")
	}
	for _, a := range e.Approvals[:min(len(e.Approvals), maxNotes)] {
		b.WriteString("\n" + a.Tool)
		if why := cmp.Or(a.Reason, a.Rule); why != "" {
			b.WriteString(" (" + sanitize.Line(why, 150) + ")")
		}
		b.WriteString(": sallyport approvals approve " + a.ID)
		if a.Doubt {
			b.WriteString(" (make it), done (it was done), or deny (leave it)")
		}
	}
	if !e.Journaled {
		b.WriteString("\nTell the user, and run it again when somebody can answer: no journal of it is kept, so calls that were made are made again.")
		return b.String()
	}
	fmt.Fprintf(&b, "\nTell the user. Once approved, go on with execute_code(code=\"\", resume=%q): calls that were made are not made again.", e.ID)
	return b.String()
}

// warningLines formats type errors for a model.
func warningLines(list []typecheck.Warning) string {
	var b strings.Builder
	for _, w := range list {
		fmt.Fprintf(&b, "\ntypes: line %d: %s", w.Line, w.Message)
	}
	return b.String()
}

// MaxWarnings is the maximum number of type errors that a model reads.
const MaxWarnings = 3

// FileChange is a file of the workspace that a program created, changed or removed.
type FileChange struct {
	// Path is slash-separated, below /workspace.
	Path string `json:"path"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// Gone says that it was removed.
	Gone bool `json:"gone,omitempty"`
}
