package spec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/testutil/golden"
)

// lenient are files that the schema takes and Load does not: what no schema can say, or what is no data at all.
var lenient = strings.Fields("anchor tag twice two-documents json-twice question syntax tab json-syntax json-more empty comment many-steps " +
	"input-default input-optional input-pattern output-constant step-id-twice unclosed number file for-each-names duration-long")

// TestFaults shows what a person reads for each way to get a definition wrong, and that an editor with the schema says that something is.
func TestFaults(t *testing.T) {
	files, err := filepath.Glob("testdata/faults/*.[yj]*")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d inputs: %v", len(files), err)
	}
	for _, path := range files {
		base := filepath.Base(path)
		name := strings.TrimSuffix(base, filepath.Ext(base))
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse("faults"+filepath.Ext(base), data, func(name string) ([]byte, error) { return readBelow("testdata/faults", name) })
			if err == nil {
				t.Fatal("no fault")
			}
			golden.Check(t, "testdata/faults/"+name+".txt", err.Error()+"\n")
			isData, problem := acceptedBySchema(t, path, data)
			if accepted := problem == nil || !isData; accepted != strings.Contains(" "+strings.Join(lenient, " ")+" ", " "+name+" ") {
				t.Errorf("accepted by the schema: %v", accepted)
			}
		})
	}
}
