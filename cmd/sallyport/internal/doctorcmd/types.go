package doctorcmd

import (
	"errors"

	"sallyport/gateway/typecheck"
	"sallyport/internal/config"
	"sallyport/sandbox"
)

// checkTypes reports the type checkers for programs. It is not a failure to have none.
func checkTypes(box config.Sandbox) []finding {
	if !box.Typecheck {
		return []finding{{Check: sandbox.Check{Name: "types", OK: true, Detail: "not checked: sandbox.typecheck is false in upstreams.yaml"}}}
	}
	if box.Remote != "" {
		return []finding{{Check: sandbox.Check{Name: "types", OK: true, Detail: "checked where programs run, if the type checkers are installed there"}}}
	}
	return []finding{
		checkTypeChecker(typecheck.Python, "pyright", box.Pyright, "npm install --global pyright"),
		checkTypeChecker(typecheck.TypeScript, "tsc", box.Tsc, "npm install --global typescript@7"),
	}
}

func checkTypeChecker(language typecheck.Language, command, path, install string) finding {
	check := sandbox.Check{Name: "types of " + string(language), OK: true}
	found, err := typecheck.Find(language, path)
	switch {
	case err == nil:
		check.Detail = command + " " + found.Version + " at " + found.Folder
	case errors.Is(err, typecheck.ErrNotFound) && path == "":
		check.Detail = "not checked: no " + command + " in PATH (`" + install + "` would put it there)"
	default:
		check.Warn, check.Detail = true, "not checked: "+err.Error()
		check.Fix = "run `" + install + "`, or set sandbox." + command + " in upstreams.yaml to the path of its command"
	}
	return finding{Check: check}
}
