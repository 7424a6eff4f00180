package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"slices"

	"sallyport/internal/sanitize"
)

// tree is the content of /servers.
type tree struct {
	files map[string][]byte
	// manifest has the digest of every file.
	manifest map[string]string
}

func newTree(files map[string][]byte) *tree {
	t := &tree{files: maps.Clone(files), manifest: make(map[string]string, len(files))}
	for path, data := range files {
		sum := sha256.Sum256(data)
		t.manifest[path] = hex.EncodeToString(sum[:])
	}
	return t
}

func parseTree(files map[string][]byte) (*tree, error) {
	for path := range files {
		if !fs.ValidPath(path) {
			return nil, fmt.Errorf("invalid file path %q", path)
		}
	}
	return newTree(files), nil
}

// The bounds of a tree, in bytes.
const (
	maxManifest = 64 << 20
	maxTree     = 1 << 30
)

// publish sends the files that the worker does not have. The body is a length (8 bytes, big-endian), a
// manifest of that length as JSON, and then the contents, each after its length. The worker keeps the contents of
// the last tree, so the client knows which ones it has.
func (l *link) publish(ctx context.Context, newest *tree) error {
	has := map[string]bool{}
	if l.published != nil {
		for _, digest := range l.published.manifest {
			has[digest] = true
		}
	}
	body, err := newest.encode(has)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://worker"+pathPublish, body)
	if err != nil {
		return err
	}
	response, err := l.http.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	why, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	return errors.New(sanitize.Line(string(why), 300))
}

// encode returns the manifest followed by the contents that the worker does not have, each once.
func (t *tree) encode(has map[string]bool) (io.Reader, error) {
	manifest, err := json.Marshal(t.manifest)
	if err != nil {
		return nil, err
	}
	parts := []io.Reader{bytes.NewReader(binary.BigEndian.AppendUint64(nil, uint64(len(manifest)))), bytes.NewReader(manifest)}
	sent := map[string]bool{}
	maps.Copy(sent, has)
	for _, path := range slices.Sorted(maps.Keys(t.files)) {
		digest, data := t.manifest[path], t.files[path]
		if sent[digest] {
			continue
		}
		sent[digest] = true
		parts = append(parts, bytes.NewReader(binary.BigEndian.AppendUint64(nil, uint64(len(data)))), bytes.NewReader(data))
	}
	return io.MultiReader(parts...), nil
}

// decode reads what encode wrote; there holds the known contents by digest. It returns the files and their contents by digest.
func decode(r io.Reader, there map[string][]byte) (files, contents map[string][]byte, err error) {
	data, err := readPart(r, maxManifest)
	if err != nil {
		return nil, nil, fmt.Errorf("read manifest: %w", err)
	}
	var manifest map[string]string
	if err := json.Unmarshal(data, &manifest); err != nil {
		return nil, nil, fmt.Errorf("read manifest: %w", err)
	}
	came, err := readContents(r)
	if err != nil {
		return nil, nil, err
	}
	files, contents = map[string][]byte{}, map[string][]byte{}
	for path, digest := range manifest {
		content, ok := came[digest]
		if !ok {
			if content, ok = there[digest]; !ok {
				return nil, nil, fmt.Errorf("the content of %q is missing", path)
			}
		}
		files[path], contents[digest] = content, content
	}
	return files, contents, nil
}

func readContents(r io.Reader) (map[string][]byte, error) {
	came := map[string][]byte{}
	for left := int64(maxTree); ; {
		data, err := readPart(r, left)
		if err == io.EOF { //nolint:errorlint // as readPart returns it
			return came, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read wrappers: %w", err)
		}
		left -= int64(len(data))
		sum := sha256.Sum256(data)
		came[hex.EncodeToString(sum[:])] = data
	}
}

// readPart reads a length and that many bytes. It returns io.EOF at the end of the stream.
func readPart(r io.Reader, limit int64) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint64(head[:])
	if size > uint64(limit) {
		return nil, errors.New("it is too long")
	}
	var data bytes.Buffer // grows with what comes
	if _, err := io.CopyN(&data, r, int64(size)); err != nil {
		return nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return data.Bytes(), nil
}
