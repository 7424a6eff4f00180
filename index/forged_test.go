package index

import (
	"os"
	"testing"

	"sallyport/internal/checksumfile"
)

// TestForgedSnapshot: a file that is whole and says what no analysis says (terms that
// are ours, no terms, any bytes, the same term often) costs good answers, never more.
func TestForgedSnapshot(t *testing.T) {
	docs := someDocs(60)
	for name, forge := range map[string]func([]string, []analyzed){
		"terms of ours": func(texts []string, _ []analyzed) {
			texts[0], texts[1], texts[2] = slotTerm, bucketTerm(pinBucket("tool1")), pinPrefix
		},
		"no terms": func(texts []string, _ []analyzed) { texts[0], texts[1] = "", "" },
		"any bytes": func(texts []string, _ []analyzed) {
			texts[0], texts[1], texts[2] = "\xff", "\xff\xfe\x00", string(make([]byte, 70_000))
		},
		"one term only":   func(texts []string, _ []analyzed) { clear(texts) },
		"greatest counts": func(_ []string, all []analyzed) { each(all, func(f *facts, i int) { f.freqs[i] = maxFreq }) },
		"one term often":  func(_ []string, all []analyzed) { each(all, func(f *facts, i int) { f.terms[i] = 0 }) },
		"least vectors": func(_ []string, all []analyzed) {
			for _, d := range all {
				for i := range d.vector {
					d.vector[i] = -128
				}
			}
		},
		"no facts": func(_ []string, all []analyzed) {
			for i := range all {
				all[i].facts = &facts{}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first, _, _ := open(t, dir, docs)
			analysis := first.cache.analysis
			closeIndex(t, first)
			file := snapshots(t, dir)[0]
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			body, err := checksumfile.Decode(snapshotVersion, data)
			if err != nil {
				t.Fatal(err)
			}
			texts, all, err := decode(body, analysis)
			if err != nil {
				t.Fatal(err)
			}
			forge(texts, all)
			if err := os.WriteFile(file, seal(t, encode(analysis, texts, all)), 0o600); err != nil {
				t.Fatal(err)
			}
			ix, _, log := open(t, dir, docs)
			for _, text := range []string{"tool1", "up0.tool1", texts[3] + " and what is like it", "zzz", "\x00 \x01 \xff"} {
				res, err := ix.Search(t.Context(), Query{Text: text, Limit: 100})
				if err != nil || len(res.Hits) > len(docs) {
					t.Errorf("%q: %d hits, %v, log %s", text, len(res.Hits), err, log)
				}
			}
			if res, err := ix.Search(t.Context(), Query{Text: "up0.tool1"}); err != nil || len(res.Hits) == 0 || res.Hits[0].ID.String() != "up0.tool1" {
				t.Errorf("by its id: %+v, %v", res.Hits, err)
			}
			closeIndex(t, ix)
		})
	}
}

func each(all []analyzed, do func(f *facts, i int)) {
	for _, d := range all {
		for i := range d.terms {
			do(d.facts, i)
		}
	}
}

// TestSnapshotLinks: a link in the folder that leads out of it is neither read nor written through.
func TestSnapshotLinks(t *testing.T) {
	dir, victim := t.TempDir(), t.TempDir()+"/victim"
	docs := someDocs(30)
	first, _, _ := open(t, dir, docs)
	closeIndex(t, first)
	file := snapshots(t, dir)[0]
	if err := os.Rename(file, victim); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(victim)
	if err := os.Symlink(victim, file); err != nil {
		t.Fatal(err)
	}
	ix, built, _ := open(t, dir, docs)
	if built.Analyzed != 30 {
		t.Errorf("it was read through the link: %+v", built)
	}
	closeIndex(t, ix)
	info, err := os.Lstat(file)
	after, _ := os.ReadFile(victim)
	if err != nil || info.Mode() != 0o600 || string(before) != string(after) {
		t.Errorf("%v %v, the file behind the link changed: %v", info, err, string(before) != string(after))
	}
	if err := os.Chmod(dir, 0o500); err != nil { // nothing can be written
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	ix, _, _ = open(t, dir, docs[:10])
	if res, err := ix.Search(t.Context(), Query{Text: "up0.tool1"}); err != nil || len(res.Hits) == 0 {
		t.Errorf("in a folder that cannot be written: %+v, %v", res, err)
	}
	closeIndex(t, ix)
}
