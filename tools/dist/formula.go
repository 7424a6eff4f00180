package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"text/template"
)

// formulaText installs the archive of the platform. Homebrew adds completions and manual pages from it.
var formulaText = template.Must(template.New("formula").Parse(`class Sallyport < Formula
  desc "One MCP server in front of many"
  homepage "{{.Home}}"
  version "{{.Version}}"
  license "Apache-2.0"
{{range $system, $archives := .Systems}}
  on_{{$system}} do
{{- range $archives}}
    on_{{.CPU}} do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
  end
{{end}}
  def install
    libexec.install Dir["bin/*"]
    bin.install_symlink libexec/"sallyport"
    pkgshare.install Dir["share/sallyport/*"] if OS.mac?
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/sallyport"
    zsh_completion.install "share/zsh/site-functions/_sallyport"
    fish_completion.install "share/fish/vendor_completions.d/sallyport.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/sallyport --version")
  end
end
`))

// formulaArchive is an archive that the formula downloads.
type formulaArchive struct{ CPU, URL, Sum string }

// formula writes the formula for Homebrew, on macOS and Linux.
func (r *release) formula(targets []target) error {
	systems := map[string][]formulaArchive{}
	for _, t := range targets {
		if t.system == "windows" {
			continue
		}
		name := fmt.Sprintf("sallyport-%s-%s-%s.tar.gz", r.version, t.system, t.arch)
		sum, err := sumOf(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		system := map[string]string{"darwin": "macos", "linux": "linux"}[t.system]
		cpu := map[string]string{"amd64": "intel", "arm64": "arm"}[t.arch]
		systems[system] = append(systems[system], formulaArchive{CPU: cpu, URL: r.url + "/" + name, Sum: sum})
	}
	for _, archives := range systems {
		slices.SortFunc(archives, func(a, b formulaArchive) int { return cmp.Compare(a.CPU, b.CPU) })
	}
	var text bytes.Buffer
	facts := map[string]any{"Home": cmp.Or(r.home, "https://example.com/sallyport"), "Version": r.version, "Systems": systems}
	if err := formulaText.Execute(&text, facts); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "sallyport.rb"), text.Bytes(), 0o644)
}
