package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"sallyport/internal/tool"
)

// ReadLine prints a question and reads one line, without the white space around it. A terminal delivers one line to each read, so the
// next reader finds the next line.
func ReadLine(ctx context.Context, in io.Reader, out io.Writer, question string) (string, error) {
	fmt.Fprint(out, Clean(question))
	type answer struct {
		line string
		err  error
	}
	got := make(chan answer, 1)
	go func() { // ends with the process: a read of a terminal cannot be canceled
		line, err := bufio.NewReaderSize(in, 4096).ReadString('\n')
		got <- answer{strings.TrimSpace(line), err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case a := <-got:
		if a.err != nil {
			return "", &tool.Error{Kind: tool.Canceled, Message: "the terminal was closed before the answer", Hint: "run the command again"}
		}
		return a.line, nil
	}
}

// Confirm asks a yes-or-no question, and reports whether it is yes; assume is the answer of an empty line.
func Confirm(ctx context.Context, a *App, question string, assume bool) (bool, error) {
	choices := " [y/N] "
	if assume {
		choices = " [Y/n] "
	}
	line, err := ReadLine(ctx, a.Stdin, a.Stderr, question+choices)
	switch strings.ToLower(line) {
	case "":
		return assume && err == nil, err
	case "y", "yes":
		return true, err
	}
	return false, err
}
