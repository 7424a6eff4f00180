package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Checks are additional inputs of Verify; nil means none.
type Checks struct {
	// Heads are heads that were stored elsewhere.
	Heads []Head
	// Mirror yields the lines of a copy, in order; nil means no copy.
	Mirror iter.Seq2[[]byte, error]
}

// Report is what Verify found.
type Report struct {
	// First and Last are the numbers of the first and the last record; 0 if there are none.
	First uint64    `json:"first"`
	Last  uint64    `json:"last"`
	Hash  string    `json:"hash,omitempty"`
	Time  time.Time `json:"time"`
	Count int       `json:"count"`
	// Pruned is the last record that retention removed; 0 is none.
	Pruned uint64 `json:"pruned,omitempty"`
	// Mirrored is how many records were compared with the copy, Kept how many heads were found in the log.
	Mirrored int `json:"mirrored,omitempty"`
	Kept     int `json:"heads,omitempty"`
	// Problems are all problems in the order of the records; without any the log is intact.
	Problems []Problem `json:"problems"`
	// Notes are remarks that are not problems.
	Notes []string `json:"notes,omitempty"`
}

// Problem is one problem of a log.
type Problem struct {
	// Seq is the first affected record.
	Seq uint64 `json:"seq"`
	// File and Line are its position; "" and 0 if it is missing.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

// String formats the problem in a line.
func (p Problem) String() string {
	text := fmt.Sprintf("record %d: %s", p.Seq, p.Text)
	if p.File != "" {
		text += fmt.Sprintf(" (%s line %d)", filepath.Base(p.File), p.Line)
	}
	return text
}

// OK reports whether there are no problems.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// maxProblems bounds the reported problems.
const maxProblems = 20

// verifier is the state of one Verify.
type verifier struct {
	Report
	dir       string
	prev      Record
	prevPlace Problem           // the position of prev
	anchor    Record            // the first record in the files
	pruned    map[uint64]string // what log.pruned records say
	expected  map[uint64][]claim
	mirror    *mirrorReader
}

// claim is the hash that a record should have, and where that is known from.
type claim struct {
	hash, by string
	mismatch bool // the record has another hash
}

// Verify reads all records of a directory and reports whether any was changed, removed, moved or inserted. It needs no running
// gateway, and may run concurrently with appends. An error means that the check could not be completed.
func Verify(dir string, checks *Checks) (Report, error) {
	if checks == nil {
		checks = &Checks{}
	}
	v := &verifier{dir: dir, pruned: map[uint64]string{}, expected: map[uint64][]claim{}}
	v.Problems = []Problem{}
	for _, h := range checks.Heads {
		v.expected[h.Seq] = append(v.expected[h.Seq], claim{hash: h.Hash, by: "the given head"})
	}
	head, published := v.publishedHead()
	if checks.Mirror != nil {
		next, stop := iter.Pull2(checks.Mirror)
		defer stop()
		v.mirror = &mirrorReader{next: next}
	}
	if err := v.walk(); err != nil {
		return v.Report, fmt.Errorf("verify audit log: %w", err)
	}
	v.checkFirst()
	v.checkClaims()
	if published && head.Seq > v.Last {
		v.problem(Problem{Seq: v.Last + 1, Text: fmt.Sprintf("records %d to %d are missing: the published head is %s", v.Last+1, head.Seq, head)})
	}
	if err := v.checkMirrorEnd(); err != nil {
		return v.Report, fmt.Errorf("verify audit log: read its copy: %w", err)
	}
	return v.Report, nil
}

func (v *verifier) problem(p Problem) {
	if len(v.Problems) < maxProblems {
		v.Problems = append(v.Problems, p)
	}
}

// publishedHead returns the published head. It is read before the records, which may grow during the check.
func (v *verifier) publishedHead() (Head, bool) {
	keys, err := loadKeys(v.dir, false)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) || v.hasRecords() {
			v.Notes = append(v.Notes, "there is no key, so the published head cannot be checked")
		}
		return Head{}, false
	}
	head, err := readHead(v.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if v.hasRecords() {
			v.Notes = append(v.Notes, "no head is published: records that were removed at the end cannot be detected")
		}
		return Head{}, false
	case err != nil || !head.check(keys.public()):
		v.problem(Problem{Seq: head.Seq, Text: "the published head was not signed with the key of this log"})
		return Head{}, false
	}
	v.expected[head.Seq] = append(v.expected[head.Seq], claim{hash: head.Hash, by: "the published head"})
	return head, true
}

func (v *verifier) hasRecords() bool {
	all, err := segments(v.dir)
	return err == nil && len(all) > 0
}

func (v *verifier) walk() error {
	r := NewReader(v.dir, 0)
	defer func() { _ = r.Close() }()
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			v.noteTorn(r)
			return nil
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
		if err := v.checkLine(record, err, Problem{File: r.seg.path, Line: r.line}); err != nil {
			return err
		}
	}
}

// checkLine checks the next line: a record, or what is wrong with it.
func (v *verifier) checkLine(record Record, wrong error, place Problem) error {
	if wrong != nil {
		place.Seq, place.Text = v.Last+1, "it was edited"
		if errors.Is(wrong, errNotRecord) {
			place.Text = "this line is not a record"
		}
		v.problem(place)
		if record.Seq != v.Last+1 { // its content cannot be trusted
			return nil
		}
	}
	return v.checkRecord(record, place)
}

// noteTorn notes what a crash left at the end of the last file.
func (v *verifier) noteTorn(r *Reader) {
	if r.file == nil {
		return
	}
	if info, err := r.file.Stat(); err == nil && info.Size() > r.at {
		v.Notes = append(v.Notes, "the last line is incomplete: it is being written, or was cut off by a crash")
	}
}

// checkRecord checks the next record.
func (v *verifier) checkRecord(r Record, place Problem) error {
	place.Seq = r.Seq
	switch {
	case v.Count == 0:
		v.First, v.anchor = r.Seq, r
	case r.Kind == LogGap && r.Prev == v.prev.Hash && r.Seq > v.Last:
		place.Seq, place.Text = v.Last+1, fmt.Sprintf("records %d to %d were removed; this was detected %s", v.Last+1, r.Through, r.Time.Format(time.RFC3339))
		v.problem(place)
	case r.Prev != v.prev.Hash || r.Seq != v.Last+1:
		v.problem(v.orderProblem(r, place))
	}
	if r.Kind == LogPruned {
		v.pruned[r.Through] = r.Before
	}
	v.prev, v.prevPlace = r, Problem{Seq: r.Seq, File: place.File, Line: place.Line}
	v.First = min(v.First, r.Seq)
	if r.Seq > v.Last || v.Count == 0 {
		v.Last, v.Hash, v.Time = r.Seq, r.Hash, r.Time
	}
	v.Count++
	for i, c := range v.expected[r.Seq] {
		if v.expected[r.Seq][i].mismatch = c.hash != r.Hash; c.hash == r.Hash {
			v.expected[r.Seq][i].hash = ""
			v.Kept++
		}
	}
	return v.compareMirror(r, place)
}

// orderProblem returns the problem of a record that does not follow the one before.
func (v *verifier) orderProblem(r Record, place Problem) Problem {
	switch {
	case r.Seq == v.Last+1:
		place = v.prevPlace
		place.Text = "it was replaced: the record after it was written after another one"
	case r.Seq > v.Last+1:
		place.Seq, place.Text = v.Last+1, "it is missing"
		if r.Seq > v.Last+2 {
			place.Text = fmt.Sprintf("records %d to %d are missing", v.Last+1, r.Seq-1)
		}
		place.Text += ", or they were moved"
	default:
		place.Text = "it follows record " + strconv.FormatUint(v.prev.Seq, 10) + ": it was moved or inserted"
	}
	return place
}

// checkFirst checks that the first record is number 1, or that the records before it were pruned.
func (v *verifier) checkFirst() {
	if v.Count == 0 || v.anchor.Seq == 1 && v.anchor.Prev == noHash {
		return
	}
	if hash, ok := v.pruned[v.anchor.Seq-1]; ok && hash == v.anchor.Prev {
		v.Pruned = v.anchor.Seq - 1
		return
	}
	v.Problems = append([]Problem{{Seq: 1, Text: fmt.Sprintf("records 1 to %d are missing, and no record says that they were pruned", v.anchor.Seq-1)}}, v.Problems...)
}

// checkClaims reports the given and published heads that the log does not have.
func (v *verifier) checkClaims() {
	for seq, list := range v.expected {
		for _, c := range list {
			switch {
			case c.hash == "":
			case v.Pruned > 0 && seq <= v.Pruned:
				v.Notes = append(v.Notes, fmt.Sprintf("%s is of record %d, which was pruned, so it cannot be checked", c.by, seq))
			case seq > v.Last:
				if c.by != "the published head" {
					v.problem(Problem{Seq: v.Last + 1, Text: fmt.Sprintf("records %d to %d are missing: %s is %d:%s", v.Last+1, seq, c.by, seq, c.hash)})
				}
			case c.mismatch:
				v.problem(Problem{Seq: seq, Text: "it does not match " + c.by + ": it, or one before it, was replaced"})
			}
		}
	}
}

// mirrorReader reads the copy of the log for the comparison.
type mirrorReader struct {
	next func() ([]byte, error, bool)
	line []byte
	seq  uint64
	done bool
}

// advance reads the next line of the copy.
func (m *mirrorReader) advance() error {
	line, err, ok := m.next()
	if !ok {
		m.done = true
		return nil
	}
	if err != nil {
		return err
	}
	r, err := decode(line)
	if err != nil && !errors.Is(err, errEdited) {
		return err
	}
	m.line, m.seq = line, r.Seq
	return nil
}

// compareMirror compares a record with the copy. The copy may begin later or earlier, and end earlier.
func (v *verifier) compareMirror(r Record, place Problem) error {
	m := v.mirror
	if m == nil {
		return nil
	}
	for !m.done && m.seq < r.Seq {
		if m.seq > v.First && m.line != nil {
			v.problem(Problem{Seq: m.seq, Text: "it is in the copy, but not in the file"})
		}
		if err := m.advance(); err != nil {
			return err
		}
	}
	if m.done || m.seq != r.Seq {
		return nil
	}
	if string(m.line) != string(r.Line) {
		place.Text = "file and copy differ"
		v.problem(place)
	}
	v.Mirrored++
	m.line = nil
	return nil
}

// checkMirrorEnd reports records at the end that only the copy has.
func (v *verifier) checkMirrorEnd() error {
	m := v.mirror
	if m == nil {
		return nil
	}
	for !m.done && (m.line == nil || m.seq <= v.Last) {
		if err := m.advance(); err != nil {
			return err
		}
	}
	if !m.done && !v.appended(m.seq) {
		v.problem(Problem{Seq: v.Last + 1, Text: fmt.Sprintf("record %d is in the copy, but the file ends at %d", m.seq, v.Last)})
	}
	return nil
}

// appended reports whether a record was appended to the files since they were read.
func (v *verifier) appended(seq uint64) bool {
	at, _, _, _, err := findEnd(v.dir)
	return err == nil && at.seq >= seq && v.Last > 0
}

// HeadOf returns the current head of a directory, signed. It needs no running gateway.
func HeadOf(dir string) (Head, error) {
	keys, err := loadKeys(dir, false)
	if errors.Is(err, fs.ErrNotExist) {
		return Head{}, fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err != nil {
		return Head{}, err
	}
	at, _, _, _, err := findEnd(dir)
	if err != nil {
		return Head{}, err
	}
	if at.seq == 0 {
		return Head{}, fmt.Errorf("%w: no records: %w", ErrGone, os.ErrNotExist)
	}
	return keys.sign(Head{Seq: at.seq, Hash: at.hash, Time: time.Now().UTC()}), nil
}
