package main_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/minio/highwayhash"

	"sallyport/internal/checksumfile"
)

const compatDir = "testdata/compat"

// readJSON decodes a file of testdata/compat.
func readJSON[T any](t *testing.T, name string) (value T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(compatDir, name))
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// unpackHome extracts home.tar.gz. Files have the current time, as if they were just written.
func unpackHome(t *testing.T, home string) {
	t.Helper()
	file, err := os.Open(filepath.Join(compatDir, "home.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for in := tar.NewReader(plain); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = extract(home, header, in)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func extract(home string, header *tar.Header, in io.Reader) error {
	path := filepath.Join(home, filepath.FromSlash(header.Name))
	if header.Typeflag == tar.TypeDir {
		return os.MkdirAll(path, header.FileInfo().Mode().Perm())
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, header.FileInfo().Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(file, in) //nolint:gosec // the archive is ours
	return errors.Join(err, file.Close())
}

// redate moves all times in the records by a whole number of days, as records expire. The copy of the audit log keeps
// the times in its values, which its hashes cover.
func redate(t *testing.T, home string, by time.Duration) {
	t.Helper()
	streams := filepath.Join(home, "data", "sallyport", "records", "jetstream", "jetstream", "$G", "streams")
	blocks, err := filepath.Glob(filepath.Join(streams, "*", "msgs", "*.blk"))
	if err != nil || len(blocks) < 10 {
		t.Fatalf("%d blocks of records, %v", len(blocks), err)
	}
	for _, path := range blocks {
		folder := filepath.Dir(path)
		if err := redateBlock(path, filepath.Base(filepath.Dir(folder)), by); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, derived := range []string{"index.db", "sched.db"} { // the engine rebuilds them
			_ = os.Remove(filepath.Join(folder, derived))
		}
	}
}

// redateCaches does the same for what was learned, which is forgotten where it is not used for long.
func redateCaches(t *testing.T, home string, by time.Duration) {
	t.Helper()
	for pattern, unit := range map[string]time.Duration{"shapes/*.shapes": 24 * time.Hour, "clicks/*.clicks": time.Second} {
		paths, err := filepath.Glob(filepath.Join(home, "cache", "sallyport", filepath.FromSlash(pattern)))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		for _, path := range paths {
			if err := redateCache(path, int(by/unit)); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
	}
}

// learnedAt matches the days of a file of shapes and the seconds of one of clicks.
var learnedAt = regexp.MustCompile(`"(d|a)":\d+`)

func redateCache(path string, by int) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	body, err := checksumfile.Decode(1, data)
	if err != nil {
		return err
	}
	body = learnedAt.ReplaceAllFunc(body, func(text []byte) []byte {
		name, number, _ := strings.Cut(string(text), ":")
		at, err := strconv.Atoi(number)
		if err != nil {
			return text
		}
		return []byte(name + ":" + strconv.Itoa(at+by))
	})
	if data, err = checksumfile.Encode(1, body); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// redateBlock rewrites a block file, whose format is described in internal/store/block.go.
func redateBlock(path, stream string, by time.Duration) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	key := sha256.Sum256([]byte(stream + "-" + strings.TrimSuffix(filepath.Base(path), ".blk")))
	for at := 0; at < len(data); {
		size := int(binary.LittleEndian.Uint32(data[at:]) &^ (1 << 31))
		if size < 30 || size > len(data)-at {
			return fmt.Errorf("a record of %d bytes at %d", size, at)
		}
		if err := redateRecord(data[at:at+size], key[:], by, stream != "log_audit"); err != nil {
			return err
		}
		at += size
	}
	return os.WriteFile(path, data, 0o600)
}

var isoTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`)

func redateRecord(record, key []byte, by time.Duration, values bool) error {
	stored := record[12:20]
	if stamp := binary.LittleEndian.Uint64(stored); stamp != 0 {
		binary.LittleEndian.PutUint64(stored, stamp+uint64(by)) //nolint:gosec // unsigned arithmetic wraps as it should
	}
	if values {
		body := record[22 : len(record)-8]
		copy(body, isoTime.ReplaceAllFunc(body, func(text []byte) []byte {
			at, err := time.Parse("2006-01-02T15:04:05", string(text))
			if err != nil {
				return text
			}
			return []byte(at.Add(by).Format("2006-01-02T15:04:05"))
		}))
	}
	sum, err := checksumOf(record, key)
	if err == nil {
		binary.LittleEndian.PutUint64(record[len(record)-8:], sum)
	}
	return err
}

func checksumOf(record, key []byte) (uint64, error) {
	hash, err := highwayhash.New64(key)
	if err != nil {
		return 0, err
	}
	body := record[22 : len(record)-8]
	subject := int(binary.LittleEndian.Uint16(record[20:]))
	value := subject
	if binary.LittleEndian.Uint32(record)&(1<<31) != 0 {
		value += 4
	}
	for _, part := range [][]byte{record[4:20], body[:subject], body[value:]} {
		_, _ = hash.Write(part)
	}
	return hash.Sum64(), nil
}

// sameValues are the members whose values have to be equal, not only of the same type.
var sameValues = map[string]bool{
	"status": true, "kind": true, "state": true, "name": true, "tool": true, "output": true, "result": true, "outputs": true, "workflow": true, "language": true, "decision": true, "verdict": true, "scope": true, "scopes": true,
	"digest": true, "path": true, "principal": true, "code": true, "arguments": true, "inputSchema": true, "isError": true, "content": true, "number": true, "calls": false,
}

// missing returns what an old value has and a new one does not: members, elements, and values that have to be equal.
func missing(was, is any, at string) []string {
	switch was := was.(type) {
	case nil:
		return nil
	case map[string]any:
		return missingMembers(was, is, at)
	case []any:
		return missingElements(was, is, at)
	}
	if fmt.Sprintf("%T", was) != fmt.Sprintf("%T", is) {
		return []string{fmt.Sprintf("%s: %T became %T", at, was, is)}
	}
	if sameValues[at[strings.LastIndexByte(at, '.')+1:]] && was != is {
		return []string{fmt.Sprintf("%s: %.200v became %.200v", at, was, is)}
	}
	return nil
}

func missingMembers(was map[string]any, is any, at string) (found []string) {
	now, ok := is.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("%s: an object became %T", at, is)}
	}
	for name, value := range was {
		if _, ok := now[name]; !ok && name == "shown" && now["text"] != nil {
			continue // a hit of a search has all that was asked for, where it had less
		} else if !ok {
			found = append(found, at+"."+name+" is missing")
			continue
		}
		found = append(found, missing(value, now[name], at+"."+name)...)
	}
	return found
}

// missingElements wants for each old element a new one that has all of it.
func missingElements(was []any, is any, at string) (found []string) {
	now, ok := is.([]any)
	if !ok {
		return []string{fmt.Sprintf("%s: a list became %T", at, is)}
	}
	for i, one := range was {
		best := []string{at + "[" + strconv.Itoa(i) + "] is missing"}
		for j, other := range now {
			if got := missing(one, other, at); len(got) == 0 || j == i {
				best = got
				if len(got) == 0 {
					break
				}
			}
		}
		found = append(found, best...)
	}
	return found
}
