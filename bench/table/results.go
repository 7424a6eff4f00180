package table

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// WriteResults writes JSON lines to a file: one of the machine, and one of each row.
func WriteResults(path string, machine any, rows []Row) error {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	errs := []error{encoder.Encode(machine)}
	for _, r := range rows {
		errs = append(errs, encoder.Encode(r))
	}
	return errors.Join(append(errs, os.WriteFile(path, lines.Bytes(), 0o644))...) //nolint:gosec // results are for everybody
}

// ReadResults reads what [WriteResults] wrote.
func ReadResults[Machine any](path string) (*Machine, []Row, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	machine, rows := new(Machine), []Row(nil)
	lines := bufio.NewScanner(bytes.NewReader(data))
	for first := true; lines.Scan(); first = false {
		var r Row
		into := any(&r)
		if first {
			into = machine
		}
		if err := json.Unmarshal(lines.Bytes(), into); err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", path, err)
		}
		if !first {
			rows = append(rows, r)
		}
	}
	return machine, rows, lines.Err()
}
