package workspace

import (
	"path"
	"slices"
	"strings"
)

// automatic are names of files that host tools execute or obey automatically when a user opens or enters the folder.
// In a mapped folder they, and everything below them, are not changed.
var automatic = strings.Fields(`
	.git git~1 .gitmodules .hg .svn .jj .bzr .githooks .husky .pre-commit-config.yaml .pre-commit-hooks.yaml lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml
	lefthook-local.yml .lefthook .overcommit.yml
	.vscode .vs .idea .fleet .zed .nova .settings .devcontainer .devcontainer.json .cursor .cursorrules .claude .codex .gemini .windsurf .continue .aider.conf.yml
	.roo .kiro .mcp.json mcp.json .vimrc .exrc .nvimrc .nvim.lua .lvimrc .dir-locals.el .projectile .ycm_extra_conf.py
	.envrc .direnv .autoenv .autoenv.zsh .mise.toml mise.toml .mise .rtx.toml .tool-versions .asdfrc .python-version .node-version .nvmrc .ruby-version .sdkmanrc
	.bashrc .bash_profile .profile .zshrc .zshenv .zprofile .zlogin .inputrc .tmux.conf .gdbinit .lldbinit .pythonstartup .irbrc .pryrc .rprofile .renviron
	.npmrc .yarnrc .yarnrc.yml .yarn .pnpmfile.cjs .pnp.cjs .pnp.loader.mjs .bazelrc .cargo .mvn .gradle .direnvrc .ssh .gnupg
	upstreams.yaml sallyport.lock`)

// endings are extensions of files that editors and desktops treat as settings or programs.
var endings = []string{".code-workspace", ".sublime-project", ".sublime-workspace", ".desktop", ".iml"}

// Automatic reports whether programs must not change a path of a mapped folder because host tools execute or obey it
// automatically. Names are compared as on file systems that ignore case, joiners, and trailing dots and spaces.
func Automatic(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		part = strings.ToLower(strings.TrimRight(strings.Map(joiners, part), ". "))
		if part == "head" || slices.Contains(automatic, part) { // a folder with HEAD can be a git repository, whose config runs programs
			return true
		}
		for _, ending := range endings {
			if strings.HasSuffix(part, ending) {
				return true
			}
		}
	}
	return false
}

// joiners drops characters that some file systems ignore in names.
func joiners(r rune) rune {
	if r == '\u200c' || r == '\u200d' || r >= '\ufe00' && r <= '\ufe0f' {
		return -1
	}
	return r
}

// matches reports whether a glob matches a path, one of its parent folders, or the name of either.
func matches(globs []string, name string) bool {
	for at := name; at != ""; at = parent(at) {
		for _, glob := range globs {
			glob = strings.Trim(strings.TrimPrefix(glob, "./"), "/")
			whole, _ := path.Match(glob, at)
			last, _ := path.Match(glob, path.Base(at))
			if whole || last {
				return true
			}
		}
	}
	return false
}
