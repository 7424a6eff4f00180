package typecheck

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The bounds of what a server may send.
const (
	maxMessage = 16 << 20
	maxHeader  = 4 << 10 // one line; bufio's size
	maxHeaders = 16
	// maxReceived is how many bytes it may send from one call to the next.
	maxReceived = 4 * maxMessage
	// maxFindings is how many findings of a program are read, maxFinding how many bytes of each message.
	maxFindings, maxFinding = 500, 4000
	// maxRequests is how many items of one of its requests are answered.
	maxRequests = 100
)

var (
	errFrame = errors.New("invalid frame of the language server protocol")
	errFlood = errors.New("it sends too much")
)

// readFrame reads one message: headers in the format of HTTP, and as many bytes as Content-Length says.
func readFrame(r *bufio.Reader) ([]byte, error) {
	length := -1
	for range maxHeaders {
		line, err := r.ReadSlice('\n') // fails when the line does not fit into r
		if err != nil {
			return nil, frameError(err, len(line) > 0 || length >= 0)
		}
		header := strings.TrimRight(string(line), "\r\n")
		if header == "" {
			return readBody(r, length)
		}
		name, value, ok := strings.Cut(header, ":")
		if !ok {
			return nil, fmt.Errorf("%w: a header without a colon", errFrame)
		}
		if !strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31)
		if err != nil || n > maxMessage || length >= 0 {
			return nil, fmt.Errorf("%w: an invalid, too large or duplicate length", errFrame)
		}
		length = int(n)
	}
	return nil, fmt.Errorf("%w: too many headers", errFrame)
}

func frameError(err error, inside bool) error {
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return fmt.Errorf("%w: a header that is too long", errFrame)
	case errors.Is(err, io.EOF) && inside:
		return io.ErrUnexpectedEOF
	}
	return err
}

// readBody reads length bytes. It does not allocate memory for bytes that are not sent.
func readBody(r io.Reader, length int) ([]byte, error) {
	if length < 0 {
		return nil, fmt.Errorf("%w: no length", errFrame)
	}
	body, err := io.ReadAll(io.LimitReader(r, int64(length)))
	if err == nil && len(body) < length {
		err = io.ErrUnexpectedEOF
	}
	return body, err
}
