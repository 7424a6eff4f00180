package runtime

import "fmt"

// Function is a function that programs can import from "sallyport". Search finds
// functions as it finds tools.
type Function struct {
	// Name is the same in both languages.
	Name string
	// Summary describes its purpose in one line.
	Summary string
	// Words holds additional words for search.
	Words string
	// Python and TypeScript describe it in each language.
	Python, TypeScript Form
}

// Form is a function in one language: its import line, signature and documentation.
type Form struct{ Import, Signature, Doc string }

// Functions returns all functions, the most important first. The texts are trusted:
// they contain nothing from upstreams.
func Functions() []Function {
	functions := []Function{
		searchTools(), describe(), parallel(), iterate(), shapeOf(), emit(), save(), load(),
		saveSkill(), loadSkill(), listSkills(), progress(), toolError(),
	}
	for i, f := range functions {
		functions[i].Python.Import = "from sallyport import " + f.Name
		functions[i].TypeScript.Import = `import { ` + f.Name + ` } from "sallyport"`
	}
	return functions
}

func searchTools() Function {
	doc := `detail is "names", "summary", "signature" or "full". Returns the text that the tool search_tools gives, signatures in the program's own language.`
	return Function{
		Name: "search_tools", Summary: "Finds tools of all upstreams by words, from inside a program.", Words: "find look up discover list catalog query which tool",
		Python:     Form{Signature: "search_tools(query: str, detail: str | None = None, upstream: str | None = None, limit: int | None = None) -> str", Doc: doc},
		TypeScript: Form{Signature: "search_tools(query: string, options?: { detail?: string, upstream?: string, limit?: number }): Promise<string>", Doc: doc},
	}
}

func describe() Function {
	doc := `tool is a wrapper (%s), "upstream.name" or the id of an upstream. Returns the whole description: parameters, result, notes.`
	return Function{
		Name: "describe", Summary: "Describes a tool: parameters, result, notes.", Words: "help documentation signature schema parameters explain",
		Python:     Form{Signature: "describe(tool: Any) -> str", Doc: fmt.Sprintf(doc, "describe(create_issue)")},
		TypeScript: Form{Signature: "describe(tool: string | ((...args: any[]) => any)): Promise<string>", Doc: fmt.Sprintf(doc, "await describe(create_issue)")},
	}
}

func parallel() Function {
	doc := "%s. Results keep their order; at most limit run at once. An error stops further starts and is raised when the running ones end; with errors, all run and each error takes its result's place."
	return Function{
		Name: "parallel", Summary: "Runs functions at once and returns their results in order.", Words: "calls requests several simultaneously concurrent async gather threads batch map many bounded pool promise.all",
		Python:     Form{Signature: "parallel(*functions, limit: int = 16, errors: bool = False) -> list[Any]", Doc: fmt.Sprintf(doc, "parallel(lambda: a(1), lambda: b(2)) or parallel([lambda x=x: f(x) for x in xs])")},
		TypeScript: Form{Signature: "parallel(...functions, options?: { limit?: number, errors?: boolean }): Promise<any[]>", Doc: fmt.Sprintf(doc, "await parallel(() => a(1), () => b(2)) or await parallel(xs.map((x) => () => f(x)))")},
	}
}

func iterate() Function {
	doc := "The further arguments are the tool's own; pages are requested in order, as needed. %s"
	return Function{
		Name: "iterate", Summary: "Iterates over the items of all pages of a tool's results.", Words: "pagination paging cursor next page offset all results loop list everything",
		Python:     Form{Signature: "iterate(wrapper: Callable, *args, max_items: int | None = None, **kwargs) -> Iterator[Any]", Doc: fmt.Sprintf(doc, "for issue in iterate(list_issues, owner=..., repo=...): ... (or async for)")},
		TypeScript: Form{Signature: "iterate(wrapper: (args: any) => Promise<any>, args?: object, options?: { max_items?: number }): AsyncIterable<any>", Doc: fmt.Sprintf(doc, "for await (const issue of iterate(list_issues, { owner, repo })) ...")},
	}
}

func shapeOf() Function {
	doc := "Types and names of members, no values: to learn what a tool without output schema returns. %s"
	return Function{
		Name: "shape_of", Summary: "Returns the type of a value as a short text.", Words: "type structure schema inspect result keys fields unknown look",
		Python:     Form{Signature: "shape_of(value: Any) -> str", Doc: fmt.Sprintf(doc, "print(shape_of(f(...))) prints e.g. {id: int, tags: list[str], note?: str}")},
		TypeScript: Form{Signature: "shape_of(value: unknown): string", Doc: fmt.Sprintf(doc, "console.log(shape_of(await f({ ... }))) prints e.g. { id: number, tags: string[], note?: string }")},
	}
}

func emit() Function {
	doc := "thing is a text, a Blob, bytes, a path, %s. Only what a person or the model should see: it does not come back into the program."
	return Function{
		Name: "emit", Summary: "Sends an image, a file, a table or a text to the client, besides printed output.", Words: "show display picture plot chart figure attachment attach answer send user person return output image audio pdf png table markdown file",
		Python:     Form{Signature: "emit(thing: Any, *, name: str | None = None, mime: str | None = None) -> None", Doc: fmt.Sprintf(doc, "a figure (savefig), a picture (save), or a table (list of dicts or lists, data frame)")},
		TypeScript: Form{Signature: "emit(thing: unknown, options?: { name?: string, mime?: string }): Promise<void>", Doc: fmt.Sprintf(doc, "or a table (list of objects or lists)")},
	}
}

func save() Function {
	doc := "Values are kept as JSON, %s as they are. The name is a plain file name."
	return Function{
		Name: "save", Summary: "Stores a value in the workspace under a name, for load.", Words: "store persist keep cache write remember workspace large value",
		Python:     Form{Signature: "save(name: str, value: Any) -> None", Doc: fmt.Sprintf(doc, "bytes and Blob")},
		TypeScript: Form{Signature: "save(name: string, value: unknown): void", Doc: fmt.Sprintf(doc, "Uint8Array and Blob")},
	}
}

func load() Function {
	doc := "Either language can have saved it. An unknown name is a ToolError of code not_found."
	return Function{
		Name: "load", Summary: "Returns what save stored in the workspace under a name.", Words: "restore read fetch stored saved workspace value",
		Python:     Form{Signature: "load(name: str) -> Any", Doc: doc},
		TypeScript: Form{Signature: "load(name: string): any", Doc: doc},
	}
}

func saveSkill() Function {
	doc := `from_execution is "last" or an id: that program becomes a function, and params names literals of it, {"repo": "octo/hello"}. tests run before it is saved; an existing name gets a new version.`
	return Function{
		Name: "save_skill", Summary: "Keeps code as a skill that later programs import.", Words: "reuse reusable snippet script function library remember code write create share",
		Python: Form{Signature: "save_skill(name: str, code: str | None = None, description: str | None = None, language: str | None = None, params: dict | None = None, from_execution: str | None = None, tests: str | None = None, scope: str | None = None, groups: list[str] | None = None) -> str",
			Doc: doc + " Then: from skills.NAME import function"},
		TypeScript: Form{Signature: "save_skill(name: string, options?: { code?: string, description?: string, params?: object, from_execution?: string, tests?: string, scope?: \"private\" | \"shared\", groups?: string[] }): Promise<string>",
			Doc: doc + ` Then: import { fn } from "skills/NAME"`},
	}
}

func loadSkill() Function {
	doc := "To read it; to use it, import it."
	return Function{
		Name: "load_skill", Summary: "Returns the text of a skill: description, import, code.", Words: "read show source saved reuse",
		Python:     Form{Signature: "load_skill(name: str, version: int | None = None) -> str", Doc: doc},
		TypeScript: Form{Signature: "load_skill(name: string, version?: number): Promise<string>", Doc: doc},
	}
}

func listSkills() Function {
	return Function{
		Name: "list_skills", Summary: "Lists the skills that can be imported.", Words: "saved reusable available find",
		Python:     Form{Signature: "list_skills(query: str | None = None) -> str", Doc: "One per line; query filters by words."},
		TypeScript: Form{Signature: "list_skills(query?: string): Promise<string>", Doc: "One per line; query filters by words."},
	}
}

func progress() Function {
	return Function{
		Name: "progress", Summary: "Reports how far the calls inside are.", Words: "status percent long running listener notification",
		Python:     Form{Signature: "progress(listener: Callable[[Progress], Any])", Doc: "with progress(lambda p: print(p.progress, p.total, p.message)): f(...)"},
		TypeScript: Form{Signature: "progress(listener: (p: Progress) => unknown, body: () => T | Promise<T>): Promise<T>", Doc: "await progress((p) => console.log(p.progress, p.total, p.message), () => f({ ... }))"},
	}
}

func toolError() Function {
	doc := "code is invalid, not_found, denied, limit, timeout, canceled, upstream, failed (reported by the tool) or internal; retryable: the same call may be retried."
	return Function{
		Name: "ToolError", Summary: "The exception of a call that failed: message, code, upstream, tool, hint, retryable.", Words: "error exception catch except try failed retry handle",
		Python:     Form{Signature: `ToolError(message: str, code: str = "internal", tool: str = "", hint: str = "", retryable: bool = False)`, Doc: "except ToolError as e: " + doc},
		TypeScript: Form{Signature: `ToolError(message: string, code?: string, tool?: string, hint?: string, retryable?: boolean)`, Doc: "if (e instanceof ToolError): " + doc},
	}
}
