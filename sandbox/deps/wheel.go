package deps

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
)

// wheelName matches the file name of a wheel (PEP 427): name, version, optional build, and tags.
var wheelName = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._]*[A-Za-z0-9])?)-([A-Za-z0-9_.!+]{1,64})(?:-[0-9][A-Za-z0-9_.]*)?-[A-Za-z0-9_.]+-[A-Za-z0-9_.]+-[A-Za-z0-9_.]+\.whl$`)

// sourceName matches the file name of a source distribution (PEP 625, and older conventions).
var sourceName = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)-([A-Za-z0-9_.!+]{1,64})\.(?:tar\.gz|zip)$`)

const (
	maxDirectory = 16 << 20 // bytes of a zip's list of files: 100,000 and more
	maxRecord    = 32 << 20
)

// wheel is a wheel that is being unpacked.
type wheel struct {
	*unpacker
	name, version string // canonical, as in its file's name
	distInfo      string // its folder of metadata
	record        map[string]string
	files         []*zip.File
}

// unpackWheel checks a wheel against its own RECORD and unpacks it.
func (u *unpacker) unpackWheel(file download, name, version string) error {
	archive, err := os.Open(file.path)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }()
	info, err := archive.Stat()
	if err != nil {
		return err
	}
	w := &wheel{unpacker: u, name: name, version: version, record: map[string]string{}}
	if err := w.open(archive, info.Size()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, member := range w.files {
		if err := w.unpack(member); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// cappedReaderAt is a file with a limit on the bytes that are read from it.
type cappedReaderAt struct {
	io.ReaderAt
	left atomic.Int64
}

// ReadAt returns an error when the limit is used up.
func (s *cappedReaderAt) ReadAt(p []byte, at int64) (int, error) {
	if s.left.Add(-int64(len(p))) < 0 {
		return 0, fmt.Errorf("%w: the list of files is too long", ErrLimit)
	}
	return s.ReaderAt.ReadAt(p, at)
}

// open reads the zip directory and RECORD, and checks that all files in RECORD exist.
func (w *wheel) open(archive io.ReaderAt, size int64) error {
	from := &cappedReaderAt{ReaderAt: archive}
	from.left.Store(maxDirectory)
	reader, err := zip.NewReader(from, size)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsafe, err)
	}
	from.left.Store(1 << 62)
	seen := map[string]bool{}
	for _, member := range reader.File {
		if strings.HasSuffix(member.Name, "/") {
			continue
		}
		if err := checkName(member.Name); err != nil {
			return err
		}
		if seen[member.Name] || !member.Mode().IsRegular() {
			return fmt.Errorf("%w: %.100q is a duplicate or not a regular file", ErrUnsafe, member.Name)
		}
		seen[member.Name] = true
		w.files = append(w.files, member)
	}
	if err := w.readRecord(); err != nil {
		return err
	}
	for name := range w.record {
		if !seen[name] {
			return fmt.Errorf("%w: RECORD has %.100q, which is not there", ErrUnsafe, name)
		}
	}
	return nil
}

// readRecord finds the .dist-info folder and reads RECORD, the list of hashes.
func (w *wheel) readRecord() error {
	for _, member := range w.files {
		folder, rest, _ := strings.Cut(member.Name, "/")
		stem, isInfo := strings.CutSuffix(folder, ".dist-info")
		if !isInfo || rest != "RECORD" {
			continue
		}
		name, version, _ := strings.Cut(stem, "-")
		if w.distInfo != "" || canonical(name) != w.name || !sameVersion(version, w.version) {
			return fmt.Errorf("%w: its metadata is of %.100q", ErrUnsafe, stem)
		}
		w.distInfo = folder
		if err := w.parseRecord(member); err != nil {
			return err
		}
	}
	if w.distInfo == "" {
		return fmt.Errorf("%w: it has no RECORD", ErrUnsafe)
	}
	return nil
}

func sameVersion(a, b string) bool {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "-", "+", "-").Replace(s)) }
	return plain(a) == plain(b)
}

func (w *wheel) parseRecord(member *zip.File) error {
	file, err := member.Open()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsafe, err)
	}
	defer func() { _ = file.Close() }()
	rows := csv.NewReader(io.LimitReader(file, maxRecord))
	rows.FieldsPerRecord, rows.ReuseRecord = -1, true
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || len(row) < 2 {
			return fmt.Errorf("%w: its RECORD cannot be read", ErrUnsafe)
		}
		if strings.HasSuffix(row[0], "/") { // some tools list folders
			continue
		}
		w.record[strings.Clone(row[0])] = strings.Clone(row[1])
	}
}

// unpack writes one member to its destination, and checks its hash against RECORD.
func (w *wheel) unpack(member *zip.File) error {
	file, err := member.Open()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsafe, err)
	}
	defer func() { _ = file.Close() }()
	sum, want, err := w.recordHash(member.Name)
	if err != nil {
		return err
	}
	from := io.Reader(file)
	if sum != nil {
		from = io.TeeReader(file, sum)
	}
	name, ok := w.destination(member.Name)
	if !ok {
		return nil
	}
	err = w.write(name, member.Mode().Perm()&0o100 != 0 && !strings.HasSuffix(name, ".py"), from)
	switch {
	case errors.Is(err, errExists):
		w.note("%s: %s is left out: another package has it", w.name, name)
		return nil
	case errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %.100q is damaged", ErrUnsafe, member.Name)
	case err != nil:
		return err
	case sum != nil && !bytes.Equal(sum.Sum(nil), want):
		return fmt.Errorf("%w: %.100q is not what RECORD says", ErrUnsafe, member.Name)
	}
	return nil
}

// recordHash returns the hash algorithm and hash of a member in RECORD. They are nil for RECORD itself and signatures.
func (w *wheel) recordHash(name string) (hash.Hash, []byte, error) {
	said, there := w.record[name]
	rest, inInfo := strings.CutPrefix(name, w.distInfo+"/RECORD")
	if inInfo && (rest == "" || rest == ".jws" || rest == ".p7s") {
		return nil, nil, nil
	}
	algorithm, value, _ := strings.Cut(said, "=")
	want, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(value, "="))
	switch {
	case !there:
		return nil, nil, fmt.Errorf("%w: RECORD does not have %.100q", ErrUnsafe, name)
	case err != nil:
	case algorithm == "sha256":
		return sha256.New(), want, nil
	case algorithm == "sha384":
		return sha512.New384(), want, nil
	case algorithm == "sha512":
		return sha512.New(), want, nil
	}
	return nil, nil, fmt.Errorf("%w: RECORD has no hash of %.100q", ErrUnsafe, name)
}

// destination returns the destination of a member, and false to leave it out. Left out are files
// that Python runs at startup (.pth), that hide modules of Python or ours, or that are outside the packages.
func (w *wheel) destination(name string) (string, bool) {
	folder, rest, _ := strings.Cut(name, "/")
	if stem, isData := strings.CutSuffix(folder, ".data"); isData && strings.EqualFold(stem+".dist-info", w.distInfo) {
		kind, inside, _ := strings.Cut(rest, "/")
		if kind != "purelib" && kind != "platlib" {
			if kind == "data" {
				w.note("%s: its files for %s are left out", w.name, "share and etc")
			}
			return "", false // scripts and headers serve no import
		}
		name = inside
		folder, rest, _ = strings.Cut(name, "/")
	}
	module, _, _ := strings.Cut(folder, ".")
	switch {
	case !fs.ValidPath(name):
		return "", false
	case rest == "" && (strings.HasSuffix(name, ".pth") || strings.HasSuffix(name, ".egg-link")):
		w.note("%s: %s is left out: it would run code at every start", w.name, name)
		return "", false
	case isReservedModule(strings.ToLower(module)) || isStdlib(module):
		w.note("%s: its module %s is left out: it would hide one of Python's or of this sandbox", w.name, module)
		return "", false
	}
	return name, true
}
