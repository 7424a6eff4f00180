package models

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxEvent bounds one line of a stream, in bytes.
const maxEvent = 4 << 20

// events reads a stream of server-sent events and calls do with the data of each, until do returns an error.
func events(in io.Reader, do func(data []byte) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 4096), maxEvent)
	var data []byte
	flush := func() error {
		if len(data) == 0 {
			return nil
		}
		now := data
		data = nil
		return do(now)
	}
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) == 0 {
			if err := flush(); err != nil {
				return err
			}
			continue
		}
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if len(data) > 0 {
				data = append(data, '\n')
			}
			if data = append(data, bytes.TrimPrefix(value, []byte(" "))...); len(data) > maxEvent {
				return errTooLong
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return flush()
}

// errTooLong is the error for an event or an answer that is too long.
var errTooLong = errors.New("it is too long")
