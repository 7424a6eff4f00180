package runtime_test

import (
	"bytes"
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/codegen/runtime"
)

// TestZygoteIsCurrent: the committed library is what the source compiles to, byte by byte.
func TestZygoteIsCurrent(t *testing.T) {
	const compiler = "x86_64-linux-gnu-gcc-12"
	version, err := exec.Command(compiler, "-dumpfullversion").Output()
	if err != nil || strings.TrimSpace(string(version)) != "12.2.0" {
		t.Skipf("the library was made with %s 12.2.0; here is %q, %v", compiler, version, err)
	}
	out := filepath.Join(t.TempDir(), "zygote.so")
	if said, err := exec.Command("./native/build.sh", compiler, out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	made, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := fs.ReadFile(runtime.Guest(), "zygote-x86_64.so")
	if err != nil || !bytes.Equal(made, kept) {
		t.Errorf("guest/zygote-x86_64.so is another one (%v): make zygote makes both", err)
	}
}

// TestZygoteNeedsNothing: the libraries name no other library, and only fork and functions of node, which are optional.
func TestZygoteNeedsNothing(t *testing.T) {
	for name, machine := range map[string]elf.Machine{"zygote-x86_64.so": elf.EM_X86_64, "zygote-aarch64.so": elf.EM_AARCH64} {
		data, err := fs.ReadFile(runtime.Guest(), name)
		if err != nil {
			t.Fatal(err)
		}
		lib, err := elf.NewFile(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		needed, _ := lib.ImportedLibraries()
		symbols, err := lib.DynamicSymbols()
		if err != nil || lib.Machine != machine || len(needed) > 0 {
			t.Errorf("%s: machine %s, libraries %q, %v", name, lib.Machine, needed, err)
		}
		var wants, has []string
		for _, s := range symbols {
			switch {
			case s.Name == "": // a section
			case s.Section != elf.SHN_UNDEF:
				has = append(has, s.Name)
			case elf.ST_BIND(s.Info) != elf.STB_WEAK:
				wants = append(wants, s.Name)
			}
		}
		slices.Sort(has)
		if !slices.Equal(wants, []string{"fork"}) || !slices.Equal(has, []string{"napi_register_module_v1", "zygote_serve"}) {
			t.Errorf("%s: needs %q, has %q", name, wants, has)
		}
	}
}
