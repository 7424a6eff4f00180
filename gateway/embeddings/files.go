package embeddings

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"math"
	"net/url"
	"slices"
	"time"

	"sallyport/internal/checksumfile"
)

const (
	// maxFile bounds the vectors of one model on disk, in bytes.
	maxFile = 128 << 20
	// maxAgeDays is how many days an unused vector is kept, touchDays how often the
	// day of its last use is updated.
	maxAgeDays = 30
	touchDays  = 7
	// maxFiles is how many files of endpoints and models are kept.
	maxFiles = 20
)

// files stores the vectors of one model of one endpoint in a file of a directory,
// readable by its owner only. Processes may share the directory.
type files struct {
	folder *checksumfile.Folder
	name   string
}

// storedVectors is the content of a file.
type storedVectors struct {
	dim     int
	vectors map[digest]storedVector
}

// storedVector is a vector and the day of its last use, in days since 1970.
type storedVector struct {
	vector
	day uint32
}

func openFiles(dir string, c *client) (*files, error) {
	folder, err := checksumfile.OpenFolder(dir, checksumfile.Kind{Version: 1, Suffix: ".vectors", Limit: maxFile + 1024})
	if err != nil {
		return nil, err
	}
	f := &files{folder, fileName(c)}
	_ = folder.Touch(f.name) // it may not exist yet
	folder.Sweep(maxFiles, maxAgeDays*24*time.Hour)
	return f, nil
}

func (f *files) close() error { return f.folder.Close() }

// fileName returns the file name of an endpoint and a model. It does not depend on a key in the URL.
func fileName(c *client) string {
	place := c.endpoint
	if u, err := url.Parse(place); err == nil {
		place = u.Scheme + "://" + u.Host + u.Path
	}
	sum := sha256.Sum256([]byte(place + "\n" + c.settings.Model))
	return hex.EncodeToString(sum[:16])
}

func today() uint32 { return uint32(time.Now().Unix() / (24 * 60 * 60)) }

// load reads the stored vectors. The error is for an invalid file.
func (f *files) load() (storedVectors, error) {
	body, err := f.folder.Read(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		return storedVectors{}, nil
	}
	if err != nil {
		return storedVectors{}, err
	}
	return decode(body)
}

// merge adds vectors to the stored ones, unless none is new and no day is old.
// Stored vectors of another length are of another model, and are removed.
func (f *files) merge(dim int, vectors map[digest]vector, unsaved bool) error {
	unlock, err := f.folder.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	kept, _ := f.load() // the first load has reported the error
	if kept.vectors == nil || kept.dim != dim {
		kept = storedVectors{dim, map[digest]storedVector{}}
	}
	stale := unsaved
	for name, v := range vectors {
		old, ok := kept.vectors[name]
		stale = stale || !ok || old.day+touchDays < today()
		kept.vectors[name] = storedVector{v, today()}
	}
	if !stale {
		return nil
	}
	return f.folder.Write(f.name, encode(kept))
}

// recordSize returns the size of a vector in a file: digest, day, numbers.
func recordSize(dim int) int { return len(digest{}) + 4 + dim }

// encode writes the dimensions, then as many vectors as fit, newest first.
func encode(all storedVectors) []byte {
	names := slices.Collect(maps.Keys(all.vectors))
	names = slices.DeleteFunc(names, func(name digest) bool { return all.vectors[name].day+maxAgeDays < today() })
	slices.SortFunc(names, func(a, b digest) int {
		return cmp.Or(cmp.Compare(all.vectors[b].day, all.vectors[a].day), bytes.Compare(a[:], b[:]))
	})
	names = names[:min(len(names), maxFile/recordSize(all.dim))]
	out := make([]byte, 0, 4+len(names)*recordSize(all.dim))
	out = binary.LittleEndian.AppendUint32(out, uint32(all.dim))
	for _, name := range names {
		v := all.vectors[name]
		out = append(out, name[:]...)
		out = binary.LittleEndian.AppendUint32(out, v.day)
		for _, x := range v.values {
			out = append(out, byte(x))
		}
	}
	return out
}

var errDamaged = errors.New("invalid vectors")

// decode is the inverse of encode; it rejects anything else.
func decode(body []byte) (storedVectors, error) {
	if len(body) < 4 {
		return storedVectors{}, errDamaged
	}
	dim := binary.LittleEndian.Uint32(body)
	if dim == 0 || dim > maxDim || (len(body)-4)%recordSize(int(dim)) != 0 {
		return storedVectors{}, errDamaged
	}
	all := storedVectors{int(dim), map[digest]storedVector{}}
	for rest := body[4:]; len(rest) > 0; rest = rest[recordSize(all.dim):] {
		values := make([]int8, dim)
		for i, x := range rest[len(digest{})+4 : recordSize(all.dim)] {
			values[i] = int8(x)
		}
		norm := math.Sqrt(float64(dot(values, values)))
		if norm == 0 {
			return storedVectors{}, errDamaged
		}
		day := min(binary.LittleEndian.Uint32(rest[len(digest{}):]), today()+2) // clocks differ
		all.vectors[digest(rest[:len(digest{})])] = storedVector{vector{values, norm}, day}
	}
	return all, nil
}
